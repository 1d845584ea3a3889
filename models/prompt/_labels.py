"""Unique labels of controls and targets for models.

A label is the name, with the id if the name is ambiguous.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Protocol, TypeVar

from callboard.messages import Target, TargetKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


LONGEST = 80
"""Maximum length of a name in a label; a longer one is cut, and its id is added."""


class Named(Protocol):
    """An object with a name and an id: a control or target."""

    @property
    def id(self) -> str:
        """The id, unique among objects of the same type."""

    @property
    def name(self) -> str:
        """The name for people, not necessarily unique."""


_T = TypeVar("_T", bound=Named)


def labelled(things: Iterable[_T]) -> dict[str, _T]:
    """Assign unique labels: the name, else name and id, else id.

    Small models choose correctly by name and wrongly by number. An application's label states what choosing it does:
    otherwise "read it from Word" makes models start Word although a document is open in it.
    """
    listed = tuple(things)
    if not listed:
        return {}
    often = Counter(map(_called, listed))
    ids = {thing.id for thing in listed}
    full = Counter(map(_in_full, listed))
    labels: dict[str, _T] = {}
    for thing in listed:
        name, label = _called(thing), _in_full(thing)
        if len(name) <= LONGEST and often[name] == 1 and name not in full and (name == thing.id or name not in ids):
            label = name
        elif full[label] > 1 or label in ids:  # an object may be named like the label of another one
            label = thing.id
        labels.setdefault(label if name else thing.id, thing)
    return labels


def _in_full(thing: Named) -> str:
    name = _called(thing)
    short = name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
    return f"{short} [{thing.id}]"


def _called(thing: Named) -> str:
    name = " ".join(thing.name.split())
    application = isinstance(thing, Target) and thing.kind is TargetKind.APPLICATION
    return f"new empty {name or thing.id}" if application else name


def chosen(labels: Mapping[str, _T], label: str) -> _T | None:
    """Find the chosen object by label or id, else by unique name."""
    label = label.strip()
    if label in labels:
        return labels[label]
    by_id = [thing for thing in labels.values() if thing.id == label]
    folded = _folded(label)
    same_names = [thing for name, thing in labels.items() if folded in {_folded(name), _folded(thing.name)}]
    matches = by_id or same_names
    return matches[0] if len(matches) == 1 and folded else None


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
