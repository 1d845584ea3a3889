"""What agents ask of people, and what people answer."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from callboard.messages._base import Address, Message, RunId, TaskId, Term, Timestamp, Token, Value
from callboard.messages._command import Action
from callboard.messages._outcome import Usage
from callboard.messages._step import AskedQuestion
from callboard.messages._target import Observation, Target

RequestId = Annotated[str, StringConstraints(min_length=1, max_length=200)]
"""Names one question or approval: ``<run>/ask-<job>``."""


class AtDeadline(Term):
    """What happens to an approval that nobody decides on in time."""

    DENY = "deny"
    """As if it were rejected."""
    FAIL = "fail"
    """The work fails as timed out."""
    ALLOW = "allow"
    """The actions run; never if one of them must not be repeated (effect `once`)."""


class Limit(Value):
    """One limit of a budget that is used up."""

    node: str
    """What the budget is for: a task, a subtask, a step."""
    kind: str
    """What ran out: steps, model_calls, tokens or cost."""


class Question(Message):
    """PENDING: an agent can't go on without an answer."""

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
    """What there may be more of, if a person says so; None for a model's own question."""
    in_doubt: str = ""
    """The action of which nobody knows whether it was done before a crash; empty for any other question."""
    usage: Usage = Field(default_factory=Usage)
    """What the step used that was broken off to ask; at the limit of a budget."""
    sent_back: bool = False
    """Whether that step had sent a FINISH back, because nothing had been done."""
    before: bytes | None = None
    """What the agent decided on, as PNG, with labels on the controls that are meant; None where that is no other than
    `picture`, and where there is no picture."""
    picture: bytes | None = None
    """What is to be seen when it asks, labelled in the same way; None for a surface without pictures."""


class Answer(Message):
    """What a person answered to a question, one text for each of its parts."""

    kind: Literal["answer"] = "answer"
    id: RequestId
    task_id: TaskId
    texts: tuple[str, ...] = ()
    by: str = ""
    """Who answered; for the record."""
    nobody: bool = False
    """Questions are switched off (``ask_question = false``): nobody will answer."""


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
    """Exactly what will run if it is approved; empty when the model asks about a decision without an action."""
    reason: str
    """The rule that wants it, or what the model said."""
    before: bytes | None = None
    """What the agent decided on, as PNG, with labels on the controls that are meant; None where it looks the same now,
    and for a surface without pictures."""
    observation: Observation
    """What the agent sees, collected when asking; its annotated picture has labels on the controls that are meant."""
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
    """Who decided; for the record."""
    remember: bool = False
    """Whether the same tool with the same target and arguments is approved for the rest of the task."""
    unattended: bool = False
    """Approvals are switched off (``safe_guard = false``): no person decided."""


class RequestExpired(Message):
    """A question or approval reached its deadline without an answer."""

    kind: Literal["request_expired"] = "request_expired"
    id: RequestId
    task_id: TaskId
    at_deadline: AtDeadline = AtDeadline.FAIL
    """For an approval: what happens now."""
