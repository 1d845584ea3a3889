"""Runs of an eval set: their folders, settings and results."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import yaml
from pydantic import Field

from callboard.actors.commands import Secrets
from callboard.config import Settings, load_yaml, make_private, write_own
from callboard.messages import (
    DocumentedFields,
    Outcome,
    SettingsError,
    Value,
    found_in,
    one_line,
    reason_of,
)
from callboard.models import named_models
from callboard.terminal._commands import fail
from callboard.terminal._eval_set import IN_FILES, merged, slug
from callboard.terminal._journals import EVALS, RUNS, SETTINGS_FILE, journal_in
from callboard.terminal._place import TASK_FILE, check_files, copy_folder, without_runs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from callboard.messages import Task, TaskResult
    from callboard.terminal._eval_set import LoadedTask
    from callboard.terminal._place import Filter

CELL_FILE = "cell.json"
_FORCED: dict[str, Any] = {
    "journal": {"path": "journal.db"},
    "log": {"stream": "off", "file": None},
    "system": {"ask_question": False},
}
"""The settings of each run: a journal of its own, and no person."""
_TEMPORARY = {"__pycache__", ".git", ".pytest_cache"}
_LONGEST = 300
JUDGE = "the judge"
"""The name of a judge's no, among those of the checks."""
ANSWER = "the answer"
"""The name of the expectation of an answer, among those of the checks."""


class CellResult(DocumentedFields, Value):
    """The result of one run of a task."""

    task: str
    """The name of the task."""
    model: str
    """The name of the model in the set."""
    seed: int | None = None
    """The seed; None for that of the settings."""
    passed: bool
    """Whether the task was verified, and its answer is as expected."""
    outcome: Outcome
    """The way in which the task ended."""
    verified: bool | None = None
    """As `TaskResult.verified`."""
    failures: dict[str, str] = Field(default_factory=dict)
    """The checks that did not hold, by name, with what was found."""
    reason: str = ""
    """The cause of an outcome other than `finished`."""
    answer: str = ""
    """The beginning of the output, if it is a text or a number, else of the last comment."""
    steps: int = 0
    """Steps of agents."""
    tokens: int = 0
    """Tokens of prompts and answers."""
    cost: float = 0.0
    """The cost of the model calls, as far as their prices are known."""
    unpriced_calls: int = 0
    """Model calls whose price is not known."""
    seconds: float = 0.0
    """The time from the submission to the end."""

    @classmethod
    def of(cls, cell: Cell, result: TaskResult) -> Self:
        """Judge the result of a task."""
        failures = {check.name: check.told().removeprefix(f"{check.name}: ") for check in _failed(result)}
        said = str(result.output) if isinstance(result.output, str | int | float) else result.comment
        if denials := [judged.told() for judged in result.judged if judged.answer == "no"]:
            failures[JUDGE] = f"says no to {'; '.join(denials)}"
        if cell.task.answer and not (result.ok and found_in(cell.task.answer, said)):
            failures[ANSWER] = f"answered {one_line(said, _LONGEST)!r}"
        usage = result.usage
        return cls(
            task=cell.task.name,
            model=cell.model,
            seed=cell.seed,
            passed=result.verified is True and not failures,
            outcome=result.outcome,
            verified=result.verified,
            failures=failures,
            reason=one_line(result.causes[0].reason, _LONGEST) if result.causes else "",
            answer=one_line(said, _LONGEST),
            steps=usage.steps,
            tokens=usage.input_tokens + usage.output_tokens,
            cost=usage.cost,
            unpriced_calls=usage.unpriced_calls,
            seconds=result.seconds,
        )


def _failed(result: TaskResult) -> Iterator[Any]:
    return (check for check in result.checks if not check.held and check.source == "task")


