"""What models call the controls and targets that they may choose: by name, and by id where names are not enough."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Protocol, TypeVar

from callboard.messages import Target, TargetKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


LONGEST = 80
"""A longer name is cut; its id is added then."""


class Named(Protocol):
    """Something with a name for people and an id of its own: a control or a target."""

    @property
    def id(self) -> str:
        """Unique among its like."""

    @property
    def name(self) -> str:
        """What people call it; others may be called so too."""


_T = TypeVar("_T", bound=Named)


def labelled(things: Iterable[_T]) -> dict[str, _T]:
    """Give each thing a label that stands for nothing else: its name, if that is enough, else name and id, or the id.

    Small models choose rightly by name, and wrongly by number. Of an application the label says what is chosen with it:
    otherwise "read it from Word" makes them start Word, where a document of Word's is open.
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
        elif full[label] > 1 or label in ids:  # whoever names a thing may choose another's label for it
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


def chosen(labels: Mapping[str, _T], said: str) -> _T | None:
    """Find what a model chose: by label or id, else by the one name, that differ in capitals and blanks alone."""
    said = said.strip()
    if said in labels:
        return labels[said]
    by_id = [thing for thing in labels.values() if thing.id == said]
    folded = _folded(said)
    alike = [thing for label, thing in labels.items() if folded in {_folded(label), _folded(thing.name)}]
    found = by_id or alike
    return found[0] if len(found) == 1 and folded else None


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()
