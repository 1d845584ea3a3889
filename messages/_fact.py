"""One thing that happened, as it is recorded: row of the journal, line of the log, and event for whoever reads it."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from callboard.messages._base import Seconds, Timestamp
from callboard.messages._event import Event, EventName
from callboard.messages._texts import encodable


class Fact(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag_field="kind", tag="event"):
    """An event before anybody reads it; the fields are those of `Event`, and are not validated.

    A task makes dozens of them, and most are read by the journal and the log alone: those need no `Event`.
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
        """Build the event that programs get."""
        return Event(**{**msgspec.structs.asdict(self), "data": encodable(self.data)})

    def json(self) -> str:
        """Write it so that `Event` can read it.

        Raises:
            ValueError: If it holds something that is no JSON.
        """
        try:
            return ENCODED(self).decode()
        except UnicodeEncodeError:  # half of a surrogate pair, deep in its data
            return ENCODED(msgspec.structs.replace(self, data=encodable(self.data))).decode()
        except TypeError as error:
            msg = f"the event {self.name.value} holds what is no JSON: {error}"
            raise ValueError(msg) from error


def phases_of(event: Event | Fact) -> list[Fact]:
    """Make a `phase.ended` of each phase that the event of a step has.

    They have the number before that event's: who stops between two of them and goes on after the last number that was
    seen gets them once more, with the end of the step. With the number of that event its end would be missed.
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
    """Give an event as it is read: the phases of a step come before the event of its end."""
    return [*(phase.event() for phase in phases_of(event)), event]


ENCODED = msgspec.json.Encoder().encode
"""Writes a fact as JSON, but for what `Fact.json` takes care of."""
