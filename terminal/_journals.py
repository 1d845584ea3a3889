"""Journals on the command line: their location, and commands on their tasks."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import json
import re
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from callboard.config import LabelledEvent, Settings, log_line
from callboard.history import plain
from callboard.journal import JournalReader, TaskFilter
from callboard.messages import CallboardError, EventName, JournalError, Outcome, Task, did_you_mean
from callboard.terminal._commands import fail, model_options, warn
from callboard.terminal._text import BAD, GOOD, short

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from callboard.journal import TaskLine


SETTINGS_FILE = "callboard.yaml"
RUNS = "runs"
"""The folder of the runs on copies."""
EVALS = "evals"
"""The folder of the runs of eval sets."""
SETTINGS_SUFFIXES = {".yaml", ".yml"}
_NAMED = 10
"""The number of tasks that an error message names."""

_COMPARED = 1_000
"""The number of newest tasks whose ids are compared with an unknown one."""

_PAGE = 500
"""The number of tasks that are read at once."""

_MINUTE = 60
_WIDE, _NARROW = 80, 60
"""Columns of a terminal from which a list of tasks has the submission, and the duration."""


def settings_at(path: Path | None) -> Path | None:
    """Find the settings file.

    It is the named file, that of a folder, or that of the current folder if it has one.
    """
    if path is None:
        here = Path(SETTINGS_FILE)
        return here if here.is_file() else None
    return path / SETTINGS_FILE if path.is_dir() else path


def unset(name: str, file: Path | None) -> str:
    """Say that a setting is missing, and how to set it.

    Args:
        name: The setting, such as ``journal.path``.
        file: The settings' file; None if there is none.
    """
    variable = f"CALLBOARD_{name.upper().replace('.', '__')}"
    if file is None:
        return (
            f"{name} is not set, and this folder has no {SETTINGS_FILE}: set the variable {variable}, "
            "or name a settings file or its folder"
        )
    return f"{file}: {name} is not set: add it there, or set the variable {variable}"


def journal_at(path: Path | None) -> Path:
    """Find a journal: the file itself, or the one named by settings.

    The settings are a file, or those of a folder or of the current folder.
    """
    if path is not None and path.is_file() and path.suffix.lower() not in SETTINGS_SUFFIXES:
        return path
    file = settings_at(path)
    if path is not None and path.is_dir() and file is not None and not file.is_file():
        fail(f"{path}: has no {SETTINGS_FILE} that names a journal: name a run's folder{_latest_run()}")
    return journal_of(Settings.load(file), file)


def journal_of(settings: Settings, file: Path | None) -> Path:
    """Return the journal that settings name; ``file`` is the settings' file."""
    if settings.journal.path is None and file is None:
        fail(
            f"no journal is named, and this folder has no {SETTINGS_FILE} that names one: "
            f"name a run's folder{_latest_run()}, or a settings file or a journal, or set CALLBOARD_JOURNAL__PATH"
        )
    if settings.journal.path is None:
        fail(f"{unset('journal.path', file)}; without it there is no journal")
    journal = settings.path(settings.journal.path)
    of_run = file is not None and Path(RUNS).resolve() in file.resolve().parents
    if not (journal.exists() or of_run) and (latest := _latest_run()):
        fail(f"the journal {journal} is not there; each run on a copy has its own: name the run's folder{latest}")
    return journal


def _latest_run() -> str:
    """Name the latest run on a copy; empty without one."""
    runs: dict[float, Path] = {}
    for file in Path(RUNS).glob(f"*/{SETTINGS_FILE}"):
        with contextlib.suppress(FileNotFoundError):  # it is being deleted
            runs[file.stat().st_ctime] = file.parent  # a copy has the modification time of the original
    return f", such as {shlex.quote(str(runs[max(runs)]))}" if runs else ""


def journal_in(settings: Settings) -> Path | None:
    """Return the journal that settings name, or None."""
    return None if settings.journal.path is None else settings.path(settings.journal.path)


def named_journal(settings: Settings, path: Path | None, journal: Path | None) -> Path | None:
    """Return the path that names the journal in other commands.

    None without a journal.

    Args:
        settings: The settings in force.
        path: Their file or folder, if there is one.
        journal: The journal that replaces theirs, if the call names one.
    """
    file = journal_in(settings)
    return path if file is not None and path is not None and journal is None else file


