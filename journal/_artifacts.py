"""Files that tools return with their results.

They are stored beside the journal, in one folder per task.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import shutil
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from callboard.config import create_own, own_folder
from callboard.journal._failures import beside, journal_errors
from callboard.journal._pictures import sync_folder

if TYPE_CHECKING:
    from collections.abc import Iterable

LARGEST = 100_000_000
"""The maximum size of an artifact, in bytes."""
_PARTIAL = ".partial"
_NAME = 60
"""The number of characters of a call's id that a file name includes."""


class Artifacts:
    """A journal's artifacts. Thread-safe: each file gets a unique name."""

    def __init__(self, journal: Path | None = None, *, durable: bool = True) -> None:
        """Store artifacts beside a journal's file.

        Without a file, they are stored in a temporary folder until `close`.
        """
        self._journal = journal
        self._durable = durable
        self._folder: Path | None = None
        self._making = threading.Lock()

    def keep(self, task_id: str, call_id: str, content: bytes, suffix: str, name: str = "") -> Path:
        """Write an artifact, and return its path.

        Only its user can read the file.

        Args:
            task_id: The task; the file is deleted when the journal drops the task.
            call_id: The id of the tool call; part of the file name.
            content: The bytes to write.
            suffix: The suffix of the file name, such as ``.txt``.
            name: The whole file name, in a folder of its own; empty: one made of the call's id.

        Raises:
            ValueError: If the content has more than `LARGEST` bytes.
            JournalError: If the file can't be written.
        """
        if len(content) > LARGEST:
            msg = f"an artifact has at most {LARGEST:,} bytes, this one has {len(content):,}"
            raise ValueError(msg)
        with journal_errors(self._journal or Path(tempfile.gettempdir()), "written"):
            folder = self._root() / folder_of(task_id)
            new_folders = [candidate for candidate in (folder.parent, folder) if own_folder(candidate)]
            stem = _safe_stem(call_id)
            if name:
                folder = _new_folder(folder, stem)
                new_folders.append(folder)
                path = folder / safe_name(name)
                descriptor = create_own(_partial(path))
            else:
                path, descriptor = _opened(folder, stem, suffix)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                if self._durable:
                    file.flush()
                    os.fsync(descriptor)
            _partial(path).replace(path)
            if self._durable:
                for changed_folder in (folder, *(new_folder.parent for new_folder in new_folders)):
                    sync_folder(changed_folder)
        return path

    def of(self, task_id: str, call_id: str) -> list[Path]:
        """List the whole artifacts of a call, in order."""
        folder, pattern = (
            self._root() / folder_of(task_id),
            re.compile(rf"{re.escape(_safe_stem(call_id))}-(\d+)(\..*)?"),
        )
        matches = [(match, path) for path in _entries(folder) if (match := pattern.fullmatch(path.name)) is not None]
        ordered_paths = [path for _, path in sorted(matches, key=lambda item: int(item[0][1]))]
        files = (file for path in ordered_paths for file in (_entries(path) if path.is_dir() else [path]))
        return [file for file in files if not file.name.endswith(_PARTIAL)]

    def reserve(self, task_id: str, call_id: str, name: str) -> Path:
        """Return a path for an artifact that the caller writes.

        Its folder is new, and only its user can read it.

        Args:
            task_id: The task; the file is deleted when the journal drops the task.
            call_id: A part of the folder's name.
            name: The file's name, from which folders and unusual characters are taken.

        Raises:
            JournalError: If the folder can't be made.
        """
        with journal_errors(self._journal or Path(tempfile.gettempdir()), "written"):
            folder = self._root() / folder_of(task_id)
            own_folder(folder.parent)
            own_folder(folder)
            return _new_folder(folder, _safe_stem(call_id)) / safe_name(name)

    def forget(self, task_ids: Iterable[str]) -> None:
        """Delete the artifacts of tasks."""
        if self._folder is not None:
            for task_id in task_ids:
                shutil.rmtree(self._folder / folder_of(task_id), ignore_errors=True)

    def close(self) -> None:
        """Delete the artifacts of a journal without a file."""
        if self._folder is not None and self._journal is None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _root(self) -> Path:
        with self._making:  # the first calls may come on several threads
            if self._folder is None:
                journal = self._journal
                self._folder = Path(tempfile.mkdtemp(prefix="callboard-")) if journal is None else artifacts_of(journal)
            return self._folder


def _safe_stem(call_id: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", call_id)[-_NAME:]


def safe_name(name: str) -> str:
    """Return the name of a file without folders and unusual characters."""
    return re.sub(r"[^\w. ()-]+", "-", name).strip(" .")[-_NAME:] or "file"


def artifacts_of(journal: Path) -> Path:
    """Return the folder of a journal's artifacts."""
    return beside(journal, ".artifacts")


def folder_of(task_id: str) -> str:
    """Return the name of a task's folder.

    It is a hash, because a task id may contain characters that are invalid in a file name.
    """
    return hashlib.sha256(task_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def versions_of(journal: Path) -> Path:
    """Return the folder of a journal's versions of files.

    Like that of the artifacts, it has a folder per task.
    """
    return beside(journal, ".versions")


def sweep(journal: Path, task_ids: Iterable[str]) -> None:
    """Delete the artifacts and versions of all tasks except these."""
    kept_names = {folder_of(task_id) for task_id in task_ids}
    for folder in (artifacts_of(journal), versions_of(journal)):
        for task_folder in folder.iterdir() if folder.is_dir() else ():
            if task_folder.name not in kept_names:
                shutil.rmtree(task_folder, ignore_errors=True)


def _new_folder(folder: Path, name: str) -> Path:
    """Create a folder under an unused name."""
    numbers = itertools.count(1)
    return next(path for path in (folder / f"{name}-{number}" for number in numbers) if own_folder(path))


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _partial(path: Path) -> Path:
    """Return the path of a file that is not whole yet."""
    return path.with_name(f"{path.name}{_PARTIAL}")


def _opened(folder: Path, name: str, suffix: str) -> tuple[Path, int]:
    """Choose an unused name, and open the file that becomes whole."""
    for number in itertools.count(1):
        path = folder / f"{name}-{number}{suffix}"
        try:
            descriptor = create_own(_partial(path))
        except FileExistsError:
            continue
        if not path.exists():
            return path, descriptor
        os.close(descriptor)
        _partial(path).unlink()
    raise AssertionError(name)  # pragma: no cover - numbers have no end
