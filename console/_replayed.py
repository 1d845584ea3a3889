"""A replay on the command line: the transitions that were made again, and the first difference."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from callboard.actors.journal import JournalReader
from callboard.actors.processing import named_agents
from callboard.actors.replay import Recording, replay
from callboard.config import Settings
from callboard.console._journals import journal_at, print_json, settings_at
from callboard.console._show import find_task
from callboard.console._text import BAD, GOOD, plain

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from callboard.actors.replay import Replay


def replay_task(console: Console, task_id: str, path: Path | None, settings: Path | None, *, as_json: bool) -> bool:
    """Replay a task of a journal and tell of it. Returns whether it went as recorded."""
    journal = journal_at(path)
    with JournalReader.open(journal) as reader:
        recording = Recording.load(journal, find_task(reader, task_id))
    if settings is not None:
        loaded = Settings.load(settings_at(settings))
        done = replay(recording, loaded, agents=named_agents(loaded))
    elif path == journal and None not in recording.lives:
        done = replay(recording)
    else:
        loaded = Settings.load(settings_at(None if path == journal else path))
        done = replay(recording, otherwise=loaded, agents=named_agents(loaded))
    if as_json:
        print_json(_as_json(done))
    else:
        _print(console, done)
    return done.same


def _as_json(done: Replay) -> dict[str, object]:
    return {
        "task": done.task.id,
        "same": done.same,
        "outcome": done.outcome.value if done.outcome is not None else None,
        "jobs": done.jobs,
        "taken": done.taken,
        "transitions": [dataclasses.asdict(made) for made in done.transitions],
        "difference": dataclasses.asdict(done.difference) if done.difference is not None else None,
    }


def _print(console: Console, done: Replay) -> None:
    console.print(Text(plain(done.task.id), style="cyan"))
    table = Table(box=box.SIMPLE, pad_edge=False)
    for name in ("agent", "step", "transition", "by"):
        table.add_column(name)
    for made in done.transitions:
        table.add_row(plain(made.address), str(made.step), f"{made.source} → {made.target}", made.by)
    console.print(table)
    if done.difference is not None:
        console.print(Text("The first difference", style=BAD))
        for line in str(done.difference).splitlines():
            console.print(Text(plain(line)))
        return
    ended = "it was not over" if done.outcome is None else f"it ended as {done.outcome.value.replace('_', ' ')}"
    console.print(Text("the same as recorded", style=GOOD), Text(f"{_counted(done)}; {ended}"), sep=": ")


def _counted(done: Replay) -> str:
    counted = f"{done.jobs} jobs, {len(done.transitions)} transitions"
    return f"{counted}, {done.taken} failed steps taken as recorded" if done.taken else counted
