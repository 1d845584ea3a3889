"""The agents of the root, by address: start, messages, memory and stop."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from callboard.actors.agent import Agent, tell_if_alive
from callboard.messages import Assign, EventName, TaskForgotten, agent_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pykka

    from callboard.actors.agent import AgentContext, Continue, Inbox
    from callboard.actors.root._dispatch import Dispatch


@dataclass(frozen=True)
class Deliver:
    """A message for an agent that is being restarted."""

    address: str
    message: Inbox


class Children:
    """The agents of one supervisor, by address. Runs on the root's thread.

    An agent that resumes a run of a dead one is `expected` while the journal reads the run's history. Its messages wait
    until then.
    """

    def __init__(self, context: AgentContext, post: Callable[[Deliver], None]) -> None:
        self._context = context
        self._post = post
        self._refs: dict[str, pykka.ActorRef[Agent]] = {}
        self._held_messages: dict[str, list[Inbox]] = {}
        self._memories: dict[str, set[str]] = {}
        """The tasks or conversations that each agent remembers, by its address."""
        self._holders: dict[str, set[str]] = {}
        """The inverse: the addresses of the agents that remember a task or conversation."""

    def register(self, dispatch: Dispatch) -> None:
        """Add the handlers of this part's messages."""
        dispatch.on(Deliver, self.deliver)

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses of the running agents."""
        return tuple(self._refs)

    def lives(self, address: str) -> bool:
        """Return whether an agent runs at an address."""
        return address in self._refs

    def learn(self, address: str, memory: str) -> None:
        """Note that the agent of an address remembers a task or conversation.

        It does from its first work on, until it stops or dies.
        """
        self._memories.setdefault(address, set()).add(memory)
        self._holders.setdefault(memory, set()).add(address)

    def knows(self, address: str, memory: str) -> bool:
        """Return whether the agent of an address remembers a task or conversation."""
        return address in self._refs and memory in self._memories.get(address, ())

    def forget(self, memory: str) -> None:
        """Make all agents forget a task or conversation that is over."""
        for address in self._holders.pop(memory, ()):
            self._memories[address].discard(memory)
            self.tell_if_alive(address, TaskForgotten(task_id=memory))

    def is_there(self, address: str, urn: str) -> bool:
        """Return whether an address has the actor with this URN."""
        ref = self._refs.get(address)
        return ref is not None and ref.actor_urn == urn

    def start(self, address: str) -> None:
        """Start the agent of an address, unless it runs.

        Raises:
            ValueError: If the address names an unknown kind of agent.
        """
        if address not in self._refs:
            self._refs[address] = self._class_of(agent_kind(address)).start(address, self._context)
            self._context.stream.emit(EventName.AGENT_STARTED, agent=address)

    def _class_of(self, kind: str) -> type[Agent]:
        """Return the class registered with the kind's state machine, or `Agent`."""
        if kind not in self._context.agents:
            msg = f"there is no kind of agent {kind!r}"
            raise ValueError(msg)
        try:
            registered: type[Agent] = self._context.agents[kind].machine.agent_class()
        except LookupError:
            return Agent
        return registered

    def expect(self, address: str) -> None:
        """Hold messages for an address until its agent has its history."""
        self._held_messages.setdefault(address, [])

    def start_with(self, address: str, first: Continue) -> None:
        """Give an expected agent its history, then the messages held for it.

        The agent is started, unless it runs.
        """
        self.start(address)
        for message in (first, *_unread(first, self._held_messages.pop(address, ()))):
            tell_if_alive(self._refs[address], message)

    def sender(self, address: str, message: Inbox) -> Callable[[], None]:
        """Return a function that sends an address a message, from any thread.

        Without an agent at the address it does nothing: an agent that starts there later reads the message in the
        journal.
        """
        ref = self._refs.get(address)
        if address in self._held_messages:
            return lambda: self._post(Deliver(address, message))
        if ref is not None:
            return partial(tell_if_alive, ref, message)
        return lambda: None

    def deliver(self, deliver: Deliver) -> None:
        """Deliver a message that was sent while its agent was expected."""
        if deliver.address in self._held_messages:
            self._held_messages[deliver.address].append(deliver.message)
        elif deliver.address in self._refs:
            tell_if_alive(self._refs[deliver.address], deliver.message)

    def tell_if_alive(self, address: str, message: Inbox) -> None:
        """Send a message that no journal keeps, if the agent runs."""
        ref = self._refs.get(address)
        if ref is not None:
            tell_if_alive(ref, message)

    def remove(self, address: str) -> None:
        """Forget an agent that died, or end one that lost a result."""
        ref = self._refs.pop(address, None)
        if ref is not None:
            ref.stop(block=False)
        self._held_messages.pop(address, None)
        self._lose_memory(address)

    def stop(self, address: str) -> None:
        """Stop an agent, once it has handled the messages in its mailbox."""
        ref = self._refs.pop(address, None)
        self._lose_memory(address)
        if ref is not None:
            ref.stop(block=False)
            self._context.stream.emit(EventName.AGENT_STOPPED, agent=address)

    def _lose_memory(self, address: str) -> None:
        for memory in self._memories.pop(address, ()):
            self._holders[memory].discard(address)
            if not self._holders[memory]:
                del self._holders[memory]

    def stop_all(self) -> list[pykka.Future[Any]]:
        """Stop all agents, and return a future for the end of each."""
        refs, self._refs = self._refs, {}
        return [ref.stop(block=False) for ref in refs.values()]


def _unread(first: Continue, came: Iterable[Inbox]) -> Iterator[Inbox]:
    """Yield the held messages that are not in the history yet."""
    # Rows with a job are the agent's own; all others since the assignment came as messages. Each of them stands for one
    # held message: the journal may have been read before or after that was sent.
    start_marks = [isinstance(row.message, Assign) and row.message.token == first.assign.token for row in first.history]
    since = first.history[start_marks.index(True) :] if True in start_marks else ()
    read = [row.message for row in since if not row.job]
    for message in came:
        if message in read:
            read.remove(message)
        else:
            yield message
