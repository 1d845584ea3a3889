"""What is typed at the terminal."""

from __future__ import annotations

import contextlib
import queue
import sys
import threading


class Keyboard:
    """Reads lines on a thread of its own, so that Ctrl-C, deadlines and answers of others get through meanwhile."""

    def __init__(self) -> None:
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._ended = threading.Event()
        threading.Thread(target=self._main, name="callboard-keyboard", daemon=True).start()

    def _main(self) -> None:
        with contextlib.suppress(OSError):  # the terminal is gone: that is the end of the input
            for line in sys.stdin:
                self._lines.put(line)
        self._ended.set()

    def line(self) -> str | None:
        """Give the next line with its line break, None while there is none.

        After the end of the input (Ctrl-D) it is the empty text for ever: nobody can type any more.
        """
        ended = self._ended.is_set()  # asked first: the last line may come between the two
        try:
            return self._lines.get_nowait()
        except queue.Empty:
            return "" if ended else None

    def drop(self) -> None:
        """Forget the lines that were typed before anything was asked; the end of the input stays."""
        while not self._lines.empty():
            self._lines.get()
