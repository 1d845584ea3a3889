"""The steps of a routine in the order in which they run.

Also the values that references to their results stand for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from callboard.messages import RoutineLoop, steps_of
from callboard.models import look_up, results_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from callboard.messages import CommandResult, RoutineStep


@dataclass(frozen=True)
class PlacedStep:
    """A step at its place in one run of a routine."""

    place: int
    """Its place among the steps that run, from 1, with each repetition of a loop counted."""
    number: int
    """Its number in the written list, from 1, with the steps of loops counted once."""
    step: RoutineStep
    item: Any = None
    """The item of its loop; None outside a loop."""


def placed_step(
    entries: Sequence[RoutineStep | RoutineLoop],
    place: int,
    tree: dict[str, Any],
    results_of: Callable[[int], Sequence[CommandResult] | None],
) -> PlacedStep | None:
    """Return the step at a place; None after the last one.

    The repetitions of a loop are not walked through: there may be thousands.

    Args:
        entries: The written list.
        place: The place, from 1.
        tree: The values that references stand for. Its member `steps` gets the results of the steps before the place,
            by their numbers in the list: in a loop, those of its last repetition.
        results_of: Returns the results of a place's step; None if it was not done.

    Raises:
        LookupError: If the list of a loop is missing, or is no list.
    """
    before, number = 0, 0
    for entry in entries:
        body, items, last = steps_of(entry), [None], 1
        if isinstance(entry, RoutineLoop):
            items, last = _items(entry, tree), entry.last or len(body)
        length = (len(items) - 1) * len(body) + last if items else 0
        steps_before = min(length, place - before - 1)
        for offset in range(len(body)):
            latest = before + 1 + offset + (steps_before - 1 - offset) // len(body) * len(body)
            results = results_of(latest) if offset < steps_before else None
            if results is not None:
                tree["steps"][str(number + 1 + offset)] = results_tree(results)
        if steps_before < length:
            index, offset = divmod(steps_before, len(body))
            return PlacedStep(place, number + 1 + offset, body[offset], items[index])
        before, number = before + length, number + len(body)
    return None


def _items(loop: RoutineLoop, tree: Mapping[str, Any]) -> list[Any]:
    items = look_up(loop.each, tree)
    if not isinstance(items, list):
        msg = f"${{{loop.each}}} is no list, and the loop over it can't be repeated"
        raise LookupError(msg)  # noqa: TRY004 - as for a list that is missing
    return items
