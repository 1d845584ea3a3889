"""The specification of one kind of agent."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from callboard.actors.processing._middleware import retried
from callboard.config import PluginGroup, find_plugin, import_plugin, plugin_text
from callboard.messages import REMOTE, AgentKind, Phase, SettingsError
from callboard.models import AgentResponse, AppResponse, HostResponse, ProposingHostResponse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from callboard.actors.processing._middleware import Middleware
    from callboard.actors.processing._phases import Strategies
    from callboard.actors.states import AgentStateManager
    from callboard.config import Settings


MIDDLEWARE: Sequence[Middleware] = (retried({Phase.DATA_COLLECTION}),)
"""The default middleware around phases, outermost first."""

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_TAKEN = {"record", "any", "all", REMOTE}
"""Names with another meaning where kinds are named."""


@dataclass(frozen=True, kw_only=True, repr=False)
class AgentSpec:
    """A kind of agent.

    A program passes its own kinds to `Supervisor.start`; they work on targets.
    """

    name: str
    """The name in addresses, settings, tools and prompts: lower-case letters, digits and ``_ -``."""
    machine: type[AgentStateManager]
    """The state machine. It may extend a shipped one and inherits the states of the rows that it keeps."""
    strategies: Strategies | None = None
    """The strategies of the four phases; only the shipped kind whose work another machine does has none."""
    middleware: Sequence[Middleware] = field(default=MIDDLEWARE)
    """The middleware around phases, outermost first."""
    response: type[AgentResponse] = AppResponse
    """The type that its model's answers are parsed into."""
    prompt: str = ""
    """The text of its prompt; by default the shipped one of its name, or the AppAgent's. Settings override it."""

    @property
    def has_model(self) -> bool:
        """True unless another machine does its work."""
        return self.strategies is not None

    def __repr__(self) -> str:
        """Show the name and the machine."""
        return f"<{type(self).__name__} {self.name}, {self.machine.__name__}>"


def agent_table(shipped: Mapping[str, AgentSpec], additional_specs: Iterable[AgentSpec]) -> dict[str, AgentSpec]:
    """Add a program's kinds to the shipped ones or replace them.

    Raises:
        TypeError: If one is not an `AgentSpec`.
        SettingsError: If two have the same name, or a name is not valid in an address.
        BrokenMachineError: If a row of a machine has no state.
    """
    additional_kinds: dict[str, AgentSpec] = {}
    for spec in additional_specs:
        if not isinstance(spec, AgentSpec):
            msg = f"agents: expected AgentSpecs, found a {type(spec).__name__}"
            raise TypeError(msg)
        if not _NAME.fullmatch(spec.name) or spec.name in _TAKEN:
            msg = f"agents: {spec.name!r} can't be the name of a kind: small letters, digits and _ -, at most 40"
            raise SettingsError(msg)
        if spec.name in additional_kinds:
            msg = f"agents: two kinds are called {spec.name!r}"
            raise SettingsError(msg)
        if spec.strategies is None:
            msg = f"agents: the kind {spec.name!r} has no strategies"
            raise SettingsError(msg)
        spec.machine.check_complete()
        additional_kinds[spec.name] = spec
    return {**shipped, **additional_kinds}


def proposing(table: Mapping[str, AgentSpec], *, is_enabled: bool) -> Mapping[str, AgentSpec]:
    """Let HostAgents propose checks, where the settings want that.

    Raises:
        SettingsError: If the host program's own class of their answers has no checks.
    """
    host = table[AgentKind.HOST]
    if not is_enabled or issubclass(host.response, ProposingHostResponse):
        return table
    if host.response is not HostResponse:
        msg = (
            f"system.propose_checks: {host.response.__name__}, the class of HostAgents' answers, has no checks: derive "
            "it from ProposingHostResponse"
        )
        raise SettingsError(msg)
    return {**table, AgentKind.HOST: replace(host, response=ProposingHostResponse)}


def named_agents(settings: Settings) -> list[AgentSpec]:
    """Import the kinds of agents that the settings name.

    Raises:
        SettingsError: If a plug-in does not exist, can't be imported, or is not an `AgentSpec` of that name.
    """
    entries = [
        (find_plugin(PluginGroup.AGENTS, name, f"agents.{number}"), number)
        for number, name in enumerate(settings.agents)
    ]
    specs = []
    for entry, number in entries:
        spec = import_plugin(entry, f"agents.{number}")
        problem = "" if isinstance(spec, AgentSpec) else f"is a {type(spec).__name__}, not an AgentSpec"
        if not problem and spec.name != entry.name:
            problem = f"is the kind {spec.name!r}: it has to have the name of its entry point"
        if problem:
            msg = f"agents.{number}: {plugin_text(entry)} {problem}"
            raise SettingsError(msg)
        specs.append(spec)
    return specs
