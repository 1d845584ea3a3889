"""Tasks with a journal, for replays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from callboard import Event, EventName, Settings, Supervisor, Task, TaskHandle
from callboard.actors.replay import Replay, replay_journal
from callboard.testing import MemoryServer
from support import PATIENCE

People = Callable[[TaskHandle, Event], object]
"""A person's reaction to an event, by the event's name."""


class Record:
    """A journal, the surface of its tasks, and their models and settings."""

    def __init__(self, start: Callable[..., Supervisor], path: Path) -> None:
        self._start = start
        self.path = path
        self.surface = MemoryServer(MemoryServer.window())
        self.given: dict[str, Any] = {}

    def begin(self, **given: Any) -> Supervisor:
        """Start a supervisor on the journal, with sections of the settings."""
        self.given = {name: value for name, value in given.items() if name not in {"host", "app", "servers", "clock"}}
        return self._start(journal={"path": self.path}, **{"servers": [self.surface], **given})

    def run(self, task: Task, people: Mapping[EventName, People] | None = None, **given: Any) -> None:
        """Run a task to its end."""
        with self.begin(**given) as supervisor:
            self.play(supervisor.submit(task), people)

    @staticmethod
    def play(handle: TaskHandle, people: Mapping[EventName, People] | None = None) -> None:
        """React to events as people do, until the end of the task."""
        for event in handle.events():
            if people is not None and event.name in people:
                people[event.name](handle, event)
        handle.result(PATIENCE)

    def again(self, task_id: str = "t", **given: Any) -> Replay:
        """Replay a task, with changes of the settings."""
        return replay_journal(self.path, task_id, Settings.load(**{**self.given, **given}))


@pytest.fixture
def record(start: Callable[..., Supervisor], tmp_path: Path) -> Record:
    """Run tasks with a journal."""
    return Record(start, tmp_path / "journal.db")
