"""Content-addressed, delta-encoded storage of a journal's observations.

The rows of a step contain the same observation several times, and from step to step a surface changes little: a few
of hundreds of controls. So each observation is stored once, most of them as a delta to a base. In a message, a
placeholder with the observation's name replaces it.

A name is a digest of the stored text and the name of its base. So a name always implies the same base, and a task
that refers to the name also refers to the base; retention relies on that. A base is always stored in full, never as a
delta.
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

from callboard.journal._parts import exchanged
from callboard.messages import SHALLOW, Control, Observation, Target, check_depth

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from callboard.journal._pictures import Pictures

MARK = "\x00observation "
"""The prefix of a placeholder's fingerprint; the name follows. No real fingerprint starts with it."""
_LATEST = 16
"""The number of cached observations, and of runs whose base is cached."""
_LOADED = 64
"""The number of cached observations after reading, without their pictures, which can be large."""
_BYTES = 18
"""The number of bytes of the hash that form a name."""
_SMALL = 1_000
"""Below this size, in characters of JSON, an observation is always stored in full."""
_LISTS = {"targets", "controls"}
"""The fields of an observation that change little from step to step."""
_ENCODE = Observation.__pydantic_serializer__.to_json
_ENCODED = msgspec.json.Encoder().encode
_READ = "SELECT base, body FROM observations WHERE name = ?"
_LITERALS: dict[str, TypeAdapter[Any]] = {
    "targets": TypeAdapter(tuple[Target, ...]),
    "controls": TypeAdapter(tuple[Control, ...]),
}


class ObservationEntry(msgspec.Struct, eq=False):
    """An observation with its name and the record of its writes."""

    observation: Observation
    """The object; the reference keeps its `id` from being reused."""
    mark: msgspec.Raw
    """The JSON of the placeholder that replaces it in messages: an observation that has a fingerprint alone."""
    names: tuple[str, ...]
    """Its name, and the name of its base if it has one."""
    pictures: tuple[tuple[str, int], ...]
    """The digests and sizes of its pictures."""
    unwritten: tuple[str, str | None, str] | tuple[()]
    """Its name, base and body; empty once they are written."""
    tasks: set[str] = msgspec.field(default_factory=set)
    """The tasks that refer to it in the journal's tables."""


class _Items:
    """A list of targets or controls, serialized item by item."""

    def __init__(self, source: tuple[Target, ...] | tuple[Control, ...]) -> None:
        self.source = source
        """The list itself: if a surface shows the same object again, it is not serialized again."""
        self.items = [item.model_dump_json() for item in source]
        self.text = ",".join(self.items)

    @functools.cached_property
    def indexes(self) -> dict[str, int]:
        """The index of each item, by its JSON."""
        return {item: index for index, item in enumerate(self.items)}

    def changes(self, new_items: _Items) -> str:
        """Encode another list as a delta to this one."""
        if new_items is self:
            return f"[0,{len(self.items)}]" if self.items else ""
        return _runs(new_items.items, self.indexes)


@dataclass
class _Base:
    """An observation stored in full, the base of later deltas."""

    name: str
    remaining_size: int
    """The characters of deltas that may still refer to it; at first, its own size."""
    other_fields: str
    """Its other fields, as JSON."""
    targets: _Items
    controls: _Items


