"""The log of one task, from a journal: its events as lines, to the last one or as they come."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import typer

from callboard.actors.journal import JournalReader
from callboard.config import Said, log_line
from callboard.console._journals import journal_at
from callboard.console._mistakes import warn
from callboard.console._show import find_task
from callboard.messages import EventName, Task

if TYPE_CHECKING:
    from pathlib import Path

_PAUSE = 0.25
"""Seconds between two looks at a journal."""


def print_log(task_id: str, path: Path | None, *, follow: bool, as_json: bool) -> None:
    """Print the events of a task, a line each; with `follow` until it is over, or nobody works on it any more."""
    terminal = sys.stdout.isatty()
    line = log_line(pretty=terminal and not as_json, colors=terminal)
    with JournalReader.open(journal_at(path)) as reader:
        task_id = find_task(reader, task_id)
        task = next(row.message for row in reader.rows(task_id, events=False) if isinstance(row.message, Task))
        last, over, left = 0, False, not follow
        while not over:
            for event in reader.events(task_id, last):
                typer.echo(line(Said(event, dict(task.labels))), nl=False)
                last, over = event.seq, event.name is EventName.TASK_ENDED
            if left or over:
                break
            left = reader.holder() is None  # what it wrote before it let go is read once more
            time.sleep(_PAUSE)
    if follow and not over:
        warn([f"nobody works on {task_id} now: `callboard resume` goes on with it"])
