"""A recorded fact.

It is a line of the log, an event, and a part of a row of the journal.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from callboard.messages._base import Seconds, Timestamp
from callboard.messages._event import Event, EventName
from callboard.messages._texts import encodable


class Fact(msgspec.Struct, frozen=True, gc=False):
    """An unvalidated event; the fields are those of `Event`.

    A task makes dozens of facts. Most are read by the journal and the log alone, which need no `Event`.
    """

    seq: int
    at: Timestamp
    name: EventName
    task_id: str = ""
    run_id: str = ""
    agent: str = ""
    state: str = ""
    step: int | None = None
    phase: str = ""
    duration: Seconds | None = None
    data: dict[str, Any] = {}

    def event(self) -> Event:
        """Build the event for programs."""
        return Event(**{**msgspec.structs.asdict(self), "data": encodable(self.data)})


def phases_of(event: Event | Fact) -> list[Fact]:
    """Make a `phase.ended` event for each phase of a step's event.

    They have the number before that event's. A subscriber that stops between two of them, and resumes after the last
    number it saw, gets them once more, together with the end of the step. If they had the number of that event, the
    subscriber would miss the end.
    """
    if "phases" not in event.data:
        return []
    name, where = EventName.PHASE_ENDED, (event.task_id, event.run_id, event.agent, event.state, event.step)
    phases = cast("list[dict[str, Any]]", event.data["phases"])
    return [
        Fact(
            event.seq - 1,
            each["at"],
            name,
            *where,
            each["phase"],
            each["duration"],
            {"error": each["error"]} if "error" in each else {},
        )
        for each in phases
    ]


def with_phases(event: Event) -> list[Event]:
    """Return an event for readers: a step's phases come before its end."""
    return [*(phase.event() for phase in phases_of(event)), event]
