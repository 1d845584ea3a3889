"""The engine of a fleet: a protocol for the exchange between machines.

It has three parts. A *queue* of one machine keeps work until the machine is done with it. A *bucket* keeps the last
value of each key, and tells who watches. Files are kept by the digest of their contents.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, Protocol

from pydantic import Field, StringConstraints

from callboard.messages import CallboardError, MachineName, Value

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


class EngineAwayError(CallboardError):
    """The engine does not answer.

    Whether it has carried out the call is unknown: repeat it.
    """


class QueueFullError(CallboardError):
    """A queue has as much work as it may keep."""

    @classmethod
    def of(cls, queue: str, most: int) -> QueueFullError:
        """Build the error for a queue."""
        return cls(f"the queue {queue!r} has {most:,} pieces of work, as many as it may: wait until some are done")


class ConflictError(CallboardError):
    """An entry of a bucket has another revision: another machine was first."""

    @classmethod
    def of(cls, bucket: Bucket, key: str) -> ConflictError:
        """Build the error for an entry."""
        return cls(f"{bucket}/{key} was changed by another machine")


class DamagedFileError(CallboardError):
    """A file is missing, unreadable, or does not match its digest."""

    @classmethod
    def missing(cls, name: str) -> DamagedFileError:
        """Build the error for a missing file."""
        return cls(f"the file {name!r} is no longer stored")

    @classmethod
    def changed(cls, name: str) -> DamagedFileError:
        """Build the error for a file with other contents."""
        return cls(f"the file {name!r} did not arrive as it was sent: its contents are others")

    @classmethod
    def elsewhere(cls, name: str) -> DamagedFileError:
        """Build the error for a file in a folder missing here."""
        return cls(f"the file {name!r} is in a folder that machines share, and fleet.files names none here")

    @classmethod
    def unreadable(cls, name: str, error: OSError) -> DamagedFileError:
        """Build the error for a shared file that can't be copied."""
        return cls(f"the file {name!r} can't be copied from the shared folder: {error}")


class Bucket(StrEnum):
    """The buckets of a fleet."""

    MACHINES = "machines"
    """The state of each machine, by its name."""
    SIGNALS = "signals"
    """Words of people to a task, by its machine, submitter and id: a machine that is away reads them later."""
    REQUESTS = "requests"
    """The questions and approvals of a task that are open, by its submitter, machine and id."""
    RESULTS = "results"
    """The results of tasks, by submitter, machine and id."""
    CLAIMS = "claims"
    """The claims of machines to tasks that any machine may do, by submitter, machine and id."""


class BucketEntry(NamedTuple):
    """The last value of a key."""

    key: str
    value: bytes | None
    """None if it was deleted."""
    revision: int
    """A number that increases with each change in the bucket."""


class StoredFile(Value):
    """A file that the engine stores."""

    name: str
    """Its name, without folders."""
    sha256: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
    """The digest of its contents."""
    size: int = Field(ge=0)
    """Its size in bytes."""
    owner: str
    """The task or machine that it belongs to, and is deleted with."""
    writer: MachineName
    """The machine that has stored it."""
    reader: MachineName | Literal[""] = ""
    """The machine that it is for; empty: all of them."""
    shared: bool = False
    """Whether it is in the folder that the machines share, and not stored by the engine."""


class Delivery(Protocol):
    """A piece of work from a queue, until it is done."""

    @property
    def sender(self) -> str:
        """The machine that sent it, as the engine knows it."""

    @property
    def body(self) -> bytes:
        """The work."""

    async def done(self) -> None:
        """Remove it from the queue.

        Raises:
            EngineAwayError: If the engine does not answer; it may be delivered again.
        """

    async def keep(self) -> None:
        """Postpone another delivery by `ACK_SECONDS`.

        While the work goes on, it is called twice in that time.
        """

    async def give_back(self, seconds: float = 0.0) -> None:
        """Deliver it again after some time, to any receiver of the queue."""


ACK_SECONDS = 10.0
"""The time after which a delivery that is not kept is delivered again."""


class FleetEngine(Protocol):
    """A connection to the engine.

    All methods run on one event loop. All but `open`, `close`, `receive` and `watch` raise `EngineAwayError` if the
    engine does not answer.
    """

    @property
    def is_open(self) -> bool:
        """True from `open` until `close`."""

    @property
    def is_connected(self) -> bool:
        """True while the engine answers."""

    async def open(self) -> None:
        """Connect.

        Raises:
            EngineAwayError: If it can't be reached.
            SettingsError: If it refuses the connection, or lacks a stream; the text says what to do.
        """

    async def close(self) -> None:
        """Disconnect."""

    async def send(self, queue: str, work_id: str, body: bytes) -> None:
        """Append work to a queue, in the name of this machine.

        It is stored when this returns. A repetition within two minutes is dropped, by the id. Receivers drop later
        ones.

        Raises:
            QueueFullError: If the queue is full.
        """

    async def receive(self, queue: str) -> Delivery:
        """Wait for a queue's next work, also while the engine is away."""

    async def waiting(self, queue: str) -> int:
        """Return the length of a queue, work in progress included."""

    async def put(self, bucket: Bucket, key: str, value: bytes) -> int:
        """Set a key's value, and return its revision."""

    async def get(self, bucket: Bucket, key: str) -> BucketEntry | None:
        """Return a key's value, or None."""

    async def update(self, bucket: Bucket, key: str, value: bytes, revision: int) -> int:
        """Set a key's value if its revision is the expected one.

        The revision of a key without a value is 0.

        Raises:
            ConflictError: If it has another one.
        """

    async def delete(self, bucket: Bucket, key: str) -> None:
        """Delete a key."""

    def watch(self, bucket: Bucket, prefix: str = "") -> AsyncIterator[BucketEntry | None]:
        """Yield the values of keys, then None, then each change.

        The keys are all, or those that begin with the prefix and a dot. After a time without the engine, the current
        values and None are yielded again. It ends with the connection.
        """

    async def store(self, path: Path, owner: str, reader: str = "") -> StoredFile:
        """Store a file for another machine, or for all.

        A file of the same owner with the same contents is not stored again.
        """

    async def load(self, file: StoredFile, path: Path) -> None:
        """Write a stored file to a new path.

        The path exists once the contents are complete and checked.

        Raises:
            DamagedFileError: If its contents do not match its digest, or it is no longer stored.
            FileExistsError: If the path exists.
        """

    async def discard(self, file: StoredFile) -> None:
        """Delete a stored file."""
