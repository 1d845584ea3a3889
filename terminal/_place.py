"""The place of a run.

Task and settings are in a fresh copy of their folder.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import ValidationError

from callboard.actors.commands import program_needed
from callboard.config import Settings, YamlError, load_prompts, load_skills, load_yaml, make_private, restrict
from callboard.messages import Task
from callboard.models import named_models
from callboard.surfaces import check_needs, named_surfaces, surface_needs
from callboard.terminal._check_option import with_checks
from callboard.terminal._commands import existing_path, fail, warn
from callboard.terminal._journals import EVALS, RUNS, SETTINGS_FILE, resume_command, resume_hint, settings_at
from callboard.terminal._problems import problem_lines
from callboard.terminal._routine_run import is_routine
from callboard.terminal._takeover import known_ids, left_in

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping, Sequence

    from callboard.messages import Check


TASK_FILE = "task.yaml"
_SETTINGS = frozenset({*Settings.model_fields, "mcpServers"} - Task.model_fields.keys())


def prepare(
    path: Path, settings: Path | None, output: Path | None, changes: dict[str, Any], checks: Sequence[Check] = ()
) -> tuple[Task, Settings]:
    """Read the task and the settings, and choose the run's folder.

    It is a fresh copy of their folder, or the folder of the task file. Everything is read before anything is copied, so
    that error messages name the original file, where the user can correct it. `checks` are added to the task's own.
    """
    how = _in_place if path.is_file() else _on_copy
    return how(path, settings, output, changes, checks)


def _in_place(
    file: Path, settings: Path | None, output: Path | None, changes: dict[str, Any], checks: Sequence[Check]
) -> tuple[Task, Settings]:
    if output is not None:
        fail("--output needs a folder; a task file runs in place")
    chosen = None if settings is None else settings_at(existing_path(settings))
    task, placed = with_checks(read_task(file, changes), checks), Settings.load(chosen, **changes)
    _check_model(file, task, placed)
    check_files(placed)
    beside = file.with_name(SETTINGS_FILE)
    if chosen is None and beside.is_file():
        warn([f"{beside} is not used: to run a task file with it, add --settings {shlex.quote(str(beside))}"])
    return named(task, file.stem, known_ids(placed, chosen)), placed


def _on_copy(
    path: Path, settings: Path | None, output: Path | None, changes: dict[str, Any], checks: Sequence[Check]
) -> tuple[Task, Settings]:
    if settings is not None:
        fail(f"--settings belongs to a task file; the folder {path} has its own {SETTINGS_FILE}")
    for file, what in ((SETTINGS_FILE, "settings"), (TASK_FILE, "task")):
        if not (path / file).is_file():
            fail(f"{path}: has no {file}: a folder to run holds its {what} there, as one that `callboard init` writes")
    _check_names(path)
    original = Settings.load(path / SETTINGS_FILE, **changes)
    named_models(original)
    check_files(original)
    task = with_checks(read_task(path / TASK_FILE, changes), checks)
    _check_model(path, task, original)
    folder = new_place(path.resolve().name, output)
    with contextlib.ExitStack() as undo:
        undo.callback(shutil.rmtree, folder)
        placed = Settings.load(path / SETTINGS_FILE, base=folder, **changes)
        task_ids = known_ids(placed)
        _copy(path, folder, original)
        for problem in _outside({"documents.workspace": placed.documents.workspace}, placed):
            how = shlex.join(["callboard", "run", str(path / TASK_FILE), "--settings", str(path)])
            fail(f"{problem}: the run would change the original files; if it should, run the task in place: {how}")
        undo.pop_all()
    return named(task, folder.name, task_ids), placed


def _copy(path: Path, target: Path, original: Settings) -> None:
    """Copy a folder; warn if its journal has unfinished tasks."""
    journal = None if original.journal.path is None else original.path(original.journal.path).resolve()
    if journal is not None and (unfinished := left_in(journal)):
        how = resume_hint(path, journal)
        warn([f"{path} has unfinished tasks ({', '.join(unfinished)}), and this runs another; to resume them: {how}"])

    copy_folder(path, target, without_runs(target, journal, {path.resolve() / EVALS}))


Filter: TypeAlias = "Callable[[str, list[str]], list[str]]"
"""A function that returns the names in a folder that are not copied."""


def copy_folder(path: Path, target: Path, skipped: Filter) -> None:
    """Copy a folder, except for the names that a filter returns."""
    shutil.copytree(path.resolve(), target, symlinks=True, ignore=skipped, dirs_exist_ok=True)
    restrict(target)  # the copy now has the permissions of the original folder


def without_runs(target: Path, journal: Path | None, left_out: Container[Path] = ()) -> Filter:
    """Return the filter of a copy of a folder at this place.

    It skips the copy itself, the journal, virtual environments, and what is left out by its path.
    """

    def skipped(folder: str, names: list[str]) -> list[str]:
        paths = ((name, Path(folder, name)) for name in names)
        return [
            name
            for name, path in paths
            if target.is_relative_to(path) or path in left_out or _is_left_out(journal, path)
        ]

    return skipped


def _check_model(path: Path, task: Task, settings: Settings) -> None:
    """Refuse a task if neither it nor its settings name any model.

    A task for a target of another machine needs none here.
    """
    if task.routine is not None:
        return  # it needs a model only once a guard does not hold
    works_elsewhere = settings.fleet.url is not None and task.target is not None
    if not works_elsewhere and task.model is None and not any(settings.models.model_dump(exclude={"record"}).values()):
        beside = path.with_name(SETTINGS_FILE)
        how = f"--settings {shlex.quote(str(beside))}" if beside.is_file() else "settings that name one"
        fail(f"{path}: no model is named: add --model NAME, or {how}; see: callboard docs models")


def _check_names(folder: Path) -> None:
    """Refuse a folder with names that can't be printed or encoded."""
    for at, folders, files in os.walk(folder):
        for name in (*folders, *files):
            existing_path(Path(at, name))


