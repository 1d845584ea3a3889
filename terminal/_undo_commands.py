"""Bring back the files of a task, and the command for that."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from callboard.actors.client import undo
from callboard.history import plain
from callboard.journal import JournalReader, Versions
from callboard.terminal._commands import fail, warn
from callboard.terminal._journals import find_task, holder_text, journal_at, print_json, resume_hint, task_command
from callboard.terminal._text import GOOD, short

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from callboard.messages import Task, TaskResult


def undo_task(console: Console, task_id: str, path: Path | None, files: Sequence[str], *, as_json: bool) -> None:
    """Bring back the files of a task, and print them.

    The task is found by the first characters of its id.
    """
    with JournalReader.open(journal_at(path)) as reader:
        full_id = find_task(reader, task_id)
        is_over = full_id not in reader.unfinished_ids()
        if not is_over and (held := holder_text(reader)):
            fail(f"{full_id} is not over, and {held}: cancel it first, or wait for its end")
        done = undo(reader.rows(full_id, events=False), Versions(reader.path), full_id, files)
    if as_json:
        print_json({str(file): brought_back for file, brought_back in done.items()})
    for file, brought_back in () if as_json else done.items():
        line = Text("brought back" if brought_back else "unchanged", style=GOOD if brought_back else "dim")
        console.print(line.append(f"  {plain(short(file))}", style="default"), soft_wrap=True)
    if not is_over:
        how = resume_hint(path, reader.path)
        warn([f"{full_id} is not over; this continues it, from the files as they are now: {how}"])


def undo_command(task: Task, result: TaskResult, journal: Path | None) -> str:
    """Format the command that undoes a task's changes.

    Empty if it could bring nothing back, or without a journal.
    """
    changed = [Path(path).as_posix() for path in result.changed]
    if not any(path.endswith(f"/{name}") for path in changed for name in task.may_change):
        return ""
    return task_command("undo", task.id, journal)
