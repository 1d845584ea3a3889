"""The record alone: the rows, events and log lines of the job's tasks, written once more with no agent behind them.

A task that leaves so much can't cost less. ``python -m benchmarks.record`` is a contender.
"""

from __future__ import annotations

import itertools
import queue
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from benchmarks.board import PATIENCE, VARIANTS, board, finish, tasks
from benchmarks.protocol import serve, timed
from callboard.actors.journal import FileJournal
from callboard.actors.root import open_journal
from callboard.actors.runtime import EventStream, SystemClock
from callboard.config import EventLog
from callboard.messages import Event, EventName, Task, TaskResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.protocol import Go
    from callboard.actors.journal import Journal, Row

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
    """Whether the task went on only when they were safe."""
    lazy: bool


Tape = list[Emitted | Appended]


def taped(folder: Path) -> Tape:
    """Run one task, and give what it told the stream and the journal, in that order."""
    tape: Tape = []
    emit, append = EventStream.emit, FileJournal.append

    def emitting(stream: EventStream, name: EventName, **fields: Any) -> None:  # noqa: ANN401 - as there
        tape.append(Emitted(name, fields))
        emit(stream, name, **fields)

    def appending(
        journal: FileJournal,
        rows: Sequence[Row],
        then: Callable[[], None] | None = None,
        failed: Callable[[Exception], None] | None = None,
        *,
        lazy: bool = False,
    ) -> None:
        if not any(isinstance(row.message, Event) for row in rows):  # events are emitted
            tape.append(Appended(tuple(rows), then is not None, lazy))
        append(journal, rows, then, failed, lazy=lazy)

    with board(VARIANTS["process"], 1, folder) as supervisor:
        finish(supervisor.submit_all(tasks(1, 1)))
        with patch.object(EventStream, "emit", emitting), patch.object(FileJournal, "append", appending):
            finish(supervisor.submit_all(tasks(1, 1)))
    return tape


class Player:
    """Writes a tape for other tasks."""

    def __init__(self, tape: Tape, stream: EventStream, journal: Journal) -> None:
        self._tape = tape
        self._stream = stream
        self._journal = journal

    def play(self, count: int) -> None:
        """Write it for so many tasks at once; each goes on when all are safe of whom it is needed."""
        task_ids = [f"record-{next(_numbers)}" for _ in range(count)]
        safe: queue.SimpleQueue[None] = queue.SimpleQueue()
        for part in self._tape:
            for task_id in task_ids:
                if isinstance(part, Emitted):
                    self._stream.emit(part.name, **{**part.fields, "task_id": task_id})
                else:
                    rows = [_of(row, task_id) for row in part.rows]
                    self._journal.append(rows, (lambda: safe.put(None)) if part.needed else None, lazy=part.lazy)
            if isinstance(part, Appended) and part.needed:
                for _ in task_ids:
                    safe.get(timeout=PATIENCE)


def _of(row: Row, task_id: str) -> Row:
    """Make a row that of another task, in all by which the journal knows it."""
    named = {Task: "id", TaskResult: "task_id"}.get(type(row.message))
    message = row.message if named is None else row.message.model_copy(update={named: task_id})
    return row._replace(task_id=task_id, message=message)


@contextmanager
def prepare(size: int) -> Iterator[Go]:
    """Prepare batches of a size."""
    with tempfile.TemporaryDirectory() as made, tempfile.TemporaryDirectory() as kept:
        settings, clock = VARIANTS["process"].settings(Path(kept)), SystemClock("record-clock")
        log, broken = EventLog(settings), queue.SimpleQueue[Exception]()
        opened = open_journal(settings, clock, broken.put)
        stream = EventStream(clock, settings.events.kept, settings.events.queue, past=opened.events)
        stream.add_sink(log.write)
        if opened.sink is not None:
            stream.add_sink(opened.sink)
        clock.start()
        player = Player(taped(Path(made)), stream, opened.journal)

        def go(batches: int) -> None:
            for _ in range(batches):
                player.play(size)

        yield go
        clock.stop(PATIENCE)
        opened.journal.close(PATIENCE)
        log.close(PATIENCE)
        if not broken.empty():
            raise broken.get()


if __name__ == "__main__":
    serve(timed(prepare))
