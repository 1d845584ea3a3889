"""Level 2 of one agent on a window in memory, without actors.

Pipelines are called as a job calls them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from callboard import FunctionModel, Settings, ToolError, tool
from callboard.actors.commands import Approved, Dispatcher, MayChange, OwnFiles, Policy, Secrets, Toolbox
from callboard.actors.processing import AGENTS, CheckInputs, Pipeline, Services, pipeline
from callboard.actors.runtime import Budgets, EventFeed, EventStream, Lanes, Lease, VirtualClock
from callboard.actors.states import Run
from callboard.journal import MemoryJournal
from callboard.messages import AgentKind, Assign, Effect, Event, EventName, Target, agent_kind
from callboard.models import NamedModels, TaskModels
from callboard.testing import MemoryServer
from support import PATIENCE

WORKERS = (AgentKind.APP, AgentKind.MOBILE, AgentKind.LINUX)
WINDOW = MemoryServer.window()


class Surface(MemoryServer):
    """A window with one more tool, which fails."""

    @tool(effect=Effect.ONCE, agents=WORKERS)
    def explode(self, target: str) -> str:
        """Fail, always."""
        msg = "out of paper"
        raise ToolError(msg)


@dataclass
class Stage:
    """One agent's level 2, and its events and effects."""

    surface: MemoryServer
    services: Services
    pipeline: Pipeline
    lease: Lease
    target: Target | None
    feed: EventFeed

    def run(self, status: str = "CONTINUE", **fields: Any) -> Run:
        """Make a run of this agent."""
        assign = Assign(
            task_id="t",
            run_id="t~1" if self.target else "t~0",
            address=self.lease.target,
            token=self.lease.token,
            request="write it down",
            task_request="the whole task",
            number=1 if self.target else 0,
            target=self.target,
            **fields.pop("assign", {}),
        )
        return Run(assign=assign, limits=self.services.settings.limits, status=status, **fields)

    def events(self, name: EventName) -> list[Event]:
        """Take the events with a name so far, and drop all others."""
        taken = iter(self.feed.take, None)
        return [event for event in taken if event.name is name]


def _function(model: Any) -> Callable[..., Any]:
    return model if callable(model) else lambda request: model[request.call - 1]


@pytest.fixture
def stage() -> Iterator[Callable[..., Stage]]:
    """Make a stage: ``stage(model, policy=[...])``.

    A model is a function or a list of answers.

    ``surface`` is the class of its surface.
    """
    lanes = Lanes()

    def build(
        model: Any = None,
        *,
        target: Target | None = WINDOW,
        controls: Any = None,
        surface: type[MemoryServer] = Surface,
        **sections: Any,
    ) -> Stage:
        settings = Settings.load(**sections)
        shown = surface(target or WINDOW, controls=controls)
        clock = VirtualClock(1000.0)
        stream = EventStream(clock, kept=1000, queue=1000)
        address = target.address if target else "host/t"
        kind = agent_kind(address)
        answers = model if isinstance(model, FunctionModel) else FunctionModel(_function(model))
        services = Services(
            settings=settings,
            models={} if model is None else {kind: answers},
            task_models=TaskModels({}, NamedModels(settings)),
            toolbox=Toolbox([shown], (), lanes),
            dispatcher=Dispatcher(stream, clock, Secrets({})),
            secrets=Secrets({}),
            policy=Policy(settings.policy.all_rules),
            approved=Approved(),
            may_change=MayChange(),
            own_files=OwnFiles(),
            check_inputs=CheckInputs({}),
            budgets=Budgets(settings.budget),
            lanes=lanes,
            stream=stream,
            journal=MemoryJournal(),
            clock=clock,
            prompts=dict.fromkeys(AgentKind, "the prompt"),
            agents=AGENTS,
        )
        lease = Lease(address, 7)
        return Stage(shown, services, pipeline(AGENTS[kind], services).under(lease), lease, target, stream.open())

    yield build
    assert lanes.close(PATIENCE) == ()
