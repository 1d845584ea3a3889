"""A crash of an agent's code: its work goes on from the journal, or ends as an error, and nothing else does."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading

import pykka
import pytest

from callboard import EventName, FunctionModel, Outcome, Server, Task, tool
from callboard.actors.agent import Agent, renewed
from callboard.actors.app import AppAgent
from callboard.actors.host import HostAgent
from callboard.actors.late_results import JobReturned
from callboard.actors.states import Run
from callboard.config import Limits
from callboard.messages import (
    AgentKind,
    Answer,
    AskedQuestion,
    Assign,
    Effect,
    Observation,
    Pause,
    Question,
    Step,
)
from callboard.testing import MemoryServer, VirtualClock
from support import ASK, ASSIGN, FINISH, HELD, PATIENCE, append, lone

NEVER = {"intensity": 0}
"""No agent is restarted: the first crash is the end."""
AT_ONCE = {"backoff": 0, "max_backoff": 0}
"""As often as usual, without a delay."""

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
    assert ref.ask("alive?", timeout=PATIENCE) == "alive?"
    ref.stop()


class Gate:
    """The gate at which models wait until a test opens it."""

    def __init__(self):
        self.reached, self.opened = threading.Event(), threading.Event()

    async def wait_at(self, _request):
        self.reached.set()
        await asyncio.to_thread(self.opened.wait, HELD)
        return FINISH


@pytest.fixture
def gate():
    made = Gate()
    yield made
    made.opened.set()


def refuse(*_args):
    msg = "can't start new thread"
    raise RuntimeError(msg)


ERRORS = [ValueError("a bug"), SystemExit(3), KeyboardInterrupt(), GeneratorExit("odd")]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("agent", [HostAgent, AppAgent])
def test_without_restarts_an_exception_in_a_handler_ends_the_task_in_error(start, monkeypatch, bystander, agent, error):
    original = Agent.receive

    def crash(self, message):
        if isinstance(message, Assign) and isinstance(self, agent) and message.task_request == "crash":
            raise error
        original(self, message)

    monkeypatch.setattr(Agent, "receive", crash)
    host = [ASSIGN, FINISH]
    supervisor = start(host=host, app=lambda _request: FINISH, supervision=NEVER)
    result = supervisor.submit(Task(request="crash")).result(PATIENCE)
    assert result.outcome is Outcome.ERROR
    assert any(cause.exception == type(error).__name__ for cause in result.causes)
    assert supervisor.submit(Task(request="go on")).result(PATIENCE).ok


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_exception_of_a_model_ends_its_task_as_an_error(start, bystander, error):
    def app(request):
        if request.task_request == "crash":
            raise error
        return FINISH

    supervisor = start(app=app)
    result = supervisor.submit(Task(request="crash", target="memo:one")).result(PATIENCE)
    assert result.outcome is Outcome.ERROR
    assert type(error).__name__ in {cause.exception for cause in result.causes} or any(
        type(error).__name__ in cause.reason for cause in result.causes
    )
    assert supervisor.submit(Task(request="go on", target="memo:one")).result(PATIENCE).ok


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
    result = supervisor.submit(lone()).result(PATIENCE)
    assert result.outcome is Outcome.FINISHED
    assert any(type(error).__name__ in note for note in told)


def test_a_crash_of_one_agent_does_not_disturb_another(start, monkeypatch, gate):
    surface = MemoryServer(MemoryServer.window("one"), MemoryServer.window("two"))
    original = Agent.receive

    def crash(self, message):
        if self.address == "app/memo/one":
            msg = "a bug"
            raise ValueError(msg)
        original(self, message)

    monkeypatch.setattr(Agent, "receive", crash)
    supervisor = start(app=FunctionModel(gate.wait_at), servers=[surface], supervision=AT_ONCE)
    other = supervisor.submit(Task(request="x", target="memo:two"))
    assert gate.reached.wait(PATIENCE)
    assert supervisor.submit(lone()).result(PATIENCE).outcome is Outcome.ERROR
    gate.opened.set()
    assert other.result(PATIENCE).ok


def test_work_that_was_queued_behind_a_crash_is_done_by_a_new_agent(start, monkeypatch, gate):
    original = Agent.receive

    def crash(self, message):
        if isinstance(message, JobReturned) and self._run.assign.task_id == "first":
            msg = "a bug"
            raise ValueError(msg)
        original(self, message)

    monkeypatch.setattr(Agent, "receive", crash)
    supervisor = start(app=FunctionModel(gate.wait_at), supervision=NEVER)
    first = supervisor.submit(Task(id="first", request="x", target="memo:one"))
    assert gate.reached.wait(PATIENCE)
    second = supervisor.submit(Task(id="second", request="x", target="memo:one"))
    gate.opened.set()
    assert first.result(PATIENCE).ok  # its end was kept with its last step
    assert second.result(PATIENCE).ok


# Restarts


def crash_at(monkeypatch, which, error=None, times=1):
    """Let an agent crash when it gets a certain message: so many times, then no more."""
    original, crashes = Agent.receive, []

    def receive(self, message):
        if len(crashes) < times and which(self, message):
            crashes.append(message)
            raise error or ValueError("a bug")
        original(self, message)

    monkeypatch.setattr(Agent, "receive", receive)
    return crashes


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("agent", [HostAgent, AppAgent])
@pytest.mark.parametrize("message", [Assign, JobReturned, Step])
def test_a_crashed_agent_is_restarted_and_asks_and_does_nothing_twice(
    start, monkeypatch, bystander, agent, error, message
):
    asked = []

    def model(*answers):
        def answer(request):
            asked.append((request.kind.value, request.call))
            return answers[request.call - 1]

        return answer

    crashes = crash_at(monkeypatch, lambda self, got: isinstance(self, agent) and isinstance(got, message), error)
    surface = MemoryServer(MemoryServer.window())
    supervisor = start(
        host=model(ASSIGN, FINISH), app=model(append("a"), append("b"), FINISH), servers=[surface], supervision=AT_ONCE
    )
    handle = supervisor.submit(Task(id="t", request="x"))
    result = handle.result(PATIENCE)
    assert (result.outcome, result.causes) == (Outcome.FINISHED, ())
    assert [text for _, _, text in surface.effects] == ["a", "b"]
    assert sorted(asked) == [("app", 1), ("app", 2), ("app", 3), ("host", 1), ("host", 2)]
    assert len(crashes) == 1


def test_an_agent_that_crashes_too_often_ends_with_all_crashes_as_causes(start, monkeypatch):
    crashes = crash_at(
        monkeypatch, lambda self, got: isinstance(self, AppAgent) and isinstance(got, JobReturned | Step), times=99
    )
    supervisor = start(host=[ASSIGN], app=[FINISH], supervision={**AT_ONCE, "intensity": 2})
    result = supervisor.submit(Task(request="x")).result(PATIENCE)
    assert (result.outcome, len(crashes)) == (Outcome.ERROR, 3)
    (subtask,) = result.subtasks
    assert (subtask.outcome, [cause.reason for cause in subtask.causes]) == (Outcome.ERROR, ["a bug"] * 3)


def test_restart_event_has_its_delay(start, monkeypatch):
    crash_at(monkeypatch, lambda _self, got: isinstance(got, Step), times=2)
    told = queue.SimpleQueue()
    supervisor = start(app=[FINISH], supervision={"intensity": 1, **AT_ONCE})
    supervisor.subscribe(lambda event: told.put(event) if event.name is EventName.AGENT_CRASHED else None)
    assert supervisor.submit(lone()).result(PATIENCE).outcome is Outcome.ERROR
    crashes = [told.get(timeout=PATIENCE) for _ in range(2)]
    assert [(event.agent, event.data["restart"]) for event in crashes] == [("app/memo/one", 0), ("app/memo/one", None)]
    assert crashes[0].data["causes"] == ["ValueError: a bug"]


@pytest.fixture
def crashed(start, monkeypatch):
    """Start a task whose agent crashes at a certain message, and is restarted only when the clock moves.

    Gives the clock, the task's handle, and a function that waits until the agent is dead and its restart is due later.
    """

    def begin(which, **given):
        clock, dead = VirtualClock(), threading.Event()
        crash_at(monkeypatch, which)
        supervisor = start(clock=clock, **given)
        supervisor.subscribe(lambda event: dead.set() if event.name is EventName.AGENT_CRASHED else None)

        def wait():
            assert dead.wait(PATIENCE)
            supervisor.status()  # behind the crash in the root's mailbox

        return clock, supervisor.submit(lone()), wait

    return begin


def test_cancel_ends_a_task_whose_agent_waits_for_its_restart(crashed):
    _, handle, until_dead = crashed(lambda _self, got: isinstance(got, Step), app=[FINISH])
    until_dead()
    handle.cancel()
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED


def test_deadline_ends_a_task_whose_agent_waits_for_its_restart(crashed):
    clock, handle, until_dead = crashed(
        lambda _self, got: isinstance(got, Step),
        app=[FINISH],
        limits={"task_seconds": 5},
        supervision={"backoff": 10},
    )
    until_dead()
    clock.advance(5)
    assert handle.result(PATIENCE).outcome is Outcome.TIMED_OUT


@pytest.mark.parametrize(
    ("target", "outcome"), [(None, Outcome.FINISHED), ("memo:one", Outcome.TIMED_OUT)], ids=["assigned", "alone"]
)
def test_a_subtask_deadline_ends_it_while_its_agent_waits_for_a_restart(start, monkeypatch, target, outcome):
    clock, dead = VirtualClock(), threading.Event()
    crash_at(monkeypatch, lambda self, got: isinstance(self, AppAgent) and isinstance(got, Step))
    supervisor = start(
        host=[ASSIGN, FINISH],
        app=[FINISH],
        clock=clock,
        limits={"subtask_seconds": 5},
        supervision={"backoff": 10},
    )
    supervisor.subscribe(lambda event: dead.set() if event.name is EventName.AGENT_CRASHED else None)
    handle = supervisor.submit(Task(request="x", target=target))
    assert dead.wait(PATIENCE)
    supervisor.status()
    clock.advance(5)
    result = handle.result(PATIENCE)
    assert (result.outcome, [done.outcome for done in result.subtasks]) == (outcome, [Outcome.TIMED_OUT])


def test_pause_holds_for_an_agent_that_is_restarted(crashed, until):
    surface = MemoryServer(MemoryServer.window())
    clock, handle, until_dead = crashed(
        lambda _self, got: isinstance(got, Step), app=[append("a"), FINISH], servers=[surface]
    )
    until_dead()
    handle.pause()
    clock.advance(60)
    until(handle, EventName.RUN_RECOVERED)
    assert surface.effects == []
    handle.resume()
    assert handle.result(PATIENCE).ok
    assert len(surface.effects) == 1


def test_an_answer_reaches_the_restarted_agent_that_crashed_on_it(crashed, until):
    notes = []

    def app(request):
        notes.extend(request.observation.notes)
        return ASK if request.call == 1 else FINISH

    clock, handle, until_dead = crashed(lambda _self, got: isinstance(got, Answer), app=app)
    until(handle, EventName.QUESTION_ASKED)
    handle.answer(handle.questions()[0].id, "this one")
    until_dead()
    clock.advance(60)
    assert handle.result(PATIENCE).ok
    assert notes == ["asked 'which one?', a person answered 'this one'"]


def test_question_stays_open_while_its_agent_is_restarted(crashed, until):
    clock, handle, until_dead = crashed(lambda _self, got: isinstance(got, Pause), app=[ASK, FINISH])
    until(handle, EventName.QUESTION_ASKED)
    handle.pause()
    until_dead()
    handle.answer(handle.questions()[0].id, "this one")
    handle.resume()
    clock.advance(60)
    assert handle.result(PATIENCE).ok
    assert [event.name for event in handle.events()].count(EventName.QUESTION_ASKED) == 1


def test_an_agent_that_cannot_be_started_ends_its_task_as_an_error(start, monkeypatch):
    supervisor = start(host=[FINISH], supervision=AT_ONCE)
    with monkeypatch.context() as patch:
        patch.setattr(HostAgent, "start", refuse)
        result = supervisor.submit(Task(request="x")).result(PATIENCE)
    assert result.outcome is Outcome.ERROR
    assert ["can't start new thread" in cause.reason for cause in result.causes] == [True] * 4
    assert supervisor.submit(Task(request="x")).result(PATIENCE).ok


def test_an_agent_that_could_not_be_started_once_is_started_later(start, monkeypatch):
    original, refused = HostAgent.start, []

    def refuse_once(*arguments):
        if not refused:
            refused.append(arguments)
            refuse()
        return original(*arguments)

    monkeypatch.setattr(HostAgent, "start", refuse_once)
    assert start(host=[FINISH], supervision=AT_ONCE).submit(Task(request="x")).result(PATIENCE).ok


def test_a_question_is_asked_again_under_the_new_lease_alone():
    whose = {"task_id": "t", "run_id": "t~1", "address": "app/memo/one"}
    run = Run.begin(Assign(**whose, token=8, number=1, request="x"), Limits(), "CONTINUE")
    asked = Question(**whose, id="ask", token=7, questions=(AskedQuestion(text="which?"),), deadline=5.0)
    again = renewed(asked, run)
    assert (vars(again), asked.token) == ({**vars(asked), "token": 8}, 7)
