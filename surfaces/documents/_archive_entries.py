"""Files in .zip archives that others made: their names, faults and contents."""

from __future__ import annotations

import contextlib
import re
import stat
import unicodedata
import zipfile
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from callboard.messages import reason_of
from callboard.surfaces import BoundedZipFile, open_file
from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._office import UNREADABLE, damaged
from callboard.surfaces.documents._workspace import name_fault, path_fault

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MOST_ENTRIES = 20_000
"""The most entries of an archive that is opened."""
_ENCRYPTED, _UTF_8 = 0x1, 0x800
"""The marks of an entry that is protected, and of one whose name is in UTF-8."""
_ABSOLUTE = re.compile(r"/|[A-Za-z]:")


@dataclass(frozen=True)
class ArchiveEntry:
    """A file in an archive."""

    info: zipfile.ZipInfo
    name: str
    """Its path in the archive, separated by ``/``, without ``.`` and empty parts."""
    refusal: str = ""
    """Why it is not extracted; empty if it is."""


@contextlib.contextmanager
def opened_archive(path: str, absolute_path: Path) -> Iterator[zipfile.ZipFile]:
    """Open an archive.

    Raises:
        ToolError: If it is missing, has too many entries, or is damaged.
    """
    try:
        if not absolute_path.is_file():
            msg = f"there is no file {path!r} in the workspace; list_files shows which there are"
            raise ToolError(msg)
        with open_file(absolute_path) as file, BoundedZipFile(file) as archive:
            if len(archive.infolist()) > _MOST_ENTRIES:
                msg = f"{path!r} has more than {_MOST_ENTRIES} entries; it is not opened"
                raise ToolError(msg)
            yield archive
    except UNREADABLE as error:
        is_cut = isinstance(error, zipfile.BadZipFile)
        raise damaged(path, "it is not a .zip file, or is truncated" if is_cut else error) from error


def entries_of(archive: zipfile.ZipFile) -> list[ArchiveEntry]:
    """List the files of an archive, in its order."""
    entries = [_entry(info) for info in archive.infolist() if not _is_folder(info)]
    keys = [_key(entry.name) for entry in entries if not entry.refusal]
    counts = Counter(keys)
    folders = {parent.as_posix() for key in counts for parent in PurePosixPath(key).parents}
    return [
        entry if entry.refusal else replace(entry, refusal=_ambiguity(_key(entry.name), counts, folders))
        for entry in entries
    ]


def _is_folder(info: zipfile.ZipInfo) -> bool:
    return _decoded_name(info).endswith("/") and not info.file_size


def _entry(info: zipfile.ZipInfo) -> ArchiveEntry:
    name = _decoded_name(info)
    if not _ABSOLUTE.match(name):
        name = "/".join(part for part in name.split("/") if part not in {"", "."}) or name
    return ArchiveEntry(info, name, _refusal(info, name))


def _decoded_name(info: zipfile.ZipInfo) -> str:
    """Return an entry's path, separated by ``/``.

    Names without the mark for UTF-8 are in code page 437 by the format's rules. But macOS and Linux write UTF-8 there,
    and some programs on Windows separate folders by a backslash.
    """
    name = info.filename
    if not info.flag_bits & _UTF_8:
        with contextlib.suppress(UnicodeError):
            name = name.encode("cp437").decode("utf-8")
    return name.replace("\\", "/")


def _refusal(info: zipfile.ZipInfo, name: str) -> str:
    """Explain why an entry is not extracted; empty if it is."""
    parts = name.split("/")
    kind = stat.S_IFMT(info.external_attr >> 16)
    reasons = (
        ("__MACOSX" in parts, "it is a note of macOS about another file"),
        (info.flag_bits & _ENCRYPTED, "it is protected with a password"),
        (info.compress_type not in BoundedZipFile.METHODS, "its compression can't be read"),
        (_decoded_name(info).endswith("/"), "it is named as a folder, and has contents of its own"),
        (kind not in {0, stat.S_IFREG}, "it is a link or a device"),
    )
    reason = path_fault(name) or next(filter(None, map(name_fault, parts)), "")
    return reason or next((reason for is_refused, reason in reasons if is_refused), "")


def _key(name: str) -> str:
    """Return a name without case and the composition of letters."""
    return unicodedata.normalize("NFC", name).casefold()


def _ambiguity(key: str, counts: Counter[str], folders: set[str]) -> str:
    if counts[key] > 1:
        return "several files have this name, in capital or small letters"
    return "it has the name of a folder, too" if key in folders else ""


def tested(archive: zipfile.ZipFile, entry: ArchiveEntry) -> ArchiveEntry:
    """Read an entry once, and refuse it if it is damaged."""
    try:
        archive.read(entry.info)
    except UNREADABLE as error:
        return replace(entry, refusal=f"its contents can't be read: {reason_of(error)}")
    return entry
