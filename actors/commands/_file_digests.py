"""The contents of files, as digests, for checks of changed files."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

    from callboard.messages import Task

_CHUNK = 1 << 20
_MOST_DIGESTED = 10_000_000_000
"""The most bytes of all files whose digests are compared at one moment."""
MOST_KEPT = 50_000_000
"""The most bytes of all files whose contents are kept for a judge."""


def digests_of(files: Mapping[str, Path], names: Collection[str] | None = None) -> dict[str, str]:
    """Return the SHA-256 of files, by name.

    Of all files or of those named, in hexadecimal; missing files are left out. Blocks.

    Raises:
        ValueError: If they are too large.
    """
    wanted_files = dict(files) if names is None else {name: files[name] for name in names if name in files}
    sizes = {name: _size(path) for name, path in wanted_files.items()}
    if sum(sizes.values()) > _MOST_DIGESTED:
        largest = max(sizes, key=sizes.__getitem__)
        msg = (
            f"the files have {sum(sizes.values()):,} bytes; at most {_MOST_DIGESTED:,} are compared. "
            f"The largest is {largest!r}"
        )
        raise ValueError(msg)
    return {name: mark for name, path in wanted_files.items() if (mark := _digest(path))}


def contents_within(files: Mapping[str, Path], most: int) -> dict[str, bytes] | int:
    """Read all files, by name; missing ones are left out. Blocks.

    Returns:
        The number of bytes so far, if they are more than `most`.
    """
    read, size = dict[str, bytes](), 0
    for name, path in files.items():
        try:
            with path.open("rb") as file:
                data = file.read(most - size + 1)
        except FileNotFoundError:  # deleted since it was listed
            continue
        size += len(data)
        if size > most:
            return size - len(data) + path.stat().st_size
        read[name] = data
    return read


def join_files(files: Iterable[Mapping[str, Path]]) -> dict[str, Path]:
    """Join the files of several surfaces.

    Raises:
        ValueError: If two surfaces have files of the same name.
    """
    paths: dict[str, Path] = {}
    for named_paths in files:
        for name, path in named_paths.items():
            if paths.setdefault(name, path) != path:
                msg = f"{name!r} is the name of two files, {paths[name]} and {path}"
                raise ValueError(msg)
    return paths


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # deleted since it was listed
        return 0


def _digest(path: Path) -> str:
    mark = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                mark.update(chunk)
    except FileNotFoundError:  # deleted since it was listed
        return ""
    return mark.hexdigest()


def compared_files(task: Task) -> tuple[str, ...] | None:
    """Return the names of the files whose contents a task's checks compare.

    None for all files.
    """
    checks = task.all_checks
    if any(check.only is not None for check in checks):
        return None
    names = [name for check in checks for name in check.unchanged or ()]
    names += [check.file for check in checks if check.file is not None and check.changed is not None]
    return tuple(dict.fromkeys(names))
