"""The steps of a routine in the order in which they run, and the values that its references stand for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from callboard.messages import RoutineLoop
from callboard.models import look_up

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from callboard.messages import RoutineStep


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


def placed_steps(
    entries: Sequence[RoutineStep | RoutineLoop], tree: dict[str, Any], results: Mapping[int, Any]
) -> Iterator[PlacedStep]:
    """Yield the steps in the order in which they run.

    Args:
        entries: The written list.
        tree: The values that references stand for. Its member `steps` gets the results of each step that is passed, by
            its number in the list: in a loop, those of its last repetition.
        results: The results of the steps so far, by place.

    Raises:
        LookupError: If the list of a loop is missing, or is no list.
    """
    place, number = 0, 0
    for entry in entries:
        if isinstance(entry, RoutineLoop):
            body, items, last = entry.steps, _items(entry, tree), entry.last
        else:
            body, items, last = (entry,), [None], None
        for index, item in enumerate(items):
            for offset, step in enumerate(body[: last if index == len(items) - 1 else None], 1):
                place += 1
                yield PlacedStep(place, number + offset, step, item)
                if place in results:
                    tree["steps"][str(number + offset)] = results[place]
        number += len(body)


def _items(loop: RoutineLoop, tree: Mapping[str, Any]) -> list[Any]:
    items = look_up(loop.each, tree)
    if not isinstance(items, list):
        msg = f"${{{loop.each}}} is no list, and the loop over it can't be repeated"
        raise LookupError(msg)  # noqa: TRY004 - as for a list that is missing
    return items
