"""Run a request on documents, without a file of settings."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from callboard.config import Settings, own_folder, write_own
from callboard.messages import AgentKind, Task, did_you_mean
from callboard.models import named_models
from callboard.surfaces.documents import advice_on
from callboard.terminal._commands import existing_path, fail
from callboard.terminal._journals import SETTINGS_FILE, SETTINGS_SUFFIXES
from callboard.terminal._place import TASK_FILE, check_files, named, new_place
from callboard.terminal._project import demo_names
from callboard.terminal._routine_run import is_routine
from callboard.terminal._takeover import known_ids

if TYPE_CHECKING:
    from collections.abc import Sequence

    from callboard.messages import Check

_EXAMPLE = 'callboard run "Add up the prices" prices.xlsx --model openai:gpt-5'
_LONGEST_NAME = 40
"""The most characters of the name of a run's folder, without its number."""
_LIKE_A_PATH = re.compile(r"[!-~]*[/\\][!-~]*|[!-~]+\.\w{1,5}", re.ASCII)
"""A word of ASCII characters with a slash or a suffix: rather a mistyped path than a request."""
_LIKE_A_NAME = re.compile(r"[\w.-]+", re.ASCII)
"""A word of ASCII characters: a request only beside a document. Some languages have no spaces between words."""
_TASK_SUFFIXES = {"", *SETTINGS_SUFFIXES, ".json"}
"""The suffixes of task files; a file with another one is a document."""


@dataclass(frozen=True)
class OwnDocuments:
    """A request or a routine, and the documents to work on."""

    request: str
    files: tuple[Path, ...] = ()
    routine: Path | None = None
    """The file of the routine, in place of a request."""


def own_documents(arguments: Sequence[str]) -> OwnDocuments | None:
    """Parse the arguments of a run.

    Exactly one that is no existing path is the request; all others are documents.

    Returns:
        None if the only argument is a folder or a task file.
    """
    paths = [Path(argument) for argument in arguments if os.path.lexists(argument)]
    words = [argument for argument in arguments if not os.path.lexists(argument)]
    routines = [path for path in paths if is_routine(path) and not path.is_dir()]
    if routines and len(arguments) > 1:
        return _of_routine(routines, paths, words)
    if len(arguments) == 1 and paths and (paths[0].is_dir() or paths[0].suffix.lower() in _TASK_SUFFIXES):
        return None
    for path in paths:
        _check_document(path)
    if not words:
        named = " and ".join(map(str, paths))
        what = "is a document, not a task" if len(paths) == 1 else "are documents"
        example = shlex.join(["callboard", "run", "Add up the prices", *map(str, paths), "--model", "openai:gpt-5"])
        fail(f"{named}: {what}, and the request is missing: add in quotes what is to be done, as in {example}")
    for text in words:
        _check_request(text, {path.name for path in paths}, alone=not paths or len(words) > 1)
    if len(words) > 1:
        fail(f"{' and '.join(map(repr, words))} are no files: give one request, in quotes, as in {_EXAMPLE}")
    _check_names(paths)
    return OwnDocuments(words[0], tuple(paths))


def _of_routine(routines: Sequence[Path], paths: Sequence[Path], words: Sequence[str]) -> OwnDocuments:
    """Parse the arguments of the run of a routine."""
    if len(routines) > 1:
        fail(f"{' and '.join(map(str, routines))}: run one routine after the other")
    if words:
        fail(f"{words[0]}: there is no such file; a routine has its own request, so all other arguments are documents")
    documents = [path for path in paths if path not in routines]
    for path in documents:
        _check_document(path)
    _check_names(documents)
    return OwnDocuments("", tuple(documents), routines[0])


def _check_names(paths: Sequence[Path]) -> None:
    """Refuse documents whose names are equal."""
    names: dict[str, Path] = {}
    for path in paths:
        namesake = names.setdefault(path.name.casefold(), path)
        if namesake is not path:
            fail(
                f"{path} is named twice: name it once"
                if namesake == path
                else f"{namesake} and {path} have the same name: rename one of them, or run them one after the other"
            )


def _check_document(path: Path) -> None:
    existing_path(path)
    if path.is_dir():
        fail(f"{path}: is a folder: with a request, name the documents in it")
    if not path.is_file():
        fail(f"{path}: is no file, or a link that leads nowhere")
    if reason := advice_on(path.name):
        fail(f"{path}: agents can't work on it: {reason}")
    if not path.name.isprintable():
        fail(f"{path}: its name has control characters: rename it first")


