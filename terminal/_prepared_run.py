"""A run before it starts: task, settings, place."""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from callboard.actors.commands import contents_of
from callboard.messages import TaskRefusedError, UnknownTargetError
from callboard.supervisor import Supervisor
from callboard.surfaces.documents import advice_on
from callboard.terminal._commands import existing_path, fail
from callboard.terminal._document_changes import FolderFiles, OldDocuments
from callboard.terminal._journals import resume_command, settings_at
from callboard.terminal._own_documents import OwnDocuments, own_documents, prepare_documents
from callboard.terminal._place import prepare
from callboard.terminal._routine_run import filled_task

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from callboard.config import Settings
    from callboard.messages import Check, Task


@dataclass(frozen=True)
class PreparedRun:
    """A task to run, its settings and its place."""

    task: Task
    settings: Settings
    settings_file: Path | None
    """The settings file, or the folder with it; None without one."""
    copy: Path | None = None
    """The folder with the copies that the task works on; None if it works in place."""
    documents: tuple[Path, ...] = ()
    """The documents that the command line names."""
    old_documents: OldDocuments = field(default_factory=OldDocuments)

    def dry(self) -> PreparedRun:
        """Return the same run, as a dry run."""
        return replace(self, task=self.task.model_copy(update={"dry_run": True}))

    def resume_command(self, journal: Path | None, models: dict[str, str]) -> str:
        """Format the command that resumes this run; empty if there is none."""
        unreadable = self.settings_file is None and settings_at(None) is not None  # it would read other settings
        unkept = self.settings.journal.path is None
        return "" if unreadable or unkept else resume_command(self.settings_file, journal, models)


def prepared(
    arguments: Sequence[str],
    settings: Path | None,
    output: Path | None,
    changes: dict[str, Any],
    *,
    may_change: Sequence[str] = (),
    checks: Sequence[Check] = (),
    in_place: bool = False,
    sets: Sequence[str] = (),
    strict: bool = False,
) -> PreparedRun:
    """Parse the arguments of a run, and make its folder.

    `sets` and `strict` are the options of a routine.
    """
    documents = own_documents(arguments)
    if documents is not None:
        if settings is not None:
            fail("--settings belongs to a task file: write one that holds the request, or leave --settings out")
        if may_change:
            fail("--may-change belongs to a folder or a task file: with a request, say --in-place")
        run = _of_documents(documents, output, changes, checks, in_place=in_place)
        files = documents.files if documents.routine else ()
        return _filled(run, sets, files, strict=strict, original=documents.routine)
    if in_place:
        fail("--in-place belongs to a request: a folder is always copied, and a task file runs in place")
    path = existing_path(Path(arguments[0])) or Path()
    task, placed = prepare(path, settings, output, changes, checks)
    task = task.model_copy(update={"may_change": (*task.may_change, *may_change)})
    if path.is_file():
        return _filled(PreparedRun(task, placed, settings), sets, strict=strict)
    old_documents = OldDocuments(originals={placed.base: path.resolve()}, files=FolderFiles.look(placed))
    run = PreparedRun(task, placed, placed.base, placed.base, old_documents=old_documents)
    return _filled(run, sets, strict=strict, original=path.resolve())


def _filled(
    run: PreparedRun,
    sets: Sequence[str],
    documents: Sequence[Path] = (),
    *,
    strict: bool,
    original: Path | None = None,
) -> PreparedRun:
    """Fill in the values of a routine.

    If that fails, the run's folder is removed.
    """
    try:
        task = filled_task(run.task, run.settings.path, sets, documents, strict=strict, original=original)
        return replace(run, task=task)
    except BaseException:
        if run.copy is not None or run.documents:
            shutil.rmtree(run.settings.base, ignore_errors=True)
        raise


def _of_documents(
    inputs: OwnDocuments, output: Path | None, changes: dict[str, Any], checks: Sequence[Check], *, in_place: bool
) -> PreparedRun:
    task, placed = prepare_documents(inputs, output, changes, checks, in_place=in_place)
    if not in_place:
        copies = {placed.base / "workspace" / file.name: file.absolute() for file in inputs.files}
        old_documents = OldDocuments(originals=copies, files=FolderFiles.look(placed))
        return PreparedRun(task, placed, placed.base, placed.base, inputs.files, old_documents)
    old_documents = OldDocuments(
        contents={file: contents_of(file) for file in (path.resolve() for path in inputs.files)}
    )
    return PreparedRun(task, placed, placed.base, documents=inputs.files, old_documents=old_documents)


def started(run: PreparedRun) -> Supervisor:
    """Start a supervisor; if that fails, remove the run's folder.

    It also fails if no agent can work on a document that the command line names.
    """
    try:
        supervisor = Supervisor.start(run.settings)
        try:
            offered: set[str] = set()
            if run.documents:
                offered = {os.path.normcase(target.name) for target in supervisor.targets() if not target.machine}
            for file in run.documents:
                if os.path.normcase(file.name) not in offered:
                    unknown = "it is no document of a known kind, or its name begins with a dot; save it as .docx"
                    why = advice_on(file.name) or unknown
                    fail(f"{file}: agents can't work on it: {why}")
        except BaseException:
            supervisor.stop()
            raise
    except BaseException:
        _remove(run)
        raise
    return supervisor


@contextlib.contextmanager
def removed_if_refused(run: PreparedRun) -> Iterator[None]:
    """Remove the run's folder if its task is refused.

    It uses up no number then.
    """
    try:
        yield
    except (TaskRefusedError, UnknownTargetError):
        _remove(run)
        raise


def _remove(run: PreparedRun) -> None:
    """Remove the folder that was made for a run."""
    if run.copy is not None or run.documents:
        shutil.rmtree(run.settings.base, ignore_errors=True)
