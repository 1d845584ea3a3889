"""Write the steps of one agent, with references and loops.

References replace values, and loops replace repeated steps.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import TYPE_CHECKING

from callboard.messages import RoutineLoop, RoutineStep
from callboard.routines._followed_part import FollowedPart
from callboard.routines._origins import key_of, parts
from callboard.routines._step_values import DiffersError, LoopItem, StepRepeat, ValueSources, WrittenStep, written_step

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic import JsonValue

    from callboard.routines._journaled_task import JournaledStep
    from callboard.routines._old_data import OldData
    from callboard.routines._origins import Origins
    from callboard.routines._parameter_values import ParameterValues
    from callboard.routines._step_draft import StepDraft

_MOST_LISTS = 1_000
"""The number of lists, the nearest first, whose items are looked for in steps."""
_NOTHING_FOLLOWED = FollowedPart()


class StepsWriter:
    """Writes the steps of one agent, in order."""

    def __init__(self, drafts: Sequence[StepDraft], origins: Origins, parameters: ParameterValues) -> None:
        self._drafts = drafts
        self._sources = ValueSources(origins, parameters)
        self._numbers: dict[int, int] = {}
        self._count = 0
        self._shapes = [draft.shape for draft in drafts]
        self._items: dict[int, list[LoopItem]] = {}
        """The items of lists, by the identity of the list."""
        self._values = [_values_of(draft) for draft in drafts]
        self._uses: dict[int, dict[int, list[int]]] = {}
        self.old_data: list[OldData] = []
        """The data of the recorded run in the written steps, by place."""

    def entries(
        self, followed: FollowedPart = _NOTHING_FOLLOWED, kept: Sequence[JournaledStep] = ()
    ) -> tuple[RoutineStep | RoutineLoop, ...]:
        """Return all steps and loops, the followed ones first."""
        entries: list[RoutineStep | RoutineLoop] = list(followed.entries)
        start, self._numbers = followed.among(kept)
        self._count, self._sources.literals = followed.size, followed.literals
        while start < len(self._drafts):
            found = self._loop_at(start)
            if found is None:
                written = [written_step([StepRepeat(self._drafts[start], self._numbers)], self._sources)]
                entries.append(written[0].step)
                size = length = 1
            else:
                loop, written, length = found
                entries.append(loop)
                size = len(written)
            for offset, step in enumerate(written, 1):
                self._sources.literals |= step.literals
                place = f"{len(entries)}" if found is None else f"{len(entries)}.steps.{offset}"
                self.old_data += [data._replace(tail=f"{place}.{data.tail}") for data in step.old_data]
            self._count += size
            first = start + (length - 1) // size * size  # of a loop, only the latest steps can be named after it
            self._numbers |= {index: self._count - size + 1 + (index - first) for index in range(first, start + length)}
            start += length
        return tuple(entries)

    def _loop_at(self, start: int) -> tuple[RoutineLoop, list[WrittenStep], int] | None:
        """Find the longest loop that begins with a step."""
        best: tuple[RoutineLoop, list[WrittenStep], int] | None = None
        sizes: dict[int, list[tuple[int, int]]] = {}
        lists = self._sources.origins.lists(start, self._drafts[start].visible)
        for origin, items in lists[:_MOST_LISTS]:
            distances = self._distances(items)
            path = next(self._sources.numbered(origin, StepRepeat(self._drafts[start], self._numbers)), "")
            count = len(items)
            if not path or not distances:
                continue
            if count not in sizes:
                sizes[count] = list(self._sizes(start, count))
            for size, last in sizes[count]:
                if not any(start <= first < start + size for first in distances.get(size, ())):
                    continue
                length = (count - 1) * size + last
                if best is not None and length <= best[2]:
                    continue
                try:
                    written = self._repeated(start, size, length, self._items_of(items))
                except DiffersError:
                    continue
                if any(step.varied for step in written):
                    steps = tuple(step.step for step in written)
                    best = RoutineLoop(each=path, steps=steps, last=None if last == size else last), written, length
        return best

    def _items_of(self, items: list[JsonValue]) -> list[LoopItem]:
        if id(items) not in self._items:
            self._items[id(items)] = [LoopItem(item) for item in items]
        return self._items[id(items)]

    def _distances(self, items: list[JsonValue]) -> dict[int, list[int]]:
        """Return the steps that may be the first item's.

        They are grouped by their distance to a step of the second item.
        """
        if id(items) not in self._uses:
            pair = [LoopItem(item) for item in items[:2]]
            uses = [[index for index, step in enumerate(self._values) if item.is_used(*step)] for item in pair]
            distances: dict[int, list[int]] = defaultdict(list)
            for first, second in itertools.product(*uses):
                distances[second - first].append(first)
            self._uses[id(items)] = distances
        return self._uses[id(items)]

    def _sizes(self, start: int, count: int) -> Iterator[tuple[int, int]]:
        """Yield the sizes with which the steps repeat in form.

        A size is the number of steps for one item, and for the last one.
        """
        most = len(self._drafts) - start
        for size in range(1, (most - 1) // (count - 1) + 1):
            whole = size * (count - 1)
            if self._shapes[start : start + whole - size] != self._shapes[start + size : start + whole]:
                continue
            for last in range(min(size, most - whole), 0, -1):
                if self._shapes[start + whole : start + whole + last] == self._shapes[start : start + last]:
                    yield size, last
                    break

    def _repeated(self, start: int, size: int, length: int, items: list[LoopItem]) -> list[WrittenStep]:
        """Write the steps for one item.

        Raises:
            DiffersError: If those for the items differ in more.
        """
        written = []
        for offset in range(size):
            repeats = []
            for number, item in enumerate(items):
                first = start + number * size
                if first + offset < start + length:
                    inner = {first + inner: self._count + 1 + inner for inner in range(offset)}
                    repeats.append(StepRepeat(self._drafts[first + offset], self._numbers | inner, item))
            written.append(written_step(repeats, self._sources))
        return written


def _values_of(draft: StepDraft) -> tuple[set[str], list[str]]:
    """Return the keys of the values in a step, and its texts.

    The texts include those of its controls.
    """
    values = [value for action in draft.actions for _, value in parts("", action.arguments)]
    texts = [text for control in draft.controls for text in (control.name, control.place)]
    return {key_of(value) for value in values}, [*(value for value in values if isinstance(value, str)), *texts]
