"""Which threads are ours: a blocking call of the facade must not wait on one of them."""

from __future__ import annotations

import threading

from callboard.messages import WouldDeadlockError


class _Here(threading.local):
    ours = False


_here = _Here()


def mark_own_thread() -> None:
    """Note that this thread does the system's work."""
    _here.ours = True


def refuse_own_thread(what: str) -> None:
    """Refuse a blocking call on a thread whose work the answer may need.

    Raises:
        WouldDeadlockError: If this thread is one of ours.
    """
    if _here.ours:
        msg = f"{what} blocks, and was called from {threading.current_thread().name}, whose work its answer needs"
        raise WouldDeadlockError(msg)