@dataclass(frozen=True)
class Cell:
    """One run of a task: its model, its seed and its folder."""

    task: LoadedTask
    model: str
    kinds: Mapping[str, str]
    """The models by kind of agent; empty for those of the settings."""
    seed: int | None
    root: Path
    """The folder of the set's runs."""

    @property
    def place(self) -> Path:
        """The folder of the run."""
        return self.root / slug(self.task.name) / slug(self.model) / ("run" if self.seed is None else str(self.seed))

    def __str__(self) -> str:
        """Name the run for a person."""
        seed = "" if self.seed is None else f", seed {self.seed}"
        return f"{self.task.name}, {self.model}{seed}"

    def settings(self) -> dict[str, Any]:
        """Return the contents of the settings file of the run.

        Raises:
            SettingsError: If the settings of the task's folder can't be read, or the result is invalid.
        """
        models = {"models": dict(self.kinds)} if self.kinds else {}
        content = merged(self._base(), self.task.settings, models, _FORCED)
        if self.seed is None:
            return content
        loaded = Settings.load(None, base=self.root, **content)
        names = [*loaded.models.model_dump(exclude={"record"}).values(), self.task.task.model]
        seeds: dict[str, Any] = {}
        while names:
            name = names.pop() or ""
            form, colon = loaded.provider_of(name), ":" in name
            provider = loaded.providers.get(form)
            if colon and form not in {*IN_FILES, *seeds} and not (provider and provider.plugin):
                seeds[form] = {"seed": self.seed}
                names += provider.fallbacks if provider else ()
        return merged(content, {"providers": seeds} if seeds else {})

    def _base(self) -> dict[str, Any]:
        if self.task.folder is None:
            return {"documents": {"workspace": "workspace"}}
        file = self.task.folder / SETTINGS_FILE
        Settings.load(file)
        content = load_yaml(file)
        return content or {}

    def check(self) -> None:
        """Check that the run can start.

        Raises:
            SettingsError: If its settings are invalid, or need a part that is missing.
        """
        there = {} if self.task.folder is not None else {"documents": {"workspace": None}}  # it is made for the run
        settings = Settings.load(None, base=self.task.folder or self.root, **merged(self.settings(), there))
        named_models(settings)
        check_files(settings)
        if self.task.task.model is None and not any(settings.models.model_dump(exclude={"record"}).values()):
            msg = "no model is named: name one in `models`, with --model, or in the settings of the task"
            raise SettingsError(msg)
        for where, path in self._work_folders():
            for folder in filter(None, (self.place, self.task.folder)):
                if not Path(os.path.realpath(folder / path)).is_relative_to(os.path.realpath(folder)):
                    msg = f"{where}: {path} is outside the copy, so a run would change the original files"
                    raise SettingsError(msg)

    def _work_folders(self) -> Iterator[tuple[str, Path]]:
        """Yield the folders of this machine's surfaces, with their settings."""
        if (workspace := self._workspace()) is not None:
            yield "documents.workspace", Path(workspace).expanduser()
        for name, shell in (self.settings().get("shells") or {}).items():
            if shell and shell.get("cwd") and not shell.get("ssh"):
                yield f"shells.{name}.cwd", Path(shell["cwd"]).expanduser()

    def _workspace(self) -> Any:
        """Return the folder of documents that the settings name.

        That of the environment does not count: it is no copy.
        """
        return (self.settings().get("documents") or {}).get("workspace")

    def kept(self) -> Task:
        """Return the task as it is stored, without values of secrets."""
        settings = Settings.load(None, base=self.root, **self.settings())
        return Secrets(settings.secrets).as_kept(self.task.task)

    def digest(self) -> str:
        """Return a digest of all that the run starts from."""
        task = self.task
        hashed = hashlib.sha256()
        parts = [task.name, self.model, self.settings(), task.task.model_dump(mode="json"), task.answer]
        hashed.update(json.dumps(parts, sort_keys=True, default=str).encode())
        for name, path in self._files():
            content = str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()
            hashed.update(f"{name}\0{hashlib.sha256(content).hexdigest()}\0".encode())
        return hashed.hexdigest()

    def _files(self) -> Iterator[tuple[str, Path]]:
        for name in dict.fromkeys(self.kinds.values()):
            form, _, file = name.partition(":")
            path = (self.task.folder or self.root) / file.partition("?")[0]
            if form in IN_FILES and path.is_file():
                yield name, path
        yield from ((path.name, path) for path in self.task.documents)
        for folder in filter(None, (self.task.folder, self.task.workspace)):
            skipped = self._skipped(folder)
            for at, folders, files in os.walk(folder):
                dropped = set(skipped(at, [*folders, *files]))
                folders[:] = sorted(set(folders) - dropped)
                for name in sorted(set(files) - dropped):
                    yield str(Path(at, name).relative_to(folder)), Path(at, name)

    def _skipped(self, folder: Path) -> Filter:
        settings = Settings.load(folder / SETTINGS_FILE) if folder == self.task.folder else None
        path = None if settings is None else journal_in(settings)
        journal = None if path is None else path.resolve()
        left_out = {folder / RUNS, folder / EVALS}
        usual = without_runs(self.place, journal, left_out)
        return lambda at, names: [*usual(at, names), *_TEMPORARY.intersection(names)]

    def prepare(self) -> Settings:
        """Make the folder of the run if missing; return its settings.

        It is made aside and then renamed, so that there is never a part of one.
        """
        if not self.place.is_dir():
            new = self.place.with_name(f"{self.place.name}.new")
            shutil.rmtree(new, ignore_errors=True)
            make_private(new)
            if self.task.folder is not None:
                copy_folder(self.task.folder, new, self._skipped(self.task.folder))
            else:
                self._fill(new / "workspace")
            _write(new / SETTINGS_FILE, "The settings of this run, from its eval set.", self.settings())
            task = self.kept().model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"secrets"})
            _write(new / TASK_FILE, "The task of this run, from its eval set.", task)
            write_own(new / CELL_FILE, json.dumps({"digest": self.digest()}))
            new.rename(self.place)
        forced = merged(_FORCED, {"documents": {"workspace": self._workspace()}})
        return Settings.load(self.place / SETTINGS_FILE, **forced)

    def _fill(self, workspace: Path) -> None:
        if self.task.workspace is not None:
            copy_folder(self.task.workspace, workspace, self._skipped(self.task.workspace))
        make_private(workspace, exist_ok=True)
        for path in self.task.documents:
            shutil.copyfile(path, workspace / path.name)

    def ended(self) -> CellResult | None:
        """Return the result of an earlier process; None if there is none.

        The run of another version of the set is refused.
        """
        file = self.place / CELL_FILE
        if not file.is_file():
            return None
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
            result = CellResult.model_validate(content["result"], strict=False) if "result" in content else None
            same = content["digest"] == self.digest()
        except (OSError, ValueError, KeyError, TypeError) as error:
            fail(f"{file}: can't be read: {reason_of(error)}: remove the folder, and the run starts again")
        if not same:
            fail(
                f"{self.place}: is of another version of the set, its tasks or their documents: name another --output, "
                "or start again with --again all"
            )
        return result

    def forget(self) -> None:
        """Remove the folder of the run."""
        if self.place.is_dir():
            if not (self.place / CELL_FILE).is_file():
                fail(f"{self.place}: is no run of an eval set: name another --output")
            shutil.rmtree(self.place)

    def keep(self, result: CellResult) -> None:
        """Store the result in the folder of the run."""
        file = self.place / CELL_FILE
        content = {**json.loads(file.read_text(encoding="utf-8")), "result": result.model_dump(mode="json")}
        write_own(file, json.dumps(content, indent=1, ensure_ascii=False))


def _write(file: Path, title: str, content: dict[str, Any]) -> None:
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    write_own(file, f"# {title}\n{text}")
