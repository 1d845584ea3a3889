"""Eval sets: tasks with checks, models and seeds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    JsonValue,
    ValidationError,
    field_validator,
    model_validator,
)

from callboard.config import YamlError, load_yaml
from callboard.messages import AgentKind, Task, TermSection, check_expression, did_you_mean
from callboard.terminal._commands import existing_path, fail
from callboard.terminal._journals import SETTINGS_FILE
from callboard.terminal._place import TASK_FILE, read_task
from callboard.terminal._problems import problem_lines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


EVAL_FILE = "eval.yaml"
OWN_MODELS = "own models"
"""The name of the models in a table if the set names none."""
_MOST_SEEDS = 1000
_FORMS = ("folder", "file", "task")
IN_FILES = ("scripted", "recorded")
"""The forms of models whose name is a file."""


def _as_seeds(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int):
        return value
    if not 1 <= value <= _MOST_SEEDS:
        msg = f"is {value}: give a number from 1 to {_MOST_SEEDS}, or a list of seeds"
        raise ValueError(msg)
    return tuple(range(1, value + 1))


def _all_different(seeds: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(seeds)) < len(seeds):
        msg = "has a seed twice, which would count one run as two: give each seed once"
        raise ValueError(msg)
    return seeds


def _as_models(value: object) -> object:
    if isinstance(value, str):
        return {value: value}
    if isinstance(value, list | tuple) and all(isinstance(model, str) for model in value):
        return {model: model for model in value}
    return value


def _as_list(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _as_kinds(value: object) -> object:
    return dict.fromkeys(map(str, AgentKind), value) if isinstance(value, str) else value


Paths = Annotated[tuple[Path, ...], BeforeValidator(_as_list, json_schema_input_type=str | tuple[Path, ...])]
Seed = Annotated[int, Field(ge=0, lt=2**31)]
Seeds = Annotated[
    tuple[Seed, ...],
    BeforeValidator(_as_seeds, json_schema_input_type=int | tuple[Seed, ...]),
    AfterValidator(_all_different),
]
ModelNames = Annotated[dict[str, str], BeforeValidator(_as_kinds, json_schema_input_type=str | dict[str, str])]
Contestants = Annotated[
    dict[str, ModelNames],
    BeforeValidator(_as_models, json_schema_input_type=str | tuple[str, ...] | dict[str, str | dict[str, str]]),
]


class EvalTask(TermSection):
    """A task of an eval set, and its documents.

    It has exactly one of `folder`, `file` and `task`.
    """

    name: str = ""
    """Its name in tables; by default that of its folder or file. A task that is written out needs one."""
    folder: Path | None = None
    """A folder as `callboard run` takes it: `callboard.yaml`, `task.yaml`, and the files that they name."""
    file: Path | None = None
    """A task file."""
    task: Task | None = None
    """The task itself, with the keys of a task file."""
    workspace: Path | None = None
    """For `file` and `task`: a folder whose documents the task starts with."""
    documents: Paths = ()
    """For `file` and `task`: documents that the task starts with, one path or a list."""
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    """Settings of this task, as in `callboard.yaml`. They override those of the set."""
    answer: str = ""
    """For a question: a regular expression that is found in the task's output, if that is a text or a number, else in
    its last comment. Rust's syntax: no look-around and no back-references."""

    @field_validator("answer")
    @classmethod
    def _is_expression(cls, value: str) -> str:
        if value:
            check_expression(value)
        return value

    @model_validator(mode="after")
    def _has_one_form(self) -> Self:
        forms = [name for name in _FORMS if getattr(self, name) is not None]
        if len(forms) != 1:
            msg = f"has {' and '.join(map(repr, forms)) or 'no task'}: give exactly one of folder, file and task"
            raise ValueError(msg)
        if self.folder is not None and (self.workspace is not None or self.documents):
            msg = "has documents beside `folder`, which names its own"
            raise ValueError(msg)
        if self.workspace is not None and self.documents:
            msg = "has `workspace` and `documents`: give one of them"
            raise ValueError(msg)
        if self.task is not None and not self.name.strip():
            msg = "has a task without a `name`"
            raise ValueError(msg)
        return self


class EvalSet(TermSection):
    """Tasks with checks, to be run with each model and each seed."""

    tasks: tuple[EvalTask, ...] = Field(min_length=1)
    """The tasks. Each has checks, of its own or of the steps of its plan."""
    models: Contestants = Field(default_factory=dict)
    """The models to compare: a name as in the settings, such as `openai:gpt-5`, a list of them, or an object from a
    short name to a model, or to one for each kind of agent. By default each task runs with those of its settings."""
    seeds: Seeds = ()
    """The seeds of the models' providers (`providers.NAME.seed`): a list, or a number of runs, whose seeds are counted
    from 1. By default there is one run, with the seed of the settings. Scripts and recordings have none."""
    at_once: int = Field(default=1, ge=1, le=64)
    """The most runs at a time. The limits of a provider hold for each of them."""
    cost: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """The cost at which no further run starts; that of the runs so far, as far as their prices are known."""
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    """Settings of all tasks, as in `callboard.yaml`. They override those of a task's folder."""


