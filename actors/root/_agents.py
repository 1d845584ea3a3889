"""Agents: which lives where, which are kept while idle, and what is closed after a conversation."""

from __future__ import annotations

import functools
import itertools
from functools import partial
from typing import TYPE_CHECKING, Any

from callboard.actors.agent import Agent, tell_if_alive
from callboard.actors.root._requests import CloseOpened, ConversationRests, Deliver
from callboard.messages import Assign, EventName, TaskForgotten, agent_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pykka

    from callboard.actors.agent import AgentContext, Continue, Inbox
    from callboard.actors.commands import ServerLife
    from callboard.actors.root._tasks import TaskBook, TaskRecord
    from callboard.actors.runtime import Clock


class Children:
    """The agents of one supervisor. Part of the switchboard; runs on its thread.

    An agent that is to go on with what another one had begun is `expected` while the history of that is read; what
    comes for it meanwhile waits.
    """

    def __init__(self, context: AgentContext, post: Callable[[Deliver], None]) -> None:
        self._context = context
        self._post = post
        self._refs: dict[str, pykka.ActorRef[Agent]] = {}
        self._expected: dict[str, list[Inbox]] = {}
        self._known: dict[str, set[str]] = {}
        """What each agent has memory of: tasks, or conversations."""
        self._holders: dict[str, set[str]] = {}
        """The same the other way round: the addresses by what is remembered there."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where agents live now."""
        return tuple(self._refs)

    def lives(self, address: str) -> bool:
        """Say whether an agent lives at an address."""
        return address in self._refs

    def learn(self, address: str, memory: str) -> None:
        """Note that an address gets work, and so has memory of a task or conversation, as long as its agent lives."""
        self._known.setdefault(address, set()).add(memory)
        self._holders.setdefault(memory, set()).add(address)

    def knows(self, address: str, memory: str) -> bool:
        """Say whether the agent of an address has memory of a task or conversation."""
        return address in self._refs and memory in self._known.get(address, ())

    def forget(self, memory: str) -> None:
        """Have all agents drop their memory of a task or conversation that is over."""
        for address in self._holders.pop(memory, ()):
            self._known[address].discard(memory)
            self.tell_if_alive(address, TaskForgotten(task_id=memory))

    def is_there(self, address: str, urn: str) -> bool:
        """Say whether a certain actor is the agent of an address."""
        ref = self._refs.get(address)
        return ref is not None and ref.actor_urn == urn

    def start(self, address: str) -> None:
        """Start the agent of an address, unless it lives.

        Raises:
            ValueError: If there is no such kind of agent.
        """
        if address not in self._refs:
            self._refs[address] = self._class_of(agent_kind(address)).start(address, self._context)
            self._context.stream.emit(EventName.AGENT_STARTED, agent=address)

    def _class_of(self, kind: str) -> type[Agent]:
        """Give the class of a kind's agents: that of its machine, or the plain one."""
        if kind not in self._context.agents:
            msg = f"there is no kind of agent {kind!r}"
            raise ValueError(msg)
        try:
            registered: type[Agent] = self._context.agents[kind].machine.agent_class()
        except LookupError:
            return Agent
        return registered

    def expect(self, address: str) -> None:
        """Keep what comes for an address until its agent has a history."""
        self._expected.setdefault(address, [])

    def start_with(self, address: str, first: Continue) -> None:
        """Give the agent that was expected its history, and what came meanwhile; it is started unless it lives."""
        self.start(address)
        for message in (first, *_unread(first, self._expected.pop(address, ()))):
            tell_if_alive(self._refs[address], message)

    def sender(self, address: str, message: Inbox) -> Callable[[], None]:
        """Give a function that tells an address, from any thread. Where nobody is nothing is told.

        Who is started there later learns it from the journal.
        """
        ref = self._refs.get(address)
        if address in self._expected:
            return lambda: self._post(Deliver(address, message))
        if ref is not None:
            return partial(tell_if_alive, ref, message)
        return lambda: None

    def deliver(self, deliver: Deliver) -> None:
        """Tell an agent that was expected when the message was sent."""
        if deliver.address in self._expected:
            self._expected[deliver.address].append(deliver.message)
        elif deliver.address in self._refs:
            tell_if_alive(self._refs[deliver.address], deliver.message)

    def tell_if_alive(self, address: str, message: Inbox) -> None:
        """Send a message to an address where there is an agent; for what no journal has to keep."""
        ref = self._refs.get(address)
        if ref is not None:
            tell_if_alive(ref, message)

    def remove(self, address: str) -> None:
        """Forget an agent that died."""
        self._refs.pop(address, None)
        self._expected.pop(address, None)
        self._lose_memory(address)

    def stop(self, address: str) -> None:
        """Stop an agent; it handles what is in its inbox first."""
        ref = self._refs.pop(address, None)
        self._lose_memory(address)
        if ref is not None:
            ref.stop(block=False)
            self._context.stream.emit(EventName.AGENT_STOPPED, agent=address)

    def _lose_memory(self, address: str) -> None:
        for memory in self._known.pop(address, ()):
            self._holders[memory].discard(address)
            if not self._holders[memory]:
                del self._holders[memory]

    def stop_all(self) -> list[pykka.Future[Any]]:
        """Stop all agents. Returns what to wait for."""
        refs, self._refs = self._refs, {}
        return [ref.stop(block=False) for ref in refs.values()]


def _unread(first: Continue, came: Iterable[Inbox]) -> Iterator[Inbox]:
    """Give what came while a history was read and does not stand in it: nothing is heard twice."""
    begun = [isinstance(said.message, Assign) and said.message.token == first.assign.token for said in first.history]
    since = first.history[begun.index(True) :] if True in begun else ()
    read = [said.message for said in since if not said.job]
    for message in came:
        if message in read:
            read.remove(message)
        else:
            yield message


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

    def has(self, session: str) -> bool:
        """Say whether a conversation can be gone on with."""
        running = (record.session for record in self._tasks.records if record.target is None)
        return session in self._kept or session in running

    def keep(self, record: TaskRecord) -> None:
        """Keep the HostAgent of a task that ended, if it lives; past the limit the one idle for longest is stopped."""
        self._ended.setdefault(record.session, []).append(record.task.id)
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
        self._children.forget(session)
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
