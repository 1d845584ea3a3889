"""Stalled runs: a lost message is noticed, and the run is restarted or ended; nothing else counts as one."""

from __future__ import annotations

import threading
import time

import pytest

from callboard import EventName, FunctionModel, Outcome, Task
from callboard.actors.agent import Agent, Continue
from callboard.actors.late_results import JobReturned
from callboard.actors.root import Root
from callboard.actors.root._handover import LeaseIdle
from callboard.actors.root._run_endings import RunEndings
from callboard.actors.root._stalls import LOOKS, StallCheck
from callboard.actors.root._target_queues import LeaseBook
from callboard.actors.root._task_end import TaskEnd
from callboard.actors.states import AppAgentStateManager
from callboard.messages import Assign, StepDone, SubtaskEnding
from callboard.testing import MemoryServer, VirtualClock
from support import ASK, ASSIGN, FINISH, HELD, PATIENCE, append, lone

STALL_SECONDS = 60.0
NO_WAIT = {"backoff": 0.0, "max_backoff": 0.0, "stall_seconds": STALL_SECONDS}
UNLIMITED = {"step_seconds": 1e6, "command_seconds": 1e6, "model_seconds": 1e6}  # the clock does not wait for the work
ANSWERS = [append("x"), FINISH]


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
def surface():
    return MemoryServer(MemoryServer.window())


@pytest.fixture
def begin(start, clock, surface):
    """Start a supervisor on a virtual clock, whose restarts take no time."""

    def on_clock(**given):
        supervision = {**NO_WAIT, **given.pop("supervision", {})}
        return start(**{"servers": [surface], **given}, clock=clock, supervision=supervision, limits=UNLIMITED)

    return on_clock


def checked(supervisor, clock, times=1):
    """Let checks be made: each has ended when this returns."""
    for _ in range(times):
        before, after = threading.Event(), threading.Event()
        check = Root.on_receive

        def noticed(self, message, check=check, before=before, after=after):
            answer = check(self, message)
            if isinstance(message, StallCheck):
                (after if message.behind else before).set()
            return answer

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Root, "on_receive", noticed)
            clock.advance(STALL_SECONDS / (LOOKS + 1))
            assert before.wait(PATIENCE)
            assert after.wait(PATIENCE)
        supervisor.status()


def ended(supervisor, clock, handle):
    """Return a task's result, while the clock goes on."""
    end = time.monotonic() + PATIENCE
    while not handle.done() and time.monotonic() < end:
        clock.advance(STALL_SECONDS / (LOOKS + 1))
        supervisor.status()
    return handle.result(0)


def stalled(supervisor):
    """Return the events of stalled runs."""
    feed = supervisor._assembly.stream.open(after=0)
    events = iter(feed.take, None)
    return [event for event in events if event.name is EventName.RUN_STALLED]


class Losing:
    """Lose the messages to an actor class for which `when` holds, the first `times` of them."""

    def __init__(self, monkeypatch, method, when, times=1):
        self.lost, receive = 0, getattr(*method)

        def lose(actor, message):
            if self.lost < times and when(message):
                self.lost += 1
                return None
            return receive(actor, message)

        monkeypatch.setattr(*method, lose)


AGENT, ROOT = (Agent, "receive"), (Root, "_receive")


def is_step(message):
    return isinstance(message, JobReturned) and isinstance(message.result, StepDone)


@pytest.mark.parametrize(
    ("method", "when"),
    [
        (AGENT, lambda message: isinstance(message, Assign)),
        (AGENT, is_step),
        (ROOT, lambda message: isinstance(message, SubtaskEnding)),
    ],
    ids=["assignment", "step", "ending"],
)
def test_a_run_whose_message_was_lost_is_restarted(begin, clock, surface, monkeypatch, method, when):
    losing = Losing(monkeypatch, method, when)
    supervisor = begin(app=ANSWERS)
    result = ended(supervisor, clock, supervisor.submit(lone()))
    assert (losing.lost, result.outcome) == (1, Outcome.FINISHED)
    assert [text for _, _, text in surface.effects] == ["x"]
    assert [(event.agent, event.data["reason"]) for event in stalled(supervisor)] == [
        ("app/memo/one", f"{result.task_id}~1 has no job, waits for nothing, and is in no queue: a message was lost")
    ]


@pytest.mark.parametrize("lost", [Assign, SubtaskEnding])
def test_a_hand_off_that_was_lost_between_two_agents_is_made_again(begin, clock, surface, monkeypatch, lost):
    method = ROOT if lost is Assign else AGENT
    Losing(monkeypatch, method, lambda message: isinstance(message, lost) and (lost is not Assign or message.number))
    supervisor = begin(host=[ASSIGN, FINISH], app=ANSWERS)
    result = ended(supervisor, clock, supervisor.submit(Task(request="x")))
    assert result.outcome is Outcome.FINISHED
    assert [text for _, _, text in surface.effects] == ["x"]
    assert [event.agent for event in stalled(supervisor)] == [f"host/{result.task_id}"]


def test_a_run_that_stalls_again_and_again_ends_with_the_reason(begin, clock, monkeypatch):
    Losing(monkeypatch, AGENT, lambda message: isinstance(message, Assign | Continue), times=1_000)
    supervisor = begin(app=ANSWERS, supervision={"intensity": 2, "period": 100 * STALL_SECONDS})
    result = ended(supervisor, clock, supervisor.submit(lone()))
    assert result.outcome is Outcome.ERROR
    assert [cause.exception for cause in result.causes] == ["RunStalledError"] * 3


