"""Files that tools leave beside their answers: in a folder beside the journal, one folder for each task."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from callboard.actors.journal._failures import beside, journal_errors
from callboard.actors.journal._pictures import sync_folder

if TYPE_CHECKING:
    from collections.abc import Iterable

LARGEST = 100_000_000
"""The most bytes that one may have."""
_NAME = 60
"""So many characters of a call's id stand in a file's name."""


class Artifacts:
    """A journal's artifacts. Thread-safe: each file has a name of its own."""

    def __init__(self, journal: Path | None = None, *, durable: bool = True) -> None:
        """Make them; without a journal's file they last as long as this object."""
        self._journal = journal
        self._durable = durable
        self._folder: Path | None = None

    def keep(self, task_id: str, call_id: str, content: bytes, suffix: str) -> Path:
        """Write a file, readable by its user alone, and give its path.

        Args:
            task_id: The task; the file is deleted when the journal lets go of it.
            call_id: The call, for the file's name.
            content: What is in it.
            suffix: The end of its name, such as ``.txt``.

        Raises:
            ValueError: If it has more than `LARGEST` bytes.
            JournalError: If it can't be written.
        """
        if len(content) > LARGEST:
            msg = f"an artifact has at most {LARGEST:,} bytes, this one has {len(content):,}"
            raise ValueError(msg)
        with journal_errors(self._journal or Path(tempfile.gettempdir()), "written"):
            folder = self._root() / folder_of(task_id)
            new = [each for each in (folder.parent, folder) if not each.is_dir()]
            for each in new:
                each.mkdir(mode=0o700, exist_ok=True)
            path, descriptor = _opened(folder, re.sub(r"[^A-Za-z0-9.]+", "-", call_id)[-_NAME:], suffix)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                if self._durable:
                    file.flush()
                    os.fsync(descriptor)
            if self._durable:
                for each in (folder, *(made.parent for made in new)):
                    sync_folder(each)
        return path

    def forget(self, task_ids: Iterable[str]) -> None:
        """Delete the artifacts of tasks."""
        if self._folder is not None:
            for task_id in task_ids:
                shutil.rmtree(self._folder / folder_of(task_id), ignore_errors=True)

    def close(self) -> None:
        """Delete what does not last."""
        if self._folder is not None and self._journal is None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _root(self) -> Path:
        if self._folder is None:
            journal = self._journal
            self._folder = Path(tempfile.mkdtemp(prefix="callboard-")) if journal is None else artifacts_of(journal)
        return self._folder


def artifacts_of(journal: Path) -> Path:
    """Name the folder of a journal's artifacts."""
    return beside(journal, ".artifacts")


def folder_of(task_id: str) -> str:
    """Name a task's folder: an id may hold what no file's name can."""
    return hashlib.sha256(task_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def sweep(journal: Path, task_ids: Iterable[str]) -> None:
    """Delete the artifacts of all tasks but these."""
    folder = artifacts_of(journal)
    if folder.is_dir():
        kept = {folder_of(task_id) for task_id in task_ids}
        for each in folder.iterdir():
            if each.name not in kept:
                shutil.rmtree(each, ignore_errors=True)


def _opened(folder: Path, name: str, suffix: str) -> tuple[Path, int]:
    """Make a file that was not there, and open it."""
    for number in itertools.count(1):
        path = folder / f"{name}-{number}{suffix}"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
            return path, os.open(path, flags, 0o600)
        except FileExistsError:
            continue
    raise AssertionError(name)  # pragma: no cover - numbers have no end
