"""Journals, rows, and a process that writes until it is killed."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pytest

import forks
from callboard.journal import JournalFile, Row
from callboard.messages import EventName, Fact, Message, Outcome, Task, TaskResult

Make = Callable[..., Row]


def row_of(message: Message, *, task: str = "t", run: str = "", at: float = 1.0) -> Row:
    return Row(at=at, task_id=task, run_id=run, message=message)


def task_row(task_id: str, at: float = 1.0, **fields: Any) -> Row:
    return row_of(Task(id=task_id, **{"request": "do it", **fields}), task=task_id, at=at)


def result_row(task_id: str, at: float = 2.0, outcome: Outcome = Outcome.FINISHED, **fields: Any) -> Row:
    return row_of(TaskResult(task_id=task_id, outcome=outcome, **fields), task=task_id, at=at)


def event_fact(seq: int, task: str = "t", at: float = 1.0, **data: Any) -> Fact:
    return Fact(seq=seq, at=at, name=EventName.STEP_STARTED, task_id=task, data=data)


@pytest.fixture
def a_row() -> Make:
    """Make a row of a message of task ``t``, at 1.0."""
    return row_of


@pytest.fixture
def a_task() -> Make:
    """Make the row of a task, at 1.0."""
    return task_row


@pytest.fixture
def a_result() -> Make:
    """Make the row of a task's result, at 2.0."""
    return result_row


@pytest.fixture
def an_event() -> Make:
    """Make the row of an event, of task ``t``, at 1.0."""
    return event_fact


@pytest.fixture
def place(tmp_path) -> Path:
    """The path of a test's journal."""
    return tmp_path / "kept" / "journal.db"


@pytest.fixture
def opened(place) -> Iterator[Callable[..., JournalFile]]:
    """Open a test's journal, and close it afterwards."""
    with ExitStack() as stack:
        yield lambda path=place, **how: stack.enter_context(closing(JournalFile.open(path, **how)))


@pytest.fixture
def everything() -> Callable[[Path], dict[str, bytes]]:
    """Read all files of a folder."""
    return lambda folder: {
        str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


@pytest.fixture
def held_open() -> Callable[[Path], list[str]]:
    """Name this process's open files in a folder, deleted ones too."""
    descriptors = Path("/proc/self/fd")
    if not descriptors.is_dir():
        pytest.skip("only Linux tells which files a process has open")

    def held(folder: Path) -> list[str]:
        found = []
        for descriptor in descriptors.iterdir():
            with suppress(FileNotFoundError):  # the descriptor of the list itself
                found.append(descriptor.readlink())
        return sorted(path.name for path in found if path.is_relative_to(folder))

    return held


@pytest.fixture
def synced(monkeypatch):
    """Record the files that Python syncs to disk, in order."""
    found = []
    real = os.fsync

    def fsync(descriptor):
        found.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return found


WRITER = """
import sys
from pathlib import Path
from callboard.journal import JournalFile, Row
from callboard.messages import Answer, Task

def row(text):
    return Row(1.0, "t", "", Answer(id=text, task_id="t"))

file = JournalFile.open(Path(sys.argv[1]), durability="process")
file.write([Row(1.0, "t", "", Task(id="t", request="do it"))])
file.commit()
for number, line in enumerate(sys.stdin):
    file.write([row(f"{number}.{part}") for part in range(100)])
    if line.strip() == "commit":
        file.commit()
    print(number, flush=True)
file.close()
"""


class Writer:
    """A process with an open journal that writes 100 rows on request."""

    def __init__(self, path: Path) -> None:
        self.process = forks.Program(
            [sys.executable, "-c", WRITER, str(path)],
            cwd=path.parent.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def write(self, *, commit: bool) -> None:
        """Have 100 rows written, and wait for it."""
        self.process.stdin.write("commit\n" if commit else "write\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline(), "the writer died"

    def kill(self) -> None:
        """Kill the process as `kill -9` does."""
        self.process.kill()
        self.end()

    def end(self) -> None:
        """Close the journal there, and wait for the process to end."""
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture
def writer(place) -> Iterator[Callable[[], Writer]]:
    """Start a process with the open journal, and end it afterwards."""
    with ExitStack() as stack:

        def start() -> Writer:
            started = Writer(place)
            stack.callback(started.end)
            stack.callback(started.process.kill)
            started.write(commit=True)
            return started

        yield start
