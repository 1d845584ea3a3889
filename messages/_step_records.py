"""Messages that only the journal stores: the progress of a step.

With them, a crash in the middle of a step loses and repeats nothing.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Literal

from pydantic import Field, JsonValue

from callboard.messages._action_guard import ActionGuard, RoutineMiss
from callboard.messages._base import Message, TaskId, Term
from callboard.messages._command import Action
from callboard.messages._step import Decision
from callboard.messages._target import ControlRef, Observation, Target

if TYPE_CHECKING:
    from collections.abc import Collection

    from callboard.messages._command import CommandResult


FOLDER_MARK = "folder"
"""The fingerprint of a folder, which has no bytes."""


class Answered(Message):
    """A model's unchecked answer.

    After a crash the model is not asked again.
    """

    kind: Literal["answered"] = "answered"
    step: int = Field(ge=1)
    call: int = Field(ge=1)
    """The number of the call at this address within the task."""
    content: JsonValue
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    refers: bool = False
    """Whether it may refer to results, as a provider's model may."""
    offered: tuple[str, ...] = ()
    """The statuses that it could choose from; empty for a program's, and in journals of versions that did not keep
    them."""
    must_succeed: bool = False
    """Whether its FINISH needs an action that succeeded, if one was tried; false in journals of versions that did not
    keep it, whose tasks are replayed as they ran."""
    omission: str = ""
    """The part of the request that its FINISH omits; empty in journals of versions that did not look for one, whose
    tasks are replayed as they ran."""
    program: bool = False
    """Whether a program gave it; false in journals of versions that did not keep it."""
    replayed: bool = False
    """Whether a routine gave it in place of a model."""
    routine_step: int = Field(default=0, ge=0)
    """The place of the routine's step that it repeats, from 1, with each repetition of a loop counted; 0 for a model's
    own answer, and in journals of versions without routines."""
    routine_miss: RoutineMiss | None = None
    """The reason why the routine was left at this answer; None if it was not."""
    guards: tuple[ActionGuard, ...] = ()
    """The guards of its actions, if a routine gave it."""
    cut: str = ""
    """The reason why it is incomplete: it was cut, or is longer than the limit."""
    fingerprint: str = ""
    """The fingerprint of the surface that it was given on; empty where no window is seen, and in journals of versions
    that did not keep it."""

    @property
    def used(self) -> dict[str, float]:
        """The amounts it took from the budgets, by kind."""
        calls = int(not self.replayed)
        return {"model_calls": calls, "tokens": self.input_tokens + self.output_tokens, "cost": self.cost or 0.0}


class Decided(Message):
    """The actions that a step is about to run.

    The decision behind them is included.
    """

    kind: Literal["decided"] = "decided"
    step: int = Field(ge=1)
    observation: Observation
    decision: Decision
    actions: tuple[Action, ...] = ()
    """The actions to run now: the decision's, or those that were held."""
    approved: str = ""
    """The reason why they count as approved, where they do."""
    resumed: bool = False
    """Whether they were held, and decided on in an earlier step."""
    seen: str = ""
    """The fingerprint of the latest look before them, where the decision was based on another one."""

    def after(self, results: Collection[CommandResult]) -> tuple[Action, ...]:
        """Return the actions still to run after those with a result."""
        ran = {result.call_id for result in results}
        return tuple(action for action in self.actions if action.call_id not in ran)


class Intent(Message):
    """A write-ahead record of an action that must not be repeated.

    Without an outcome after it, the action is in doubt.
    """

    kind: Literal["intent"] = "intent"
    call_id: str
    tool: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    control: ControlRef | None = None
    target: Target | None = None
    fingerprint: str = ""
    """The fingerprint of the surface before it."""
    expected: str = ""
    """The expected fingerprint after it, where the surface can tell."""
    noted: tuple[str, ...] = ()
    """The notes of its tool before a crash, in order (`Call.note`). The journal has rows of their own for them."""


class Foreseen(Message):
    """A file about to be replaced by an intended action.

    It has the fingerprints of the file's bytes before and after.
    """

    kind: Literal["foreseen"] = "foreseen"
    call_id: str
    path: str
    before: str = ""
    """The fingerprint of its bytes; empty for a file that does not exist."""
    after: str
    answer: JsonValue = None
    """The call's answer once that is done; None where its surface does not provide one."""
    kept: bool = False
    """Whether the bytes before it are kept beside the journal, for `callboard undo`. Then `before` is their SHA-256 in
    hexadecimal. False in journals of versions that kept none."""

    @property
    def is_listed(self) -> bool:
        """True if the call lists the file among those that it wrote.

        It lists no file that it removes, no folder, and no file of another machine (``host:path``).
        """
        return self.after not in {"", FOLDER_MARK} and PurePath(self.path).is_absolute()


class Noted(Message):
    """A tool's note during its call, for its surface.

    It lets the surface find out whether the call was done.
    """

    kind: Literal["noted"] = "noted"
    call_id: str
    text: str


class Probe(Term):
    """The finding about an action in doubt.

    The action may have been done before a crash.
    """

    DONE = "done"
    """It was done; the work continues after it."""
    NOT_DONE = "not_done"
    """It was not done; it is tried again, with a new intent."""
    BEGUN = "begun"
    """It was begun, and a call with the same id resumes it without repeating anything: it is called."""
    UNKNOWN = "unknown"
    """The surface does not show it; a person decides, or the work fails."""


class FilesAtStart(Message):
    """The contents of files at a task's submission, for its checks."""

    kind: Literal["files_at_start"] = "files_at_start"
    task_id: TaskId
    files: dict[str, str]
    """The SHA-256 of each file in hexadecimal, by its name as a target."""


class InForce(Message):
    """The settings that apply to the rows after it.

    They apply up to the next row of this kind. Each start of a supervisor writes it.
    """

    kind: Literal["in_force"] = "in_force"
    sections: dict[str, JsonValue]
    """The sections that a replay needs. They hold no secret."""


class Recovered(Message):
    """A task resumes in another process; its clocks skip the time between."""

    kind: Literal["recovered"] = "recovered"
    task_id: TaskId
