"""Children: who lives at which address."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from callboard.actors.agent import Agent, tell_if_alive
from callboard.actors.root._requests import Deliver
from callboard.messages import Assign, EventName, TaskForgotten, agent_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pykka

    from callboard.actors.agent import Backstage, Continue, Inbox


class Children:
    """The agents of one supervisor. Part of the switchboard; runs on its thread.

    An agent that is to go on with what another one had begun is `expected` while the history of that is read; what
    comes for it meanwhile waits.
    """

    def __init__(self, backstage: Backstage, post: Callable[[Deliver], None]) -> None:
        self._backstage = backstage
        self._post = post
        self._refs: dict[str, pykka.ActorRef[Agent]] = {}
        self._expected: dict[str, list[Inbox]] = {}
        self._known: dict[str, set[str]] = {}

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

    def knows(self, address: str, memory: str) -> bool:
        """Say whether the agent of an address has memory of a task or conversation."""
        return address in self._refs and memory in self._known.get(address, ())

    def forget(self, address: str, task_id: str) -> None:
        """Have the agent of an address, if there is one, drop its memory of a task that is over."""
        self._known.get(address, set()).discard(task_id)
        self.tell_if_alive(address, TaskForgotten(task_id=task_id))

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
            self._refs[address] = self._class_of(agent_kind(address)).start(address, self._backstage)
            self._backstage.stream.emit(EventName.AGENT_STARTED, agent=address)

    def _class_of(self, kind: str) -> type[Agent]:
        """Give the class of a kind's agents: that of its machine, or the plain one."""
        if kind not in self._backstage.agents:
            msg = f"there is no kind of agent {kind!r}"
            raise ValueError(msg)
        try:
            registered: type[Agent] = self._backstage.agents[kind].machine.agent_class()
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
        self._known.pop(address, None)

    def stop(self, address: str) -> None:
        """Stop an agent; it handles what is in its inbox first."""
        ref = self._refs.pop(address, None)
        self._known.pop(address, None)
        if ref is not None:
            ref.stop(block=False)
            self._backstage.stream.emit(EventName.AGENT_STOPPED, agent=address)

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
