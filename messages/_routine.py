"""Routines: recorded work that is repeated without a model."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, Self

from pydantic import Discriminator, Field, JsonValue, StringConstraints, Tag, model_validator

from callboard.messages._agent_status import AgentStatus
from callboard.messages._base import AgentKind, AnySequence, KindName, Seconds, Value
from callboard.messages._command import Hazard
from callboard.messages._documented_fields import DocumentedFields

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ParameterName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,39}$")]
"""The name of a routine's parameter: letters, digits and ``_ -``, at most 40; it does not begin with a digit."""
RoutineName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")]
"""The name of a routine: letters, digits and ``_ . -``, at most 100."""

_ENDS = frozenset({AgentStatus.FINISH, AgentStatus.FAIL, AgentStatus.ERROR})
"""The statuses that end the work."""
_DIGITS = 16
"""The number of characters of a digest."""

RESERVED_PARAMETERS = frozenset({"controls", "item", "steps", "subtasks", "secret", "window"})
"""The first parts of the references that are no parameters."""


class RoutineParameter(DocumentedFields, Value):
    """A value that differs from run to run."""

    value: JsonValue = None
    """The value if none is given; null: one must be given."""
    document: bool = False
    """Whether it is the name of a document. `callboard run ROUTINE FILE…` fills these in order."""
    description: str = ""
    """Its meaning, for people."""


class RecordedControl(DocumentedFields, Value):
    """A control that a step relies on, as it was recorded."""

    kind: str
    """Its kind, such as `button`."""
    name: str
    """Its name; a table's is its header."""
    id: str = ""
    """Its id, which counts only where kind, name and place do not decide."""
    place: str = ""
    """The group, heading or row that it belongs to, in words that survive a change of ids."""
    before: str = ""
    """The name of the control before it in that place."""
    after: str = ""
    """The name of the control after it in that place."""
    columns: JsonValue = None
    """The columns of a table or sheet: its header, or their number. Null for other controls."""
    alike: int = Field(default=0, ge=0)
    """The number of controls with its kind, name and place; 0 if it was the only one."""
    elsewhere: int = Field(default=0, ge=0)
    """The number of controls with its kind and name in other places."""
    disabled: bool = False
    """Whether it was disabled. Otherwise the routine stops if it is now."""
    hidden: bool = False
    """Whether it was hidden. Otherwise the routine stops if it is now."""


class ExpectedResult(DocumentedFields, Value):
    """The form of an action's result, without its values."""

    changes: bool
    """Whether the action changes something."""
    members: Annotated[tuple[str, ...], AnySequence] | None = None
    """The names of the members of its answer, sorted; null if the answer is no object."""
    leaves: dict[str, JsonValue] = Field(default_factory=dict)
    """The facts that must hold right after it, as its surface tells them: the files that a command made, by their
    names."""


class RoutineAction(DocumentedFields, Value):
    """A call of a tool."""

    tool: str = Field(min_length=1)
    """The tool's name."""
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    """Its arguments. `${month}` stands for a parameter, `${controls.0.id}` for a control of this step,
    `${steps.1.results.0.value}` for a result of this agent's earlier step, and `${subtasks.1.output}` for that of an
    earlier subtask."""
    control: int | None = Field(default=None, ge=0)
    """The place in `controls` of the control that it acts on, from 0; null if it acts on none."""
    expect: ExpectedResult | None = None
    """The expected form of its result; null for any."""
    relies_on: dict[str, JsonValue] = Field(default_factory=dict)
    """The facts that must hold right before it, as its surface tells them: the files that a command names, each `a
    file`, `a folder` or `missing`. References may be part of their names."""
    hazards: Annotated[tuple[Annotated[Hazard, Field(strict=False)], ...], AnySequence] = ()
    """The hazards that the policy saw when it was recorded. No repair of the routine that brings others is promoted."""


class RoutineAssignment(DocumentedFields, Value):
    """The hand-over of a subtask by the HostAgent."""

    subtask: int = Field(ge=1)
    """The number of the subtask in the routine, from 1."""
    after: Annotated[tuple[int, ...], AnySequence] = ()
    """The subtasks of the same step, by their places in it from 1, that must have finished before it begins."""
    after_any: Annotated[tuple[int, ...], AnySequence] = ()
    """The subtasks of the same step that must have ended before, with any outcome."""


