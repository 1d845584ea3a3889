"""Questions and approvals for people, and their answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, StringConstraints

from callboard.messages._base import Address, Message, RunId, TaskId, Term, Timestamp, Token, Value
from callboard.messages._command import Action
from callboard.messages._outcome import Usage
from callboard.messages._step import AskedQuestion
from callboard.messages._target import Observation, Target

if TYPE_CHECKING:
    from collections.abc import Iterable

RequestId = Annotated[str, StringConstraints(min_length=1, max_length=200)]
"""Names one question or approval: ``<task>~<number>~ask-<job>``, which is safe in URLs. Journals of earlier versions
have slashes in them."""


class AtDeadline(Term):
    """The verdict on an approval that reached its deadline unanswered."""

    DENY = "deny"
    """The same as a rejection."""
    FAIL = "fail"
    """The work fails as timed out."""
    ALLOW = "allow"
    """The actions run; never if one of them must not be repeated (effect `once`)."""


class Limit(Value):
    """One limit of a budget that is used up."""

    node: str
    """The owner of the budget: a task, a subtask, a step."""
    kind: str
    """The exhausted resource: steps, model_calls, tokens or cost."""


class Question(Message):
    """PENDING: an agent needs an answer to continue."""

    kind: Literal["question"] = "question"
    id: RequestId
    task_id: TaskId
    run_id: RunId
    token: Token
    address: Address
    questions: tuple[AskedQuestion, ...] = Field(min_length=1)
    deadline: Timestamp | None = None
    """When the agent gives up; None: never."""
    limit: Limit | None = None
    """The limit that a person may raise; None for a model's own question."""
    in_doubt: str = ""
    """The action that may have been done before a crash; empty for any other question."""
    machine_away: str = ""
    """The machine that is away, and may have done its work in part; `any` if none is there for work of any machine.
    Empty for any other question."""
    usage: Usage = Field(default_factory=Usage)
    """At the limit of a budget: the usage of the step that was interrupted to ask."""
    sent_back: bool = False
    """Whether that step had sent a FINISH back, because nothing had been done."""
    before: bytes | None = None
    """The picture that the agent decided on, as PNG, with labels on the controls that are meant. None if it is the same
    as `picture`, and where there is no picture."""
    picture: bytes | None = None
    """The picture at the time of asking, labelled in the same way; None for a surface without pictures."""


class Answer(Message):
    """A person's answer to a question.

    It has one text for each part of the question.
    """

    kind: Literal["answer"] = "answer"
    id: RequestId
    task_id: TaskId
    texts: tuple[str, ...] = ()
    by: str = ""
    """The person who answered; for the record."""
    nobody: bool = False
    """Whether questions are switched off (``ask_question = false``), so that no person answers. For a task of another
    machine `by` names that machine, whose questions are switched off."""


class ApprovalRequest(Message):
    """CONFIRM: an agent holds back actions until a person allows them."""

    kind: Literal["approval_request"] = "approval_request"
    id: RequestId
    task_id: TaskId
    run_id: RunId
    token: Token
    address: Address
    target: Target | None = None
    actions: tuple[Action, ...]
    """Exactly the actions that run if it is approved; empty when the model asks about a decision without an action."""
    reason: str
    """The rule that requires it, or the model's words."""
    before: bytes | None = None
    """The picture that the agent decided on, as PNG, with labels on the controls that are meant. None if it looks the
    same now, and for a surface without pictures."""
    observation: Observation
    """The agent's observation, collected when asking; its annotated picture has labels on the controls that are meant.
    """
    deadline: Timestamp | None = None
    at_deadline: AtDeadline = AtDeadline.DENY


class ApprovalAnswer(Message):
    """A person's verdict on an approval."""

    kind: Literal["approval_answer"] = "approval_answer"
    id: RequestId
    task_id: TaskId
    approved: bool
    reason: str = ""
    by: str = ""
    """The person who decided; for the record."""
    remember: bool = False
    """Whether the same tool with the same target and arguments is approved for the rest of the task."""
    unattended: bool = False
    """Whether approvals are switched off (``safe_guard = false``), so that no person decided."""


class RequestExpired(Message):
    """A question or approval reached its deadline without an answer."""

    kind: Literal["request_expired"] = "request_expired"
    id: RequestId
    task_id: TaskId
    at_deadline: AtDeadline = AtDeadline.FAIL
    """For an approval: the verdict that applies now."""


UNATTENDED = "nobody will answer questions: decide yourself, or say FAIL"
"""The note to a model that asked a question while questions are off."""
_ANSWERED = "a person answered"


def answer_notes(questions: tuple[AskedQuestion, ...], answer: Answer) -> Iterable[str]:
    """Yield a note of an observation for each question with its answer."""
    if answer.nobody:
        yield UNATTENDED
    for question, text in zip(questions, answer.texts, strict=False):
        yield f"asked {question.text!r}, {_ANSWERED} {text!r}"


def people_notes(observation: Observation) -> Iterable[str]:
    """Yield the notes with people's answers.

    Later steps need them too, and no other place keeps them.
    """
    return (note for note in observation.notes if _ANSWERED in note)
