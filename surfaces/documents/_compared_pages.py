"""Pictures of a file's pages in two versions, and of their differences."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from callboard.surfaces import BoundedZipFile
from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._formats import run_reader
from callboard.surfaces.documents._libre_office import pdfs_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_OFFICE = frozenset({".doc", ".docx", ".odp", ".ods", ".odt", ".ppt", ".pptx", ".rtf", ".xls", ".xlsx"})
_PICTURES = frozenset({".jpeg", ".jpg", ".png"})
PAGE_SUFFIXES = _OFFICE | _PICTURES | {".pdf"}
"""The suffixes, in lower case, of files whose pages can be shown."""
MOST_COMPARED = 50
"""The most pages of a version that are compared."""
MOST_SHOWN = 8
"""The most pages that are shown: the first that differ."""
_MOST_UNPACKED = 100_000_000
"""The most bytes to which a file's parts may unpack together."""


@dataclass(frozen=True)
class PagePair:
    """A page in two versions, as PNG.

    The picture of a version without such a page is empty.
    """

    number: int
    before: bytes
    after: bytes
    difference: bytes
    """Both side by side, with outlines around what differs; empty if one is missing."""


@dataclass(frozen=True)
class ComparedPages:
    """The pages of a file that differ between two versions."""

    pages: tuple[PagePair, ...]
    before_count: int
    after_count: int
    differing: int
    """The number of pages that differ, of those that were compared."""


def compared_pages(before: bytes, after: bytes, suffix: str) -> ComparedPages:
    """Draw the pages of a file that differ between two versions.

    Office documents are drawn by a LibreOffice of their own, which is ended then. It has no network. All pictures are
    made in a process with limits of memory and time.

    Args:
        before: The bytes of the version before; empty for a new file.
        after: The bytes of the version after.
        suffix: The suffix of the file, one of `PAGE_SUFFIXES`.

    Raises:
        ToolError: If they can't be drawn; the text gives the reason.
    """
    files = [file for file in (before, after) if file]
    if suffix in _OFFICE:
        files = _as_pdfs(files, suffix)
    request: dict[str, Any] = {
        "what": "comparison",
        "kind": "picture" if suffix in _PICTURES else "pdf",
        "sizes": [len(file) for file in files] if before else [0, len(files[0])],
        "compared": MOST_COMPARED,
        "shown": MOST_SHOWN,
    }
    answer, pictures = run_reader(request, b"".join(files))
    if name := answer.get("missing"):
        msg = f"{name} is not installed: it comes with callboard[pdf]"
        raise ToolError(msg)
    if "error" in answer:
        raise ToolError(str(answer["error"]))
    return ComparedPages(
        tuple(_pairs(answer["pages"], pictures)), answer["before"], answer["after"], answer["differing"]
    )


def _pairs(pages: list[list[int]], pictures: bytes) -> Iterator[PagePair]:
    """Cut the pictures of pages apart."""
    stream = io.BytesIO(pictures)
    for number, *sizes in pages:
        before, after, difference = map(stream.read, sizes)
        yield PagePair(number, before, after, difference)


def _as_pdfs(files: list[bytes], suffix: str) -> list[bytes]:
    """Convert versions of an Office document.

    Raises:
        ToolError: If LibreOffice is missing, can't read one, or takes too long.
    """
    if any(_unpacked_size(file) > _MOST_UNPACKED for file in files):
        msg = f"it unpacks to more than {_MOST_UNPACKED // 1_000_000} MB"
        raise ToolError(msg)
    return pdfs_of(files, suffix, "its pages can't be drawn", is_computed=False)


def _unpacked_size(file: bytes) -> int:
    """Return the size of a package's parts; 0 for another file."""
    try:
        with BoundedZipFile(io.BytesIO(file)) as archive:
            return sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return 0