def _check_request(text: str, document_names: set[str], *, alone: bool) -> None:
    """Refuse a mistyped path that would be taken for a request.

    Args:
        text: The request. One that names a given document among other words is no path.
        document_names: The names of the documents.
        alone: Whether no document is named, or another request is.
    """
    if not text.strip():
        fail(f"the request is empty: say what is to be done, as in {_EXAMPLE}")
    try:
        text.encode()
    except UnicodeEncodeError:
        fail(f"{text}: is not UTF-8")
    if len(text.split()) > 1 and any(name in text for name in document_names):
        return
    path = Path(text)
    names: list[str] = []
    with contextlib.suppress(OSError, ValueError):  # there is no such folder, or no path can be so long
        names += [neighbour.name for neighbour in path.parent.iterdir()]
    hint = did_you_mean(path.name, names, show=lambda near: repr(str(path.with_name(near))), cutoff=0.8)
    if path.parts[:1] == ("examples",) and path.name in demo_names():
        hint = f"; run the installed example: callboard demo {path.name}"
    if hint or _LIKE_A_PATH.fullmatch(text.strip()) or (alone and _LIKE_A_NAME.fullmatch(text.strip())):
        fail(f"{text}: there is no such file or folder{hint}")


def prepare_documents(
    documents: OwnDocuments,
    output: Path | None,
    changes: dict[str, Any],
    checks: Sequence[Check] = (),
    *,
    in_place: bool,
) -> tuple[Task, Settings]:
    """Make the folder of a run, with copies of documents.

    All that can be refused is refused before it is made.

    Args:
        documents: The request and the documents.
        output: The folder to make; None for one in `runs`.
        changes: Changes to the settings by options.
        checks: The task's checks.
        in_place: Whether the task works on the documents themselves, without copies.
    """
    if in_place:
        _check_one_folder(documents)
    checked = Settings.load(None, **changes)
    if documents.routine is None:
        _check_models(checked, documents)
    named_models(checked)
    check_files(checked)
    folder = new_place(_name(documents), output)
    try:
        task, placed = _filled(documents, folder, changes, checks, in_place=in_place)
        task_ids = known_ids(placed)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return named(task, folder.name, task_ids), placed


def _check_one_folder(documents: OwnDocuments) -> None:
    """Refuse documents that can't be changed in place."""
    if not documents.files:
        fail("--in-place needs documents: name those that may be changed")
    for file in documents.files:
        if file.is_symlink():
            fail(f"{file}: is a link: with --in-place, name the document itself, {file.resolve()}")
        if file.resolve().parent != documents.files[0].resolve().parent:
            fail(f"{documents.files[0]} and {file} are in two folders: with --in-place, all documents are in one")


def _check_models(settings: Settings, documents: OwnDocuments) -> None:
    """Refuse to run without a model for each agent of documents."""
    lacking = [kind for kind in (AgentKind.HOST, AgentKind.APP) if settings.models.of(kind) is None]
    if len(lacking) == 2:
        reason = "" if documents.files else f"{documents.request!r} is no file or folder, so it is a request, and "
        fail(f"{reason}no model is named: add --model, as in {_EXAMPLE}; `callboard docs models` lists the providers")
    if lacking:
        kind = lacking[0]
        fail(f"no model is named for agents of the kind {kind}: add --model {kind}=NAME, or --model NAME for all")


def _name(documents: OwnDocuments) -> str:
    stem = documents.files[0].stem if documents.files else "task"
    stem = documents.routine.name.partition(".")[0] if documents.routine is not None else stem
    return re.sub(r"[^\w.-]+", "-", stem)[:_LONGEST_NAME].strip("-.") or "task"


def _filled(
    documents: OwnDocuments, folder: Path, changes: dict[str, Any], checks: Sequence[Check], *, in_place: bool
) -> tuple[Task, Settings]:
    """Write the settings and the task, and copy the documents."""
    workspace = documents.files[0].resolve().parent if in_place else folder / "workspace"
    if not in_place:
        own_folder(workspace)
        for file in documents.files:
            shutil.copyfile(file, workspace / file.name)
    settings = {
        "models": {kind: name for kind, name in changes["models"].items() if kind != "record"},
        "documents": {"workspace": str(workspace) if in_place else workspace.name},
        "journal": {"path": "journal.db"},
    }
    task: dict[str, Any] = {"request": documents.request}
    if documents.routine is not None:
        shutil.copyfile(documents.routine, folder / documents.routine.name)
        task = {"routine": documents.routine.name}
    if documents.files:
        task["may_change"] = [file.name for file in documents.files]
    if checks:
        task["checks"] = [check.model_dump(mode="json", by_alias=True, exclude_unset=True) for check in checks]
    _write(folder / SETTINGS_FILE, "The settings of this run, made from its call.", settings)
    _write(folder / TASK_FILE, "The request of this run.", task)
    return Task(**task), Settings.load(folder / SETTINGS_FILE, **changes)


def _write(file: Path, title: str, content: dict[str, Any]) -> None:
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    write_own(file, f"# {title}\n{text}")