def test_a_run_that_lost_its_place_in_the_queue_gets_it_again(begin, clock, surface, monkeypatch):
    entered, release = threading.Event(), threading.Event()

    def app(request):
        entered.set()
        assert release.wait(HELD)
        return append(request.task_id) if request.step == 1 else FINISH

    supervisor = begin(app=FunctionModel(app))
    first = supervisor.submit(lone(id="first"))
    assert entered.wait(PATIENCE)
    second = supervisor.submit(lone(id="second"))
    monkeypatch.setattr(LeaseBook, "_next", _forgetting(LeaseBook._next))
    release.set()
    assert [ended(supervisor, clock, handle).outcome for handle in (first, second)] == ["finished", "finished"]
    assert [text for _, _, text in surface.effects] == ["first", "second"]
    assert [event.run_id for event in stalled(supervisor)] == ["second~1"]


def _forgetting(next_of):
    """Drop the first run that a queue would grant its target next."""
    dropped = []

    def forget(book, key):
        slot = book._slots[key]
        if not slot.token and slot.queue and not dropped:
            dropped.append(slot.queue.popleft())
            return None
        return next_of(book, key)

    return forget


def test_a_target_that_stayed_leased_to_no_run_is_freed(begin, clock, monkeypatch):
    Losing(monkeypatch, ROOT, lambda message: isinstance(message, LeaseIdle))
    supervisor = begin(app=[FINISH])
    assert supervisor.submit(lone()).result(PATIENCE).ok
    assert ended(supervisor, clock, supervisor.submit(lone())).ok
    assert [(event.task_id, event.run_id) for event in stalled(supervisor)] == [("", "")]


def test_an_ending_that_could_not_be_built_is_replaced(begin, clock, monkeypatch):
    monkeypatch.setattr(RunEndings, "begin", _without_reading(RunEndings.begin))
    Losing(monkeypatch, AGENT, is_step, times=1_000)
    supervisor = begin(app=ANSWERS, supervision={"intensity": 0})
    result = ended(supervisor, clock, supervisor.submit(lone()))
    assert (result.outcome, result.causes[0].exception) == (Outcome.ERROR, "RunStalledError")


def _without_reading(begin):
    def begun(endings, record, run, outcome, causes):
        tell = endings.outbox.tell
        endings.outbox.tell = lambda then: None
        try:
            begin(endings, record, run, outcome, causes)
        finally:
            endings.outbox.tell = tell

    return begun


def test_a_result_that_was_not_delivered_is_an_error_of_its_caller(begin, clock, monkeypatch):
    monkeypatch.setattr(TaskEnd, "_tell_ended", lambda *_: None)
    supervisor = begin(app=[FINISH])
    handle = supervisor.submit(lone())
    with pytest.raises(Exception, match="a message was lost"):
        ended(supervisor, clock, handle)


@pytest.mark.parametrize("target", ["memo:one", None])
@pytest.mark.parametrize("journal", [False, True])
def test_work_that_waits_for_something_is_never_taken_for_stalled(begin, clock, tmp_path, until, target, journal):
    entered, release = threading.Event(), threading.Event()

    def app(request):
        if request.step == 2:
            entered.set()
            assert release.wait(HELD)
        return [ASK, append("x"), FINISH][request.step - 1]

    more = {"journal": {"path": tmp_path / "journal.db"}} if journal else {}
    supervisor = begin(host=[ASSIGN, FINISH], app=FunctionModel(app), **more)
    handle = supervisor.submit(Task(request="x", target=target))
    until(handle, EventName.QUESTION_ASKED)
    behind = supervisor.submit(lone())
    checked(supervisor, clock, LOOKS + 2)  # a question, and a queue
    handle.pause()
    checked(supervisor, clock, LOOKS + 2)
    handle.resume()
    handle.answer(handle.questions()[0].id, "the first")
    assert entered.wait(PATIENCE)
    checked(supervisor, clock, LOOKS + 2)  # a model that takes its time
    release.set()
    assert handle.result(PATIENCE).ok
    behind.cancel()
    behind.result(PATIENCE)
    assert stalled(supervisor) == []


def test_without_tasks_no_checks_are_made(begin, clock, monkeypatch):
    checks = []
    monkeypatch.setattr("callboard.actors.root._stalls.StallWatch.check", lambda *_, behind: checks.append(behind))
    supervisor = begin(app=[FINISH])
    clock.advance(10 * STALL_SECONDS)
    supervisor.status()
    assert checks == []


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit, MemoryError, RecursionError])
@pytest.mark.parametrize("method", ["decide", "handle"])
def test_a_state_that_raises_anything_ends_its_task(begin, clock, monkeypatch, error, method):
    state = type(AppAgentStateManager.get_state("CONTINUE"))
    original, left = getattr(state, method), [1]

    def raises(self, *arguments):
        if left and (method == "handle" or len(arguments[0].records) == 1):
            left.pop()
            raise error
        return original(self, *arguments)

    monkeypatch.setattr(state, method, raises)
    supervisor = begin(app=ANSWERS)
    result = ended(supervisor, clock, supervisor.submit(lone()))
    assert not left
    assert result.outcome is (Outcome.FINISHED if method == "decide" else Outcome.ERROR)
    assert stalled(supervisor) == []
