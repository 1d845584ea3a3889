"""The engine of a fleet: what machines send each other through, as one narrow protocol.

It has three things. A *queue* of one machine keeps work until the machine is done with it. A *bucket* keeps the last
value of each key, and tells who watches. Files are kept by the digest of their contents.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, NamedTuple, Protocol

from pydantic import Field, StringConstraints

from callboard.messages import CallboardError, Value

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


class EngineAwayError(CallboardError):
    """The engine does not answer. Whether it did what was asked is not known: ask again."""


class QueueFullError(CallboardError):
    """A queue has as much work as it may keep."""

    @classmethod
    def of(cls, queue: str, most: int) -> QueueFullError:
        """Build the error for a queue."""
        return cls(f"the queue {queue!r} has {most:,} pieces of work, as many as it may: wait until some are done")


class ConflictError(CallboardError):
    """An entry of a bucket has another revision than was expected: another machine was first."""

    @classmethod
    def of(cls, bucket: Bucket, key: str) -> ConflictError:
        """Build the error for an entry."""
        return cls(f"{bucket}/{key} was changed by another machine")


class DamagedFileError(CallboardError):
    """A file has other contents than its digest says, or is missing."""

    @classmethod
    def missing(cls, name: str) -> DamagedFileError:
        """Build the error for a file that is not kept."""
        return cls(f"the file {name!r} is not kept any more")

    @classmethod
    def changed(cls, name: str) -> DamagedFileError:
        """Build the error for a file with other contents."""
        return cls(f"the file {name!r} did not arrive as it was sent: its contents are others")


class Bucket(StrEnum):
    """The buckets of a fleet."""

    MACHINES = "machines"
    """The state of each machine, by its name."""
    SIGNALS = "signals"
    """What people say to a task, by its id: a machine that is away reads it when it is back."""
    REQUESTS = "requests"
    """The questions and approvals of a task that are open, by its submitter and id."""
    RESULTS = "results"
    """The results of tasks, by submitter and id."""
    CLAIMS = "claims"
    """The machine that has taken a task that any machine may do, by its id."""


class BucketEntry(NamedTuple):
    """The last value of a key."""

    key: str
    value: bytes | None
    """None if it was deleted."""
    revision: int
    """A number that increases with each change in the bucket."""


class StoredFile(Value):
    """A file that the engine keeps."""

    name: str
    """Its name, without folders."""
    sha256: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
    """The digest of its contents."""
    size: int = Field(ge=0)
    """Its size in bytes."""


class Delivery(Protocol):
    """A piece of work from a queue, until it is done."""

    @property
    def body(self) -> bytes:
        """The work."""

    async def done(self) -> None:
        """Remove it from the queue.

        Raises:
            EngineAwayError: If the engine does not answer; it may be delivered again.
        """

    async def keep(self) -> None:
        """Tell that the work goes on, so that it is not delivered again; at least every `ACK_SECONDS` / 2."""

    async def give_back(self, seconds: float = 0.0) -> None:
        """Have it delivered again after some time, to any receiver of the queue."""


ACK_SECONDS = 10.0
"""The time after which a delivery that nobody keeps is delivered again."""


class FleetEngine(Protocol):
    """A connection to the engine. All methods run on one event loop.

    All but `open`, `close` and `watch` raise `EngineAwayError` if the engine does not answer.
    """

    @property
    def is_connected(self) -> bool:
        """Whether the engine answers."""

    async def open(self) -> None:
        """Connect.

        Raises:
            EngineAwayError: If it can't be reached.
            SettingsError: If it refuses the connection, or lacks a stream; the text says what to do.
        """

    async def close(self) -> None:
        """Disconnect."""

    async def send(self, queue: str, work_id: str, body: bytes) -> None:
        """Put work at the end of a queue. It is stored when this returns.

        A repetition within two minutes is dropped, by the id. Receivers drop later ones.

        Raises:
            QueueFullError: If the queue is full.
        """

    async def receive(self, queue: str) -> Delivery:
        """Wait for the next piece of work of a queue. A time without the engine counts as waiting."""

    async def waiting(self, queue: str) -> int:
        """Return the number of pieces of work in a queue, those that were delivered included."""

    async def put(self, bucket: Bucket, key: str, value: bytes) -> int:
        """Set a key's value, and return its revision."""

    async def get(self, bucket: Bucket, key: str) -> BucketEntry | None:
        """Return a key's last value; None without one."""

    async def update(self, bucket: Bucket, key: str, value: bytes, revision: int) -> int:
        """Set a key's value if it has a revision, 0 for none, and return the new one.

        Raises:
            ConflictError: If it has another one.
        """

    async def delete(self, bucket: Bucket, key: str) -> None:
        """Delete a key."""

    def watch(self, bucket: Bucket, prefix: str = "") -> AsyncIterator[BucketEntry]:
        """Follow the keys that begin with a prefix and a dot: their values now, and each change.

        After a time without the engine it gives the last values again. It ends with the connection.
        """

    async def store(self, path: Path) -> StoredFile:
        """Keep a file; nothing is sent if one with the same contents is kept already."""

    async def load(self, file: StoredFile, path: Path) -> None:
        """Write a kept file to a path that does not exist. It is there once it is whole and checked.

        Raises:
            DamagedFileError: If its contents are not those of the digest, or it is not kept any more.
            FileExistsError: If the path exists.
        """

    async def discard(self, file: StoredFile) -> None:
        """Keep a file no longer."""


def is_below(key: str, prefix: str) -> bool:
    """Return whether a key begins with a prefix and a dot, or there is no prefix."""
    return not prefix or key.startswith(f"{prefix}.")
