"""Each agent's strategies: level 2 of the four kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.actors.processing._act import act, act_as_host
from callboard.actors.processing._collect import collect_controls, collect_targets
from callboard.actors.processing._decide import ask_model, follow_plan
from callboard.actors.processing._middleware import retried, timed
from callboard.actors.processing._phases import Context, Services, Strategies
from callboard.actors.processing._pipeline import Pipeline
from callboard.actors.processing._remember import remember
from callboard.actors.runtime import Lease
from callboard.actors.states import (
    AgentStateManager,
    AppAgentStateManager,
    HostAgentStateManager,
    LinuxAgentStateManager,
    MobileAgentStateManager,
)
from callboard.messages import AgentKind, Phase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from callboard.actors.processing._middleware import Middleware

_ON_TARGET = Strategies(collect=collect_controls, decide=ask_model, act=act, remember=remember)

STRATEGIES = {
    AgentKind.HOST: Strategies(collect=collect_targets, decide=follow_plan, act=act_as_host, remember=remember),
    AgentKind.APP: _ON_TARGET,
    AgentKind.MOBILE: _ON_TARGET,
    AgentKind.LINUX: _ON_TARGET,
}
"""How each kind of agent does its phases."""

MACHINES: dict[str, type[AgentStateManager]] = {
    AgentKind.HOST: HostAgentStateManager,
    AgentKind.APP: AppAgentStateManager,
    AgentKind.MOBILE: MobileAgentStateManager,
    AgentKind.LINUX: LinuxAgentStateManager,
}
"""The machine of each kind of agent."""

MIDDLEWARE: Sequence[Middleware] = (timed, retried({Phase.DATA_COLLECTION}))
"""What wraps every phase, the outermost first."""


def pipeline(kind: str, services: Services) -> Pipeline:
    """Make the pipeline of a kind of agent. It may do nothing before it is put `under` a lease."""
    nothing = Lease("", 0)
    nothing.void()
    context = Context(services, kind, MACHINES[kind], nothing)
    return Pipeline(context, STRATEGIES[kind], MIDDLEWARE)
