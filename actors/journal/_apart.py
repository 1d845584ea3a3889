"""Store pictures and observations apart from the rows: in files, and in a table."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from callboard.actors.journal._observations import Observations
from callboard.actors.journal._parts import Exchanges, exchanged
from callboard.actors.journal._pictures import Pictures
from callboard.actors.journal._words import Words
from callboard.messages import Observation

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from callboard.actors.journal._row import Row
    from callboard.messages import Message

_M = TypeVar("_M", bound="Message")
PARTS = (Observation, bytes)
"""The types of what is kept apart."""
_OBSERVATION = "INSERT OR IGNORE INTO observations (name, base, body) VALUES (?, ?, ?)"
_OBSERVED = "INSERT OR IGNORE INTO observed (name, task) VALUES (?, ?)"
_PICTURE = "INSERT OR IGNORE INTO pictures (name, task, bytes) VALUES (?, ?, ?)"


class Apart:
    """The parts of one journal's messages that stand elsewhere. One thread's, as the journal is."""

    def __init__(self, journal: Path, connection: sqlite3.Connection, *, durable: bool = True) -> None:
        self.pictures = Pictures(journal, durable=durable)
        self.observations = Observations(connection, self.pictures)
        self.words = Words()
        self.later: dict[str, list[tuple[str | int | None, ...]]] = {_OBSERVATION: [], _OBSERVED: [], _PICTURE: []}
        """By statement, what is bound to it: executed before the rows are written whose parts were put away."""
        self._back: Exchanges = {Observation: self.observations.bring_back, bytes: self.pictures.read}

    def forget(self) -> None:
        """Know nothing of what was written: it was rolled back, or deleted."""
        self.observations.forget()
        self.words.forget()
        for bound in self.later.values():
            bound.clear()

    def put_away(self, row: Row) -> Message:
        """Give a row's message without what is kept apart; `later` gets what is to be written before the row.

        Raises:
            ValueError: If a part can't be written down.
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
        """Give a message that was read with its parts; without pictures whose file is lost or damaged.

        Raises:
            LookupError: If an observation is not there.
            ValueError: If one can't be read.
        """
        found: _M = exchanged(message, self._back)
        return found
