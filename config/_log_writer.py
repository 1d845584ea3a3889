"""A writer thread for one destination of the log."""

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
"""The most lines queued for one destination; past that new ones are dropped."""

GATHER_SECONDS = 0.005
"""Seconds that an idle thread waits after the first line, to write a batch: a wake-up costs more than a line."""


AT_ONCE = 100
"""The most lines in one batch."""


class LogDestination(Protocol[_Line_contra]):
    """A destination of lines; each of its methods may block or raise."""

    def write(self, lines: Sequence[_Line_contra], /) -> int:
        """Write lines in order. Returns the number written: at least one."""
        ...

    def flush(self) -> None:
        """Flush the written lines."""

    def close(self) -> None:
        """Close it."""


class LogWriter(Generic[_Said, _Line]):
    """Writes events to one destination, in order, on its own daemon thread.

    A blocked destination therefore delays no other thread.
    """

    def __init__(
        self, name: str, out: LogDestination[_Line], line: Callable[[_Said], _Line], *, closes: bool, at_once: int = 1
    ) -> None:
        """Start the thread.

        Args:
            name: The thread's name.
            out: The destination; its methods may block or raise.
            line: Renders one event as a line for the destination; may raise.
            closes: Whether to close the destination at the end. The thread closes it, since a blocked write holds its
                lock.
            at_once: The most lines in one write; if it fails, those not yet written are lost.
        """
        self._out = out
        self._line = line
        self._closes = closes
        self._at_once = at_once
        self._events: queue.SimpleQueue[_Said | None] = queue.SimpleQueue()
        """The queued events; None only wakes the thread."""
        self._lock = threading.Lock()
        self._finishing = False
        self._closed = not closes
        self.lost = 0
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._thread.start()

    def put(self, event: _Said) -> None:
        """Queue an event without blocking.

        Ignored after `finish`; past `WAITING` events it counts as lost.
        """
        if self._finishing:
            return
        if self._events.qsize() < WAITING:
            self._events.put(event)
        else:
            self._lose(1)

    def finish(self) -> None:
        """Accept no more events, and end once the queue is written."""
        self._finishing = True
        self._events.put(None)

    def join(self, timeout: float) -> bool:
        """Wait for the thread's end; past the timeout, queued events are lost.

        Returns:
            True if the thread has ended, every event was written, and the destination closed without an error.
        """
        if threading.current_thread() is not self._thread:  # a host program's handler may call this
            self._thread.join(max(0.0, timeout))
        with contextlib.suppress(queue.Empty):
            while True:
                self._lose(self._events.get_nowait() is not None)
        self._events.put(None)  # the loop above may have removed the None of `finish`
        return not self._thread.is_alive() and self._closed and not self.lost

    def _main(self) -> None:
        while not (self._finishing and self._events.empty()):
            first = self._events.get()
            if first is not None:
                if not self._finishing:
                    time.sleep(GATHER_SECONDS)
                self._write_all(first)
        if self._closes:
            self._closed = _close(self._out)

    def _write_all(self, first: _Said) -> None:
        """Write an event and all events queued behind it, then flush once.

        Lines are written when the batch is full or the queue is empty: under load, one write takes a full batch.
        """
        event: _Said | None = first
        lines: list[_Line] = []
        unflushed = 0
        while event is not None:
            try:
                lines.append(self._line(event))
            except Exception:  # an event that can't be rendered costs one line only
                self._lose(1)
            if len(lines) == self._at_once or self._events.empty():
                unflushed += self._write(lines)
            event = None if self._events.empty() else self._events.get()
        if lines:  # the last event could not be rendered, or was the None of `finish`
            unflushed += self._write(lines)
        try:
            self._out.flush()
        except Exception:  # I/O boundary: the disk is full, or the stream is closed
            self._lose(unflushed)

    def _write(self, lines: list[_Line]) -> int:
        """Write lines, and empty the list. Returns the number written."""
        written = 0
        try:
            while lines:
                line_count = self._out.write(lines)
                del lines[:line_count]
                written += line_count
        except Exception:  # I/O boundary: a failed write costs the lines not yet written
            self._lose(len(lines))
            lines.clear()
        return written

    def _lose(self, lines: int) -> None:
        """Count lines that were not written."""
        with self._lock:
            self.lost += lines


def _close(file: LogDestination[_Line]) -> bool:
    try:
        file.close()
    except OSError:
        return False
    return True
