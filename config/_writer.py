"""A writer: one place that the log goes to, and the thread that waits for it."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_Said = TypeVar("_Said")
_Line = TypeVar("_Line")
_Line_contra = TypeVar("_Line_contra", contravariant=True)

WAITING = 100_000
"""Lines that wait for one place; past that new ones are lost."""

GATHER_SECONDS = 0.005
"""How long an idle thread lets lines gather once the first has come: waking for each of them costs more than they."""


AT_ONCE = 100
"""So many lines are handed at once to a place that takes several."""


class Place(Protocol[_Line_contra]):
    """Where lines go; each of its methods may block, and raise."""

    def write(self, lines: Sequence[_Line_contra], /) -> int:
        """Take lines, from the first on. Returns how many it took: at least one."""
        ...

    def flush(self) -> None:
        """Hand on what was taken."""

    def close(self) -> None:
        """Close it."""


class Writer(Generic[_Said, _Line]):
    """Writes events to one place, in order, on a daemon thread of its own: a place that takes none delays nobody."""

    def __init__(
        self, name: str, out: Place[_Line], line: Callable[[_Said], _Line], *, own: bool, at_once: int = 1
    ) -> None:
        """Start.

        Args:
            name: The thread's name.
            out: The place; writing to it may block, and raise.
            line: Renders one event; may raise. What it gives is what the place takes.
            own: Whether to close the place at the end; the thread does, since a write that is stuck holds its lock.
            at_once: How many lines the place gets at once; what it does not take from a write that fails is lost.
        """
        self._out = out
        self._line = line
        self._own = own
        self._at_once = at_once
        self.events: queue.SimpleQueue[_Said | None] = queue.SimpleQueue()
        """The events that wait; None only wakes the thread."""
        self.bound = WAITING
        """How many may wait."""
        self._lock = threading.Lock()
        self._finishing = False
        self._closed = not own
        self.lost = 0
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._thread.start()

    def put(self, event: _Said) -> None:
        """Queue an event; never blocks. After `finish` it is dropped, and when too many wait it is lost."""
        if self._finishing:
            return
        if self.events.qsize() < self.bound:
            self.events.put(event)
        else:
            self.lose(1)

    def finish(self) -> None:
        """Take no more, and end once all is written."""
        self._finishing = True
        self.events.put(None)

    def join(self, timeout: float) -> bool:
        """Wait for the end; past the timeout what still waits is lost.

        Returns:
            Whether the thread has ended, with every event written and the file closed without an error.
        """
        if threading.current_thread() is not self._thread:  # a handler of the host program's may stop us
            self._thread.join(max(0.0, timeout))
        with contextlib.suppress(queue.Empty):
            while True:
                self.lose(self.events.get_nowait() is not None)
        self.events.put(None)  # the one of `finish` may have been taken out right now
        return not self._thread.is_alive() and self._closed and not self.lost

    def _main(self) -> None:
        while not (self._finishing and self.events.empty()):
            first = self.events.get()
            if first is not None:
                if not self._finishing:
                    time.sleep(GATHER_SECONDS)
                self._write_all(first)
        if self._own:
            self._closed = _close(self._out)

    def _write_all(self, first: _Said) -> None:
        """Write an event and all that wait behind it, and flush once."""
        event: _Said | None = first
        lines: list[_Line] = []
        unflushed = 0
        while event is not None:
            try:
                lines.append(self._line(event))
            except Exception:  # an edge: what can't be rendered costs one line
                self.lose(1)
            if len(lines) == self._at_once or self.events.empty():
                unflushed += self._write(lines)
            event = None if self.events.empty() else self.events.get()
        if lines:  # the last event could not be rendered, or was none
            unflushed += self._write(lines)
        try:
            self._out.flush()
        except Exception:  # an edge: the disk is full, or the stream is closed
            self.lose(unflushed)

    def _write(self, lines: list[_Line]) -> int:
        """Write lines, and empty the list. Returns how many the place took."""
        written = 0
        try:
            while lines:
                taken = self._out.write(lines)
                del lines[:taken]
                written += taken
        except Exception:  # an edge: what a stream or a file raises costs the lines that it did not take
            self.lose(len(lines))
            lines.clear()
        return written

    def lose(self, lines: int) -> None:
        """Count lines that are not written."""
        with self._lock:
            self.lost += lines


def _close(file: Place[_Line]) -> bool:
    try:
        file.close()
    except OSError:
        return False
    return True
