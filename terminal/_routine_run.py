"""Run a routine with the documents and values of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from callboard.config import YamlError, parse_yaml
from callboard.messages import Routine, RoutineError
from callboard.routines import load_routine, with_routine
from callboard.terminal._commands import fail

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pydantic import JsonValue

    from callboard.messages import RoutineParameter, Task

_SUFFIXES = (".routine.yaml", ".routine.yml")


def is_routine(path: Path) -> bool:
    """Return whether the name of a file is that of a routine."""
    return path.name.lower().endswith(_SUFFIXES)


def filled_task(
    task: Task,
    path_of: Callable[[str], Path],
    sets: Sequence[str],
    documents: Sequence[Path],
    *,
    strict: bool,
    original: Path | None = None,
) -> Task:
    """Return a task with the values of the call for its routine.

    Args:
        task: The task; without a routine there may be no values.
        path_of: Gives the path of the file that it names.
        sets: The values, each as ``NAME=VALUE``.
        documents: The documents, which are the values of the parameters for documents, in order.
        strict: Whether the task fails at the first step whose guard does not hold.
        original: The original of a copied file, or the folder with it; a repair is proposed there.
    """
    if task.routine is None:
        if sets or strict:
            fail("--set and --strict belong to a routine: name its file, such as monthly.routine.yaml")
        return task
    try:
        routine = task.routine if isinstance(task.routine, Routine) else load_routine(path_of(task.routine))
        values = {**task.parameters, **_documents(routine, documents), **_values(routine, sets)}
        changes: dict[str, Any] = {"parameters": values, "strict_routine": strict or task.strict_routine}
        if isinstance(task.routine, str):
            file = path_of(task.routine) if original is None else original
            file = file / task.routine if file.is_dir() else file
            changes |= {"routine": routine, "routine_file": str(file.absolute())}
        return with_routine(task.model_copy(update=changes), path_of)
    except RoutineError as error:
        fail(str(error))


def _documents(routine: Routine, documents: Sequence[Path]) -> dict[str, JsonValue]:
    names = [name for name, parameter in routine.parameters.items() if parameter.document]
    if len(documents) > len(names):
        takes = ", ".join(names) or "none"
        fail(f"{documents[len(names)]}: the routine {routine.routine} takes {len(names)} documents ({takes})")
    return {name: document.name for name, document in zip(names, documents, strict=False)}


def _values(routine: Routine, sets: Sequence[str]) -> dict[str, JsonValue]:
    values: dict[str, JsonValue] = {}
    for option in sets:
        name, equals, text = option.partition("=")
        if not equals or not name:
            fail(f"--set {option}: give a name and a value, as in --set month=2026-05")
        if name in values:
            fail(f"--set {name}: is given twice: give one value")
        values[name] = _value(name, text, routine.parameters.get(name))
    return values


def _value(name: str, text: str, parameter: RoutineParameter | None) -> JsonValue:
    """Read a value: as YAML where the usual value is no text."""
    if parameter is None or parameter.document or parameter.value is None or isinstance(parameter.value, str):
        return text
    try:
        value: JsonValue = parse_yaml(text)
    except YamlError as error:
        fail(f"--set {name}: {error}")
    return value
