"""Deletion of entries and files of subtasks that are over."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from typing import TYPE_CHECKING

from callboard.fleet._engine import Bucket, DamagedFileError
from callboard.fleet._repeated_calls import repeat
from callboard.fleet._task_files import sent_by
from callboard.fleet._work_messages import Claim, WorkResult, discard_packed, signals_key, unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from callboard.fleet._engine import BucketEntry, FleetEngine, StoredFile
    from callboard.fleet._own_name import OwnName
    from callboard.fleet._placements import Placements
    from callboard.fleet._task_files import TaskFiles

SWEEP_SECONDS = 600.0
"""The interval at which leftovers of tasks that were not over yet are looked at again."""

_TOLD = (Bucket.REQUESTS, Bucket.CLAIMS, Bucket.RESULTS)
"""The buckets that this machine watches, in the order of their deletion.

A kill leaves an entry in one of them, since signals are deleted first. A claim without a result means that its machine
has still to end the work.
"""


class SubtaskIds:
    """The ids on other machines of the subtasks of one journal.

    An id tells whose it is: its first part is the journal's, the second the task's here, the last the subtask's.
    """

    def __init__(self, own_name: OwnName) -> None:
        """Create it for a machine and its journal."""
        self._source = f"{own_name.name}/{own_name.identity}"
        self.own = f"r-{_digest(self._source)[:8]}"
        """The begin of all of them."""

    def begin(self, task_id: str) -> str:
        """Return the begin of the ids of a task's subtasks."""
        return f"{self.own}{_digest(f'{self._source}/task/{task_id}')[:12]}"

    def id_of(self, task_id: str, run_id: str) -> str:
        """Return the id of a subtask: the same after a crash."""
        return f"{self.begin(task_id)}{_digest(f'{self._source}/{run_id}')[:16]}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Sweep:
    """Delete the leftovers of subtasks that are over.

    A process that was killed left it between the end of a subtask and its deletion, or the work was given up and ended
    later. It belongs to the event loop.
    """

    def __init__(
        self,
        engine: FleetEngine,
        name: str,
        ids: SubtaskIds,
        *,
        files: TaskFiles,
        placements: Placements,
        is_known: Callable[[str], bool],
    ) -> None:
        """Create it.

        Args:
            engine: The connection.
            name: This machine.
            ids: The ids of its subtasks.
            files: Deletes their files.
            placements: The claims to them.
            is_known: Returns whether this process has a subtask, by its id there.
        """
        self._engine = engine
        self._name = name
        self._ids = ids
        self._files = files
        self._placements = placements
        self._is_known = is_known
        self._keys: set[str] = set()
        """The keys of entries whose subtasks this process does not know."""
        self._news = asyncio.Event()

    def add(self, key: str) -> None:
        """Note the key of an entry of no known subtask."""
        if key.rpartition(".")[2].startswith(self._ids.own):
            self._keys.add(key)
            self._news.set()

    async def run(self, unfinished: Callable[[], Iterable[str]]) -> None:
        """Delete leftovers, until it is cancelled.

        Args:
            unfinished: Returns the ids of the tasks here that are not over. It may block.
        """
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SWEEP_SECONDS):
                    await self._news.wait()
            self._news.clear()
            keys = tuple(self._keys)
            begins = tuple(self._ids.begin(task_id) for task_id in await asyncio.to_thread(unfinished))
            for key in keys:
                task_id = key.rpartition(".")[2]
                if self._is_known(task_id) or (not task_id.startswith(begins) and await self._delete(key)):
                    self._keys.discard(key)

    async def _delete(self, key: str) -> bool:
        """Delete all of a subtask that is over here.

        False if its machine has still to end it.
        """
        _, machine, task_id = key.split(".", 2)
        entries = {bucket: await self._entry(bucket, key) for bucket in _TOLD}
        key_there = signals_key(machine, self._name, task_id)
        signals = await self._entry(Bucket.SIGNALS, key_there)
        is_given = (signals or entries[Bucket.CLAIMS]) is not None
        if entries[Bucket.RESULTS] is None and is_given and not _is_over(entries[Bucket.CLAIMS]):
            return False
        files = await self._files_of(entries[Bucket.RESULTS])
        await self._files.discard(sent_by(files, machine, task_id).values())
        if signals is not None:
            await repeat(lambda: self._engine.delete(Bucket.SIGNALS, key_there))
        for bucket, entry in entries.items():
            if entry is not None and entry.value is not None:
                await repeat(lambda body=entry.value: discard_packed(self._engine, body))  # type: ignore[misc]
                await repeat(lambda bucket=bucket: self._engine.delete(bucket, key))  # type: ignore[misc]
        self._placements.drop(task_id, machine)
        return True

    async def _entry(self, bucket: Bucket, key: str) -> BucketEntry | None:
        return await repeat(lambda: self._engine.get(bucket, key))

    async def _files_of(self, entry: BucketEntry | None) -> dict[str, StoredFile]:
        """Return the files of a result; none if it can't be read."""
        if entry is None or entry.value is None:
            return {}
        body = entry.value
        try:
            return WorkResult.model_validate_json(await repeat(lambda: unpack(self._engine, body))).files
        except (ValueError, DamagedFileError):
            return {}


def _is_over(entry: BucketEntry | None) -> bool:
    """Return whether a machine does not begin some work.

    It was taken back or refused.
    """
    if entry is None or entry.value is None:
        return False
    try:
        return not Claim.model_validate_json(entry.value).state.is_open
    except ValueError:
        return False