class RoutineStep(DocumentedFields, Value):
    """One step of an agent: its guard, and its answer."""

    status: str = Field(min_length=1)
    """The status of its answer, such as `CONTINUE` or `FINISH`."""
    why: str = ""
    """The recorded model's reason, for people; it is never used."""
    window: str = ""
    """The application, screen, page or folder that must be in front; empty for any."""
    dialogs: Annotated[tuple[str, ...], AnySequence] = ()
    """The names of the dialogs that were open. Another one stops the routine."""
    controls: Annotated[tuple[RecordedControl, ...], AnySequence] = ()
    """The controls that the answer relies on."""
    actions: Annotated[tuple[RoutineAction, ...], AnySequence] = ()
    """The actions of its answer, in order."""
    alters: bool = False
    """Whether the surface must look different at the agent's next step. It is for actions whose answers tell nothing,
    such as a click."""
    assign: Annotated[tuple[RoutineAssignment, ...], AnySequence] = ()
    """The subtasks that a HostAgent hands over; several run side by side."""
    stops_group: bool = False
    """Whether the others of several subtasks are stopped once one of them did not finish."""
    result: JsonValue = None
    """The result of the work."""

    @model_validator(mode="after")
    def _has_controls(self) -> Self:
        if self.status == AgentStatus.PENDING:
            msg = "status is PENDING, but a routine asks no questions: make the answer a parameter"
            raise ValueError(msg)
        for number, action in enumerate(self.actions):
            if action.control is None:
                continue
            if action.control >= len(self.controls):
                msg = f"actions.{number}.control is {action.control}, but the step has {len(self.controls)} controls"
                raise ValueError(msg)
            reference = f"${{controls.{action.control}.id}}"
            if action.arguments.get("control_id", reference) != reference:
                msg = (
                    f"actions.{number}.control is {action.control}, but its control_id is "
                    f"{action.arguments['control_id']!r}: write {reference}, so that the guard is that of the control"
                )
                raise ValueError(msg)
        return self


class RoutineLoop(DocumentedFields, Value):
    """Steps that are repeated for each item of a list."""

    each: str = Field(min_length=1)
    """The list: a reference without `${}`, such as `subtasks.1.output.rows`. In its steps, `${item}` stands for the
    item, `${item.0}` for a part of it."""
    steps: Annotated[tuple[RoutineStep, ...], AnySequence] = Field(min_length=1)
    """The steps for one item."""
    last: int | None = Field(default=None, ge=1)
    """The number of steps for the last item; null: all."""

    @model_validator(mode="after")
    def _ends_within(self) -> Self:
        if self.last is not None and self.last > len(self.steps):
            msg = f"last is {self.last}, but the loop has {len(self.steps)} steps"
            raise ValueError(msg)
        return self


_STEP, _LOOP = "union[RoutineStep]", "union[RoutineLoop]"
"""The tags of entries, in the form by which `plain_problems` knows a part of a union."""


def _tag_of(entry: object) -> str:
    """Tell a loop from a step.

    Only the errors of the one that is meant are reported then.
    """
    is_loop = "each" in entry if isinstance(entry, dict) else isinstance(entry, RoutineLoop)
    return _LOOP if is_loop else _STEP


RoutineEntry = Annotated[
    Annotated[RoutineStep, Tag(_STEP)] | Annotated[RoutineLoop, Tag(_LOOP)], Discriminator(_tag_of)
]
"""A step, or a loop over steps."""
RoutineSteps = Annotated[tuple[RoutineEntry, ...], AnySequence]
"""The steps of an agent, in order."""


def steps_of(*entries: RoutineStep | RoutineLoop) -> tuple[RoutineStep, ...]:
    """Return the steps as they are written, those of loops once."""
    return tuple([step for entry in entries for step in (entry.steps if isinstance(entry, RoutineLoop) else (entry,))])


class RoutineSubtask(DocumentedFields, Value):
    """The work of one agent."""

    target: str = Field(min_length=1)
    """The id of its target; parameters may be part of it. `${steps.1.results.0.value.id}` stands for a window that the
    HostAgent opened in a step of its own."""
    kind: KindName
    """The kind of its agent, such as `app`."""
    request: str = Field(min_length=1)
    """The work, in words."""
    steps: RoutineSteps = Field(min_length=1)
    """Its steps."""


class RecordedRun(DocumentedFields, Value):
    """The run that a routine was recorded from."""

    task: str = ""
    """The task's id."""
    verified: bool = False
    """Whether all of its checks held."""
    model_calls: int = Field(default=0, ge=0)
    """Its calls of models."""
    cost: float = Field(default=0.0, ge=0)
    """Their cost, as far as their price was known."""
    seconds: Seconds = Field(default=0.0, ge=0)
    """The time from submission to end."""


