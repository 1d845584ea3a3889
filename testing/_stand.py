"""A surface under test: opened alone, or used by a scripted agent."""

from __future__ import annotations

import contextlib
import functools
import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from unittest import mock

from pydantic_core import to_jsonable_python

from callboard.actors.commands import SurfaceLifecycle
from callboard.actors.runtime import EventLoop, Lanes
from callboard.config import Settings
from callboard.messages import AgentKind, Look, Task
from callboard.models import FunctionModel
from callboard.supervisor import Supervisor
from callboard.surfaces import Server, observed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pydantic import JsonValue

    from callboard.actors.client import TaskHandle
    from callboard.actors.runtime import Clock
    from callboard.messages import Observation, Target

_WORK = "work"
"""The request of the task that makes the calls; any other finishes at once."""
SECONDS = 60.0
"""The longest wait of a test; a wait ends as soon as it can."""


@dataclass(frozen=True)
class SurfaceCall:
    """One call of a tool, as a model would decide it."""

    tool: str
    arguments: Mapping[str, JsonValue] = field(default_factory=dict)

    @property
    def answer(self) -> dict[str, Any]:
        """The answer of a model that decides on it."""
        return {"Status": "CONTINUE", "Function": self.tool, "Args": dict(self.arguments)}


@dataclass(frozen=True, kw_only=True)
class SurfaceCase:
    """One surface under test, with the facts that its tests need.

    Tests whose facts are missing are skipped. Make all of it again for each test: a test may change its surface.
    """

    target: str
    """The id of an existing target."""
    server: Callable[[], Server] | None = None
    """Makes a surface on the existing targets, as each process does that works on them; None where the settings name
    it."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Sections of the settings: ``{"mcp_servers": {...}}``."""
    change: Callable[[], object] | None = None
    """Changes the target's contents, as a person or another program would."""
    control: str = ""
    """The id of an existing control."""
    replace: Callable[[], object] | None = None
    """Replaces `control` by another one under the same id, or removes it."""
    once: SurfaceCall | None = None
    """A call that must not be repeated."""
    done: Callable[[], int] | None = None
    """Counts how often `once` or `slow` took effect, without asking the surface."""
    slow: SurfaceCall | None = None
    """A call that would take an hour, and takes effect at its end."""
    started: Callable[[], bool] | None = None
    """Returns whether `slow` runs."""
    release: Callable[[], object] | None = None
    """Ends `slow`, as if its hour were over. Not needed where it ends with its call: a coroutine, or a program that is
    killed."""
    stopped: Callable[[], bool] | None = None
    """Returns whether `slow` was stopped, where another program does it: that takes a moment after a cancel."""
    secret: SurfaceCall | None = None
    """A call that puts ``${secret:password}`` into `control`."""
    same: Sequence[SurfaceCall] = ()
    """Calls that touch the same thing, with different arguments."""
    lent: Callable[[], object] | None = None
    """Returns the things that agents borrow from a person and give back: the focus, the clipboard."""


class Alone:
    """An open surface without an agent.

    Its methods are called as a supervisor calls them.
    """

    def __init__(self, supervisor: Supervisor, case: SurfaceCase) -> None:
        self._supervisor = supervisor
        self.surface = surface_of(supervisor, case)

    def ask(self, method: Callable[..., Any], *arguments: object, target: Target | None = None) -> Any:
        """Call a method where it may block, and wait for it."""
        supervisor = self._supervisor
        work = supervisor._assembly.lanes.run(self.surface.lane(target), functools.partial(method, *arguments))
        return supervisor._assembly.loop.submit(work).result(SECONDS)

    def targets(self) -> tuple[Target, ...]:
        """List the targets."""
        targets: tuple[Target, ...] = tuple(self.ask(self.surface.targets))
        return targets

    def target(self, target_id: str) -> Target:
        """Return one of the targets, as the surface knows it.

        Its id may be that for a further kind of agent.
        """
        offers = (offer for target in self.targets() for offer in target.offers(tuple(AgentKind)))
        return next(offer.native for offer in offers if offer.id == target_id)

    def look(self, target: Target, look: Look = Look()) -> Observation:
        """Look at a target."""
        observation: Observation = self.ask(observed, self.surface, target, look, target=target)
        return observation

    def ask_about(self, method: str, call: SurfaceCall, target: Target) -> Any:
        """Ask a method about a call, with its checked arguments."""
        root = target.address.split("/")[1]
        named = (entry for entry in self.surface.tools() if entry.name == call.tool)
        entry = next((entry for entry in named if not entry.roots or root in entry.roots), None)
        arguments = dict(call.arguments)
        if entry is not None:  # else it is a tool of an MCP server
            received = to_jsonable_python(entry.tool.validate({**arguments, **target.binds}), serialize_unknown=True)
            arguments = {name: value for name, value in received.items() if name not in target.binds}
        return self.ask(getattr(self.surface, method), target, call.tool, arguments, target=target)

    @contextlib.contextmanager
    def pictured(self) -> Iterator[list[Look]]:
        """Return a list that records the looks with a picture.

        The surface takes a picture for these.
        """
        observe: Callable[..., Any] = self.surface.observe
        takes_look = "look" in inspect.signature(observe).parameters
        looks: list[Look] = []

        def noted(target: Target, look: Look = Look()) -> Any:
            if look.picture:
                looks.append(look)
            return observe(target, look) if takes_look else observe(target)

        with mock.patch.object(self.surface, "observe", noted):
            yield looks


