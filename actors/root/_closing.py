"""Closing: what a conversation has opened is closed some time after its last task, unless it is gone on with."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from callboard.actors.root._requests import CloseOpened, ConversationRests

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.actors.commands import ServerLife
    from callboard.actors.root._tasks import TaskBook
    from callboard.actors.runtime import Clock


class Closing:
    """Has servers close what they have opened. Part of the switchboard; runs on its thread."""

    def __init__(self, life: ServerLife, tasks: TaskBook, clock: Clock, post: Callable[[object], None]) -> None:
        self._life = life
        self._tasks = tasks
        self._clock = clock
        self._post = post

    def restored(self) -> None:
        """Look what an earlier process has left open; the tasks that go on are on the books by now."""
        for server in self._life.closing:
            self._life.tell_owners(server, lambda session: self._post(ConversationRests(session)))

    def rest(self, session: str) -> None:
        """Have what a conversation has opened closed later, if none of its tasks runs."""
        if self._tasks.talks(session):
            return
        for server in self._life.closing:
            assert server.closes_after is not None  # noqa: S101 - for the type checker
            self._clock.after(server.closes_after, functools.partial(self._post, CloseOpened(server, session)))

    def due(self, close: CloseOpened) -> None:
        """Close it now, unless a follow-up has begun."""
        if not self._tasks.talks(close.session):
            self._life.close_for(close.server, close.session)
