"""Runs of the examples, to be recorded."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from callboard import Supervisor, Task
from callboard.journal import JournalReader
from callboard.routines import RoutineRecording, record

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
Recorded = Callable[[str], RoutineRecording]


def recording_of(journal: Path, task_id: str = "t", **parameters: str) -> RoutineRecording:
    """Record a task of a journal."""
    with JournalReader.open(journal) as reader:
        return record(reader.rows(task_id, events=False), name="r", parameters=parameters)


@pytest.fixture(scope="session")
def recorded(tmp_path_factory) -> Recorded:
    """Run each example once, and record it."""
    recordings: dict[str, RoutineRecording] = {}

    def once(name: str) -> RoutineRecording:
        if name not in recordings:
            folder = tmp_path_factory.mktemp(name) / name
            shutil.copytree(EXAMPLES / name, folder)
            task: dict[str, Any] = yaml.safe_load((folder / "task.yaml").read_text(encoding="utf-8"))
            with Supervisor.start(folder / "callboard.yaml") as supervisor:
                assert supervisor.submit(Task(id="t", **task)).result(120).ok
            recordings[name] = recording_of(folder / "journal.db")
        return recordings[name]

    return once
