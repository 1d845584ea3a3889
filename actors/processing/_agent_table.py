"""The table of the shipped kinds of agents."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from callboard.actors.processing._act import act, act_as_host
from callboard.actors.processing._ask_by_picture import ask_by_picture
from callboard.actors.processing._collect import collect_controls
from callboard.actors.processing._context import Context
from callboard.actors.processing._decide import ask_model, follow_plan
from callboard.actors.processing._phases import Strategies
from callboard.actors.processing._pipeline import Pipeline
from callboard.actors.processing._remember import remember
from callboard.actors.processing._remote_pipeline import RemotePipeline
from callboard.actors.processing._spec import AgentSpec
from callboard.actors.processing._targets import collect_targets
from callboard.actors.runtime import Lease
from callboard.actors.states import (
    AgentStateManager,
    AppAgentStateManager,
    HostAgentStateManager,
    LinuxAgentStateManager,
    MobileAgentStateManager,
    OperatorAgentStateManager,
    RemoteAgentStateManager,
)
from callboard.messages import REMOTE, AgentKind
from callboard.models import AppResponse, HostResponse, LinuxResponse, MobileResponse, OperatorResponse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from callboard.actors.processing._services import Services

ON_TARGET = Strategies(collect=collect_controls, decide=ask_model, act=act, remember=remember)
"""The strategies of an agent with one target."""

ON_PICTURE = replace(ON_TARGET, decide=ask_by_picture)
"""The strategies of an agent that sees only the target's picture."""

AGENTS: Mapping[str, AgentSpec] = {
    AgentKind.HOST: AgentSpec(
        name=AgentKind.HOST,
        machine=HostAgentStateManager,
        strategies=Strategies(collect=collect_targets, decide=follow_plan, act=act_as_host, remember=remember),
        response=HostResponse,
    ),
    AgentKind.APP: AgentSpec(
        name=AgentKind.APP, machine=AppAgentStateManager, strategies=ON_TARGET, response=AppResponse
    ),
    AgentKind.MOBILE: AgentSpec(
        name=AgentKind.MOBILE, machine=MobileAgentStateManager, strategies=ON_TARGET, response=MobileResponse
    ),
    AgentKind.LINUX: AgentSpec(
        name=AgentKind.LINUX, machine=LinuxAgentStateManager, strategies=ON_TARGET, response=LinuxResponse
    ),
    AgentKind.OPERATOR: AgentSpec(
        name=AgentKind.OPERATOR, machine=OperatorAgentStateManager, strategies=ON_PICTURE, response=OperatorResponse
    ),
    REMOTE: AgentSpec(name=REMOTE, machine=RemoteAgentStateManager),
}
"""The shipped kinds of agents by name; a supervisor can get more."""

MACHINES: dict[str, type[AgentStateManager]] = {kind: spec.machine for kind, spec in AGENTS.items()}
"""The state machines of the shipped kinds."""


AgentPipeline = Pipeline | RemotePipeline


def pipeline(spec: AgentSpec, services: Services) -> AgentPipeline:
    """Build a kind's pipeline; it can't act before `under` a lease."""
    nothing = Lease("", 0)
    nothing.void()
    if spec.strategies is None:
        return RemotePipeline(services, nothing)
    return Pipeline(Context(services, spec.name, spec.machine, nothing), spec.strategies, spec.middleware)
