"""A recorded fact.

It is a line of the log, an event, and a part of a row of the journal.
"""

from __future__ import annotations

import functools
import operator
from typing import Annotated, Any, cast

import msgspec
from pydantic import Field, TypeAdapter

from callboard.messages._base import Seconds, Timestamp
from callboard.messages._event import Event, EventName
from callboard.messages._texts import encodable


class Fact(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, tag_field="kind", tag="event"):
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
        try:
            return read_events(f"[{self.json()}]")[0]
        except ValueError:  # no JSON, or too deep to be read
            return Event(**{**msgspec.structs.asdict(self), "data": encodable(self.data)})

    def json(self) -> str:
        """Serialize it to JSON that `Event` can read.

        Raises:
            ValueError: If it holds a value that is not JSON.
        """
        try:
            return _ENCODED(self).decode()
        except UnicodeEncodeError:  # half of a surrogate pair, deep in its data
            return _ENCODED(msgspec.structs.replace(self, data=encodable(self.data))).decode()
        except TypeError as error:
            msg = f"the event {self.name.value} holds a value that is not JSON: {error}"
            raise ValueError(msg) from error


@functools.cache
def _events() -> TypeAdapter[list[Event]]:
    """Return the reader of events, built at first use.

    An event gets its own class if its data fits, and is a plain `Event` otherwise.
    """
    from callboard.messages.events import EVENT_CLASSES

    typed: Any = functools.reduce(operator.or_, EVENT_CLASSES.values())
    event: Any = Annotated[typed, Field(discriminator="name")] | Event
    return TypeAdapter(list[Annotated[event, Field(union_mode="left_to_right")]])


def read_events(body: str) -> list[Event]:
    """Read a JSON list of events.

    Raises:
        ValueError: If one of them is no event.
    """
    return _events().validate_json(body)


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
            phase["at"],
            name,
            *where,
            phase["phase"],
            phase["duration"],
            {"error": phase["error"]} if "error" in phase else {},
        )
        for phase in phases
    ]


def with_phases(event: Event) -> list[Event]:
    """Return an event for readers: a step's phases come before its end."""
    return [*(phase.event() for phase in phases_of(event)), event]


_ENCODED = msgspec.json.Encoder().encode
"""Writes a fact as JSON, except for the cases that `Fact.json` handles."""