def surface_of(supervisor: Supervisor, case: SurfaceCase) -> Server:
    """Return the surface that offers the case's target."""
    targets = {target.id: target for target in supervisor._assembly.lookup.listed()}
    ids = ", ".join(targets) or "none"
    assert case.target in targets, f"the case names the target {case.target!r}; there are: {ids}"
    return supervisor._assembly.toolbox.surface(targets[case.target])


@contextlib.contextmanager
def opened(case: SurfaceCase) -> Iterator[Alone]:
    """Open a case's surface, and close it."""
    with _started(case, {}) as supervisor:
        yield Alone(supervisor, case)


@contextlib.contextmanager
def _started(
    case: SurfaceCase,
    models: dict[str, FunctionModel],
    clock: Clock | None = None,
    **sections: Any,
) -> Iterator[Supervisor]:
    """Start a supervisor on a case's surface, and check that it stops."""
    settings = Settings.load(**{"policy": [{"verdict": "allow"}], **case.settings, **sections})
    surfaces = [] if case.server is None else [case.server()]
    with Supervisor.start(settings, models=models, servers=surfaces, clock=clock) as supervisor:
        yield supervisor
        unfinished = supervisor.stop()
        assert not unfinished, f"after the supervisor's stop there is still {', '.join(unfinished)}"


@contextlib.contextmanager
def supervised(
    case: SurfaceCase,
    *calls: SurfaceCall,
    journal: Path | None = None,
    clock: Clock | None = None,
    **sections: Any,
) -> Iterator[Worker]:
    """Start a supervisor whose agent makes some calls on the case's target.

    It makes one call a step, and then finishes.
    """
    answers = [call.answer for call in calls]
    observations: list[Observation] = []

    def decide(request: Any) -> dict[str, Any]:
        observations.append(request.observation)
        done = len(request.memory) if request.request == _WORK else len(answers)
        return answers[done] if done < len(answers) else {"Status": "FINISH"}

    model = FunctionModel(decide)
    models = {kind.value: model for kind in AgentKind if kind is not AgentKind.HOST}
    with _started(case, models, clock, journal={"path": journal, "durability": "process"}, **sections) as supervisor:
        yield Worker(supervisor, surface_of(supervisor, case), case.target, observations)


def closes_unopened(surface: Server) -> bool:
    """Close a surface that was not opened, and return whether that succeeded."""
    loop, lanes = EventLoop("callboard-suite"), Lanes()
    loop.start()
    try:
        return not SurfaceLifecycle([surface], lanes, loop, None).close(SECONDS)
    finally:
        lanes.close(SECONDS)
        loop.stop(SECONDS)


@dataclass(frozen=True)
class Worker:
    """A supervisor whose agent works on a case's target."""

    supervisor: Supervisor
    surface: Server
    target: str
    observations: list[Observation]
    """The observations of the agent's model, in order."""

    def submit(self, **more: Any) -> TaskHandle:
        """Submit the work."""
        return self.supervisor.submit(Task(id="surface", request=_WORK, target=self.target, **more))

    def is_free(self) -> bool:
        """Return whether another task gets the target.

        It must not before a call that was stopped has returned.
        """
        try:
            return self.supervisor.submit(Task(request="look", target=self.target)).result(SECONDS).ok
        except TimeoutError:
            return False