@dataclass(frozen=True)
class LoadedTask:
    """A task of a set, read and checked; its paths are absolute."""

    name: str
    task: Task
    where: str
    """The file of the task, or its place in the set, for errors."""
    settings: dict[str, Any]
    """The settings of the set and of the task."""
    answer: str = ""
    folder: Path | None = None
    workspace: Path | None = None
    documents: tuple[Path, ...] = ()

    @classmethod
    def load(cls, entry: EvalTask, content: EvalSet, base: Path, where: str) -> LoadedTask:
        """Read the files that an entry of a set names."""
        folder = None if entry.folder is None else _folder(base / entry.folder, where)
        file = folder / TASK_FILE if folder is not None else base / (entry.file or "")
        if folder is not None and not (folder / SETTINGS_FILE).is_file():
            fail(f"{where}: {folder}: has no {SETTINGS_FILE}: a folder to run has its settings there")
        names = [path.name.casefold() for path in entry.documents]
        if twice := next((path for path in entry.documents if names.count(path.name.casefold()) > 1), None):
            fail(f"{where}: documents: two of them are called {twice.name}: rename one, or give a `workspace`")
        task = entry.task or read_task(existing_path(file) or file)
        where = where if entry.task is not None else str(file)
        if not any((task.checks, *(step.checks for step in task.plan))):
            fail(f"{where}: the task has no checks, so no run of it could be verified; see: callboard docs checks")
        if task.dry_run:
            fail(f"{where}: dry_run: a dry run changes nothing and runs no check: leave it out")
        return cls(
            name=" ".join(entry.name.split()) or (file.stem if folder is None else folder.name),
            task=task if "id" in task.model_fields_set else task.model_copy(update={"id": "task"}),
            where=where,
            settings=merged(content.settings, entry.settings),
            answer=entry.answer,
            folder=folder,
            workspace=None if entry.workspace is None else _folder(base / entry.workspace, where),
            documents=tuple(_document(base / path, where) for path in entry.documents),
        )


def merged(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """Merge sections of settings; later ones take precedence."""
    result: dict[str, Any] = {}
    for key, value in (item for part in parts for item in part.items()):
        mergeable = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], value) if mergeable else value
    return result


def slug(name: str) -> str:
    """Turn a name into one of a folder."""
    return re.sub(r"[^\w.-]+", "-", name)[:60].strip("-.") or "x"


class LoadedSet:
    """An eval set with its tasks read, and models by name."""

    def __init__(self, name: str, base: Path, content: EvalSet, source: str) -> None:
        self.name = name
        self.content = content
        self.models = {label: _anchored(kinds, base) for label, kinds in content.models.items()}
        self.tasks = [
            LoadedTask.load(entry, content, base, f"{source}: tasks.{number}")
            for number, entry in enumerate(content.tasks)
        ]
        check_different("tasks", [task.name for task in self.tasks], source)
        check_different("models", list(self.models), source)

    @classmethod
    def load(cls, path: Path) -> LoadedSet:
        """Read an eval set.

        Args:
            path: A file; a folder with an `eval.yaml`; or a folder of folders with tasks.
        """
        file = path / EVAL_FILE if path.is_dir() else path
        if file.is_file():
            base = file.resolve().parent
            return cls(base.name if file.stem == "eval" else file.stem, base, _read(file), str(file))
        task_files = path.glob(f"*/{TASK_FILE}")
        folders = sorted(file.parent for file in task_files if file.with_name(SETTINGS_FILE).is_file())
        if not folders:
            fail(f"{path}: has no {EVAL_FILE}, and no folders with {SETTINGS_FILE} and {TASK_FILE}")
        content = EvalSet(tasks=tuple(EvalTask(folder=folder.resolve()) for folder in folders))
        return cls(path.resolve().name, path.resolve(), content, str(path))

    def chosen(self, names: Sequence[str]) -> list[LoadedTask]:
        """Return the tasks with these names; all without one."""
        task_names = [task.name for task in self.tasks]
        for name in names:
            if name not in task_names:
                hint = did_you_mean(name, task_names, f"there are: {', '.join(task_names)}")
                fail(f"--task {name}: there is no such task{hint}")
        return [task for task in self.tasks if not names or task.name in names]


def _anchored(kinds: dict[str, str], base: Path) -> dict[str, str]:
    """Resolve files of scripts and recordings against the set's folder."""
    anchored = {}
    for kind, name in kinds.items():
        form, _, file = name.partition(":")
        anchored[kind] = f"{form}:{base / file}" if form in IN_FILES and file else name
    return anchored


def check_different(what: str, names: list[str], source: str) -> None:
    """Refuse names whose runs would share a folder."""
    names_by_slug: dict[str, str] = {}
    for name in names:
        first_name = names_by_slug.setdefault(slug(name).casefold(), name)
        if first_name is not name:
            fail(f"{source}: {what}: {first_name!r} and {name!r} would share a folder: give one of them another name")


def _folder(path: Path, where: str) -> Path:
    if not path.is_dir():
        fail(f"{where}: {path}: there is no such folder")
    return path.resolve()


def _document(path: Path, where: str) -> Path:
    if not path.is_file():
        fail(f"{where}: {path}: there is no such file")
    return path.absolute()


def _read(file: Path) -> EvalSet:
    """Read a set; each mistake is one line."""
    try:
        content = load_yaml(file)
    except YamlError as error:
        fail(str(error))
    if not isinstance(content, dict) or "tasks" not in content:
        fail(f"{file}: is no eval set: it has no `tasks`; see: callboard docs eval")
    try:
        return EvalSet.model_validate(content)
    except ValidationError as error:
        fail(problem_lines(file, error, EvalSet))
