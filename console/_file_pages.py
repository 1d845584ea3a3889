"""Pictures of the pages of changed files, drawn on request."""

from __future__ import annotations

import hashlib
import threading
from typing import TYPE_CHECKING

from callboard.surfaces.documents import compared_pages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from callboard.console._file_changes import FileVersions
    from callboard.surfaces.documents import ComparedPages

_MOST_KEPT_BYTES = 64_000_000
"""The most bytes of pictures that are kept; the longest unused files are forgotten first."""


class FilePages:
    """The pages that were drawn last. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: dict[str, ComparedPages] = {}
        """By the digest of both versions."""
        self._pictures: dict[str, bytes] = {}
        """Their pictures, by digest."""

    def compared(self, versions: FileVersions, suffix: str) -> ComparedPages:
        """Draw the pages of a file that differ between two versions.

        Raises:
            ToolError: If they can't be drawn; the text gives the reason.
        """
        digests = (hashlib.sha256(version).hexdigest() for version in versions)
        key = ":".join((suffix, *digests))
        with self._lock:
            pages = self._files.pop(key, None)
        pages = pages or compared_pages(*versions, suffix)
        with self._lock:
            self._files[key] = pages
            while len(self._files) > 1 and sum(map(len, self._all_pictures())) > _MOST_KEPT_BYTES:
                del self._files[next(iter(self._files))]
            self._pictures = {digest_of_page(picture): picture for picture in self._all_pictures()}
        return pages

    def picture(self, digest: str) -> bytes | None:
        """Return a picture by its digest; None if it is not kept."""
        with self._lock:
            return self._pictures.get(digest)

    def _all_pictures(self) -> Iterator[bytes]:
        for pages in self._files.values():
            for pair in pages.pages:
                yield from (pair.before, pair.after, pair.difference)


def digest_of_page(picture: bytes) -> str:
    """Return the digest of a page's picture; empty without one."""
    return hashlib.sha256(picture).hexdigest() if picture else ""
