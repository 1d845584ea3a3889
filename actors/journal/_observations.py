"""The observations of a journal: each is kept once, by what is in it, and most of them as what differs from another.

The rows of a step name the same observation several times, and what a surface shows differs little from step to step:
a few of hundreds of controls. In a message's place for it stands a mark with its name.

A name is a digest of what is written, the name of the base included. So a name always means the same base: the tasks
that have the name also have its base (retention counts on that), and a base is never itself written as changes.
"""

from __future__ import annotations

import binascii
import functools
import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from pydantic import TypeAdapter

from callboard.actors.journal._parts import exchanged
from callboard.messages import SHALLOW, Control, Observation, Target, check_depth

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from callboard.actors.journal._pictures import Pictures

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
_LISTS = {"targets", "controls"}
"""The parts of an observation in which most stays the same."""
_ENCODE = Observation.__pydantic_serializer__.to_json
_READ = "SELECT base, body FROM observations WHERE name = ?"
_LITERALS: dict[str, TypeAdapter[Any]] = {
    "targets": TypeAdapter(tuple[Target, ...]),
    "controls": TypeAdapter(tuple[Control, ...]),
}


class Known(msgspec.Struct, eq=False):
    """An observation that has a name."""

    observation: Observation
    """The object itself, so that no other one gets its id."""
    mark: Observation
    """It stands in the observation's place."""
    names: tuple[str, ...]
    """Its name, and that of its base."""
    pictures: tuple[tuple[str, int], ...]
    """Its pictures, with their sizes."""
    unwritten: tuple[str, str | None, str] | tuple[()]
    """Name, base and body, until they are written."""
    tasks: set[str] = msgspec.field(default_factory=set)
    """The tasks of which it is noted that they have it."""


class _Items:
    """A list of targets or controls, as JSON."""

    def __init__(self, source: tuple[Target, ...] | tuple[Control, ...]) -> None:
        self.source = source
        """The list itself: a surface that shows the same one again costs nothing, however long it is."""
        self.items = [item.model_dump_json() for item in source]
        self.text = ",".join(self.items)

    @functools.cached_property
    def places(self) -> dict[str, int]:
        """Where which item stands."""
        return {item: place for place, item in enumerate(self.items)}

    def changes(self, other: _Items) -> str:
        """Write another list as what differs from this one."""
        if other is self:
            return f"[0,{len(self.items)}]" if self.items else ""
        return _runs(other.items, self.places)


@dataclass
class _Whole:
    """An observation with which later ones are compared."""

    name: str
    left: int
    """So much may still be written of what differs from it, in characters: as much as it has itself."""
    rest: str
    """What it has beside the lists, as JSON."""
    targets: _Items
    controls: _Items


class Observations:
    """A journal's observations. One thread's, as the journal is."""

    def __init__(self, connection: sqlite3.Connection, pictures: Pictures) -> None:
        self._connection = connection
        self._pictures = pictures
        self._latest: dict[int, Known] = {}
        self._wholes: dict[str, _Whole] = {}
        self._load = functools.lru_cache(_LOADED)(self._read)

    def known(self, seen: Observation, run_id: str) -> Known:
        """Give what is known of a run's observation: of one that is the same object as one before, the same.

        Raises:
            ValueError: If it can't be written down.
        """
        known = self._latest.get(id(seen))
        if known is None:
            pictures: list[tuple[str, int]] = []

            def put(picture: bytes) -> bytes:
                digest = self._pictures.write(picture)
                pictures.append((digest.hex(), len(picture)))
                return digest

            bare = exchanged(seen, {bytes: put}) if seen.picture or seen.annotated else seen
            name, base, body = self._compared(bare, run_id)
            known = Known(
                observation=seen,
                mark=Observation(fingerprint=f"{MARK}{name}"),
                names=(name,) if base is None else (name, base),
                pictures=tuple(pictures),
                unwritten=(name, base, body) if body else (),
            )
            self._latest[id(seen)] = known
            if len(self._latest) > _LATEST:
                del self._latest[next(iter(self._latest))]
        return known

    def bring_back(self, seen: Observation) -> Observation:
        """Give an observation that was read, or that a mark which was read stands for, with its pictures.

        Raises:
            LookupError: If it is not there.
            ValueError: If it can't be read.
        """
        if seen.fingerprint.startswith(MARK):
            seen = self._load(seen.fingerprint.removeprefix(MARK))
        found: Observation = exchanged(seen, {bytes: self._pictures.read})
        return found

    def forget(self) -> None:
        """Know nothing of what was written: it was rolled back, or deleted."""
        self._latest.clear()
        self._wholes.clear()
        self._load.cache_clear()

    def _compared(self, bare: Observation, run_id: str) -> tuple[str, str | None, str]:
        """Give what is written of an observation: itself, or what differs from the run's last one that is whole.

        It is the name of what is written, the name of what it is compared with, and the text; no text if it stands
        there already.

        A run that has none yet tries the latest of any run: often it begins where another has ended.
        """
        rest = _ENCODE(bare, exclude=_LISTS).decode()
        if not (bare.targets or bare.controls):
            return _named(None, rest)
        whole = self._wholes.get(run_id) or next(reversed(self._wholes.values()), None)
        if whole is None:
            targets, controls = _Items(bare.targets), _Items(bare.controls)
        else:
            targets = whole.targets if whole.targets.source is bare.targets else _Items(bare.targets)
            controls = whole.controls if whole.controls.source is bare.controls else _Items(bare.controls)
        size = len(rest) + len(targets.text) + len(controls.text)
        if whole is not None and size >= _SMALL:
            if (rest, targets.text, controls.text) == (whole.rest, whole.targets.text, whole.controls.text):
                self._compare_with(whole, run_id)
                return whole.name, None, ""
            lists = f'"targets":[{whole.targets.changes(targets)}],"controls":[{whole.controls.changes(controls)}]'
            changes = f'{{"rest":{rest},{lists}}}'
            if len(changes) < min(size // 2, whole.left):
                whole.left -= len(changes)
                self._compare_with(whole, run_id)
                return _named(whole.name, changes)
        written = _named(None, f'{rest[:-1]},"targets":[{targets.text}],"controls":[{controls.text}]}}')
        if size >= _SMALL:
            self._compare_with(_Whole(written[0], size, rest, targets, controls), run_id)
        return written

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
    written = body.encode()
    if len(written) > SHALLOW:
        check_depth(written)
    digest = hashlib.sha256((base or "").encode() + written).digest()
    return binascii.b2a_base64(digest[:_BYTES], newline=False).decode(), base, body


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
