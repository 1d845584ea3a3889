"""Store pictures and observations apart from the rows: in files, and in a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from callboard.actors.journal._observations import Observations
from callboard.actors.journal._parts import holders
from callboard.actors.journal._pictures import Pictures
from callboard.actors.journal._words import Words
from callboard.messages import Observation

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from callboard.actors.journal._row import Row
    from callboard.messages import Message

_M = TypeVar("_M", bound="Message")
_OBSERVATION = "INSERT OR IGNORE INTO observations (name, base, body) VALUES (?, ?, ?)"
_OBSERVED = "INSERT OR IGNORE INTO observed (name, task) VALUES (?, ?)"
_PICTURE = "INSERT OR IGNORE INTO pictures (name, task, bytes) VALUES (?, ?, ?)"


@dataclass
class Later:
    """The observations and pictures to be written with some rows."""

    observations: list[tuple[str, str | None, str]] = field(default_factory=list)
    """Names, the names of those that they are compared with, and bodies."""
    observed: list[tuple[str, str]] = field(default_factory=list)
    """The names of observations, each with a task that has it."""
    pictures: list[tuple[str, str, int]] = field(default_factory=list)
    """The names of pictures, each with a task that has it, and its size."""

    def write(self, connection: sqlite3.Connection) -> None:
        """Write it into the open transaction."""
        for statement, values in (
            (_OBSERVATION, self.observations),
            (_OBSERVED, self.observed),
            (_PICTURE, self.pictures),
        ):
            if values:
                connection.executemany(statement, values)


class Apart:
    """The parts of one journal's messages that stand elsewhere. One thread's, as the journal is."""

    def __init__(self, journal: Path, connection: sqlite3.Connection, *, durable: bool = True) -> None:
        self.pictures = Pictures(journal, durable=durable)
        self.observations = Observations(connection, self.pictures)
        self.words = Words()

    def forget(self) -> None:
        """Know nothing of what was written: it was rolled back, or deleted."""
        self.observations.forget()
        self.words.forget()

    def put_away(self, row: Row, later: Later) -> Message:
        """Give a row's message without what is kept apart; `later` gets what is to be written with the row.

        Raises:
            ValueError: If a part can't be written down.
        """
        message = row.message
        if holders(type(message), Observation):
            message = self.observations.put_away(row, later)
        if holders(type(message), bytes):
            message = self.pictures.put_away(
                message, lambda name, size: later.pictures.append((name, row.task_id, size))
            )
        return message

    def bring_back(self, message: _M) -> _M:
        """Give a message that was read with its parts; without pictures whose file is lost or damaged.

        Raises:
            LookupError: If an observation is not there.
            ValueError: If one can't be read.
        """
        return self.observations.bring_back(self.pictures.bring_back(message))
