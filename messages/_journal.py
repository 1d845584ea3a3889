"""What only the journal keeps: how far a step came, so that a crash in the middle of it loses and repeats nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field, JsonValue

from callboard.messages._base import Message, TaskId, Term
from callboard.messages._command import Action
from callboard.messages._step import Decision
from callboard.messages._target import ControlRef, Observation, Target

if TYPE_CHECKING:
    from collections.abc import Collection

    from callboard.messages._command import CommandResult


class Answered(Message):
    """A model's answer as it came, not yet checked; it is not asked for again."""

    kind: Literal["answered"] = "answered"
    step: int = Field(ge=1)
    call: int = Field(ge=1)
    """The number of the call at this address within the task."""
    content: JsonValue
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    refers: bool = False
    """Whether it may refer to results, as a model of a provider may."""
    offered: tuple[str, ...] = ()
    """The statuses that it could choose from; empty for a program's, and from versions that did not keep them."""
    program: bool = False
    """Whether a program gave it; not so for those of versions that did not keep it."""
    cut: str = ""
    """Why it is not whole, where it was cut, or more than is taken."""
    fingerprint: str = ""
    """Of what it was given on; empty where no window is seen, and from versions that did not keep it."""

    @property
    def used(self) -> dict[str, float]:
        """What it took of the budgets, by kind."""
        return {"model_calls": 1, "tokens": self.input_tokens + self.output_tokens, "cost": self.cost or 0.0}


class Decided(Message):
    """What a step is about to do, and what it was decided on."""

    kind: Literal["decided"] = "decided"
    step: int = Field(ge=1)
    observation: Observation
    decision: Decision
    actions: tuple[Action, ...] = ()
    """What is run now: the decision's actions, or those that were held."""
    approved: str = ""
    """Why they count as approved, where they do."""
    resumed: bool = False
    """Whether they were held, and decided on in an earlier step."""
    seen: str = ""
    """The fingerprint of the latest look before them, where that was not what they were decided on."""

    def after(self, results: Collection[CommandResult]) -> tuple[Action, ...]:
        """Give the actions that are still to be run after those with a result."""
        ran = {result.call_id for result in results}
        return tuple(action for action in self.actions if action.call_id not in ran)


class Intent(Message):
    """An action that must not be repeated is about to run. Without an outcome after it, it is in doubt."""

    kind: Literal["intent"] = "intent"
    call_id: str
    tool: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    control: ControlRef | None = None
    target: Target | None = None
    fingerprint: str = ""
    """Of the surface before it."""
    expected: str = ""
    """Of the surface after it, where the server can tell."""
    noted: tuple[str, ...] = ()
    """What its tool noted of it before a crash, in order (`Call.note`); in the journal that has rows of its own."""


class Foreseen(Message):
    """A file is about to be replaced by what an intended action made: which bytes there are before and after."""

    kind: Literal["foreseen"] = "foreseen"
    call_id: str
    path: str
    before: str = ""
    """The fingerprint of its bytes; empty for a file that is not there."""
    after: str
    answer: JsonValue = None
    """What the call answers once that is done; None where its server does not tell."""


class Noted(Message):
    """A note of a tool during its call: tells its server after a crash whether the call was done."""

    kind: Literal["noted"] = "noted"
    call_id: str
    text: str


class Probe(Term):
    """What a look says of an action that may have been done before a crash."""

    DONE = "done"
    """It was done; the work goes on after it."""
    NOT_DONE = "not_done"
    """It was not; it is tried anew, with a new intent."""
    BEGUN = "begun"
    """It was begun, and a call with the same id goes on with it where it stands, repeating nothing: it is called."""
    UNKNOWN = "unknown"
    """The surface does not tell; a person decides, or the work fails."""


class InForce(Message):
    """The settings by which all that follows was decided, up to the next one; each start of a supervisor writes it."""

    kind: Literal["in_force"] = "in_force"
    sections: dict[str, JsonValue]
    """What a replay needs of them, by section. No secret is in it."""


class Recovered(Message):
    """A task goes on in another process than before; its clocks did not count what was between."""

    kind: Literal["recovered"] = "recovered"
    task_id: TaskId
