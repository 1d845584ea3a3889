"""Validation errors of tasks and checks, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    did_you_mean,
)

if TYPE_CHECKING:
    from pydantic import BaseModel

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
_TYPES = {"model_type": "must be a mapping of keys to values", "tuple_type": "must be a list"}


def problem_text(problem: Any, root: type[BaseModel]) -> str:
    """Describe one error of a validation: its place and the reason.

    An unknown key gets the nearest known one.
    """
    loc = problem["loc"]
    what = _TYPES.get(problem["type"], problem["msg"].removeprefix("Value error, "))
    if problem["type"] == "extra_forbidden":
        part = next((_PARTS[name] for name in reversed(loc[:-1]) if name in _PARTS), root)
        keys = [field.alias or name for name, field in part.model_fields.items()]
        what = "unknown key" + did_you_mean(str(loc[-1]), keys, f"known: {', '.join(keys)}")
    where = ".".join(map(str, loc))
    return f"{where}: {what}" if where else what
