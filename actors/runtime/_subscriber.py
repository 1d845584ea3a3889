"""Subscribers: functions of the host program, each on its own thread."""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING

from callboard.config import HostLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.actors.runtime._stream import EventFeed
    from callboard.messages import Event

_log = HostLog()
_numbers = itertools.count(1)


class Subscriber:
    """A thread that calls a function with each event of a feed.

    It starts at once and ends with the feed. An exception of the function is logged, and the next event follows.
    """

    def __init__(self, feed: EventFeed, callback: Callable[[Event], None]) -> None:
        self.feed = feed
        self._callback = callback
        self._thread = threading.Thread(target=self._main, name=f"callboard-subscriber-{next(_numbers)}", daemon=True)
        self._thread.start()

    @property
    def name(self) -> str:
        """The thread's name."""
        return self._thread.name

    def _main(self) -> None:
        for event in self.feed:
            try:
                self._callback(event)
            except BaseException:  # an edge: code of the host program; a SystemExit must not end this thread
                _log.exception("a subscriber failed on event %s, %s", event.seq, event.name.value)

    def join(self, timeout: float) -> bool:
        """Wait for the end of the feed.

        Returns whether it ended in time; True at once on the subscriber's own thread.
        """
        if self._thread is threading.current_thread():
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()
