"""Read routines from files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from callboard.config import YamlError, load_yaml
from callboard.messages import Routine, RoutineError, form_of, keys_of, plain_problems
from callboard.routines._reference_check import check_references

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MOST_BYTES = 1_000_000
"""The largest file of a routine, in bytes."""
_MOST_LEVELS = 100
"""The most lists and mappings that are inside each other: a journal must be able to hold the routine of a task."""
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
        content = load_yaml(path, aliases=False, most_bytes=MOST_BYTES)
    except YamlError as error:
        raise RoutineError(str(error)) from None
    if not isinstance(content, dict):
        form = "is empty" if content is None else f"holds {form_of(content)}"
        msg = f"{path}: {form}, not a mapping of keys to values: `callboard routine save` writes a routine"
        raise RoutineError(msg)
    if _levels(content) > _MOST_LEVELS:
        msg = f"{path}: is nested too deeply: at most {_MOST_LEVELS} levels are possible"
        raise RoutineError(msg)
    try:
        routine = Routine.model_validate(content)
    except ValidationError as error:
        problems = [{**problem, "loc": _place(problem["loc"])} for problem in error.errors(include_url=False)]
        raise _error(path, plain_problems(problems, keys_of(Routine))) from None
    lines = list(check_references(routine))
    if lines:
        raise _error(path, lines)
    return routine


def _levels(content: object) -> int:
    """Count the levels of a value."""
    parts = content.values() if isinstance(content, dict) else content if isinstance(content, list) else None
    return 0 if parts is None else 1 + max(map(_levels, parts), default=0)


def _place(loc: Sequence[str | int]) -> list[str | int]:
    """Count the items of some lists from 1, as references do."""
    return [
        part + 1 if isinstance(part, int) and number and loc[number - 1] in _FROM_ONE else part
        for number, part in enumerate(loc)
    ]


def _error(path: Path, problems: Sequence[str]) -> RoutineError:
    more = [f"and {len(problems) - _MOST_PROBLEMS} more"] if len(problems) > _MOST_PROBLEMS else []
    return RoutineError("\n".join(f"{path}: {line}" for line in [*problems[:_MOST_PROBLEMS], *more]))
