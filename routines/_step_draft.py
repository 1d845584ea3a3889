"""Recorded steps before their values are replaced by references."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from callboard.routines._control_guard import recorded_control

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from callboard.messages import (
        Action,
        Control,
        ExpectedResult,
        Hazard,
        Observation,
        RecordedControl,
        RoutineAssignment,
    )
    from callboard.routines._origins import Origin

CONTROL_KEYS = ("control_id", "control_name")
"""The parameters of tools that name a control."""


class KnownReference(str):
    """A reference that is already known."""

    __slots__ = ()


@dataclass
class ActionDraft:
    """An action, with the values that it had."""

    tool: str
    arguments: dict[str, JsonValue]
    control: int | None = None
    expect: ExpectedResult | None = None
    own: dict[str, Origin] = field(default_factory=dict)
    """The references that the model itself wrote, by argument."""
    hazards: frozenset[Hazard] = frozenset()
    relies_on: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass
class StepDraft:
    """A step, with the values that it had."""

    index: int
    status: str
    observation: Observation
    thought: str = ""
    window: str = ""
    dialogs: tuple[str, ...] = ()
    controls: list[RecordedControl] = field(default_factory=list)
    actions: list[ActionDraft] = field(default_factory=list)
    assign: tuple[RoutineAssignment, ...] = ()
    stops_group: bool = False
    result: JsonValue = None
    own_result: Origin | None = None
    """The reference that the model itself wrote."""
    looked_different: bool = False
    """Whether the surface looked different at the next step."""
    visible: frozenset[int] = frozenset()
    """The subtasks whose outputs it may refer to, by their numbers in the journal."""

    @property
    def alters(self) -> bool:
        """True if only the view of the surface shows an effect."""
        answers = [action.expect.members for action in self.actions if action.expect is not None]
        return self.looked_different and bool(answers) and not any(answers)

    @property
    def shape(self) -> tuple[object, ...]:
        """The parts that are equal in the steps of a loop."""
        calls = tuple((action.tool, action.control, frozenset(action.arguments)) for action in self.actions)
        controls = tuple(control.kind for control in self.controls)
        return self.status, calls, controls, bool(self.assign), self.result is None

    def add(
        self,
        action: Action,
        expect: ExpectedResult,
        own: dict[str, Origin],
        hazards: frozenset[Hazard] = frozenset(),
        relies_on: Mapping[str, JsonValue] = MappingProxyType({}),
    ) -> bool:
        """Add an action.

        Return whether its control was seen, if it has one.
        """
        arguments = dict(action.arguments)
        control, number = seen_control(self.observation, action), None
        if control is not None:
            number = position(self.controls, recorded_control(control, self.observation))
            for key in CONTROL_KEYS:
                if key in arguments:
                    arguments[key] = KnownReference(f"${{controls.{number}.{key.removeprefix('control_')}}}")
        self.actions.append(ActionDraft(action.tool, arguments, number, expect, own, hazards, relies_on))
        return control is not None or action.control is None


def seen_control(observation: Observation, action: Action) -> Control | None:
    """Return the control of an action, as the model saw it."""
    if action.control is None:
        return None
    by_id = next((control for control in observation.controls if control.id == action.control.id), None)
    return observation.control(action.control) or by_id


def position(controls: list[RecordedControl], control: RecordedControl) -> int:
    """Return the place of a control in a list.

    A control that is not there is added at the end.
    """
    if control not in controls:
        controls.append(control)
    return controls.index(control)
