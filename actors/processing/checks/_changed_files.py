"""Changes of files and targets, by recorded effects and by contents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from callboard.messages import TargetKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from callboard.actors.processing._phases import Acted
    from callboard.actors.states import Run
    from callboard.messages import Target

_NAMED = {TargetKind.DEVICE, TargetKind.SHELL}


def effects_of(run: Run, acted: Acted, files: Mapping[str, Path], targets: Iterable[Target]) -> set[str]:
    """Return the files, shells and devices that a task's tools changed.

    Windows are left out: they are the means of a change, and their names are not known beforehand.
    """
    target = run.assign.target
    found = {*run.changed, *(each for done in run.own_subtasks for each in done.changed)}
    for result in acted.results:
        if result.changed:
            found.update(result.artifacts or ((target.id,) if target is not None else ()))
    names = {str(path): name for name, path in files.items()}
    named = {each.id for each in targets if each.kind in _NAMED}
    return {names.get(each, each) for each in found if each in named or Path(each).is_absolute()}


def changes_beside(
    allowed: Iterable[str],
    effects: Collection[str],
    before: Mapping[str, str],
    now: Mapping[str, str],
    others: Collection[str],
) -> list[str]:
    """Return the changed files and targets that are not allowed.

    A file that has other contents, or is new or gone, has changed, unless another task has written it.
    """
    names = before.keys() | now.keys()
    differs = {name for name in names if before.get(name) != now.get(name) and name not in others}
    return sorted(differs.union(effects).difference(allowed))
