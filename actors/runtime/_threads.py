"""The library's own threads, on which blocking public calls would deadlock."""

from __future__ import annotations

import threading

from callboard.messages import WouldDeadlockError


class _Here(threading.local):
    ours = False


_here = _Here()


def mark_own_thread() -> None:
    """Mark the current thread as one of the library's."""
    _here.ours = True


def refuse_own_thread(what: str) -> None:
    """Refuse a blocking call on one of the library's threads.

    The answer may depend on the work of that thread.

    Raises:
        WouldDeadlockError: If the current thread is one of the library's.
    """
    if _here.ours:
        msg = f"{what} blocks, but was called on {threading.current_thread().name}, whose work its answer depends on"
        raise WouldDeadlockError(msg)
