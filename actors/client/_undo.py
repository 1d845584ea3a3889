"""Undo of a task: its files get back their earlier versions."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from callboard.messages import Foreseen, UndoRefusedError
from callboard.surfaces import delete_stale_spares, lock_file, read_file, replace_file, spare_file, write_lock

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from callboard.journal import Row, Versions


@dataclass
class _Changed:
    """A file that a task changed, and whose version before is kept."""

    path: Path
    old_digest: str
    """The SHA-256 of its bytes before the task's first change."""
    new_digests: set[str] = field(default_factory=set)
    """The SHA-256 of each version that the task wrote."""
    by_others: bool = False
    """Whether someone else changed it between two changes of the task."""
    current_data: bytes | None = None
    """Its bytes now; None if it is gone."""
    mode: int | None = None
    """Its permissions now."""


def undo(rows: Iterable[Row], versions: Versions, task_id: str, files: Collection[str] = ()) -> dict[Path, bool]:
    """Bring back files as they were before a task's first change.

    All files are checked first. A file that is gone is made again, in its folder.

    Args:
        rows: The task's rows.
        versions: The versions that its journal keeps.
        task_id: The task.
        files: The names of files, or paths, to bring back; empty for all.

    Returns:
        The files, in the order of their changes; each with whether it was brought back; False if it
        already was as before the task.

    Raises:
        UndoRefusedError: If no version is kept, or if a file was changed since by someone else, is open in another
            program, or can't be written. The message says where its version before is.
        OSError: If a file can't be written, though it seemed so. Those before it are brought back; undo goes on with
            the others when it is called again.
    """
    changed = _chosen(_changed(rows), task_id, files)
    old_contents = {file.path: versions.read(task_id, file.old_digest) for file in changed}
    problems = [
        f"{file.path} {why}; its version before is {versions.path(task_id, file.old_digest)}"
        for file in changed
        if (why := _look(file) or ("has lost its version before" if old_contents[file.path] is None else ""))
    ]
    if problems:
        msg = f"nothing was brought back: {'; '.join(problems)}"
        raise UndoRefusedError(msg)
    return {file.path: _bring_back(file, old_contents[file.path] or b"") for file in changed}


def _changed(rows: Iterable[Row]) -> list[_Changed]:
    files: dict[str, _Changed] = {}
    for message in (row.message for row in rows):
        if not isinstance(message, Foreseen) or not (message.kept or message.path in files):
            continue
        file = files.setdefault(message.path, _Changed(Path(message.path), message.before))
        file.by_others |= message.kept and message.before != file.old_digest
        file.new_digests.add(message.after)
    return list(files.values())


def _chosen(changed: list[_Changed], task_id: str, files: Collection[str]) -> list[_Changed]:
    if not changed:
        msg = f"there is nothing to bring back: {task_id} changed no file that its may_change names"
        raise UndoRefusedError(msg)
    for name in files:
        if not any(_is_called(file.path, name) for file in changed):
            paths = ", ".join(str(file.path) for file in changed)
            msg = f"{task_id} has changed no file {name!r} that it names in may_change; it has changed: {paths}"
            raise UndoRefusedError(msg)
    return [file for file in changed if not files or any(_is_called(file.path, name) for name in files)]


def _is_called(path: Path, name: str) -> bool:
    return path == Path(name).absolute() or path.as_posix().endswith(f"/{name}")


def _look(file: _Changed) -> str:
    """Read a file, and return why it can't be brought back.

    Empty if it can, or is as before already.
    """
    path = file.path
    if os.path.realpath(path) != str(path):
        return "is another place by now, through a link"
    if not path.parent.is_dir():
        return f"can't be made again: its folder {path.parent} is gone"
    if not path.exists():
        return ""
    try:
        if not path.is_file():
            return "is no file by now"
        file.mode, file.current_data = stat.S_IMODE(path.stat().st_mode), read_file(path)
    except OSError as error:
        return f"can't be read: {error.strerror}"
    return "" if _digest(file.current_data) == file.old_digest else _in_the_way(file, _digest(file.current_data))


def _in_the_way(file: _Changed, now: str) -> str:
    """Return why a file must not be replaced; empty if it may."""
    lock = lock_file(file.path)
    reasons = (
        (now not in file.new_digests, "was changed since by another program or task"),
        (file.by_others, "was changed by another program or task, between two changes of this one"),
        (bool(lock), f"is open in another program ({lock} exists): close it there first"),
        (not (file.mode or 0) & 0o222, "is read-only"),
    )
    return next((reason for refused, reason in reasons if refused), "")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _bring_back(file: _Changed, data: bytes) -> bool:
    """Replace a file, atomically and synced.

    Returns False if it is as before already.
    """
    if file.current_data is not None and _digest(file.current_data) == file.old_digest:
        return False
    delete_stale_spares(file.path.parent)
    with spare_file(file.path, data, file.mode) as spare, write_lock(file.path):
        latest_data = read_file(file.path) if file.path.exists() else None
        if latest_data != file.current_data:
            msg = f"{file.path} was changed just now by another program or task: look at it, and call undo again"
            raise UndoRefusedError(msg)
        replace_file(spare, file.path)
    return True
