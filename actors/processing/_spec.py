"""A kind of agent: all that makes it differ from the others, as one value."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from callboard.actors.models import AgentResponse, AppResponse
from callboard.actors.processing._middleware import retried
from callboard.messages import Phase, SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from callboard.actors.processing._middleware import Middleware
    from callboard.actors.processing._phases import Strategies
    from callboard.actors.states import AgentStateManager

MIDDLEWARE: Sequence[Middleware] = (retried({Phase.DATA_COLLECTION}),)
"""What wraps every phase, the outermost first."""

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_TAKEN = {"record", "any", "all"}
"""Names that mean something else where kinds are named."""


@dataclass(frozen=True, kw_only=True)
class AgentSpec:
    """A kind of agent. Those of a program's own are given to `Supervisor.start`, and work on targets."""

    name: str
    """What addresses begin with, and what settings, tools and prompts call it: small letters, digits and ``_ -``."""
    machine: type[AgentStateManager]
    """Its states. A machine may extend a shipped one: it inherits the states of the rows that it keeps."""
    strategies: Strategies
    """How it does each of the four phases."""
    middleware: Sequence[Middleware] = field(default=MIDDLEWARE)
    """What wraps every phase, the outermost first."""
    response: type[AgentResponse] = AppResponse
    """What its model's answers are read by."""
    prompt: str = ""
    """The text of its prompt; empty: the shipped one of its name, or else the AppAgent's. The settings beat it."""


def agent_table(shipped: Mapping[str, AgentSpec], given: Iterable[AgentSpec]) -> dict[str, AgentSpec]:
    """Add a program's own kinds of agents to those that ship; one of the same name takes the place of a shipped one.

    Raises:
        TypeError: If one is no `AgentSpec`.
        SettingsError: If two have one name, or one has none that an address can begin with.
        BrokenMachineError: If a row of a machine has no state.
    """
    own: dict[str, AgentSpec] = {}
    for spec in given:
        if not isinstance(spec, AgentSpec):
            msg = f"agents: expected AgentSpecs, found a {type(spec).__name__}"
            raise TypeError(msg)
        if not _NAME.fullmatch(spec.name) or spec.name in _TAKEN:
            msg = f"agents: {spec.name!r} can't be the name of a kind: small letters, digits and _ -, at most 40"
            raise SettingsError(msg)
        if spec.name in own:
            msg = f"agents: two kinds are called {spec.name!r}"
            raise SettingsError(msg)
        spec.machine.check_complete()
        own[spec.name] = spec
    return {**shipped, **own}
