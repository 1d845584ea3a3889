"""The log's file.

It is private, rotated by size, and reopened when another program has moved it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from callboard.config._private import make_private, open_private
from callboard.messages import SettingsError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import TextIO


class LogFile:
    """A file of lines, rotated when it would exceed its size.

    It is for one thread.
    """

    def __init__(self, path: Path, max_bytes: int | None, backups: int) -> None:
        """Open it for appending.

        Args:
            path: The file; ``<name>.1`` is the previous one, and so on.
            max_bytes: The largest size; None for no limit.
            backups: The number of earlier files that are kept.

        Raises:
            SettingsError: If it can't be opened.
        """
        self._path, self._max_bytes, self._backups = path, max_bytes, backups
        self._size = 0
        try:
            self._open()
        except OSError as error:
            msg = f"log.file: {path} can't be opened: {error.strerror}"
            raise SettingsError(msg) from error

    def write(self, lines: Sequence[bytes]) -> int:
        """Append as many lines as fit, without their line ends.

        The file is rotated if the first line does not fit.

        Returns:
            The number of lines appended, at least one.

        Raises:
            OSError: If they can't be written.
        """
        if self._file.closed:  # it could not be reopened before
            self._open()
        if self._max_bytes is not None and self._size and self._size + len(lines[0]) + 1 > self._max_bytes:
            self._rotate()
        size, line_count = self._size, 0
        for line in lines:
            size += len(line) + 1
            if self._max_bytes is not None and line_count and size > self._max_bytes:
                break
            line_count += 1
        text = b"\n".join([*lines[:line_count], b""])
        self._file.write(text.decode())
        self._size += len(text)
        return line_count

    def flush(self) -> None:
        """Flush to the operating system.

        A file that was moved or deleted is created again.

        Raises:
            OSError: If it can't be written.
        """
        if self._file.closed:
            return  # the next write reopens it
        self._file.flush()
        try:
            status = self._path.stat()
            moved = (status.st_dev, status.st_ino) != self._identity
        except (FileNotFoundError, NotADirectoryError):
            moved = True
        if moved:
            self._file.close()
            self._open()

    def close(self) -> None:
        """Close it.

        Raises:
            OSError: If buffered lines can't be written.
        """
        self._file.close()

    def _open(self) -> None:
        make_private(self._path.parent, exist_ok=True)
        self._file: TextIO = open_private(self._path)
        about = os.fstat(self._file.fileno())
        self._identity, self._size = (about.st_dev, about.st_ino), about.st_size

    def _rotate(self) -> None:
        self._file.close()
        if self._backups:
            for number in range(self._backups - 1, 0, -1):
                if self._numbered(number).exists():
                    self._numbered(number).replace(self._numbered(number + 1))
            self._path.replace(self._numbered(1))
        else:
            self._path.unlink(missing_ok=True)
        self._open()

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")
