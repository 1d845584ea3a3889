"""The observations of a journal: each is kept once, by what is in it, and most of them as what differs from another.

The rows of a step name the same observation several times, and what a surface shows differs little from step to step:
a few of hundreds of controls. In a message's place for it stands a mark with its name.

A name is a digest of what is written, the name of the base included. So a name always means the same base: the tasks
that have the name also have its base (retention counts on that), and a base is never itself written as changes.
"""

from __future__ import annotations

import base64
import collections
import functools
import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter

from callboard.actors.journal._parts import check_depth, exchanged
from callboard.messages import Control, Message, Observation, Target

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from callboard.actors.journal._apart import Later
    from callboard.actors.journal._pictures import Pictures
    from callboard.actors.journal._row import Row

_M = TypeVar("_M", bound=Message)

MARK = "\x00observation "
"""What stands before the name, in the fingerprint of an observation that is kept apart; no other one begins so."""
_LATEST = 16
"""So many observations are known by their object, and so many runs by what they saw as a whole."""
_LOADED = 64
"""So many are kept once they are read, without their pictures, which can be large."""
_BYTES = 18
"""So much of a hash is a name."""
_SMALL = 1_000
"""Smaller ones are not compared, in characters of JSON."""
_LISTS = ("targets", "controls")
"""The parts of an observation in which most stays the same."""
_READ = "SELECT base, body FROM observations WHERE name = ?"
_LITERALS: dict[str, TypeAdapter[Any]] = {
    "targets": TypeAdapter(tuple[Target, ...]),
    "controls": TypeAdapter(tuple[Control, ...]),
}


@dataclass(frozen=True)
class _Known:
    """An observation that has a name."""

    observation: Observation
    name: str
    base: str | None
    body: str
    pictures: tuple[tuple[str, int], ...]
    """Its pictures, with their sizes."""


@dataclass(frozen=True)
class _Items:
    """A list of targets or controls, as JSON."""

    source: tuple[Target, ...] | tuple[Control, ...]
    """The list itself: a surface that shows the same one again costs nothing, however long it is."""
    items: Sequence[str]
    size: int
    """The length of all items."""

    @functools.cached_property
    def places(self) -> dict[str, int]:
        """Where which item stands."""
        return {item: place for place, item in enumerate(self.items)}

    def changes(self, other: _Items) -> str:
        """Write another list as what differs from this one."""
        if other.source is self.source:
            return f"[0,{len(self.items)}]" if self.items else ""
        return _runs(other.items, self.places)


@dataclass
class _Whole:
    """An observation with which later ones are compared."""

    name: str
    body: str
    rest: str
    """What it has beside the lists, as JSON."""
    lists: dict[str, _Items]
    left: int
    """So much may still be written of what differs from it, in characters: as much as it has itself."""

    def changes(self, lists: dict[str, _Items]) -> str:
        """Write other lists as what differs from these."""
        return ",".join(f'"{part}":[{self.lists[part].changes(lists[part])}]' for part in _LISTS)

    @functools.cached_property
    def unchanged(self) -> str:
        """What `changes` gives for equal lists."""
        return self.changes(self.lists)


