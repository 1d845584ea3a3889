"""Lines typed at the terminal, read without blocking."""

from __future__ import annotations

import contextlib
import queue
import sys
import threading

try:
    import termios
except ImportError:  # only Unix has it
    termios = None  # type: ignore[assignment]


class LineReader:
    """Reads lines on a thread of its own.

    Ctrl-C, deadlines and answers from elsewhere are handled meanwhile.
    """

    def __init__(self) -> None:
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._ended = threading.Event()
        threading.Thread(target=self._main, name="callboard-keyboard", daemon=True).start()

    def _main(self) -> None:
        with contextlib.suppress(OSError):  # the terminal is gone, which ends the input
            for line in sys.stdin:
                self._lines.put(line)
        self._ended.set()

    def line(self) -> str | None:
        """Return the next line with its line break.

        None while there is none. After the end of the input (Ctrl-D) it is always the empty text: no more input can
        come.
        """
        ended = self._ended.is_set()  # checked first: the last line may come between the two
        try:
            return self._lines.get_nowait()
        except queue.Empty:
            return "" if ended else None

    def drop(self) -> None:
        """Drop the input typed before a question.

        It drops whole lines, and a line without its Enter. The end of the input stays.
        """
        if termios is not None and sys.stdin.isatty():
            with contextlib.suppress(termios.error):  # the terminal is gone
                termios.tcflush(sys.stdin, termios.TCIFLUSH)
        while not self._lines.empty():
            self._lines.get()
