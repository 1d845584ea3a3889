"""Pings, to wait until a program has handled all pressed keys.

The wait is necessary because keys and D-Bus calls reach a program on different ways.
"""

from __future__ import annotations

import itertools
import select
import threading
import time
from typing import TYPE_CHECKING

from Xlib import X, display, error
from Xlib.protocol import event, rq

from callboard.surfaces._tool_function import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable

_FIRST = 1 << 30
"""The first number of our pings: window managers use the time, or count from 0."""


class Pings:
    """Pings windows.

    A program answers a ping after it has handled all earlier keys: it gets both in one queue.

    Source: ``_NET_WM_PING`` of the Extended Window Manager Hints, version 1.5.

    Args:
        name: The display's name.
    """

    def __init__(self, name: str) -> None:
        self._display = display.Display(name)
        self._display.set_error_handler(lambda *_: None)  # of windows that are gone
        self._root = self._display.screen().root
        self._protocols = self._display.intern_atom("WM_PROTOCOLS")
        self._ping = self._display.intern_atom("_NET_WM_PING")
        self._numbers = itertools.count(_FIRST)
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._display.close()

    def answered(self, windows: Iterable[int], seconds: float) -> bool:
        """Ping the first window that supports it, and wait for the answer.

        Returns:
            False if no answer arrives in time, or no window supports pings.

        Raises:
            ToolError: If the display is gone.
        """
        with self._lock:
            try:
                window = next(filter(self._answers, windows), None)
                if window is None:
                    return False
                self._root.change_attributes(event_mask=X.SubstructureNotifyMask)  # answers are sent to the root window
                try:
                    return self._came(self._send(window), time.monotonic() + seconds)
                finally:
                    self._root.change_attributes(event_mask=X.NoEventMask)
                    self._display.sync()
            except (error.ConnectionClosedError, rq.BadDataError) as problem:
                msg = f"the display is gone: {problem}"
                raise ToolError(msg) from problem

    def _answers(self, window: int) -> bool:
        try:
            window_protocols = self._display.create_resource_object("window", window).get_full_property(
                self._protocols, X.AnyPropertyType
            )
        except (error.BadWindow, error.BadDrawable):
            return False
        return window_protocols is not None and self._ping in window_protocols.value

    def _send(self, window: int) -> int:
        number = next(self._numbers)
        target = self._display.create_resource_object("window", window)
        data = (32, [self._ping, number, window, 0, 0])
        target.send_event(event.ClientMessage(window=target, client_type=self._protocols, data=data))
        self._display.flush()
        return number

    def _came(self, number: int, end: float) -> bool:
        while (remaining_seconds := end - time.monotonic()) > 0:
            while self._display.pending_events():
                x_event = self._display.next_event()
                if (
                    x_event.type == X.ClientMessage
                    and x_event.client_type == self._protocols
                    and x_event.data[1][1] == number
                ):
                    return True
            select.select([self._display.fileno()], [], [], remaining_seconds)
        return False