def check_files(settings: Settings) -> None:
    """Check that the files and programs named in the settings exist.

    Raises:
        SettingsError: If a prompt or a skill can't be read, or a requirement of a surface or an MCP server is missing.
    """
    load_prompts(settings)
    load_skills(settings)
    needs = list(surface_needs(settings))
    for name, server in settings.mcp_servers.items():
        needs += [(f"mcpServers.{name}", need) for need in program_needed(server) if not server.optional]
    check_needs(needs)


def _is_left_out(journal: Path | None, path: Path) -> bool:
    """Return whether a copy lacks a file or folder of the original.

    A copy begins with a journal of its own, and has no virtual environments, which are large and work only where they
    were made.
    """
    if (path / "pyvenv.cfg").is_file():
        return True
    suffixes = ("", "-wal", "-shm", "-journal", ".lock", ".pictures", ".surfaces", ".artifacts", ".versions")
    return journal is not None and path in {journal.with_name(f"{journal.name}{suffix}") for suffix in suffixes}


def keep_inside(settings: Settings) -> Settings:
    """Return the settings of a trial run, whose shells must be isolated.

    Tools and folders beyond the copy are refused, also behind links: no person is asked in a trial.
    """
    if tools := list(_real_tools(settings)):
        fail(f"a trial run copies documents only; it would call the real tools of {', '.join(tools)}")
    folders = {
        "documents.workspace": settings.documents.workspace,
        "desktop.folder": settings.desktop.folder if settings.desktop.wanted else None,
        **{f"shells.{name}.cwd": shell.cwd for name, shell in settings.shells.items()},
    }
    for problem in _outside(folders, settings):
        fail(f"{problem}: a trial run would change the original files")
    shells = {name: shell.model_copy(update={"isolated": True}) for name, shell in settings.shells.items()}
    return settings.model_copy(update={"shells": shells})


def _real_tools(settings: Settings) -> Iterator[str]:
    """Name the servers and surfaces that act beyond the copy.

    Within it are documents, isolated commands and a private display.
    """
    yield from settings.mcp_servers
    for surface in named_surfaces(settings):
        if surface.name == "shells":
            shells = settings.shells.items()
            yield from (name for name, shell in shells if shell.ssh is not None or shell.isolated is False)
        elif surface.name != "documents" and not (surface.name == "desktop" and settings.desktop.display == "private"):
            yield surface.name


def _outside(folders: Mapping[str, Path | None], settings: Settings) -> Iterator[str]:
    """Describe the folders outside the copy, also behind links."""
    for where, folder in folders.items():
        target = None if folder is None else Path(os.path.realpath(settings.path(folder)))
        if target is not None and not target.is_relative_to(settings.base.resolve()):
            yield f"{where}: {folder} leads to {target}, which is outside the copy"


def new_place(name: str, output: Path | None) -> Path:
    """Make the folder of one run.

    Without `output` it is `runs/<name>-<number>`.
    """
    if output is not None:
        folder = output.resolve()
        if os.path.lexists(folder):
            fail(f"{output}: already exists: choose another --output, or resume it: {resume_command(output)}")
        make_private(folder)
        return folder
    runs = Path(RUNS).resolve()
    make_private(runs, exist_ok=True)
    return next(folder for number in itertools.count(1) if _create(folder := runs / f"{name}-{number}"))


def _create(folder: Path) -> bool:
    try:
        make_private(folder)
    except FileExistsError:
        return False
    return True


def read_task(file: Path, changes: Mapping[str, Any] | None = None) -> Task:
    """Read a task, or a routine.

    Models of the call replace the task's own model.
    """
    if is_routine(file):
        return Task(routine=str(file.resolve()))
    try:
        content = load_yaml(file)
    except YamlError as error:
        fail(str(error))
    if not isinstance(content, dict):
        fail(f"{file}: has no keys; a task needs at least: request: TEXT")
    if not {"request", "plan", "routine"} & content.keys():
        _check_kind(file, content)
    try:
        task = Task.model_validate(content)
    except ValidationError as error:
        fail(problem_lines(file, error, Task))
    return task.model_copy(update={"model": None}) if (changes or {}).get("models", {}).keys() - {"record"} else task


def _check_kind(file: Path, content: Mapping[Any, Any]) -> None:
    """Refuse settings, an eval set or a script as a task."""
    if "tasks" in content:
        fail(f"{file}: is an eval set, not a task: {shlex.join(['callboard', 'eval', str(file)])}")
    if content and all(isinstance(answers, list) for answers in content.values()):
        fail(f"{file}: holds the answers of a script, not a task: give the folder that it is in")
    if content.keys() & _SETTINGS:
        fail(f"{file}: holds settings, not a task: give the folder that it is in, or a file that has a request")


def named(task: Task, name: str, task_ids: Container[str]) -> Task:
    """Give a task without an id the name of its run.

    Addresses are then readable.
    """
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-._")[:90]
    if "id" in task.model_fields_set or not name:
        return task
    names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
    return task.model_copy(update={"id": next(task_id for task_id in names if task_id not in task_ids)})
