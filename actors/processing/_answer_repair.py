"""Repair of answers: an invalid one goes back to the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from callboard.messages import (
    AgentStatus,
    EventName,
    FailedSubtaskError,
    InvalidAnswerError,
    ResultStatus,
    UnfoundedFinishError,
    open_failures,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from callboard.actors.processing._context import Context
    from callboard.actors.states import Run
    from callboard.messages import Decision, StepRecord
    from callboard.models import ModelAnswer


UNDONE = (
    "it says FINISH, and nothing was done yet: no action was run. Do what the request asks for; if looking was enough "
    "for that, say FINISH again, with the answer in Result"
)


OMITTED = "it says FINISH, but {omission}. Do what is missing; only if nothing is, say FINISH again"
UNFOUNDED = "it says FINISH, and none of the actions so far succeeded ({failed})"
UNFINISHED = "it says FINISH, and the last subtask, {request!r}, ended as {outcome}{why}"
_INSTEAD = ": do what the request asks for in another way, or say FAIL with the reason in Comment"
_NAMED = 3
"""The number of failed actions that the reason names, the latest ones."""
_NOT_DONE = frozenset({ResultStatus.FAILURE, ResultStatus.SKIPPED})
_FOUNDED: tuple[None, str] = None, ""


class AnswerRepair:
    """The answers of one step that went back to the model.

    The model gets all reasons so far with each request. At most ``limits.repairs`` invalid answers go back. A FINISH
    goes back once more, and does not count as one of them, if it comes before any action, after failed ones only or
    after a failed subtask, or if it omits a part of the request.
    """

    def __init__(self, context: Context, run: Run) -> None:
        self.reasons: tuple[str, ...] = ()
        """The reasons, in the order of the answers."""
        self._context = context
        self._run = run
        self._pending = False
        """Whether the last answer was invalid, and the next one is its repair."""
        self._insisted = False

    def count(self) -> None:
        """Count a repair, once the answer to an invalid one is there."""
        if self._pending:
            self._context.meter.amounts["repairs"] += 1
            self._pending = False

    def send_back(self, error: InvalidAnswerError, call_data: Mapping[str, Any]) -> None:
        """Send an invalid answer back.

        Args:
            error: The reason, written for the model.
            call_data: The usage and duration of the call, for the event.

        Raises:
            InvalidAnswerError: If all repairs are used up; a `FailedSubtaskError` if the model insisted on one.
        """
        self._pending = True
        self._insisted = self._insisted or isinstance(error, FailedSubtaskError)
        self._add(str(error), call_data)
        most = self._run.limits.repairs
        if len(self.reasons) - self._context.meter.sent_back > most:
            msg = f"the model's answer is invalid: {error} (after {most} repair{'' if most == 1 else 's'})"
            raise (FailedSubtaskError if self._insisted else InvalidAnswerError)(msg, self.reasons) from error

    def sends_back_finish(self, answer: ModelAnswer, decision: Decision, call_data: Mapping[str, Any]) -> bool:
        """Send back a FINISH that nothing supports; return whether it was.

        That is one before any successful action, or one that omits a part of the request: a model may insist on that.

        Raises:
            FailedSubtaskError: If the model insists on a FINISH after a failed subtask.
            UnfoundedFinishError: If the model insists on a FINISH after failed actions only.
        """
        meter, run = self._context.meter, self._run
        if not answer.offered or decision.status != AgentStatus.FINISH or decision.actions:
            return False
        sent_back, acted = _sent_back(run), any(record.acted for record in run.records)
        kind, reason = _unfounded(run) if answer.must_succeed else _FOUNDED
        if kind is not None:
            if meter.sent_back or any(record.acted for record in run.records[: max(sent_back, default=0)]):
                raise kind(reason, (*self.reasons, reason))
            reason += _INSTEAD
        elif meter.sent_back:
            return False
        elif not (sent_back or acted):
            reason = UNDONE
        elif answer.omission and run.sent_back is None and not any(record.decision.omitted for record in run.records):
            meter.omitted = True
            reason = OMITTED.format(omission=answer.omission)
        else:
            return False
        meter.sent_back = True
        self._add(reason, call_data)
        return True

    def _add(self, reason: str, call_data: Mapping[str, Any]) -> None:
        self.reasons = (*self.reasons, reason)
        self._context.tell(
            EventName.MODEL_REPAIRED,
            self._run,
            reason=reason,
            attempt=len(self.reasons),
            duration=call_data["duration"],
            model=call_data["model"],
            answered_by=call_data["answered_by"],
            cost=call_data["cost"],
            input_tokens=call_data["input_tokens"],
            output_tokens=call_data["output_tokens"],
        )


def _unfounded(run: Run) -> tuple[type[InvalidAnswerError] | None, str]:
    """Return the error of a FINISH that nothing supports, with its reason.

    In a HostAgent's round the last subtasks count, until an action of its own succeeds after it.
    """
    records, subtasks = run.records, () if run.assign.number else run.own_subtasks
    numbers = [number for number, record in enumerate(records, 1) if subtasks and _assigned(record)]
    assigned = max(numbers, default=0)
    results = [result for record in records[assigned:] for result in record.results]
    if not all(result.status in _NOT_DONE for result in results):
        return _FOUNDED
    if assigned:
        failures = open_failures(subtasks)
        if not failures:
            return _FOUNDED
        last = failures[-1]
        why = "".join(f" ({cause.reason})" for cause in last.causes[:1])
        return FailedSubtaskError, UNFINISHED.format(request=last.request, outcome=last.outcome.value, why=why)
    failed = "; ".join(f"{failure.tool}: {failure.error}" for failure in results[-_NAMED:])
    return (UnfoundedFinishError, UNFOUNDED.format(failed=failed)) if results else _FOUNDED


def _assigned(record: StepRecord) -> bool:
    """Return whether a subtask was assigned after a step."""
    return record.decision.status == AgentStatus.ASSIGN and not (record.incomplete or record.not_run)


def _sent_back(run: Run) -> list[int]:
    """Return the number of steps before each FINISH that was sent back.

    Those sent back for an omission are left out.
    """
    decisions = [record.decision for record in run.records]
    earlier = [number for number, decision in enumerate(decisions) if decision.sent_back and not decision.omitted]
    return earlier if run.sent_back is None else [*earlier, run.sent_back]
