"""A writer: one place that the log goes to, and the thread that waits for it."""

from __future__ import annotations

import collections
import threading
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
        self._events: collections.deque[_Said] = collections.deque()
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._finishing = False
        self._idle = False
        self._unflushed = 0
        self._closed = not own
        self.lost = 0
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._thread.start()

    def put(self, event: _Said) -> None:
        """Queue an event; never blocks. After `finish` it is dropped, and when too many wait it is lost."""
        with self._lock:
            if self._finishing:
                return
            if len(self._events) >= WAITING:
                self.lost += 1
                return
            self._events.append(event)
            if self._idle:
                self._idle = False
                self._changed.notify()

    def finish(self) -> None:
        """Take no more, and end once all is written."""
        with self._changed:
            self._finishing = True
            self._changed.notify()

    def join(self, timeout: float) -> bool:
        """Wait for the end; past the timeout what still waits is lost.

        Returns:
            Whether the thread has ended, with every event written and the file closed without an error.
        """
        if threading.current_thread() is not self._thread:  # a handler of the host program's may stop us
            self._thread.join(max(0.0, timeout))
        with self._changed:
            self.lost += len(self._events)
            self._events.clear()
            return not self._thread.is_alive() and self._closed and not self.lost

    def _main(self) -> None:
        while (event := self._events.popleft() if self._events else self._next()) is not None:
            try:
                self._out.write(self._line(event))
                self._unflushed += 1
            except Exception:  # noqa: BLE001 - an edge: what a stream raises, or can't be rendered, costs one line
                self._lose(1)
            if not self._events:
                self._flush()
        if self._own:
            self._closed = _close(self._out)

    def _flush(self) -> None:
        unflushed, self._unflushed = self._unflushed, 0
        try:
            self._out.flush()
        except Exception:  # noqa: BLE001 - an edge: the disk is full, or the stream is closed
            self._lose(unflushed)

    def _lose(self, lines: int) -> None:
        with self._changed:
            self.lost += lines

    def _next(self) -> _Said | None:
        with self._lock:
            if not self._events and not self._finishing:
                self._idle = True
                self._changed.wait_for(lambda: self._events or self._finishing)
                self._changed.wait_for(lambda: self._finishing, GATHER_SECONDS)
            return self._events.popleft() if self._events else None


def _close(file: Place[_Any]) -> bool:
    try:
        file.close()
    except OSError:
        return False
    return True
