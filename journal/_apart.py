"""The encoding of messages, with pictures and observations out of line.

Pictures are stored in files, observations in a table.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from callboard.journal._forwarded import Forwarded
from callboard.journal._observations import Observations
from callboard.journal._parts import Exchanges, exchanged
from callboard.messages import Observation

if TYPE_CHECKING:
    import sqlite3

    from callboard.journal._pictures import Pictures
    from callboard.journal._row import Row
    from callboard.messages import Message

_M = TypeVar("_M", bound="Message")
_OBSERVATION = "INSERT OR IGNORE INTO observations (name, base, body) VALUES (?, ?, ?)"
_OBSERVED = "INSERT OR IGNORE INTO observed (name, task) VALUES (?, ?)"
_PICTURE = "INSERT OR IGNORE INTO pictures (name, task, bytes) VALUES (?, ?, ?)"


class Apart:
    """The out-of-line parts of one journal's messages. Not thread-safe."""

    def __init__(self, pictures: Pictures, connection: sqlite3.Connection) -> None:
        self.pictures = pictures
        self.observations = Observations(connection, self.pictures)
        self.forwarded = Forwarded()
        self.later: dict[str, list[tuple[str | int | None, ...]]] = {_OBSERVATION: [], _OBSERVED: [], _PICTURE: []}
        """The bound values of each statement. They are executed before the rows that refer to these parts."""
        self._encode = msgspec.json.Encoder(enc_hook=self._part).encode
        self._row: Any = None
        """The row whose message is being encoded."""
        self._back: Exchanges = {Observation: self.observations.bring_back, bytes: self.pictures.read}

    def forget(self) -> None:
        """Clear all caches, after a rollback or a deletion."""
        self.observations.forget()
        self.forwarded.forget()
        for bound in self.later.values():
            bound.clear()

    def encoded(self, row: Row, message: object) -> bytes:
        """Encode a row's message, or some fields of it.

        References replace the observations. The statements that store them are added to `later`. The caller executes
        them before it writes the row.

        Raises:
            ValueError: If a part can't be serialized.
        """
        self._row = row
        return self._encode(message)

    def _part(self, value: Any) -> object:
        """Give the encoder what it can encode of a value."""
        if type(value) is Observation:
            return self._observation(self._row, value)
        return value.__dict__ if _is_plain(type(value)) else to_jsonable_python(value)  # type: ignore[arg-type]  # cached

    def without_pictures(self, row: Row) -> Message:
        """Replace the pictures of a row's message with references.

        Those of observations are replaced when these are stored.
        """
        message: Message = exchanged(
            row.message, {Observation: _same, bytes: lambda picture: self._picture(row, picture)}
        )
        return message

    def _observation(self, row: Row, observation: Observation) -> msgspec.Raw:
        entry = self.observations.entry(observation, row.run_id)
        if entry.unwritten:
            self.later[_OBSERVATION].append(entry.unwritten)
            entry.unwritten = ()
        if row.task_id not in entry.tasks:
            entry.tasks.add(row.task_id)
            for name in entry.names:
                self.later[_OBSERVED].append((name, row.task_id))
            for picture, size in entry.pictures:
                self.later[_PICTURE].append((picture, row.task_id, size))
        return entry.mark

    def _picture(self, row: Row, picture: bytes) -> bytes:
        digest = self.pictures.write(picture)
        self.later[_PICTURE].append((digest.hex(), row.task_id, len(picture)))
        return digest

    def bring_back(self, message: _M) -> _M:
        """Restore the out-of-line parts of a message.

        A picture whose file is lost or damaged is left out.

        Raises:
            LookupError: If an observation is missing.
            ValueError: If an observation can't be read.
        """
        restored_message: _M = exchanged(message, self._back)
        return restored_message


def _same(observation: Observation) -> Observation:
    return observation


@functools.cache
def _is_plain(kind: type) -> bool:
    """Return whether a type is a model without own serializers.

    Its fields are then all that its JSON has.
    """
    if not issubclass(kind, BaseModel):
        return False
    decorators = kind.__pydantic_decorators__
    return not (decorators.field_serializers or decorators.model_serializers)
