"""A program in a pseudo-terminal."""

from __future__ import annotations

import os
import pty
import sys
import termios
from pathlib import Path

from forks import Program
from support import PATIENCE


class Terminal:
    """A Python program in a terminal of its own: read to a prompt, type, read to the end."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._screen, side = pty.openpty()
        termios.tcsetwinsize(side, (40, 100))
        command = [sys.executable, *arguments]
        environment = {key: value for key, value in os.environ.items() if key not in {"COLUMNS", "LINES", "NO_COLOR"}}
        self._process = Program(
            command,
            cwd=folder,
            stdin=side,
            stdout=side,
            stderr=side,
            env={**environment, "TERM": "xterm"},
            start_new_session=True,  # the terminal controls it, so that Ctrl-C is one
        )
        os.close(side)
        self.shown = ""
        self._read_to = 0

    def until(self, text: str) -> None:
        """Read until a text is shown, after the text of the last call."""
        while text not in self.shown[self._read_to :]:
            part = self._read()
            assert part, f"{text!r} was not shown:\n{self.shown}"
            self.shown += part
        self._read_to = self.shown.index(text, self._read_to) + len(text)

    def type(self, text: str) -> None:
        """Type something."""
        os.write(self._screen, text.encode())

    def end(self) -> int:
        """Read to the end, and give the exit code."""
        while part := self._read():
            self.shown += part
        os.close(self._screen)
        return self._process.wait(PATIENCE)

    def close(self) -> None:
        """End the program, if a test did not come to its end."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(PATIENCE)

    def _read(self) -> str:
        try:
            return os.read(self._screen, 65_536).decode("utf-8", "replace")
        except OSError:  # the other side is closed
            return ""
