"""Interrupts: open requests of a task, and a person's answers to them."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from ag_ui.core import Interrupt

from callboard.actors.client import kind_of_request, shown_whole
from callboard.messages import ApprovalRequest

if TYPE_CHECKING:
    from ag_ui.core import ResumeEntry

    from callboard.messages import Question

_REASONS = {
    "approval": "confirmation",
    "question": "input_required",
    "limit": "callboard:limit",
    "doubt": "callboard:doubt",
}
"""The reason of an interrupt, by the kind of the request. The first two are the protocol's."""
_TOO_LONG = "It is too long to be shown here, so it can only be rejected here: decide in the console."
_REASON_CHARACTERS = 500
_ANSWER_CHARACTERS = 4_000


class RunRefusal(StrEnum):
    """Codes of refused runs, for programs."""

    INVALID_ANSWER = "invalid_answer"
    """The answer does not fit its request."""
    INTERRUPTS_PENDING = "interrupts_pending"
    """The thread waits for answers."""
    BUSY = "busy"
    """A task of the thread is at work."""
    TOO_MANY_TASKS = "too_many_tasks"
    """The person has as many unfinished tasks as there may be."""
    UNKNOWN_INTERRUPT = "unknown_interrupt"
    """The answer is for no request of the thread."""
    RUN_ID_USED = "run_id_used"
    """The run was to do something else before."""
    INVALID_INPUT = "invalid_input"
    """The run has no request that could be a task."""


class RunRefusedError(Exception):
    """A run is refused, and nothing was changed.

    Attributes:
        code: The kind of the reason.
    """

    def __init__(self, code: RunRefusal, message: str) -> None:
        self.code = code
        super().__init__(message)


@dataclass(frozen=True)
class InterruptAnswer:
    """A person's decision about an open request."""

    is_approval: bool
    approved: bool = False
    texts: tuple[str, ...] = ()
    """The answers to the parts of a question; none leaves it open."""
    reason: str = ""


def interrupt_of(request: ApprovalRequest | Question) -> Interrupt:
    """Describe an open request, with a form for its answer."""
    text, kind = shown_whole(request), kind_of_request(request)
    deadline = None if request.deadline is None else dt.datetime.fromtimestamp(request.deadline, dt.UTC)
    return Interrupt(
        id=request.id,
        reason=_REASONS[kind],
        message=_TOO_LONG if text is None else text,
        response_schema=_approval_form(text) if isinstance(request, ApprovalRequest) else _question_form(request),
        expires_at=None if deadline is None else deadline.isoformat(),
        metadata={"callboard": {"kind": kind, "taskId": request.task_id, "agent": request.address}},
    )


def _approval_form(text: str | None) -> dict[str, Any]:
    approved: dict[str, Any] = {"type": "boolean", "title": "Approved"}
    return {
        "type": "object",
        "properties": {
            "approved": approved | ({"const": False} if text is None else {}),
            "reason": {"type": "string", "maxLength": _REASON_CHARACTERS, "title": "Reason, if it is rejected"},
        },
        "required": ["approved"],
        "additionalProperties": False,
    }


def _question_form(question: Question) -> dict[str, Any]:
    properties = {
        f"answer_{number}": {"type": "string", "title": part.text, "maxLength": _ANSWER_CHARACTERS}
        | ({"enum": list(part.choices)} if part.choices else {})
        for number, part in enumerate(question.questions, 1)
    }
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def answer_to(request: ApprovalRequest | Question, entry: ResumeEntry) -> InterruptAnswer:
    """Read a person's answer to an open request.

    Only `{"approved": true}` of a resolved entry approves. A cancelled entry rejects an approval, and leaves a question
    open.

    Raises:
        RunRefusedError: If the answer does not fit.
    """
    if entry.status == "cancelled":
        return InterruptAnswer(isinstance(request, ApprovalRequest), reason="it was dismissed")
    payload = entry.payload
    if not isinstance(payload, dict):
        raise _misfit(request)
    if isinstance(request, ApprovalRequest):
        approved, reason = payload.get("approved"), payload.get("reason", "")
        if set(payload) - {"approved", "reason"} or not isinstance(approved, bool) or not isinstance(reason, str):
            raise _misfit(request)
        if approved and shown_whole(request) is None:
            raise RunRefusedError(RunRefusal.INVALID_ANSWER, _TOO_LONG)
        return InterruptAnswer(is_approval=True, approved=approved, reason=reason[:_REASON_CHARACTERS])
    texts: list[str] = []
    for number, part in enumerate(request.questions, 1):
        text = payload.get(f"answer_{number}")
        if not isinstance(text, str) or not 0 < len(text) <= _ANSWER_CHARACTERS:
            raise _misfit(request)
        if part.choices and text not in part.choices:
            raise _misfit(request)
        texts.append(text)
    if len(payload) != len(texts):
        raise _misfit(request)
    return InterruptAnswer(is_approval=False, texts=tuple(texts))


def _misfit(request: ApprovalRequest | Question) -> RunRefusedError:
    return RunRefusedError(RunRefusal.INVALID_ANSWER, f"the answer to {request.id} does not fit its responseSchema")
