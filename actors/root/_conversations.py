"""Conversations and idle agents: limits, and clean-up after the last task."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from callboard.actors.commands import SurfaceLifecycle
    from callboard.actors.root._agents import Children
    from callboard.actors.root._dispatch import Dispatch
    from callboard.actors.root._tasks import TaskBook, TaskRecord
    from callboard.actors.runtime import Clock
    from callboard.surfaces import Server


@dataclass(frozen=True)
class ConversationRests:
    """A conversation with open targets may have no unfinished task."""

    session: str


@dataclass(frozen=True)
class CloseOpened:
    """The targets opened for a conversation are due to be closed."""

    surface: Server
    session: str


class Sessions:
    """The latest conversations, whose HostAgents are kept for follow-ups.

    Their other agents keep their memory, too. Runs on the root's thread.
    """

    def __init__(
        self, tasks: TaskBook, children: Children, limit: int, forget: Callable[[Iterable[str]], None]
    ) -> None:
        """Create it.

        Args:
            tasks: All tasks.
            children: All agents.
            limit: The number of idle conversations that are kept.
            forget: Takes the ids of tasks whose conversation is dropped.
        """
        self._tasks = tasks
        self._children = children
        self._limit = limit
        self._forget = forget
        self._kept_sessions: dict[str, None] = {}  # the oldest first
        self._ended_tasks: dict[str, list[str]] = {}  # the ids of ended tasks, by conversation

    def has(self, session: str) -> bool:
        """Return whether a conversation can be continued without the journal."""
        running = (record.session for record in self._tasks.records if record.target is None)
        return session in self._kept_sessions or session in running

    def keep(self, record: TaskRecord) -> None:
        """Keep the HostAgent of a task that ended, if it runs.

        Above the limit, the HostAgents idle for longest are stopped, and their conversations are forgotten.
        """
        self._ended_tasks.setdefault(record.session, []).append(record.task.id)
        if not self._children.lives(record.host):
            if not self.has(record.session):
                self._drop(record.session)
            return
        self._kept_sessions.pop(record.session, None)
        self._kept_sessions[record.session] = None
        idle = len(self._kept_sessions) - len(self._tasks.talking & self._kept_sessions.keys())
        spare = (session for session in self._kept_sessions if not self._tasks.talks(session))
        for session in tuple(itertools.islice(spare, max(0, idle - self._limit))):
            del self._kept_sessions[session]
            self._children.stop(f"host/{session}")
            self._drop(session)

    def _drop(self, session: str) -> None:
        """Forget a conversation; only a journal file can continue it afterwards."""
        self._children.forget(session)
        self._forget(self._ended_tasks.pop(session, ()))


class Idle:
    """The idle agents of recently used targets, up to a limit.

    Runs on the root's thread.
    """

    def __init__(self, tasks: TaskBook, children: Children, limit: int) -> None:
        self._tasks = tasks
        self._children = children
        self._limit = limit
        self._idle_agents: dict[str, None] = {}  # in the order of their last tasks' ends; some may work again

    def rest(self, address: str) -> None:
        """Note that an agent's task is over.

        Above the limit, the agents idle for longest are stopped, but no agent of a running task.
        """
        self._idle_agents.pop(address, None)
        self._idle_agents[address] = None
        if len(self._idle_agents) <= self._limit:
            return
        needed = {agent for record in self._tasks.records for agent in record.agents}
        spare = [agent for agent in self._idle_agents if agent not in needed]
        for agent in spare[: max(0, len(spare) - self._limit)]:
            del self._idle_agents[agent]
            self._children.stop(agent)


class Closing:
    """Clean-up after conversations: surfaces close the targets they opened.

    Runs on the root's thread.
    """

    def __init__(
        self, surface_lifecycle: SurfaceLifecycle, tasks: TaskBook, clock: Clock, post: Callable[[object], None]
    ) -> None:
        self._surface_lifecycle = surface_lifecycle
        self._tasks = tasks
        self._clock = clock
        self._post = post

    def register(self, dispatch: Dispatch) -> None:
        """Add the handlers of this part's messages."""
        dispatch.on(ConversationRests, lambda message: self.rest(message.session))
        dispatch.on(CloseOpened, self.due)

    def restored(self) -> None:
        """Ask the surfaces for targets that an earlier process left open.

        It runs after the restore, so that conversations with a resumed task keep theirs.
        """
        for surface in self._surface_lifecycle.closing:
            self._surface_lifecycle.tell_owners(surface, lambda session: self._post(ConversationRests(session)))

    def rest(self, session: str) -> None:
        """Schedule the clean-up of a conversation, if none of its tasks runs."""
        if self._tasks.talks(session):
            return
        for surface in self._surface_lifecycle.closing:
            assert surface.closes_after is not None  # noqa: S101 - for the type checker
            self._clock.after(surface.closes_after, functools.partial(self._post, CloseOpened(surface, session)))

    def due(self, close: CloseOpened) -> None:
        """Clean up after a conversation, unless a follow-up has begun."""
        if not self._tasks.talks(close.session):
            self._surface_lifecycle.close_for(close.surface, close.session)