class StepPlace(NamedTuple):
    """A step at its place in a routine."""

    place: str
    """Its place in words, such as `subtasks.1.steps.3`; `host.2.steps.1` is the first step of a loop."""
    kind: str
    """The kind of its agent."""
    step: RoutineStep


class Routine(DocumentedFields, Value):
    """Recorded work, which a person can read and edit."""

    routine: RoutineName
    """Its name."""
    version: Literal[1] = 1
    """The version of this format."""
    request: str = Field(min_length=1)
    """The work, in words; parameters may be part of it."""
    parameters: dict[ParameterName, RoutineParameter] = Field(default_factory=dict)
    """The values that differ from run to run, by name."""
    host: RoutineSteps = ()
    """The HostAgent's steps; empty if the only subtask is done without a HostAgent."""
    subtasks: Annotated[tuple[RoutineSubtask, ...], AnySequence] = ()
    """The subtasks, in the order of their hand-over."""
    checks: Annotated[tuple[dict[str, JsonValue], ...], AnySequence] = ()
    """The checks of each run, beside those of its task; parameters may be part of them."""
    recorded: RecordedRun = RecordedRun()
    """The run that it was recorded from, to compare others with."""
    proposal_for: str = ""
    """The digest of the routine that it is to replace, in a proposed change of one; empty in a routine."""

    @property
    def digest(self) -> str:
        """The digest of its content; an edited routine has another one."""
        content = self.model_dump_json(exclude_defaults=True, exclude={"proposal_for"})
        return hashlib.sha256(content.encode()).hexdigest()[:_DIGITS]

    @property
    def assigned(self) -> list[int]:
        """The numbers of the subtasks in the order of their hand-over."""
        return [part.subtask for step in steps_of(*self.host) for part in step.assign]

    def values(self, given: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Return the given values of parameters, and the other usual ones."""
        return {**{name: parameter.value for name, parameter in self.parameters.items()}, **given}

    def placed_steps(self) -> Iterator[StepPlace]:
        """Yield all steps, the HostAgent's first; those of loops once."""
        agents = [("host", AgentKind.HOST.value, self.host)]
        agents += [(f"subtasks.{number}.steps", part.kind, part.steps) for number, part in enumerate(self.subtasks, 1)]
        for place, kind, entries in agents:
            for number, entry in enumerate(entries, 1):
                loop = f"{place}.{number}.steps" if isinstance(entry, RoutineLoop) else ""
                for inner, step in enumerate(steps_of(entry), 1):
                    yield StepPlace(f"{loop}.{inner}" if loop else f"{place}.{number}", kind, step)

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        for name in self.parameters:
            if name in RESERVED_PARAMETERS:
                msg = f"parameters: {name!r} has another meaning in references: choose another name"
                raise ValueError(msg)
        if not self.subtasks:
            msg = "subtasks is empty: a routine has at least one"
            raise ValueError(msg)
        if not self.host and len(self.subtasks) != 1:
            msg = f"host is empty: the steps that hand over the {len(self.subtasks)} subtasks are missing"
            raise ValueError(msg)
        loops = [entry for entry in self.host if isinstance(entry, RoutineLoop)]
        if any(step.assign for step in steps_of(*loops)):
            msg = "host hands over a subtask in a loop: write one step for each subtask"
            raise ValueError(msg)
        assigned = self.assigned
        unknown = next((number for number in assigned if number > len(self.subtasks)), None)
        if unknown is not None:
            msg = f"host hands over subtask {unknown}, but there are {len(self.subtasks)} subtasks"
            raise ValueError(msg)
        for number, subtask in enumerate(self.subtasks, 1):
            if self.host and number not in assigned:
                msg = f"subtasks.{number} is handed over by no step of host: it would be left out"
                raise ValueError(msg)
            _check_end(f"subtasks.{number}.steps", subtask.steps)
        _check_end("host", self.host)
        return self


def _check_end(place: str, entries: tuple[RoutineStep | RoutineLoop, ...]) -> None:
    """Refuse steps after the end of the work.

    Raises:
        ValueError: If a step that ends it is in a loop, or is not the last one.
    """
    for number, entry in enumerate(entries, 1):
        end = next((step.status for step in steps_of(entry) if step.status in _ENDS), None)
        if end is None:
            continue
        problem = "is not the last step: those after it would be left out" if number < len(entries) else ""
        if isinstance(entry, RoutineLoop):
            problem = "in a loop would leave out the other items: write it after the loop"
        if problem:
            msg = f"{place}.{number}: {end} {problem}"
            raise ValueError(msg)