def task_command(command: str, task_id: str, journal: Path | None) -> str:
    """Format a command on a task.

    `journal` is a journal, or a file or folder that names one. Empty without it.
    """
    return "" if journal is None else shlex.join(["callboard", command, task_id, short(journal.resolve())])


def resume_command(settings: Path | None, journal: Path | None = None, models: dict[str, str] | None = None) -> str:
    """Format the command that resumes a journal's tasks.

    Args:
        settings: The settings file or its folder; None for that of the current folder.
        journal: The journal, if the settings don't name it.
        models: The models that the command line named, by kind of agent.
    """
    words = ["callboard", "resume"]
    words += [] if settings is None else [short(settings.absolute())]
    words += [] if journal is None else ["--journal", short(journal.absolute())]
    return shlex.join([*words, *model_options(models or {})])


def resume_hint(path: Path | None, journal: Path) -> str:
    """Format the command that resumes the journal that a person named.

    Args:
        path: The journal, or a settings file or folder that names it; None for those of the current folder.
        journal: The journal.
    """
    if path is None or path.resolve() != journal.resolve():
        return resume_command(path)
    if journal.resolve().with_name(SETTINGS_FILE).is_file():
        return resume_command(journal.resolve().parent, journal)
    return f"{resume_command(Path('SETTINGS.yaml'), journal)}, with the settings of its run"


def task_filter(find: str, labels: Sequence[str], outcomes: Sequence[str]) -> TaskFilter:
    """Read the filters of the command line: words, ``NAME=VALUE`` and outcomes."""
    known_outcomes: dict[str, Outcome | None] = {"unfinished": None, **{outcome.value: outcome for outcome in Outcome}}
    for name in outcomes:
        if name not in known_outcomes:
            fail(f"there is no outcome {name!r}{did_you_mean(name, known_outcomes)}")
    for label in labels:
        if "=" not in label:
            fail(f"a label is NAME=VALUE, not {label!r}")
    pairs = dict(label.split("=", 1) for label in labels)
    return TaskFilter(find, frozenset(known_outcomes[name] for name in outcomes), pairs)


def _listed(reader: JournalReader, filters: TaskFilter) -> tuple[TaskLine, ...]:
    """Return all tasks that match, the oldest first."""
    if filters == TaskFilter():
        return reader.tasks()
    page = reader.page(filters, limit=_PAGE)
    tasks = list(page.tasks)
    while page.next is not None:
        page = reader.page(filters, before=page.next, limit=_PAGE)
        tasks += page.tasks
    return tuple(reversed(tasks))


def list_tasks(console: Console, path: Path | None, filters: TaskFilter, *, as_json: bool) -> None:
    """Print the tasks of a journal that match, a line each."""
    with JournalReader.open(journal_at(path)) as reader:
        tasks, held = _listed(reader, filters), holder_text(reader) or "no process has the journal open"
    if as_json:
        print_json([dataclasses.asdict(task) for task in tasks])
        return
    if tasks:
        console.print(_table(tasks, console.width))
    ended_count = sum(task.ended is not None for task in tasks)
    counted = "1 task" if len(tasks) == 1 else f"{len(tasks)} tasks"
    console.print(Text(f"{counted}, {len(tasks) - ended_count} unfinished; {held}", style="dim"))


