"""A routine's guard, tried on two observations of a surface."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.messages import RoutineMissError, RoutineStep
from callboard.routines import dialogs_of, held_controls, recorded_control, window_of

if TYPE_CHECKING:
    from callboard.messages import Control, Observation, Target

STOP = ""


def control_of(seen: Observation, name: str, kind: str, place: str | None = None) -> Control:
    """Find the only control of a name, a kind and, if given, a place."""
    (found,) = [
        control
        for control in seen.controls
        if (control.name, control.kind) == (name, kind) and place in {None, control.place}
    ]
    return found


def recorded_step(seen: Observation, target: Target, control: Control) -> RoutineStep:
    """Record a step that acts on a control."""
    return RoutineStep(
        status="CONTINUE",
        window=window_of(seen, target),
        dialogs=dialogs_of(seen),
        controls=(recorded_control(control, seen),),
    )


def decision(step: RoutineStep, now: Observation, target: Target, *, once: bool = False) -> str:
    """Return the id of the control that the guard finds now, or `STOP`."""
    try:
        return held_controls(step, now, target, once=(0,) if once else ())[0].id
    except RoutineMissError:
        return STOP
