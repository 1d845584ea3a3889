"""A writer: one place that the log goes to, and the thread that waits for it."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_Said = TypeVar("_Said")
_Line_contra = TypeVar("_Line_contra", contravariant=True)
_Any = TypeVar("_Any")

WAITING = 100_000
"""Lines that wait for one place; past that new ones are lost."""

GATHER_SECONDS = 0.005
"""How long an idle thread lets lines gather once the first has come: waking for each of them costs more than they."""


class Place(Protocol[_Line_contra]):
    """Where lines go; each of its methods may block, and raise."""

    def write(self, line: _Line_contra, /) -> object:
        """Take a line."""

    def flush(self) -> None:
        """Hand on what was taken."""

    def close(self) -> None:
        """Close it."""


class Writer(Generic[_Said]):
    """Writes events to one place, in order, on a daemon thread of its own: a place that takes none delays nobody."""

    def __init__(self, name: str, out: Place[_Any], line: Callable[[_Said], _Any], *, own: bool) -> None:
        """Start.

        Args:
            name: The thread's name.
            out: The place; writing to it may block, and raise.
            line: Renders one event, with the end of its line; may raise. What it gives is what the place takes.
            own: Whether to close the place at the end; the thread does, since a write that is stuck holds its lock.
        """
        self._out = out
        self._line = line
        self._own = own
        self._events: queue.SimpleQueue[_Said | None] = queue.SimpleQueue()
        """The events that wait; None only wakes the thread."""
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
        if self._events.qsize() < WAITING:
            self._events.put(event)
        else:
            self._lose(1)

    def finish(self) -> None:
        """Take no more, and end once all is written."""
        self._finishing = True
        self._events.put(None)

    def join(self, timeout: float) -> bool:
        """Wait for the end; past the timeout what still waits is lost.

        Returns:
            Whether the thread has ended, with every event written and the file closed without an error.
        """
        if threading.current_thread() is not self._thread:  # a handler of the host program's may stop us
            self._thread.join(max(0.0, timeout))
        with contextlib.suppress(queue.Empty):
            while True:
                self._lose(self._events.get_nowait() is not None)
        self._events.put(None)  # the one of `finish` may have been taken out right now
        return not self._thread.is_alive() and self._closed and not self.lost

    def _main(self) -> None:
        while not (self._finishing and self._events.empty()):
            first = self._events.get()
            if first is not None:
                if not self._finishing:
                    time.sleep(GATHER_SECONDS)
                self._write_all(first)
        if self._own:
            self._closed = _close(self._out)

    def _write_all(self, first: _Said) -> None:
        """Write an event and all that wait behind it, and flush once."""
        event: _Said | None = first
        unflushed = 0
        while event is not None:
            try:
                self._out.write(self._line(event))
                unflushed += 1
            except Exception:  # noqa: BLE001 - an edge: what a stream raises, or can't be rendered, costs one line
                self._lose(1)
            event = None if self._events.empty() else self._events.get()
        try:
            self._out.flush()
        except Exception:  # noqa: BLE001 - an edge: the disk is full, or the stream is closed
            self._lose(unflushed)

    def _lose(self, lines: int) -> None:
        with self._lock:
            self.lost += lines


def _close(file: Place[_Any]) -> bool:
    try:
        file.close()
    except OSError:
        return False
    return True
