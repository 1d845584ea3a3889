"""Read routines from files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from callboard.config import YamlError, load_yaml
from callboard.messages import (
    ExpectedResult,
    RecordedControl,
    RecordedRun,
    Routine,
    RoutineAction,
    RoutineAssignment,
    RoutineError,
    RoutineLoop,
    RoutineParameter,
    RoutineStep,
    RoutineSubtask,
    did_you_mean,
)
from callboard.routines._reference_check import check_references

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pydantic import BaseModel

MOST_BYTES = 1_000_000
"""The largest file of a routine, in bytes."""
_MOST_PROBLEMS = 10
"""The number of problems that an error names."""
_FROM_ONE = frozenset({"host", "subtasks", "steps", "assign", "checks"})
"""The lists whose items are counted from 1, as in references; actions and controls are counted from 0."""


def load_routine(path: Path) -> Routine:
    """Read a routine.

    Raises:
        RoutineError: If the file can't be read, is too large, or is no valid routine; the message has the places in it.
    """
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            msg = f"{path}: has {size:,} bytes; a routine has at most {MOST_BYTES:,}"
            raise RoutineError(msg)
        content = load_yaml(path, aliases=False)
    except OSError as error:
        msg = f"{path}: can't be read: {error.strerror}"
        raise RoutineError(msg) from error
    except YamlError as error:
        msg = f"{path}: {error}"
        raise RoutineError(msg) from None
    if not isinstance(content, dict):
        kind = "empty" if content is None else f"a {type(content).__name__}"
        msg = f"{path}: is {kind}, not a mapping of keys to values: `callboard routine save` writes a routine"
        raise RoutineError(msg)
    try:
        routine = Routine.model_validate(content)
    except ValidationError as error:
        problems = list(dict.fromkeys(_problems(error, content)))
        more = [f"and {len(problems) - _MOST_PROBLEMS} more"] if len(problems) > _MOST_PROBLEMS else []
        raise RoutineError("\n".join(f"{path}: {line}" for line in [*problems[:_MOST_PROBLEMS], *more])) from None
    problems = list(check_references(routine))
    if problems:
        raise RoutineError("\n".join(f"{path}: {line}" for line in problems[:_MOST_PROBLEMS]))
    return routine


def _problems(error: ValidationError, content: dict[Any, Any]) -> Iterator[str]:
    problems = error.errors(include_url=False)
    for problem in problems:
        loc, model = problem["loc"], ""
        if problem["type"] == "too_short" and any(
            other["loc"][: len(loc)] == loc != other["loc"] for other in problems
        ):
            continue  # its items are missing because they are invalid
        path: list[str | int] = []
        value: Any = content
        for part in loc:
            branch = next((name for name in ("RoutineStep", "RoutineLoop") if name in str(part)), "")
            if branch:  # of an entry that is a step or a loop
                model = "RoutineLoop" if isinstance(value, dict) and "each" in value else "RoutineStep"
                if branch != model:
                    break
                continue
            path.append(part)
            value = _member(value, part)
        else:
            yield f"{place(path)}: {_reason(problem, path, model)}" if path else _reason(problem, path, model)


def _member(value: Any, part: str | int) -> Any:
    if isinstance(value, dict):
        return value.get(part)
    return value[part] if isinstance(value, list) and isinstance(part, int) and part < len(value) else None


def place(path: Sequence[str | int]) -> str:
    """Write a place in a routine, such as ``subtasks.1.steps.3.actions.0.arguments``."""
    parts: list[str] = []
    for number, part in enumerate(path):
        counts = isinstance(part, int) and number > 0 and path[number - 1] in _FROM_ONE
        parts.append(str(part + 1) if isinstance(part, int) and counts else str(part))
    return ".".join(parts)


_MODELS: dict[str, type[BaseModel]] = {
    "actions": RoutineAction,
    "assign": RoutineAssignment,
    "controls": RecordedControl,
    "expect": ExpectedResult,
    "parameters": RoutineParameter,
    "recorded": RecordedRun,
    "subtasks": RoutineSubtask,
}
"""The models of a routine's parts, by the name of the part."""


def _reason(problem: Any, path: Sequence[str | int], model: str) -> str:
    if problem["type"] == "extra_forbidden":
        return f"unknown key{did_you_mean(str(path[-1]), _known_keys(path, model))}"
    if problem["type"] == "missing":
        return "is missing"
    text = str(problem["msg"]).removeprefix("Value error, ")
    if str(problem["input"].__class__.__module__) == "datetime":
        text += ": a date needs quotes here"
    return text[:1].lower() + text[1:]


def _known_keys(path: Sequence[str | int], model: str) -> list[str]:
    """List the keys that are known at the place of an unknown one."""
    names = [part for part in path[:-1] if isinstance(part, str)]
    entry = RoutineLoop if model == "RoutineLoop" else RoutineStep
    models = {**_MODELS, "host": entry, "steps": entry}
    nearest = next((models[name] for name in reversed(names[-2:]) if name in models), None)
    owner = nearest if names else Routine
    return [] if owner is None else list(owner.model_fields)
