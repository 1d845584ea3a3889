"""The history of one task, for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from callboard.history import (
    Line,
    Tone,
    agent_label,
    called,
    history_of,
    lines_of,
    lines_of_reply,
    lines_of_result,
    plain,
)
from callboard.journal import JournalReader
from callboard.messages import (
    number_of,
    paired,
)
from callboard.terminal._commands import fail
from callboard.terminal._journals import (
    ending,
    find_task,
    holder_text,
    journal_at,
    moment,
    print_json,
    resume_hint,
)
from callboard.terminal._results import print_head, print_result
from callboard.terminal._text import BAD, GOOD, wrapped
from callboard.terminal._timeline import print_chart
from callboard.terminal._undo_commands import undo_command

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from callboard.actors.states import Unfinished
    from callboard.history import TaskHistory


_INDENT, _NARROWEST = 12, 20
_STYLES = {
    Tone.PLAIN: "",
    Tone.GOOD: GOOD,
    Tone.BAD: BAD,
    Tone.WAITING: "yellow",
    Tone.QUIET: "dim",
    Tone.SPOKEN: "italic",
}


def show_task(console: Console, task_id: str, path: Path | None, *, as_json: bool) -> None:
    """Print the history of a task.

    The task is found by the beginning of its id.
    """
    journal = journal_at(path)
    with JournalReader.open(journal) as reader:
        full_id = find_task(reader, task_id)
        history, held = history_of(reader.rows(full_id)), holder_text(reader)
    if history is None:
        fail(f"the journal {journal} has no history of {full_id}")
    if as_json:
        print_json(history.as_json())
    else:
        _print_history(console, history, held, path, journal)


def _print_history(console: Console, history: TaskHistory, held: str, path: Path | None, journal: Path) -> None:
    task, result = history.task, history.result
    console.print(Text(plain(task.id), style="cyan").append(f"  key {plain(task.key)}" if task.key else "", "dim"))
    print_head(console, task, None, "")
    console.print(Text(f"submitted {moment(history.submitted):%Y-%m-%d %H:%M:%S}", style="dim"))
    if history.ended is not None:
        console.print(Text(f"ended     {moment(history.ended):%Y-%m-%d %H:%M:%S}", style="dim"))
    console.print()
    day = moment(history.submitted).date()
    has_host = any(not assign.number for assign in history.assigned)
    for entry in history.entries:
        at = moment(entry.at)
        if at.date() != day:
            day = at.date()
            console.print(Text(f"{day:%Y-%m-%d}", style="dim"))
        head, *lines = lines_of(entry.message)
        number = number_of(entry.run_id) if has_host else 0
        title = Text(f"{number} " if number else "", style="cyan").append(agent_label(entry.agent) or "the task")
        title.append(f"  {plain(head[0])}", style=_STYLES[head[1]] or "default")
        _print_beside(console, f"{at:%H:%M:%S}.{at.microsecond // 100_000}  ", title)
        for line in (*lines, *lines_of_reply(entry.message, entry.reply)):
            _print_below(console, line)
    for run_id, unfinished in history.broken_off.items():
        _print_broken_off(console, history.agents.get(run_id, run_id), unfinished)
    for assigned, group in history.groups:
        console.print()
        print_chart(console, history, assigned, group.assigns)
    console.print()
    if result is not None:
        print_result(console, result, undo_command(task, result, path or journal))
        return
    for ask in history.waiting:
        console.print(Text(f"{agent_label(ask.address)} waits for a person", style="yellow"))
    state = held or plain(f"no process works on it; resume it with: {resume_hint(path, journal)}")
    console.print(ending(None).append(f": {state}", style="default"), soft_wrap=True)


def _print_below(console: Console, line: Line) -> None:
    text = plain(line[0])
    stripped = text.lstrip(" ")
    _print_beside(console, " " * (_INDENT + len(text) - len(stripped)), Text(stripped, style=_STYLES[line[1]]))


def _print_beside(console: Console, margin: str, text: Text) -> None:
    """Print a text of any number of lines beside a margin."""
    for number, line in enumerate(wrapped(text, max(_NARROWEST, console.width - len(margin)))):
        line.rstrip()
        console.print(Text(margin if number == 0 else " " * len(margin), style="dim").append_text(line), soft_wrap=True)


def _print_broken_off(console: Console, agent: str, unfinished: Unfinished) -> None:
    decided = unfinished.decided
    if decided is None:
        return
    title = Text(agent_label(agent), style="cyan")
    _print_beside(console, " " * _INDENT, title.append(f"  step {decided.step}, in progress", style="yellow"))
    lines = [
        line
        for action, result in paired(decided.actions, unfinished.results)
        for line in lines_of_result(action, result)
    ]
    for number, action in enumerate(decided.after(unfinished.results)):
        running = number == 0 and unfinished.intent is not None
        lines.append(
            (
                f"{called(action)}: {'started, no outcome yet' if running else 'not run yet'}",
                Tone.WAITING if running else Tone.QUIET,
            )
        )
    for line in lines:
        _print_below(console, line)
