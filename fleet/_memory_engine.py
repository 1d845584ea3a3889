"""The engine in memory, for machines within one process."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import functools
import itertools
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.fleet._engine import (
    ACK_SECONDS,
    Bucket,
    BucketEntry,
    ConflictError,
    DamagedFileError,
    EngineAwayError,
    QueueFullError,
    StoredFile,
)
from callboard.fleet._stored_files import describe_file, write_checked

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path


@dataclass(eq=False)
class QueuedWork:
    """A piece of work in a queue."""

    sender: str
    body: bytes
    due: float = 0.0
    """The time from which it may be delivered."""
    deliveries: int = 0


class MemoryHub:
    """The server of engines in memory.

    Engines of several threads may share it.

    Args:
        most_work: The most pieces of work of one queue.
        ack_seconds: The time after which a delivery that is not kept is delivered again.
    """

    def __init__(self, *, most_work: int = 10_000, ack_seconds: float = ACK_SECONDS) -> None:
        self.most_work = most_work
        self.ack_seconds = ack_seconds
        self.lock = threading.Lock()
        self.queues: dict[str, list[QueuedWork]] = collections.defaultdict(list)
        self.sent_ids: set[tuple[str, str]] = set()
        self.entries: dict[tuple[Bucket, str], BucketEntry] = {}
        self.files: dict[tuple[str, ...], bytes] = {}
        self.listeners: dict[MemoryEngine, Callable[[], object]] = {}
        """The functions that tell connected engines of a change."""
        self._revisions = itertools.count(2)

    def get(self, bucket: Bucket, key: str) -> BucketEntry | None:
        """Return a key's value, or None."""
        entry = self.entries.get((bucket, key))
        return None if entry is None or entry.value is None else entry

    def set(self, bucket: Bucket, key: str, value: bytes | None) -> int:
        """Set a key's value, and return its revision."""
        revision = next(self._revisions)
        self.entries[bucket, key] = BucketEntry(key, value, revision)
        return revision


class MemoryDelivery:
    """A piece of work from a queue in memory."""

    def __init__(self, engine: MemoryEngine, queue: str, work: QueuedWork) -> None:
        self._engine = engine
        self._queue = queue
        self._work = work
        self._number = work.deliveries

    @property
    def sender(self) -> str:
        """The machine that sent it."""
        return self._work.sender

    @property
    def body(self) -> bytes:
        """The work."""
        return self._work.body

    async def done(self) -> None:
        """Remove it from the queue."""
        with self._engine.changing() as hub, contextlib.suppress(ValueError):  # a repetition
            hub.queues[self._queue].remove(self._work)

    async def keep(self) -> None:
        """Postpone another delivery."""
        await self.give_back(self._engine.hub.ack_seconds)

    async def give_back(self, seconds: float = 0.0) -> None:
        """Deliver it again after some time."""
        with self._engine.changing():
            if self._work.deliveries == self._number:  # else another receiver has it by now
                self._work.due = time.monotonic() + seconds


