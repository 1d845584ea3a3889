"""A crash of an agent's code ends its task as an error, and nothing else."""

from __future__ import annotations

import asyncio
import logging
import threading

import pykka
import pytest

from callboard import FunctionModel, Outcome, Server, Task, tool
from callboard.actors.agent import Agent
from callboard.actors.app import AppAgent
from callboard.actors.host import HostAgent
from callboard.actors.root import Root
from callboard.messages import AgentKind, Assign, Effect, Observation, SubtaskEnded, SupervisorStoppedError
from callboard.testing import MemoryServer

FINISH = {"Status": "FINISH"}
ASSIGN = {"Status": "ASSIGN", "ControlText": "memo:one", "Current Sub-Task": "work"}

pytestmark = pytest.mark.usefixtures("_quiet")


@pytest.fixture
def _quiet(caplog):
    caplog.set_level(logging.CRITICAL, "pykka")


@pytest.fixture
def bystander():
    """An actor of the host program, which must outlive everything here."""

    class Bystander(pykka.ThreadingActor):
        def on_receive(self, message):
            return message

    ref = Bystander.start()
    yield ref
    assert ref.ask("alive?", timeout=10) == "alive?"
    ref.stop()


ERRORS = [ValueError("a bug"), SystemExit(3), KeyboardInterrupt(), GeneratorExit("odd")]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("agent", [HostAgent, AppAgent])
def test_an_exception_in_an_agents_handler_ends_its_task_as_an_error(start, monkeypatch, bystander, agent, error):
    original = Agent.receive

    def crash(self, message):
        if isinstance(message, Assign) and isinstance(self, agent) and message.task_request == "crash":
            raise error
        original(self, message)

    monkeypatch.setattr(Agent, "receive", crash)
    host = [ASSIGN, FINISH]
    supervisor = start(host=host, app=lambda _request: FINISH)
    result = supervisor.submit(Task(request="crash")).result(10)
    assert result.outcome is Outcome.ERROR
    assert any(cause.exception == type(error).__name__ for cause in result.causes)
    assert supervisor.submit(Task(request="go on")).result(10).ok


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_exception_of_a_model_ends_its_task_as_an_error(start, bystander, error):
    def app(request):
        if request.task_request == "crash":
            raise error
        return FINISH

    supervisor = start(app=app)
    result = supervisor.submit(Task(request="crash", target="memo:one")).result(10)
    assert result.outcome is Outcome.ERROR
    assert type(error).__name__ in {cause.exception for cause in result.causes} or any(
        type(error).__name__ in cause.reason for cause in result.causes
    )
    assert supervisor.submit(Task(request="go on", target="memo:one")).result(10).ok


class _BadTools(Server):
    name = "memory"

    def __init__(self, error):
        self.error = error
        self.window = MemoryServer.window()

    def targets(self):
        return (self.window,)

    def observe(self, target):
        return Observation()

    @tool(effect=Effect.ONCE, agents=[AgentKind.APP])
    def explode(self, target: str) -> str:
        """Explode."""
        raise self.error


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_exception_of_a_tool_is_a_failed_result_that_the_model_sees(start, bystander, error):
    told: list[str] = []

    def app(request):
        told.extend(request.observation.notes)
        return {"Status": "CONTINUE", "Function": "explode"} if not request.memory else FINISH

    supervisor = start(app=app, servers=[_BadTools(error)])
    result = supervisor.submit(Task(request="x", target="memo:one")).result(10)
    assert result.outcome is Outcome.FINISHED
    assert any(type(error).__name__ in note for note in told)


def test_a_crash_of_one_agent_does_not_disturb_another(start, monkeypatch):
    surface = MemoryServer(MemoryServer.window("one"), MemoryServer.window("two"))
    original = Agent.receive
    asked, release = threading.Event(), threading.Event()

    def crash(self, message):
        if isinstance(message, Assign) and self.address == "app/memo/one":
            msg = "a bug"
            raise ValueError(msg)
        original(self, message)

    async def app(_request):
        asked.set()
        await asyncio.to_thread(release.wait)
        return FINISH

    monkeypatch.setattr(Agent, "receive", crash)
    supervisor = start(app=FunctionModel(app), servers=[surface])
    other = supervisor.submit(Task(request="x", target="memo:two"))
    assert asked.wait(10)
    assert supervisor.submit(Task(request="x", target="memo:one")).result(10).outcome is Outcome.ERROR
    release.set()
    assert other.result(10).ok


def test_work_that_was_queued_behind_a_crash_is_done_by_a_new_agent(start, monkeypatch):
    original = Agent.receive
    asked, release = threading.Event(), threading.Event()

    def crash(self, message):
        if type(message).__name__ == "JobReturned" and self._run.assign.task_id == "first":
            msg = "a bug"
            raise ValueError(msg)
        original(self, message)

    async def app(_request):
        asked.set()
        await asyncio.to_thread(release.wait)
        return FINISH

    monkeypatch.setattr(Agent, "receive", crash)
    supervisor = start(app=FunctionModel(app))
    first = supervisor.submit(Task(id="first", request="x", target="memo:one"))
    assert asked.wait(10)
    second = supervisor.submit(Task(id="second", request="x", target="memo:one"))
    release.set()
    assert first.result(10).outcome is Outcome.ERROR
    assert second.result(10).ok


def test_an_agent_that_cannot_be_started_ends_its_task_as_an_error(start, monkeypatch):
    def refuse(*_args):
        msg = "can't start new thread"
        raise RuntimeError(msg)

    supervisor = start(host=[FINISH])
    with monkeypatch.context() as patch:
        patch.setattr(HostAgent, "start", refuse)
        result = supervisor.submit(Task(request="x")).result(10)
    assert result.outcome is Outcome.ERROR
    assert "can't start new thread" in result.causes[0].reason
    assert supervisor.submit(Task(request="x")).result(10).ok


def test_if_the_switchboard_itself_breaks_whoever_waits_gets_an_error(start, monkeypatch):
    original = Root._receive

    def broken(self, message):
        if isinstance(message, SubtaskEnded):
            msg = "a bug of ours"
            raise TypeError(msg)
        return original(self, message)

    monkeypatch.setattr(Root, "_receive", broken)
    supervisor = start(app=lambda _request: FINISH)
    handle = supervisor.submit(Task(request="x", target="memo:one"))
    with pytest.raises(SupervisorStoppedError):
        handle.result(10)
