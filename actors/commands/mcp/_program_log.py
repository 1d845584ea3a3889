"""Log the output and the exit code of an MCP program.

The output is its standard error, and stray lines of its standard output.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

LONGEST_LINE = 1_000
"""The most bytes of a line that are logged; the rest is cut."""
LINES_A_SECOND = 20
"""The most lines logged within a second; further ones are only counted."""
_KEPT = 5
_CHUNK = 65_536


class ProgramLog:
    """The output of one run of a program.

    Runs on the event loop.
    """

    def __init__(self, tell: Callable[[str, int], None]) -> None:
        """Create it.

        `tell` receives each line of standard error, and the number of lines dropped before it.
        """
        self._tell = tell
        self._line = bytearray()
        self._second = -1.0
        self._count = 0
        self._dropped = 0
        self.last: deque[str] = deque(maxlen=_KEPT)
        """The last lines of standard error."""
        self.stray = ""
        """The first line of standard output that is not a message of the protocol."""
        self.too_long = False
        """Whether it wrote a line to standard output that exceeds the limit."""
        self.exit_code: int | None = None
        """The exit code, negative for a signal; None if the program did not end by itself."""

    async def read(self, stream: asyncio.StreamReader) -> None:
        """Read standard error to its end.

        The program then never blocks on a full pipe.
        """
        while chunk := await stream.read(_CHUNK):
            *lines, remainder = chunk.split(b"\n")
            for line in lines:
                self._add(line)
                self._end_line()
            self._add(remainder)
        self._end_line()
        if self._dropped:
            self._tell("", self._dropped)

    def strayed(self, line: bytes) -> None:
        """Record a line of standard output that is not a message."""
        if not self.stray:
            self.stray = _text_of(line)

    def _add(self, part: bytes) -> None:
        self._line += part[: LONGEST_LINE + 1 - len(self._line)]

    def _end_line(self) -> None:
        text = _text_of(bytes(self._line))
        self._line.clear()
        if not text:
            return
        self.last.append(text)
        now = time.monotonic()
        if now - self._second >= 1:
            self._second, self._count = now, 0
        if self._count >= LINES_A_SECOND:
            self._dropped += 1
            return
        self._count += 1
        dropped, self._dropped = self._dropped, 0
        self._tell(text, dropped)


def _text_of(line: bytes) -> str:
    text = line[:LONGEST_LINE].decode(errors="replace").rstrip()
    return f"{text}…" if len(line) > LONGEST_LINE else text
