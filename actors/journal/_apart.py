"""Out-of-line storage of pictures and observations: in files, and in a table."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from callboard.actors.journal._forwarded import Forwarded
from callboard.actors.journal._observations import Observations
from callboard.actors.journal._parts import Exchanges, exchanged
from callboard.actors.journal._pictures import Pictures
from callboard.messages import Observation

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from callboard.actors.journal._row import Row
    from callboard.messages import Message

_M = TypeVar("_M", bound="Message")
PARTS = (Observation, bytes)
"""The types of the parts that are stored out of line."""
_OBSERVATION = "INSERT OR IGNORE INTO observations (name, base, body) VALUES (?, ?, ?)"
_OBSERVED = "INSERT OR IGNORE INTO observed (name, task) VALUES (?, ?)"
_PICTURE = "INSERT OR IGNORE INTO pictures (name, task, bytes) VALUES (?, ?, ?)"


class Apart:
    """The out-of-line parts of one journal's messages. Not thread-safe."""

    def __init__(self, journal: Path, connection: sqlite3.Connection, *, durable: bool = True) -> None:
        self.pictures = Pictures(journal, durable=durable)
        self.observations = Observations(connection, self.pictures)
        self.forwarded = Forwarded()
        self.later: dict[str, list[tuple[str | int | None, ...]]] = {_OBSERVATION: [], _OBSERVED: [], _PICTURE: []}
        """The bound values of each statement. They are executed before the rows that refer to these parts."""
        self._back: Exchanges = {Observation: self.observations.bring_back, bytes: self.pictures.read}

    def forget(self) -> None:
        """Clear all caches, after a rollback or a deletion."""
        self.observations.forget()
        self.forwarded.forget()
        for bound in self.later.values():
            bound.clear()

    def put_away(self, row: Row) -> Message:
        """Replace the out-of-line parts of a row's message with references.

        The statements that store the parts are added to `later`. The caller executes them before it writes the row.

        Raises:
            ValueError: If a part can't be serialized.
        """
        exchanges: Exchanges = {Observation: partial(self._observation, row), bytes: partial(self._picture, row)}
        message: Message = exchanged(row.message, exchanges)
        return message

    def _observation(self, row: Row, seen: Observation) -> Observation:
        known = self.observations.known(seen, row.run_id)
        if known.unwritten:
            self.later[_OBSERVATION].append(known.unwritten)
            known.unwritten = ()
        if row.task_id not in known.tasks:
            known.tasks.add(row.task_id)
            for name in known.names:
                self.later[_OBSERVED].append((name, row.task_id))
            for picture, size in known.pictures:
                self.later[_PICTURE].append((picture, row.task_id, size))
        return known.mark

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
        found: _M = exchanged(message, self._back)
        return found
