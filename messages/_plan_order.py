"""The order of a plan's steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from callboard.messages._task import PlanStep


def has_order(plan: Sequence[PlanStep]) -> bool:
    """Return whether any step names those that it comes after."""
    return any(step.after is not None for step in plan)


def numbers_before(plan: Sequence[PlanStep]) -> tuple[tuple[int, ...], ...]:
    """Return the numbers of the steps that each step comes after.

    Steps are numbered from 1. Only earlier steps can be named, so that no cycle can be written.

    Raises:
        ValueError: If a name is used twice, a step has no target, or it names no earlier step.
    """
    return tuple(_orders(plan))


def _orders(plan: Sequence[PlanStep]) -> Iterator[tuple[int, ...]]:
    numbers: dict[str, int] = {}
    for number, step in enumerate(plan, 1):
        if step.target is None:
            msg = f"plan[{number - 1}]: a step of a plan with `after` needs a target: no model is asked for one"
            raise ValueError(msg)
        yield tuple(sorted({_number(name, number, numbers) for name in step.after or ()}))
        if step.name in numbers:
            msg = f"plan[{number - 1}].name: {step.name!r} names step {numbers[step.name]}, too: choose another"
            raise ValueError(msg)
        if step.name:
            numbers[step.name] = number


def _number(name: int | str, number: int, numbers: dict[str, int]) -> int:
    """Return the number of an earlier step."""
    earlier = numbers.get(name) if isinstance(name, str) else name if 1 <= name < number else None
    if earlier is None:
        names = ", ".join(map(repr, numbers))
        choices = f"1 to {number - 1}{f', or {names}' if names else ''}" if number > 1 else "there is none before it"
        msg = f"plan[{number - 1}].after: {name!r} is no earlier step: name one of those before it ({choices})"
        raise ValueError(msg)
    return earlier
