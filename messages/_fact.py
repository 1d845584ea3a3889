"""One thing that happened, as it is recorded: row of the journal, line of the log, and event for whoever reads it."""

from __future__ import annotations

from typing import Any

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
        given = {name: getattr(self, name) for name in self.__struct_fields__}
        return Event(**{**given, "data": encodable(self.data)})

    def json(self) -> str:
        """Write it so that `Event` can read it.

        Raises:
            ValueError: If it holds something that is no JSON.
        """
        try:
            return _ENCODER.encode(self).decode()
        except UnicodeEncodeError:  # half of a surrogate pair, deep in its data
            return _ENCODER.encode(msgspec.structs.replace(self, data=encodable(self.data))).decode()
        except TypeError as error:
            msg = f"the event {self.name.value} holds what is no JSON: {error}"
            raise ValueError(msg) from error


_ENCODER = msgspec.json.Encoder()
