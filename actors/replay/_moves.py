"""Which moves were recorded: for each time that an agent began with a run, or went on with it after a crash."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from callboard.messages import Assign, Event, EventName

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from callboard.actors.journal import Row


@dataclass
class Moves:
    """The moves between one hand-over of a run and the next, or its end."""

    left: list[str] = field(default_factory=list)
    """Those that were not made again yet, the next one last."""
    recovered: bool = False
    """Whether the agent began with what the journal had: the moves in that were not told again."""
    whole: bool = False
    """Whether the last of them is told, to the machine's final state. Else a crash, or the end of the record, may have
    swallowed it: an ending is kept with the step that leads to it, and the moves between are told after that."""


def recorded_moves(rows: Iterable[Row], finals: Collection[str]) -> dict[tuple[str, int], Moves]:
    """Give the recorded moves by run and by the lease under which they were made; `finals` are the final states."""
    found: dict[tuple[str, int], Moves] = {}
    current: dict[str, Moves] = {}
    for row in rows:
        match row.message:
            case Assign(token=token) as assign if token and not row.job:
                current[assign.run_id] = found[assign.run_id, token] = Moves()
            case Event(name=EventName.STATE_CHANGED, run_id=run_id, data=data) if data["source"] and run_id in current:
                current[run_id].left.insert(0, move(data["source"], data["target"], data["by"]))
                current[run_id].whole = data["target"] in finals
            case Event(name=EventName.RUN_RECOVERED, run_id=run_id) if run_id in current:
                current[run_id].recovered = True
    return found


def move(source: object, target: object, by: object) -> str:
    """Write a move."""
    return f"{source} → {target} by {by}"