class Observations:
    """A journal's observations. One thread's, as the journal is."""

    def __init__(self, connection: sqlite3.Connection, pictures: Pictures) -> None:
        self._connection = connection
        self._pictures = pictures
        self._latest: collections.deque[_Known] = collections.deque(maxlen=_LATEST)
        self._wholes: dict[str, _Whole] = {}
        self._load = functools.lru_cache(_LOADED)(self._read)

    def put_away(self, row: Row, later: Later) -> Message:
        """Give a row's message with names in place of its observations; `later` gets what is to be written with it.

        Raises:
            ValueError: If one can't be written down.
        """

        def put(seen: Observation) -> Observation:
            known = self._known(seen, row.run_id)
            names = [known.name] if known.base is None else [known.name, known.base]
            later.observations.append((known.name, known.base, known.body))
            later.observed += ((name, row.task_id) for name in names)
            later.pictures += ((name, row.task_id, size) for name, size in known.pictures)
            return Observation(fingerprint=f"{MARK}{known.name}")

        return exchanged(row.message, Observation, put)

    def bring_back(self, message: _M) -> _M:
        """Give a message that was read with its observations.

        Raises:
            LookupError: If one is not there.
            ValueError: If one can't be read.
        """

        def bring(seen: Observation) -> Observation:
            if not seen.fingerprint.startswith(MARK):
                return seen
            return self._pictures.bring_back(self._load(seen.fingerprint.removeprefix(MARK)))

        return exchanged(message, Observation, bring)

    def forget(self) -> None:
        """Know nothing of what was written: it was rolled back, or deleted."""
        self._latest.clear()
        self._wholes.clear()
        self._load.cache_clear()

    def _known(self, seen: Observation, run_id: str) -> _Known:
        for known in self._latest:
            if known.observation is seen:
                return known
        pictures: list[tuple[str, int]] = []
        bare = self._pictures.put_away(seen, lambda name, size: pictures.append((name, size)))
        known = _Known(seen, *self._compared(bare, run_id), tuple(pictures))
        self._latest.append(known)
        return known

    def _compared(self, bare: Observation, run_id: str) -> tuple[str, str | None, str]:
        """Give what is written of an observation: itself, or what differs from the run's last one that is whole.

        It is the name of what is written, the name of what it is compared with, and the text.

        A run that has none yet tries the latest of any run: often it begins where another has ended.
        """
        whole = self._wholes.get(run_id) or next(reversed(self._wholes.values()), None)
        lists = {part: self._items(getattr(bare, part), whole, part) for part in _LISTS}
        rest = bare.model_copy(update=dict.fromkeys(_LISTS, ())).model_dump_json()
        size = len(rest) + sum(each.size for each in lists.values())
        if size < _SMALL:
            return _named(None, bare.model_dump_json())
        if whole is not None:
            changed = whole.changes(lists)
            changes = f'{{"rest":{rest},{changed}}}'
            if rest == whole.rest and changed == whole.unchanged:
                self._compare_with(whole, run_id)
                return whole.name, None, whole.body
            if len(changes) < min(size // 2, whole.left):
                whole.left -= len(changes)
                self._compare_with(whole, run_id)
                return _named(whole.name, changes)
        name, _, body = written = _named(None, bare.model_dump_json())
        self._compare_with(_Whole(name, body, rest, lists, len(body)), run_id)
        return written

    def _items(self, source: Any, whole: _Whole | None, part: str) -> _Items:  # noqa: ANN401 - one of the lists
        if whole is not None and whole.lists[part].source is source:
            return whole.lists[part]
        items = [item.model_dump_json() for item in source]
        return _Items(source, items, sum(map(len, items)))

    def _compare_with(self, whole: _Whole, run_id: str) -> None:
        self._wholes.pop(run_id, None)  # the one that was used last stands last
        self._wholes[run_id] = whole
        if len(self._wholes) > _LATEST:
            self._wholes.pop(next(iter(self._wholes)))

    def _read(self, name: str) -> Observation:
        found = self._connection.execute(_READ, (name,)).fetchone()
        if found is None:
            msg = f"the observation {name} is not there"
            raise LookupError(msg)
        base, body = found
        if base is None:
            return Observation.model_validate_json(body)
        changes, whole = json.loads(body), self._load(base)
        lists = {part: _expanded(changes[part], getattr(whole, part), _LITERALS[part]) for part in _LISTS}
        return Observation.model_validate_json(json.dumps(changes["rest"])).model_copy(update=lists)


def _named(base: str | None, body: str) -> tuple[str, str | None, str]:
    """Give a name to what is written.

    Raises:
        ValueError: If it is too deep to be read again.
    """
    check_depth(body)
    name = base64.urlsafe_b64encode(hashlib.sha256(f"{base or ''}{body}".encode()).digest()[:_BYTES]).decode()
    return name, base, body


def _runs(items: Sequence[str], places: dict[str, int]) -> str:
    """Write items as JSON: those that stand in a row in another list as its ``[first, count]``, others as they are."""
    written: list[str] = []
    first, count = 0, 0
    for item in items:
        place = places.get(item, -1)
        if count and place == first + count:
            count += 1
            continue
        if count:
            written.append(f"[{first},{count}]")
        first, count = place, int(place >= 0)
        if not count:
            written.append(item)
    return ",".join([*written, f"[{first},{count}]"] if count else written)


def _expanded(runs: Iterable[Any], base: tuple[Any, ...], literals: TypeAdapter[Any]) -> tuple[Any, ...]:
    """Read what `_runs` wrote."""
    items: list[Any] = []
    for run in runs:
        items += base[run[0] : run[0] + run[1]] if isinstance(run, list) else literals.validate_json(json.dumps([run]))
    return tuple(items)
