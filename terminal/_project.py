"""The installed examples, a first project from one, and the files' schemas."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

import callboard
from callboard.config import create_own, install_command
from callboard.history import plain
from callboard.messages import did_you_mean
from callboard.terminal._commands import fail
from callboard.terminal._place import TASK_FILE
from callboard.terminal._text import short

if TYPE_CHECKING:
    from rich.console import Console

_EXAMPLES = Path(callboard.__file__).resolve().parent / "examples"
_EXAMPLE = "expenses"
"""The example that a project begins with."""
_FILES = {
    "callboard.yaml": "the settings, with comments",
    "task.yaml": "the task",
    "script.yaml": "answers in place of a language model",
    "eval.yaml": "an eval set: the task, run three times",
    "test_task.py": "a test of the task",
    "conftest.py": "keeps pytest out of copies",
    "workspace/expenses.csv": "a document for the agents",
}
_SCHEMAS = Path(callboard.__file__).resolve().parent / "config" / "schemas"
_FOLDER = "schemas"
"""The folder of the schemas within a project."""


def demo_names() -> list[str]:
    """List the examples that have a folder to run."""
    return sorted(task_file.parent.name for task_file in _EXAMPLES.glob(f"*/{TASK_FILE}"))


def demo_folder(name: str) -> Path:
    """Find the folder of an example; only listed names are accepted."""
    names = demo_names()
    if name not in names:
        hint = did_you_mean(name, names, f"there are: {', '.join(names) or 'none'}")
        fail(f"there is no example {name!r}{hint}")
    return _EXAMPLES / name


def file_schemas() -> dict[str, Path]:
    """List the JSON Schemas by the usual names of their files."""
    return {f"{path.stem}.yaml": path for path in sorted(_SCHEMAS.glob("*.json"))}


def write_project(console: Console, folder: Path) -> None:
    """Write a first project, and print its files and the next commands.

    Nothing is written if one of the files exists.
    """
    example = demo_folder(_EXAMPLE)
    written = {name: (example / name).read_text(encoding="utf-8") for name in _FILES}
    schemas = {f"{_FOLDER}/{path.name}": path.read_text(encoding="utf-8") for path in file_schemas().values()}
    content = {folder / name: text.replace("../../config/schemas/", f"{_FOLDER}/") for name, text in written.items()}
    _write(content | {folder / name: text for name, text in schemas.items()})
    quoted_folder = shlex.quote(str(folder))
    console.print(Text(f"a project in {plain(str(folder.resolve()))}:"), soft_wrap=True)
    for name, meaning in (*_FILES.items(), (f"{_FOLDER}/", "for completion and checks in editors")):
        console.print(Text(f"  {name:<24}{meaning}"), soft_wrap=True)
    console.print("\nnext:")
    for command, meaning in (
        *_activation(),
        (f"callboard run {quoted_folder}", "run the task on a copy, without a model"),
        (f"pytest {quoted_folder}", "run the test; needs: pip install pytest"),
        (f"callboard eval {quoted_folder}", "run the task three times, and count the runs whose checks held"),
        (
            f"callboard run {quoted_folder} --model openai:gpt-5",
            f"run it with a model; needs: {install_command('models')}",
        ),
    ):
        console.print(Text(f"  {plain(command)}"), soft_wrap=True)
        console.print(Text(f"    {meaning}", style="dim"), soft_wrap=True)


def _activation() -> list[tuple[str, str]]:
    """Return the command after which the others work, if one is needed."""
    script = Path(sys.prefix, "bin", "activate")
    if shutil.which("callboard") is not None or not script.is_file():
        return []
    return [(f". {shlex.quote(short(script))}", "make this shell find callboard")]


def _write(files: dict[Path, str]) -> None:
    """Write new files, all or none.

    Raises:
        OSError: If one can't be written; those that were written before it are removed.
    """
    for folder in dict.fromkeys(ancestor for path in files for ancestor in path.parents):
        if os.path.lexists(folder) and not folder.is_dir():
            fail(f"{folder}: is no folder, and nothing was written: name another folder")
    existing_files = [str(path) for path in files if os.path.lexists(path)]
    if existing_files:
        fail(
            "\n".join(
                [f"{path}: already exists" for path in existing_files] + ["nothing was written: name another folder"]
            )
        )
    with contextlib.ExitStack() as undo:
        for path, text in files.items():
            _make_folder(path.parent, undo)
            with os.fdopen(create_own(path, mode=0o666), "w", encoding="utf-8") as file:
                undo.callback(path.unlink)
                file.write(text)
        undo.pop_all()


def _make_folder(folder: Path, undo: contextlib.ExitStack) -> None:
    if not folder.is_dir():
        _make_folder(folder.parent, undo)
        folder.mkdir()
        undo.callback(folder.rmdir)
