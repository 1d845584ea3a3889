"""Unfinished tasks in a journal, before a run or a resume starts."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from callboard.config import Settings
from callboard.history import TaskHistory, asked, history_of, plain
from callboard.journal import JournalReader
from callboard.messages import (
    CallboardError,
    JournalError,
    JournalInUseError,
    Outcome,
    Question,
    SupervisorStoppedError,
    agent_kind,
)
from callboard.surfaces import named_surfaces
from callboard.terminal._commands import EXIT_CODES, fail
from callboard.terminal._journals import (
    SETTINGS_SUFFIXES,
    journal_in,
    journal_of,
    resume_command,
    resume_hint,
    settings_at,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from callboard.terminal._people import Attendance


_ELSEWHERE = ": resume it where it was submitted"


def take_over(path: Path | None, who: Attendance, changes: dict[str, Any]) -> tuple[Settings, tuple[TaskHistory, ...]]:
    """Read settings, and the unfinished tasks of their journal.

    Raises:
        JournalInUseError: If another process has it open.
        JournalError: If it does not exist, or can't be read.
    """
    if path is not None and path.is_file() and path.suffix.lower() not in SETTINGS_SUFFIXES:
        fail(f"{path}: is not a settings file; a journal names no models, so resume it with: {resume_hint(path, path)}")
    file = settings_at(path)
    settings = Settings.load(file, **changes)
    journal = journal_of(settings, file)
    histories: list[TaskHistory] = []
    if not journal.is_file() or journal.stat().st_size:  # an empty file has no tasks
        with JournalReader.open(journal) as reader:
            _check_free(reader)
            unfinished = reader.unfinished_ids()
            histories = [history for task_id in unfinished if (history := history_of(reader.rows(task_id))) is not None]
    for history in histories:
        _check_can_go_on(history, settings, who)
    return settings, tuple(histories)


def _check_can_go_on(history: TaskHistory, settings: Settings, who: Attendance) -> None:
    """Refuse to resume tasks that would only fail here.

    This includes tasks that would end because no person is there to answer.
    """
    task_id = history.task.id
    surfaces = {surface.name for surface in named_surfaces(settings)}
    for assign in history.assigned:
        kind, target = agent_kind(assign.address), assign.target
        if target is not None and target.pool and settings.fleet.local:
            continue
        if target is not None and target.machine:
            if settings.fleet.url is None:
                fail(f"{task_id} works on the machine {target.machine}, and fleet.url names no fleet{_ELSEWHERE}")
            continue
        if settings.models.of(kind) is None and history.task.model is None:
            fail(f"{task_id} needs a model for {assign.address}, and models.{kind} names none{_ELSEWHERE}")
        if target is not None and target.server not in surfaces:
            fail(f"{task_id} works on {target.id} of the surface {target.server!r}, which is not there{_ELSEWHERE}")
    for ask in history.waiting:
        if who.gives_up(ask):
            what = asked(ask) if isinstance(ask, Question) else ask.reason
            fail(
                f"{task_id} waits for a person ({plain(what)}), and no person can be asked, because {who.why_absent}: "
                "resume it in a terminal, or say --no-input to give it up"
            )


def known_ids(settings: Settings, file: Path | None = None) -> frozenset[str]:
    """Return the ids of the tasks that the settings' journal has already.

    A journal with unfinished tasks is refused: they would resume beside a new one, perhaps on other documents.

    Args:
        settings: The settings of the new run.
        file: The file of the settings; None for a run that has its own.

    Raises:
        JournalInUseError: If another process has it open.
        JournalError: If it can't be read.
    """
    journal = journal_in(settings)
    if journal is None or not journal.exists() or not journal.stat().st_size:
        return frozenset()
    with JournalReader.open(journal) as reader:
        _check_free(reader)
        ids, unfinished = reader.ids(), reader.unfinished_ids()
    if unfinished:
        resume = resume_command(file or Path("SETTINGS.yaml"), journal)
        fail(
            f"the journal {journal} has unfinished tasks: {', '.join(unfinished)}; "
            "use another journal (--journal FILE), or resume them first"
            f"{' with the settings of their run' if file is None else ''}: {resume}"
        )
    return frozenset(ids)


def left_in(journal: Path | None) -> tuple[str, ...]:
    """List the unfinished tasks of a journal that no process has open.

    Empty if it can't be read.
    """
    if journal is None or not journal.is_file() or not journal.stat().st_size:
        return ()
    try:
        with JournalReader.open(journal) as reader:
            return () if reader.holder() else reader.unfinished_ids()
    except JournalError:  # a run on a copy does not use it
        return ()


def _check_free(reader: JournalReader) -> None:
    holder = reader.holder()
    if holder is not None:
        raise JournalInUseError(reader.path, pid=holder.pid, host=holder.host, since=holder.since)


@contextlib.contextmanager
def with_resume_hint(command: str) -> Iterator[None]:
    """Name the command that resumes tasks if this command ends early.

    Without a `command`, nothing is printed.
    """
    hint = f"the journal keeps the unfinished tasks; resume them with: {command}"
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        if command:
            typer.echo(f"\ncallboard: interrupted; {hint}", err=True)
        raise
    except typer.Exit as leaving:
        if command and leaving.exit_code == EXIT_CODES[Outcome.ERROR]:
            typer.echo(f"callboard: {hint}", err=True)
        raise
    except Exception as error:
        expected = isinstance(error, CallboardError | OSError) and not isinstance(error, SupervisorStoppedError)
        if command and not expected:  # an expected error is printed as one line, without notes
            error.add_note(hint)
        raise
