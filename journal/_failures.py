"""Translate errors of SQLite and the system into the journal's errors.

Each message includes advice for the operator where there is some.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from callboard.config import NotOwnError
from callboard.messages import JournalDamagedError, JournalError, JournalPathError

_DAMAGED = {
    sqlite3.SQLITE_CORRUPT: "is damaged",
    sqlite3.SQLITE_NOTADB: "is no journal, or a damaged one",
}
_ADVICE = {
    sqlite3.SQLITE_FULL: "free some space",
    sqlite3.SQLITE_READONLY: "let this user write the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "let this user read and write the file and its folder",
    sqlite3.SQLITE_PERM: "let this user read and write the file and its folder",
    sqlite3.SQLITE_BUSY: "another program holds it; close that one",
    sqlite3.SQLITE_IOERR: "look after its disk and what is mounted there",
}


def beside(journal: Path, suffix: str) -> Path:
    """Return the path of a companion file of a journal."""
    return journal.with_name(f"{journal.name}{suffix}")


def located(path: Path) -> Path:
    """Resolve a path to its absolute form without symbolic links.

    Raises:
        JournalError: If no file can have this path.
    """
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError) as error:
        problem = f"can't be named so: {error}"
        raise JournalError(path, problem) from error


class journal_errors:  # noqa: N801 - used as a function
    """Translate errors of SQLite and the operating system in a ``with`` block.

    ``doing`` completes the message "can't be ...", such as ``read`` or ``written``.

    Raises:
        JournalDamagedError: If SQLite reports that the file is damaged, or not a database.
        JournalPathError: If the file, or one beside it, is not a regular file of this user's own.
        JournalError: For any other error of SQLite or the operating system.
    """

    def __init__(self, path: Path, doing: str) -> None:
        self._path = path
        self._doing = doing

    def __enter__(self) -> None:
        """Do nothing on entry."""

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        """Raise the journal's error for an error in the block."""
        if error is not None:
            raise_journal_error(self._path, self._doing, error)


def raise_journal_error(path: Path, doing: str, error: BaseException) -> None:
    """Raise the journal's error for one of SQLite or the system.

    Any other error is ignored.
    """
    if isinstance(error, sqlite3.Error):
        raise _of_sqlite(path, doing, error) from error
    if isinstance(error, OSError):
        kind = JournalPathError if isinstance(error, NotOwnError) else JournalError
        other_file = f" ({error.filename})" if error.filename and str(error.filename) != str(path) else ""
        problem = f"can't be {doing}: {error.strerror or error}{other_file}"
        raise kind(path, problem) from error


def _of_sqlite(path: Path, doing: str, error: sqlite3.Error) -> JournalError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in _DAMAGED:
        problem = f"{_DAMAGED[code]} ({error}): put a copy of it back, or give this one a journal of its own"
        return JournalDamagedError(path, problem)
    advice = f"; {_ADVICE[code]}" if code in _ADVICE else ""
    return JournalError(path, f"can't be {doing}: {error}{advice}")
