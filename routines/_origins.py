"""The earlier results that a value may have come from."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from callboard.routines._old_data import data_key, leaves

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pydantic import JsonValue

    from callboard.messages import Action, CommandResult, Observation

SHORTEST = 3
"""The fewest characters of a text that may be a reference; shorter ones are equal by chance."""
_DEEPEST = 6
_MOST_ITEMS = 200
"""The longest list whose items may be references; the list itself may always be one."""
_PLAIN = re.compile(r"[^\s.{}](?:[^.{}\r\n]*[^\s.{}])?")
"""The names of members that can be part of a reference."""


@dataclass(frozen=True)
class Origin:
    """A place in an earlier result."""

    path: str
    """The reference; for a result of the agent's own steps, the part after the step's number."""
    step: int = -1
    """The index of the agent's own step; -1 for a subtask's output, and for a parameter."""
    subtask: int = 0
    """The subtask's number in the journal; 0 for an own step, and for a parameter."""


class Origins:
    """The results that one agent got, by their values."""

    def __init__(self) -> None:
        self._places: dict[str, list[Origin]] = defaultdict(list)
        self._lists: list[tuple[Origin, list[JsonValue]]] = []
        self.texts: set[str] = set()
        """All texts and larger numbers in them, to find data within longer texts."""
        self._first: dict[str, int] = {}
        """The index of the first step that read a value, by its `data_key`; -1 before all steps."""

    def add_output(self, number: int, new_number: int, output: JsonValue) -> None:
        """Add the output of a subtask; nearer ones are added later."""
        self._read(-1, output)
        self._add(
            (Origin(f"subtasks.{new_number}.output{tail}", subtask=number), value) for tail, value in parts("", output)
        )

    def add_parameter(self, name: str, value: JsonValue) -> None:
        """Add the value of a parameter that is no text."""
        self._add((Origin(f"{name}{tail}"), part) for tail, part in parts("", value))

    def add_step(self, step: int, calls: Iterable[tuple[Action, CommandResult]]) -> None:
        """Add the results of a step.

        Members that repeat an argument of their own call are no origins: the argument has its own.
        """
        for index, (action, result) in enumerate(calls):
            self._read(step, result.value)
            given = {key_of(value) for _, value in parts("", action.arguments)}
            self._add(
                (Origin(f"results.{index}.value{tail}", step=step), value)
                for tail, value in parts("", result.value)
                if key_of(value) not in given
            )

    def add_screen(self, step: int, observation: Observation) -> None:
        """Add the names and texts of the controls before a step."""
        for control in observation.controls:
            self._read(step - 1, [control.name, *control.detail.values()])

    def knows(self, value: str | float, before: int) -> bool:
        """Return whether a value was read before a step, in any notation."""
        return self._first.get(data_key(value), before) < before

    def _read(self, step: int, value: JsonValue) -> None:
        for part in leaves(value):
            self._first.setdefault(data_key(part), step)
        self._first.pop("", None)

    def _add(self, found: Iterable[tuple[Origin, JsonValue]]) -> None:
        """Add places, the nearest first: those that are added later are nearer."""
        newer: dict[str, list[Origin]] = defaultdict(list)
        lists = []
        for origin, value in found:
            if isinstance(value, list) and len(value) > 1:
                lists.append((origin, value))
            if isinstance(value, str | float) or (isinstance(value, int) and not isinstance(value, bool)):
                self.texts.add(str(value))
            if not is_trivial(value):
                newer[key_of(value)].append(origin)
        for key, origins in newer.items():
            self._places[key][:0] = origins
        self._lists[:0] = lists

    def of(self, value: JsonValue, visible: frozenset[int]) -> list[Origin]:
        """List the places of a value, nearest first.

        Of subtasks, only the visible ones count.
        """
        if is_trivial(value):
            return []
        return [
            origin for origin in self._places.get(key_of(value), ()) if not origin.subtask or origin.subtask in visible
        ]

    def lists(self, before: int, visible: frozenset[int]) -> list[tuple[Origin, list[JsonValue]]]:
        """List the lists of several items before a step, nearest first."""
        return [
            (origin, items)
            for origin, items in self._lists
            if (origin.subtask in visible if origin.subtask else origin.step < before)
        ]


def is_trivial(value: JsonValue) -> bool:
    """Return whether a value is equal to others by chance.

    Lone numbers and short texts are, and become no references.
    """
    if isinstance(value, str):
        return len(value) < SHORTEST
    return not value if isinstance(value, list | dict) else True


def key_of(value: Any) -> str:
    """Return a key that is equal for equal values of one type."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def parts(tail: str, value: JsonValue, depth: int = 0) -> Iterator[tuple[str, JsonValue]]:
    """Yield a value and its parts, each with its place.

    The place is the end of a reference.
    """
    yield tail, value
    if depth == _DEEPEST:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            if _PLAIN.fullmatch(key):
                yield from parts(f"{tail}.{key}", item, depth + 1)
    elif isinstance(value, list) and len(value) <= _MOST_ITEMS:
        for number, item in enumerate(value):
            yield from parts(f"{tail}.{number}", item, depth + 1)