class Observations:
    """The observations of a journal. Not thread-safe."""

    def __init__(self, connection: sqlite3.Connection, pictures: Pictures) -> None:
        self._connection = connection
        self._pictures = pictures
        self._latest: dict[int, ObservationEntry] = {}
        self._bases: dict[str, _Base] = {}
        self._load = functools.lru_cache(_LOADED)(self._read)

    def entry(self, observation: Observation, run_id: str) -> ObservationEntry:
        """Return the record of an observation.

        The same object gets the same record, while it is cached.

        Raises:
            ValueError: If the observation can't be serialized.
        """
        entry = self._latest.get(id(observation))
        if entry is None:
            pictures: list[tuple[str, int]] = []

            def put(picture: bytes) -> bytes:
                digest = self._pictures.write(picture)
                pictures.append((digest.hex(), len(picture)))
                return digest

            bare = exchanged(observation, {bytes: put}) if observation.picture or observation.annotated else observation
            name, base, body = self._encoded(bare, run_id)
            entry = ObservationEntry(
                observation=observation,
                mark=msgspec.Raw(_ENCODED({"fingerprint": f"{MARK}{name}"})),
                names=(name,) if base is None else (name, base),
                pictures=tuple(pictures),
                unwritten=(name, base, body) if body else (),
            )
            self._latest[id(observation)] = entry
            if len(self._latest) > _LATEST:
                del self._latest[next(iter(self._latest))]
        return entry

    def bring_back(self, observation: Observation) -> Observation:
        """Load the observation of a placeholder, and restore its pictures.

        An observation that is not a placeholder, from an older version's row, gets its pictures only.

        Raises:
            LookupError: If the observation is missing.
            ValueError: If it can't be read.
        """
        if observation.fingerprint.startswith(MARK):
            observation = self._load(observation.fingerprint.removeprefix(MARK))
        restored_observation: Observation = exchanged(observation, {bytes: self._pictures.read})
        return restored_observation

    def forget(self) -> None:
        """Clear all caches, after a rollback or a deletion."""
        self._latest.clear()
        self._bases.clear()
        self._load.cache_clear()

    def _encoded(self, bare: Observation, run_id: str) -> tuple[str, str | None, str]:
        """Encode an observation in full, or as a delta to a base.

        A run without a base tries the latest base of any run: a run often begins where another ended.

        A delta is stored if it has less than half the size of the observation, and if the deltas to this base are not
        yet as large as the base. Otherwise the observation is stored in full, and becomes the run's new base
        if it has at least `_SMALL` characters.

        Returns:
            The name, the base's name or None, and the text; the text is empty if the observation equals the base.
        """
        other_fields = _ENCODE(bare, exclude=_LISTS).decode()
        if not (bare.targets or bare.controls):
            return _named(None, other_fields)
        base = self._bases.get(run_id) or next(reversed(self._bases.values()), None)
        if base is None:
            targets, controls = _Items(bare.targets), _Items(bare.controls)
        else:
            targets = base.targets if base.targets.source is bare.targets else _Items(bare.targets)
            controls = base.controls if base.controls.source is bare.controls else _Items(bare.controls)
        size = len(other_fields) + len(targets.text) + len(controls.text)
        if base is not None and size >= _SMALL:
            if (other_fields, targets.text, controls.text) == (
                base.other_fields,
                base.targets.text,
                base.controls.text,
            ):
                self._use_base(base, run_id)
                return base.name, None, ""
            lists = f'"targets":[{base.targets.changes(targets)}],"controls":[{base.controls.changes(controls)}]'
            changes = f'{{"rest":{other_fields},{lists}}}'
            if len(changes) < min(size // 2, base.remaining_size):
                base.remaining_size -= len(changes)
                self._use_base(base, run_id)
                return _named(base.name, changes)
        written = _named(None, f'{other_fields[:-1]},"targets":[{targets.text}],"controls":[{controls.text}]}}')
        if size >= _SMALL:
            self._use_base(_Base(written[0], size, other_fields, targets, controls), run_id)
        return written

    def _use_base(self, base: _Base, run_id: str) -> None:
        self._bases.pop(run_id, None)  # ordered by last use: the first is evicted
        self._bases[run_id] = base
        if len(self._bases) > _LATEST:
            self._bases.pop(next(iter(self._bases)))

    def _read(self, name: str) -> Observation:
        row = self._connection.execute(_READ, (name,)).fetchone()
        if row is None:
            msg = f"the observation {name} is not there"
            raise LookupError(msg)
        base_name, body = row
        if base_name is None:
            return Observation.model_validate_json(body)
        changes, base = json.loads(body), self._load(base_name)
        lists = {part: _expanded(changes[part], getattr(base, part), _LITERALS[part]) for part in _LISTS}
        return Observation.model_validate_json(json.dumps(changes["rest"])).model_copy(update=lists)


def _named(base: str | None, body: str) -> tuple[str, str | None, str]:
    """Name an encoded observation by its digest.

    Raises:
        ValueError: If the text is nested too deeply to be read again.
    """
    written = body.encode()
    if len(written) > SHALLOW:
        check_depth(written)
    digest = hashlib.sha256((base or "").encode() + written).digest()
    return binascii.b2a_base64(digest[:_BYTES], newline=False).decode(), base, body


def _runs(items: Sequence[str], indexes: dict[str, int]) -> str:
    """Delta-encode a list of JSON items, without the brackets.

    Consecutive items that are also consecutive in the base become ``[first, count]``; all others are written out.
    """
    written: list[str] = []
    first, count = 0, 0
    for item in items:
        index = indexes.get(item, -1)
        if count and index == first + count:
            count += 1
            continue
        if count:
            written.append(f"[{first},{count}]")
        first, count = index, int(index >= 0)
        if not count:
            written.append(item)
    return ",".join([*written, f"[{first},{count}]"] if count else written)


def _expanded(runs: Iterable[Any], base: tuple[Any, ...], literals: TypeAdapter[Any]) -> tuple[Any, ...]:
    """Decode the output of `_runs`."""
    items: list[Any] = []
    for run in runs:
        items += base[run[0] : run[0] + run[1]] if isinstance(run, list) else literals.validate_json(json.dumps([run]))
    return tuple(items)
