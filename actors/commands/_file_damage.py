"""Check files of formats that no surface opens."""

from __future__ import annotations

import json
import zipfile
import zlib
from typing import TYPE_CHECKING

from callboard.surfaces import BoundedZipFile

if TYPE_CHECKING:
    from pathlib import Path

_ARCHIVES = frozenset(
    [
        *(".zip", ".jar", ".epub", ".numbers", ".vsdx"),
        *(".pptx", ".pptm", ".ppsx", ".potx", ".docm", ".dotx", ".xlsb", ".xltx"),
        *(".odp", ".ods", ".odt", ".odg"),
    ]
)
"""Formats that are ZIP archives."""
_COMPOUND = frozenset([".xls", ".doc", ".ppt", ".pps", ".msg", ".vsd", ".pub", ".mpp"])
"""Formats that begin with the signature of a compound file of Microsoft Office."""
_COMPOUND_BEGINS = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_MOST_BYTES = 100_000_000
"""The most bytes, unpacked, that are read."""


def damage(path: Path) -> str:
    """Say why a file can't be opened.

    Archives, old Office files and JSON are checked. Blocks.

    Returns:
        Empty for an undamaged file, and for one of another format.
    """
    suffix = path.suffix.lower()
    try:
        if suffix in _ARCHIVES:
            return _of_archive(path)
        if suffix in _COMPOUND:
            with path.open("rb") as file:
                return "" if file.read(len(_COMPOUND_BEGINS)) == _COMPOUND_BEGINS else f"it is no {suffix} file"
        if suffix == ".json" and path.stat().st_size <= _MOST_BYTES:
            json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        return f"it is no JSON: {error}"
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _of_archive(path: Path) -> str:
    try:
        with path.open("rb") as file, BoundedZipFile(file) as archive:
            small = sum(part.file_size for part in archive.infolist()) <= _MOST_BYTES
            part = archive.testzip() if small else None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        return f"its archive is damaged: {error}"
    return f"its part {part} is damaged" if part else ""
