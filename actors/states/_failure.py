"""The data of the event `run.failed`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import JsonValue

    from callboard.actors.states._run import Run
    from callboard.messages import Observation

MOST_CONTROLS = 50


def last_look(run: Run) -> Observation | None:
    """Return the observation after the failure, or the last one before."""
    return run.last_seen or (run.records[-1].observation if run.records else None)


def controls_of(look: Observation | None) -> dict[str, str]:
    """Return the names of at most 50 observed controls, by id."""
    return {control.id: control.name for control in look.controls[:MOST_CONTROLS]} if look is not None else {}


def last_action(run: Run) -> dict[str, JsonValue]:
    """Return the last attempted action and its result; empty without one."""
    calls = [call for record in run.records for call in record.calls]
    if not (calls or run.lost):
        return {}
    action, result = (None, run.lost[-1]) if run.lost else calls[-1]
    arguments = dict(action.arguments) if action is not None else result.arguments
    return {"tool": result.tool, "arguments": arguments, "status": result.status.value, "error": result.error}