def _table(tasks: Sequence[TaskLine], width: int) -> Table:
    """Lay out tasks for a terminal; ids and outcomes are never cut."""
    table = Table(box=box.SIMPLE, pad_edge=False)
    longest = max(len(plain(task.id)) for task in tasks)
    table.add_column("task", style="cyan", overflow="fold", no_wrap=longest <= width // 3)
    has_keys = any(task.key is not None for task in tasks)
    if has_keys:
        table.add_column("key", overflow="fold")
    table.add_column("outcome", overflow="fold")
    if width >= _WIDE:
        table.add_column("submitted", no_wrap=True)
    if width >= _NARROW:
        table.add_column("ended after", justify="right", no_wrap=True)
    table.add_column("request")
    for task in tasks:
        cells: list[str | Text] = [plain(task.id), *([plain(task.key or "")] if has_keys else []), _judged(task)]
        if width >= _WIDE:
            cells.append(f"{moment(task.submitted):%Y-%m-%d %H:%M}")
        if width >= _NARROW:
            cells.append("" if task.ended is None else span(task.ended - task.submitted))
        table.add_row(*cells, Text(plain(task.request), no_wrap=True, overflow="ellipsis"))
    return table


def _judged(task: TaskLine) -> Text:
    """Describe the end of a task, and whether its checks held."""
    marks = {True: (", verified", GOOD), False: (", not verified", BAD), None: ("", "")}
    return ending(task.outcome).append(*marks[task.verified])


def print_json(content: object) -> None:
    """Print JSON, for programs."""
    typer.echo(json.dumps(content, indent=2, ensure_ascii=False))


def holder_text(reader: JournalReader) -> str:
    """Describe the process that has a journal open.

    Empty if there is none. The text also covers the case that this can't be found out.
    """
    try:
        holder = reader.holder()
    except JournalError as error:  # the lock may be another user's, even if all users may read the journal
        return f"can't find out which process has it open: {plain(str(error))}"
    if holder is None:
        return ""
    who = f"process {holder.pid} on {plain(holder.host)}" if holder.pid else "another process"
    since = f" since {moment(holder.since):%Y-%m-%d %H:%M:%S}" if holder.since else ""
    return f"{who} has the journal open{since}"


def find_task(reader: JournalReader, task_id: str) -> str:
    """Find a task by the beginning of its id, or its key."""
    matches = reader.ids(task_id)
    if task_id in matches:
        return task_id
    if (same := reader.with_key(task_id)) is not None:
        return same
    if len(matches) != 1:
        others = matches or (*reader.keys(_COMPARED), *reader.ids()[-_COMPARED:])
        fail(_unknown(reader.path, task_id, others, ambiguous=bool(matches)))
    return matches[0]


def _unknown(journal: Path, task_id: str, task_ids: Sequence[str], *, ambiguous: bool) -> str:
    if ambiguous:
        hint = f"; did you mean {' or '.join(task_ids[:_NAMED])}?"
    else:
        listed = f"there are: {', '.join(task_ids[-_NAMED:])}{' …' if len(task_ids) > _NAMED else ''}"
        hint = did_you_mean(task_id, task_ids, listed if task_ids else "it is empty", show=str)
    return plain(f"the journal {journal} has no task {task_id!r}{hint}")


def ending(outcome: Outcome | None) -> Text:
    """Describe the end of a task."""
    if outcome is None:
        return Text("unfinished", style="yellow")
    return Text(outcome.value.replace("_", " "), style=GOOD if outcome is Outcome.FINISHED else BAD)


def moment(at: float) -> dt.datetime:
    """Format a moment as local time."""
    return dt.datetime.fromtimestamp(at).astimezone()


def span(seconds: float) -> str:
    """Format a duration."""
    seconds = max(0.0, seconds)
    if seconds < _MINUTE:
        return f"{seconds:.1f} s"
    return str(dt.timedelta(seconds=round(seconds)))


_PAUSE = 0.25
"""Seconds between two looks at a journal."""


def print_log(task_id: str, path: Path | None, *, follow: bool, as_json: bool) -> None:
    """Print the events of a task, a line each.

    With `follow`, continue until the task is over, or no process works on it.
    """
    terminal = sys.stdout.isatty()
    line = log_line(pretty=terminal and not as_json, colors=terminal)
    with JournalReader.open(journal_at(path)) as reader:
        journal, task_id = reader.path, find_task(reader, task_id)
        task = next(row.message for row in reader.rows(task_id, events=False) if isinstance(row.message, Task))
        last, ended, closed = 0, False, not follow
        while not ended:
            for event in reader.events(task_id, last):
                typer.echo(line(LabelledEvent(event, dict(task.labels))), nl=False)
                last, ended = event.seq, event.name is EventName.TASK_ENDED
            if closed or ended:
                break
            closed = reader.holder() is None  # rows that it wrote before it closed the journal are read once more
            time.sleep(_PAUSE)
    if follow and not ended:
        warn([f"no process works on {task_id}: resume it with: {resume_hint(path, journal)}"])


_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]*")
"""The form of a task's id, which has no characters with a meaning in a shell; a damaged journal may have others."""


def task_ids(incomplete: str) -> list[str]:
    """List the ids of the current folder's journal, the latest first.

    A folder without settings or without a readable journal has none.
    """
    try:
        journal = journal_in(Settings.load(settings_at(None)))
        if journal is None:
            return []
        with JournalReader.open(journal) as reader:
            ids = reader.ids(incomplete)
    except (CallboardError, OSError):  # completion has no place for errors; the command itself reports them
        return []
    return [task_id for task_id in reversed(ids) if _ID.fullmatch(task_id)]
