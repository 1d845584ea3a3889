"""Versions of files from before a task changed them.

They are stored beside the journal, in one folder per task, each under the SHA-256 of its bytes. The journal's rows of
the kind `foreseen` name them: there it is the fingerprint of a file's bytes before a write.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from callboard.config import create_own, own_folder
from callboard.journal._artifacts import folder_of, versions_of
from callboard.journal._failures import journal_errors
from callboard.journal._pictures import sync_folder

if TYPE_CHECKING:
    from pathlib import Path


class Versions:
    """A journal's versions of files. Thread-safe.

    They are always synced to the disk: so is the change that they precede.
    """

    def __init__(self, journal: Path) -> None:
        self._journal = journal

    def keep(self, task_id: str, data: bytes) -> Path:
        """Store a file's bytes, and return the path of the copy.

        Only its user can read the copy. It is deleted when the journal drops the task. A task stores the same bytes
        once.

        Raises:
            JournalError: If they can't be written.
        """
        with journal_errors(self._journal, "given a version to keep"):
            path = self.path(task_id, hashlib.sha256(data).hexdigest())
            new_folders = [candidate for candidate in (path.parent.parent, path.parent) if own_folder(candidate)]
            if not (path.is_file() and path.stat().st_size == len(data)):
                self._write(path, data)
            # The folder is synced even if the copy was there: the process that made it may have been killed before.
            for changed_folder in (path.parent, *(new_folder.parent for new_folder in new_folders)):
                sync_folder(changed_folder)
        return path

    def read(self, task_id: str, digest: str) -> bytes | None:
        """Read a version by its digest; None if lost or damaged."""
        try:
            data = self.path(task_id, digest).read_bytes()
        except OSError:
            return None
        return data if hashlib.sha256(data).hexdigest() == digest else None

    def path(self, task_id: str, digest: str) -> Path:
        """Return the path of a version."""
        return versions_of(self._journal) / folder_of(task_id) / digest

    def _write(self, path: Path, data: bytes) -> None:
        part = path.with_suffix(f".{os.urandom(8).hex()}.part")
        try:
            descriptor = create_own(part)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(descriptor)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
