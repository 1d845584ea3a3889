"""Children: who lives at which address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from callboard.actors.agent import tell_if_alive
from callboard.actors.processing import MACHINES
from callboard.messages import EventName, agent_kind

if TYPE_CHECKING:
    import pykka

    from callboard.actors.agent import Agent, Backstage, Inbox


class Children:
    """The agents of one supervisor. Part of the switchboard; runs on its thread."""

    def __init__(self, backstage: Backstage) -> None:
        self._backstage = backstage
        self._refs: dict[str, pykka.ActorRef[Agent]] = {}

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where agents live now."""
        return tuple(self._refs)

    def tell(self, address: str, message: Inbox) -> None:
        """Send a message to an address; an agent that is not there yet is started."""
        ref = self._refs.get(address)
        if ref is None:
            agent: type[Agent] = MACHINES[agent_kind(address)].agent_class()
            ref = self._refs[address] = agent.start(address, self._backstage)
            self._backstage.stream.emit(EventName.AGENT_STARTED, agent=address)
        tell_if_alive(ref, message)

    def tell_if_alive(self, address: str, message: Inbox) -> None:
        """Send a message to an address where there is an agent."""
        ref = self._refs.get(address)
        if ref is not None:
            tell_if_alive(ref, message)

    def remove(self, address: str) -> None:
        """Forget an agent that died."""
        self._refs.pop(address, None)

    def stop(self, address: str) -> None:
        """Stop an agent; it handles what is in its inbox first."""
        ref = self._refs.pop(address, None)
        if ref is not None:
            ref.stop(block=False)
            self._backstage.stream.emit(EventName.AGENT_STOPPED, agent=address)

    def stop_all(self) -> list[pykka.Future[Any]]:
        """Stop all agents. Returns what to wait for."""
        refs, self._refs = self._refs, {}
        return [ref.stop(block=False) for ref in refs.values()]