class MemoryEngine:
    """A machine's connection to a hub in memory.

    Args:
        hub: The part that all machines share.
        name: The machine's name.
    """

    def __init__(self, hub: MemoryHub, name: str) -> None:
        self.hub = hub
        self._name = name
        self._is_open = False
        self._is_cut = False
        self._change = asyncio.Event()

    @property
    def is_open(self) -> bool:
        """True from `open` until `close`."""
        return self._is_open

    @property
    def is_connected(self) -> bool:
        """True while it is open, and not cut off."""
        return self._is_open and not self._is_cut

    def cut(self, *, off: bool = True) -> None:
        """Cut it off from the hub, or connect it again."""
        self._is_cut = off
        self._tell()

    async def open(self) -> None:
        """Connect."""
        loop, self._is_open = asyncio.get_running_loop(), True
        self.hub.listeners[self] = functools.partial(loop.call_soon_threadsafe, self._tell)

    async def close(self) -> None:
        """Disconnect."""
        self._is_open = False
        self.hub.listeners.pop(self, None)
        self._tell()

    def _tell(self) -> None:
        self._change.set()
        self._change = asyncio.Event()

    @contextlib.contextmanager
    def locked(self) -> Iterator[MemoryHub]:
        """Lock the hub.

        Raises:
            EngineAwayError: If it is not connected.
        """
        if not self.is_connected:
            msg = "the engine in memory is not connected"
            raise EngineAwayError(msg)
        with self.hub.lock:
            yield self.hub

    @contextlib.contextmanager
    def changing(self) -> Iterator[MemoryHub]:
        """Lock the hub for a change, and tell all engines of it.

        Raises:
            EngineAwayError: If it is not connected.
        """
        with self.locked() as hub:
            yield hub
            listeners = tuple(hub.listeners.values())
        for tell in listeners:
            tell()

    async def send(self, queue: str, work_id: str, body: bytes) -> None:
        """Append work to a queue.

        Raises:
            QueueFullError: If the queue is full.
        """
        with self.changing() as hub:
            if (queue, work_id) in hub.sent_ids:
                return
            if len(hub.queues[queue]) >= hub.most_work:
                raise QueueFullError.of(queue, hub.most_work)
            hub.sent_ids.add((queue, work_id))
            hub.queues[queue].append(QueuedWork(self._name, body))

    async def receive(self, queue: str) -> MemoryDelivery:
        """Wait for the next piece of work of a queue."""
        while True:
            change, now = self._change, time.monotonic()
            with self.hub.lock:
                works = tuple(self.hub.queues[queue]) if self.is_connected else ()
                work = next((work for work in works if work.due <= now), None)
                if work is not None:
                    work.due, work.deliveries = now + self.hub.ack_seconds, work.deliveries + 1
                    return MemoryDelivery(self, queue, work)
            next_due = min((work.due for work in works), default=None)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(change.wait(), None if next_due is None else next_due - now)

    async def waiting(self, queue: str) -> int:
        """Return the length of a queue."""
        with self.locked() as hub:
            return len(hub.queues[queue])

    async def put(self, bucket: Bucket, key: str, value: bytes) -> int:
        """Set a key's value, and return its revision."""
        with self.changing() as hub:
            return hub.set(bucket, key, value)

    async def get(self, bucket: Bucket, key: str) -> BucketEntry | None:
        """Return a key's value, or None."""
        with self.locked() as hub:
            return hub.get(bucket, key)

    async def update(self, bucket: Bucket, key: str, value: bytes, revision: int) -> int:
        """Set a key's value if its revision is the expected one.

        Raises:
            ConflictError: If it has another one.
        """
        with self.changing() as hub:
            entry = hub.get(bucket, key)
            if revision != (0 if entry is None else entry.revision):
                raise ConflictError.of(bucket, key)
            return hub.set(bucket, key, value)

    async def delete(self, bucket: Bucket, key: str) -> None:
        """Delete a key."""
        with self.changing() as hub:
            hub.set(bucket, key, None)

    async def watch(self, bucket: Bucket, prefix: str = "") -> AsyncIterator[BucketEntry | None]:
        """Yield the values of keys, then None, then each change."""
        last_revision = 0
        while self._is_open:
            change = self._change
            if not self.is_connected:
                last_revision = 0
            else:
                is_first, entries = last_revision == 0, self._changes(bucket, prefix, last_revision)
                for entry in entries:
                    last_revision = entry.revision
                    yield entry
                if is_first:
                    last_revision = max(last_revision, 1)
                    yield None
            await change.wait()

    def _changes(self, bucket: Bucket, prefix: str, last_revision: int) -> list[BucketEntry]:
        """Return the entries that were changed after a revision, in order."""
        with self.hub.lock:
            entries = [entry for (its_bucket, _), entry in self.hub.entries.items() if its_bucket is bucket]
        changed_entries = [
            entry
            for entry in entries
            if entry.revision > last_revision and (not prefix or entry.key.startswith(f"{prefix}."))
        ]
        return sorted(changed_entries, key=lambda entry: entry.revision)

    async def store(self, path: Path, owner: str, reader: str = "") -> StoredFile:
        """Store a file."""
        file = await asyncio.to_thread(describe_file, path, owner, self._name, reader)
        data = await asyncio.to_thread(path.read_bytes)
        with self.changing() as hub:
            hub.files[_key(file)] = data
        return file

    async def load(self, file: StoredFile, path: Path) -> None:
        """Write a stored file to a new path.

        Raises:
            DamagedFileError: If it is no longer stored.
            FileExistsError: If the path exists.
        """
        with self.locked() as hub:
            data = hub.files.get(_key(file))
        if data is None:
            raise DamagedFileError.missing(file.name)

        async def write(spare: Path) -> None:
            await asyncio.to_thread(spare.write_bytes, data)

        await write_checked(file, path, write)

    async def discard(self, file: StoredFile) -> None:
        """Delete a stored file."""
        with self.changing() as hub:
            hub.files.pop(_key(file), None)


def _key(file: StoredFile) -> tuple[str, ...]:
    return file.reader, file.writer, file.owner, file.sha256
