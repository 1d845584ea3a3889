"""The writer's inbox: who puts something into it is answered, also at the end and after it."""

from __future__ import annotations

import queue
from typing import TYPE_CHECKING, Any

import pykka

if TYPE_CHECKING:
    from collections.abc import Callable

    from pykka._envelope import Envelope


class Inbox(queue.SimpleQueue["Envelope[Any]"]):
    """An actor's queue without the locks that Pykka's own has; it is the busiest one of all. Thread-safe.

    Pykka drops what was told behind a stop; this one refuses it, and what comes later still.
    """

    def __init__(self, refuse: Callable[[object], None]) -> None:
        """Make it; `refuse` answers a message that nobody handles any more, on whatever thread sees it."""
        super().__init__()
        self._refuse = refuse
        self._ended = False

    def put(self, item: Envelope[Any], block: bool = True, timeout: float | None = None) -> None:  # noqa: FBT001, FBT002 - the interface
        """Queue a message. Who tells calls `refuse_late` once it holds no lock, since others' words may go there."""
        super().put(item, block, timeout)
        if item.reply_to is not None:
            self.refuse_late()

    def end(self) -> None:
        """Refuse what waits, and from now on whatever comes."""
        self._ended = True
        self.refuse_late()

    def refuse_late(self) -> None:
        """Answer what came too late for the actor; nothing, before its end."""
        while self._ended:
            try:
                envelope = self.get_nowait()
            except queue.Empty:
                return
            if envelope.reply_to is None:
                self._refuse(envelope.message)
            elif isinstance(envelope.message, pykka.messages._ActorStop):  # noqa: SLF001 - it is stopped already
                envelope.reply_to.set(None)
            else:
                error = pykka.ActorDeadError("the journal is closed")
                envelope.reply_to.set_exception((type(error), error, None))
