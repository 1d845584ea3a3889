"""Validation errors of tasks and checks, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.messages import (
    Budget,
    Check,
    ControlQuery,
    PageQuery,
    PlanStep,
    PolicyRule,
    Reading,
    Secret,
    TaskLimits,
    plain_problems,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pydantic import BaseModel, ValidationError

_PARTS: dict[str, type[BaseModel]] = {
    "budget": Budget,
    "checks": Check,
    "control": ControlQuery,
    "limits": TaskLimits,
    "page": PageQuery,
    "plan": PlanStep,
    "policy": PolicyRule,
    "same_as": Reading,
    "secrets": Secret,
}
"""The parts of a task that have keys of their own."""


def problem_lines(where: object, error: ValidationError, part_of: Callable[[Sequence[object]], type[BaseModel]]) -> str:
    """Describe the errors of a validation, a line each.

    Each begins with the file or option that has it. An unknown key gets the nearest known one. `part_of` returns the
    model at a place outside the parts of a task.
    """

    def keys(loc: Sequence[object]) -> list[str]:
        part = next((_PARTS[str(name)] for name in reversed(loc[:-1]) if str(name) in _PARTS), part_of(loc))
        return [field.alias or name for name, field in part.model_fields.items()]

    return "\n".join(f"{where}: {line}" for line in plain_problems(error.errors(), keys))
