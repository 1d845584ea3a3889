"""Changes of files and targets, by recorded effects and by contents."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

    from callboard.actors.processing._phases import Acted
    from callboard.actors.states import Run


def effects_of(run: Run, acted: Acted, files: Mapping[str, Path], windows: Collection[str]) -> set[str]:
    """Return the files, targets and tools by which a task changed something.

    Args:
        run: The run that finishes.
        acted: Its last actions.
        files: The files of all surfaces, by name.
        windows: The ids of windows on screens. They are left out: they are the means of a change, and their names are
            not known beforehand.
    """
    target = run.assign.target
    effects = {*run.changed, *(effect for done in run.own_subtasks for effect in done.changed)}
    for result in acted.results:
        if result.changed:
            effects.update(result.artifacts or ((target.id,) if target is not None else (result.tool,)))
    names = {str(path): name for name, path in files.items()}
    return {names.get(effect, effect) for effect in effects if effect not in windows}


def changes_beside(
    allowed: Iterable[str],
    effects: Collection[str],
    old_digests: Mapping[str, str],
    new_digests: Mapping[str, str],
    files_of_others: Collection[str],
) -> list[str]:
    """Return the changed files and targets that are not allowed.

    A file that has other contents, or is new or gone, has changed, unless another task has written it.
    """
    names = old_digests.keys() | new_digests.keys()
    differs = {name for name in names if old_digests.get(name) != new_digests.get(name) and name not in files_of_others}
    return sorted(differs.union(effects).difference(allowed))
