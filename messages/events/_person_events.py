"""Events of approvals and questions."""

from __future__ import annotations

from typing import Literal

from callboard.messages._base import Timestamp
from callboard.messages._command import Action
from callboard.messages._event import EventName
from callboard.messages._person import AtDeadline, Limit
from callboard.messages._step import AskedQuestion
from callboard.messages._target import Target
from callboard.messages.events._typed_event import Datum, Part, TypedEvent


class OpenApproval(Part):
    """An approval that waits, without its observation and pictures: `handle.approvals()` has these."""

    id: str
    """Its id, for `handle.approve` and `handle.reject`."""
    target: Target | None = None
    """The target of the actions."""
    actions: tuple[Action, ...]
    """Exactly the actions that run if it is approved; empty for a decision without an action."""
    reason: str
    """The rule that requires it, or the model's words."""
    deadline: Timestamp | None = None
    """When it is decided without a person; nothing: never."""
    at_deadline: AtDeadline = AtDeadline.DENY
    """The verdict at that time."""


class OpenQuestion(Part):
    """A question that waits, without its pictures: `handle.questions()` has these."""

    id: str
    """Its id, for `handle.answer`."""
    questions: tuple[AskedQuestion, ...]
    """The parts of the question."""
    deadline: Timestamp | None = None
    """When the agent gives up; nothing: never."""
    limit: Limit | None = None
    """The limit that a person may raise; nothing for a model's own question."""
    in_doubt: str = ""
    """The action that may have been done before a crash; empty for any other question."""
    machine_away: str = ""
    """The machine that is away; empty for any other question."""


class ClosedRequest(Part):
    """The end of an approval or a question."""

    id: str
    """Its id."""
    by: str = ""
    """The person who decided or answered."""
    withdrawn: bool = False
    """Whether it was withdrawn with its work."""
    expired: bool = False
    """Whether its deadline passed."""
    then: AtDeadline | None = None
    """The verdict that applies because its deadline passed."""


class ClosedApproval(ClosedRequest):
    """The end of an approval."""

    approved: bool | None = None
    """The person's verdict; nothing if no person decided."""
    reason: str = ""
    """The reason of a rejection."""
    remember: bool = False
    """Whether the same call is approved for the rest of the task."""
    unattended: bool = False
    """Whether approvals are switched off, so that no person decided."""


class ClosedQuestion(ClosedRequest):
    """The end of a question."""

    texts: tuple[str, ...] = ()
    """The answers, one for each part of the question."""
    nobody: bool = False
    """Whether questions are switched off, so that no person answers."""


class ApprovalRequested(TypedEvent):
    """An agent waits for a person's approval."""

    name: Literal[EventName.APPROVAL_REQUESTED] = EventName.APPROVAL_REQUESTED
    request: Datum[OpenApproval]
    """The approval."""
    picture: Datum[str] = ""
    """The file that shows the action; empty without one."""


class ApprovalAnswered(TypedEvent):
    """An approval is closed.

    It was given or refused, its deadline passed, or it was withdrawn with its work.
    """

    name: Literal[EventName.APPROVAL_ANSWERED] = EventName.APPROVAL_ANSWERED
    answer: Datum[ClosedApproval]
    """The end of the approval."""


class ApprovalElsewhere(TypedEvent):
    """Another machine of the fleet waits for an approval.

    Only people of that machine can decide on it.
    """

    name: Literal[EventName.APPROVAL_ELSEWHERE] = EventName.APPROVAL_ELSEWHERE
    machine: Datum[str]
    """The machine's name."""
    reason: Datum[str]
    """The rule that requires it, or the model's words."""


class QuestionAsked(TypedEvent):
    """An agent waits for a person's answer."""

    name: Literal[EventName.QUESTION_ASKED] = EventName.QUESTION_ASKED
    request: Datum[OpenQuestion]
    """The question."""
    picture: Datum[str] = ""
    """The file that shows the action; empty without one."""


class QuestionAnswered(TypedEvent):
    """A question is closed.

    It was answered, its deadline passed, or it was withdrawn with its work.
    """

    name: Literal[EventName.QUESTION_ANSWERED] = EventName.QUESTION_ANSWERED
    answer: Datum[ClosedQuestion]
    """The end of the question."""


class QuestionDeclined(TypedEvent):
    """An MCP server's question to a person got no answer.

    It wanted to ask while it ran a call.
    """

    name: Literal[EventName.QUESTION_DECLINED] = EventName.QUESTION_DECLINED
    server: Datum[str]
    """The server's name."""
    tool: Datum[str]
    """The tool's name; empty if it is not known."""
    reason: Datum[str]
    """Why there was no answer."""
