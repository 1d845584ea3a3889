"""Which agents are kept while they have nothing to do: HostAgents for follow-ups, the others for their target."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from callboard.actors.root._children import Children
    from callboard.actors.root._tasks import TaskBook, TaskRecord


class Sessions:
    """Keeps the HostAgents of the latest conversations, and what other agents remember of them.

    Part of the switchboard; runs on its thread.
    """

    def __init__(
        self, tasks: TaskBook, children: Children, limit: int, forget: Callable[[Iterable[str]], None]
    ) -> None:
        """Make it; `forget` gets the tasks that nobody can go on with any more."""
        self._tasks = tasks
        self._children = children
        self._limit = limit
        self._forget = forget
        self._kept: dict[str, None] = {}  # the oldest first
        self._ended: dict[str, list[str]] = {}  # the tasks of a conversation
        self._agents: dict[str, set[str]] = {}  # where they have had work done, but for the HostAgent

    def has(self, session: str) -> bool:
        """Say whether a conversation can be gone on with."""
        running = (record.session for record in self._tasks.records if record.target is None)
        return session in self._kept or session in running

    def keep(self, record: TaskRecord) -> None:
        """Keep the HostAgent of a task that ended, if it lives; past the limit the one idle for longest is stopped."""
        self._ended.setdefault(record.session, []).append(record.task.id)
        self._agents.setdefault(record.session, set()).update(record.agents - {record.host})
        if not self._children.lives(record.host):
            if not self.has(record.session):
                self._drop(record.session)
            return
        self._kept.pop(record.session, None)
        self._kept[record.session] = None
        idle = len(self._kept) - len(self._tasks.talking & self._kept.keys())
        spare = (session for session in self._kept if not self._tasks.talks(session))
        for session in tuple(itertools.islice(spare, max(0, idle - self._limit))):
            del self._kept[session]
            self._children.stop(f"host/{session}")
            self._drop(session)

    def _drop(self, session: str) -> None:
        """Forget a conversation that nobody can go on with any more, except from a journal's file."""
        for address in self._agents.pop(session, ()):
            self._children.forget(address, session)
        self._forget(self._ended.pop(session, ()))


class Idle:
    """Keeps the agents of targets that were used lately. Part of the switchboard; runs on its thread."""

    def __init__(self, tasks: TaskBook, children: Children, limit: int) -> None:
        self._tasks = tasks
        self._children = children
        self._limit = limit
        self._idle: dict[str, None] = {}  # the one idle for longest first

    def work(self, address: str) -> None:
        """Note that an agent has work."""
        self._idle.pop(address, None)

    def rest(self, address: str) -> None:
        """Note that its task is over. Past the limit the one idle for longest is stopped; none of a running task."""
        self._idle.pop(address, None)
        self._idle[address] = None
        if len(self._idle) <= self._limit:
            return
        needed = {agent for record in self._tasks.records for agent in record.agents}
        spare = [agent for agent in self._idle if agent not in needed]
        for agent in spare[: max(0, len(spare) - self._limit)]:
            del self._idle[agent]
            self._children.stop(agent)
