"""What is told of work that ended by FAIL or ERROR, for whoever looks into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import JsonValue

    from callboard.actors.states._run import Run
    from callboard.messages import Observation

MOST_CONTROLS = 50


def last_look(run: Run) -> Observation | None:
    """Give what was seen last: after the failure, or if that was not possible, before it."""
    return run.last_seen or (run.records[-1].observation if run.records else None)


def controls_of(seen: Observation | None) -> dict[str, str]:
    """Name the controls that were seen, by id; at most 50."""
    return {control.id: control.name for control in seen.controls[:MOST_CONTROLS]} if seen is not None else {}


def last_action(run: Run) -> dict[str, JsonValue]:
    """Tell the last action that was tried, and what came of it; empty if there was none."""
    calls = [call for record in run.records for call in record.calls]
    if not (calls or run.lost):
        return {}
    action, result = (None, run.lost[-1]) if run.lost else calls[-1]
    arguments = dict(action.arguments) if action is not None else result.arguments
    return {"tool": result.tool, "arguments": arguments, "status": result.status.value, "error": result.error}
