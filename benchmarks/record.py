"""The record only: rows, events and log lines of tasks, without agents.

It measures the share of a task's cost that its record has, with this stream, journal and log. All tasks advance in
step, so they share commits better than real tasks. ``python -m benchmarks.record`` is a contender.
"""

from __future__ import annotations

import itertools
import queue
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from benchmarks.board import PATIENCE, VARIANTS, board, finish, tasks
from benchmarks.protocol import serve, timed
from callboard.actors.root import open_journal
from callboard.actors.runtime import EventStream, SystemClock
from callboard.actors.states import HostAgentStateManager
from callboard.config import EventLog
from callboard.journal import FileJournal, Row
from callboard.messages import EventName, Task, TaskResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.protocol import Go
    from callboard.journal import Journal

_numbers = itertools.count()


@dataclass(frozen=True)
class Emitted:
    """An event."""

    name: EventName
    fields: dict[str, Any]


@dataclass(frozen=True)
class Appended:
    """Rows of messages."""

    rows: tuple[Row, ...]
    needed: bool
    """Whether the task continued only after the commit."""
    lazy: bool


Tape = list[Emitted | Appended]


def taped(folder: Path) -> Tape:
    """Run one task, and return its events and rows, in order."""
    tape: list[tuple[set[str], Emitted | Appended]] = []
    emit, append = EventStream.emit, FileJournal.append

    def emitting(stream: EventStream, name: EventName, **fields: Any) -> None:
        tape.append(({fields.get("task_id", "")}, Emitted(name, fields)))
        emit(stream, name, **fields)

    def appending(
        journal: FileJournal,
        rows: Sequence[Row],
        callback: Callable[[], None] | None = None,
        failed: Callable[[Exception], None] | None = None,
        *,
        lazy: bool = False,
    ) -> None:
        tape.append(({row.task_id for row in rows}, Appended(tuple(rows), callback is not None, lazy)))
        append(journal, rows, callback, failed, lazy=lazy)

    with board(VARIANTS["process"], 1, folder) as supervisor:
        finish(supervisor.submit_all(tasks(1, 1)))
        with patch.object(EventStream, "emit", emitting), patch.object(FileJournal, "append", appending):
            handles = supervisor.submit_all(tasks(1, 1))
            finish(handles)
    return [part for task_ids, part in tape if task_ids <= {handles[0].task_id}]


class Player:
    """Writer of a tape for other tasks."""

    def __init__(self, tape: Tape, stream: EventStream, journal: Journal) -> None:
        self._tape = tape
        self._stream = stream
        self._journal = journal
        self._safe: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()

    def play(self, count: int) -> None:
        """Write the tape for tasks at once, waiting for commits."""
        task_ids = [f"record-{next(_numbers)}" for _ in range(count)]
        for part in self._tape:
            for task_id in task_ids:
                if isinstance(part, Emitted):
                    self._stream.emit(part.name, **{**part.fields, "task_id": task_id})
                else:
                    self._append(part, [_of(row, task_id) for row in part.rows])
            if isinstance(part, Appended) and part.needed:
                self._wait(count)

    def _append(self, part: Appended, rows: list[Row]) -> None:
        if part.needed:
            self._journal.append(rows, lambda: self._safe.put(None), self._safe.put)
        else:
            self._journal.append(rows, lazy=part.lazy)

    def _wait(self, count: int) -> None:
        for _ in range(count):
            error = self._safe.get(timeout=PATIENCE)
            if error is not None:
                raise error


def _of(row: Row, task_id: str) -> Row:
    """Copy a row for another task, with that task's ids."""
    named = {Task: "id", TaskResult: "task_id"}.get(type(row.message))
    message = row.message if named is None else row.message.model_copy(update={named: task_id})
    return row._replace(task_id=task_id, message=message)


@contextmanager
def prepare(size: int) -> Iterator[Go]:
    """Prepare batches of a size."""
    with ExitStack() as stack:
        tape_folder, replay_folder = (Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(2))
        tape = taped(tape_folder)
        settings, clock = VARIANTS["process"].settings(replay_folder), SystemClock("record-clock")
        log = EventLog(settings)
        stack.callback(log.close, PATIENCE)
        opened = open_journal(settings, clock, broken, HostAgentStateManager)
        stack.callback(opened.journal.close, PATIENCE)
        clock.start()
        stack.callback(clock.stop, PATIENCE)
        stream = EventStream(clock, settings.events.kept, settings.events.queue, past=opened.events)
        stream.add_sink(log.write)
        if opened.queue is not None:
            stream.add_queue(*opened.queue)
        player = Player(tape, stream, opened.journal)

        def go(batches: int) -> None:
            for _ in range(batches):
                player.play(size)

        yield go


def broken(error: Exception) -> None:
    """Raise, because the journal can't be written."""
    print(f"the benchmark is broken: {error}", file=sys.stderr)


if __name__ == "__main__":
    serve(timed(prepare))
