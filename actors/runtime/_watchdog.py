"""The watchdog: notices that a thread on which nothing may block is held up, and tells with its stack by what."""

from __future__ import annotations

import sys
import threading
import time
import traceback
from typing import TYPE_CHECKING, Protocol

from callboard.actors.runtime._threads import mark_own_thread
from callboard.config import HostLog

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from callboard.actors.runtime._loop import EventLoop
    from callboard.messages import Seconds

_log = HostLog()

STACK_FRAMES = 40
"""The innermost frames of a stack that are told."""
STACK_CHARACTERS = 8000
"""The longest text of a stack; what is nearest to the innermost frame stays."""


def stack_of(thread: threading.Thread) -> str:
    """Give a thread's stack as a traceback shows it, innermost last; empty if the thread does not run.

    It holds places and source lines, no values.
    """
    frame = sys._current_frames().get(thread.ident or 0) if thread.is_alive() else None  # noqa: SLF001 - documented, and the only way
    if frame is None:
        return ""
    return "".join(traceback.format_stack(frame, STACK_FRAMES))[-STACK_CHARACTERS:]


class Watched(Protocol):
    """What says itself for how long it has been busy with one thing."""

    @property
    def thread(self) -> threading.Thread | None:
        """The thread that works; None where there is none, which is never busy."""
        ...

    @property
    def busy(self) -> Seconds:
        """For how long it has worked on one thing; 0 if it waits for the next."""
        ...


class Watchdog:
    """Asks the event loop for a sign, again and again, from a daemon thread of its own, and looks at other threads.

    All functions are called on that thread and must be short. Stop it before the loop: a loop that has ended gives
    no sign either, and is told of, with an empty stack.
    """

    def __init__(
        self,
        name: str,
        loop: EventLoop,
        hung_seconds: Seconds,
        *,
        on_blocked: Callable[[str, str, Seconds], None],
        on_free: Callable[[str], None],
        watched: Sequence[Watched] = (),
        on_tick: Callable[[], None] = lambda: None,
    ) -> None:
        """Make a watchdog.

        Args:
            name: Its thread's name.
            loop: What it watches.
            hung_seconds: How long the loop may take for a sign, and the others for one thing, in real time; they are
                looked at again after half of that.
            on_blocked: Called once for each blockage, with the name of the thread, its stack, and the seconds for
                which it has owed the sign, or been busy.
            on_free: Called with its name when it goes on after that.
            watched: What else to look at.
            on_tick: Called each time, whether the loop answers or not: for whatever else hangs.
        """
        self._loop = loop
        self._hung_seconds = hung_seconds
        self._on_blocked = on_blocked
        self._on_free = on_free
        self._on_tick = on_tick
        self._watched = watched
        self._blocked: set[int] = set()  # by place: those that were told of
        self._changed = threading.Condition()
        self._stopping = False
        self._answered = False
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, timeout: Seconds) -> bool:
        """Stop the thread, also while the loop is blocked. Returns whether it ended in time."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _main(self) -> None:
        mark_own_thread()
        while not self._stopping:
            asked = time.monotonic()
            self._answered = False
            self._loop.call(self._sign)
            self._look()
            if not self._sign_or_stop(self._hung_seconds):
                thread = self._loop.thread
                self._tell(self._on_blocked, thread.name, stack_of(thread), time.monotonic() - asked)
                while not self._sign_or_stop(self._hung_seconds):
                    self._look()
                if not self._stopping:
                    self._tell(self._on_free, thread.name)
            self._pause(self._hung_seconds / 2)

    def _look(self) -> None:
        self._tell(self._on_tick)
        for place, one in enumerate(self._watched):
            busy, thread = one.busy, one.thread
            if thread is None:
                continue
            if busy > self._hung_seconds and place not in self._blocked:
                self._blocked.add(place)
                self._tell(self._on_blocked, thread.name, stack_of(thread), busy)
            elif busy <= self._hung_seconds and place in self._blocked:
                self._blocked.discard(place)
                self._tell(self._on_free, thread.name)

    def _sign(self) -> None:
        """Answer; on the loop's thread."""
        with self._changed:
            self._answered = True
            self._changed.notify_all()

    def _sign_or_stop(self, timeout: Seconds | None) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._answered or self._stopping, timeout)

    def _pause(self, seconds: Seconds) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._stopping, seconds)

    def _tell(self, function: Callable[..., None], *facts: object) -> None:
        try:
            function(*facts)
        except BaseException:  # an edge: a report that fails must not end the watch
            _log.exception("a report of the watchdog failed")
