"""A logging handler of the host program that raises, because its server is down, costs no thread of ours."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading

import pykka
import pytest

from callboard import EventName, Outcome, Settings, Supervisor, Task
from callboard.actors.agent import Agent
from callboard.actors.blackboard import Blackboard, RowsKept
from callboard.actors.runtime import EventLoop, SystemClock, Watchdog
from callboard.messages import SupervisorStoppedError
from callboard.testing import MemoryServer
from support import FINISH, HELD, PATIENCE, lone


class Down(logging.Handler):
    """A handler that raises at each line, and notes it."""

    def __init__(self, level):
        super().__init__(level)
        self.seen = queue.SimpleQueue()

    def log_all(self):
        """Raise at every line, not at errors alone."""
        logging.getLogger().setLevel(logging.DEBUG)
        self.setLevel(logging.DEBUG)

    def emit(self, record):
        self.seen.put(record.getMessage())
        msg = "the log server is down"
        raise ConnectionError(msg)


@pytest.fixture
def down():
    """Log errors to a server that is down; all else too after `log_all`."""
    root, handler = logging.getLogger(), Down(logging.ERROR)
    before = root.level
    root.addHandler(handler)
    yield handler
    root.removeHandler(handler)
    root.setLevel(before)


@pytest.fixture
def crashes(monkeypatch):
    """Let the agent of the first window crash once."""
    receive, left = Agent.receive, [1]

    def crash_once(agent, message):
        if agent.address.endswith("one") and type(message).__name__ == "JobReturned" and left.pop():
            left.append(0)
            msg = "a bug in an agent"
            raise RuntimeError(msg)
        left[:] = left or [0]
        receive(agent, message)

    monkeypatch.setattr(Agent, "receive", crash_once)


def windows():
    return [MemoryServer(MemoryServer.window(), MemoryServer.window("two"))]


def ended(supervisor, **task):
    return supervisor.submit(Task(**{"request": "x", "target": "memo:one", **task})).result(PATIENCE).outcome


@pytest.mark.usefixtures("crashes")
def test_agent_that_crashes_leaves_other_tasks_alone(start, down):
    supervisor = start(app=[FINISH], servers=windows(), supervision={"backoff": 0})
    assert [ended(supervisor, target=f"memo:{name}") for name in ("one", "two")] == [Outcome.FINISHED] * 2
    assert down.seen.get(timeout=PATIENCE).startswith("Unhandled exception in ")
    assert supervisor.stop(PATIENCE) == ()


@pytest.mark.usefixtures("down")
def test_a_row_that_can_not_be_written_costs_the_journal_nothing(start, tmp_path):
    class Deep(MemoryServer):
        def observe(self, target):
            deep = []
            for _ in range(300):
                deep = [deep]
            return super().observe(target).model_copy(update={"window": {"tree": deep} if bad else {}})

    bad = True
    surface = Deep(MemoryServer.window())
    supervisor = start(app=lambda _: FINISH, servers=[surface], journal={"path": tmp_path / "journal.db"})
    assert ended(supervisor, request="bad") is Outcome.ERROR
    bad = False
    assert ended(supervisor, request="good") is Outcome.FINISHED
    assert supervisor.stop(PATIENCE) == ()


@pytest.mark.usefixtures("down")
def test_a_subscriber_that_fails_gets_the_next_event(start):
    seen = queue.SimpleQueue()

    def fail(event):
        seen.put(event.name)
        raise LookupError

    supervisor = start(app=[FINISH])
    supervisor.subscribe(fail)
    ended(supervisor)
    while seen.get(timeout=PATIENCE) is not EventName.TASK_ENDED:
        pass
    assert supervisor.stop(PATIENCE) == ()


@pytest.mark.usefixtures("down")
def test_dead_blackboard_is_rebuilt(start):
    supervisor = start(app=[FINISH])
    events = supervisor._assembly.stream.open()
    pykka.ActorRegistry.get_by_class(Blackboard)[-1].tell(RowsKept(["no row at all"]))
    assert events.get(PATIENCE).name is EventName.BLACKBOARD_REBUILT
    assert ended(supervisor) is Outcome.FINISHED
    assert supervisor.stop(PATIENCE) == ()


def test_waiting_caller_gets_an_error_when_the_host_stops_all_actors(down, tmp_path):
    begun, go = threading.Event(), threading.Event()

    async def model(_request):
        begun.set()
        await asyncio.to_thread(go.wait, HELD)
        return FINISH

    settings = Settings.load(journal={"path": tmp_path / "journal.db"})
    supervisor = Supervisor.start(settings, models={"app": model}, servers=windows())
    handle = supervisor.submit(lone())
    assert begun.wait(PATIENCE)
    down.log_all()
    supervisor._assembly.client.root.stop(timeout=PATIENCE)
    with pytest.raises(SupervisorStoppedError):
        handle.result(PATIENCE)
    go.set()
    assert supervisor.stop(PATIENCE) == ()


def test_an_alarm_that_fails_does_not_end_the_clock(down):
    clock, rung = SystemClock("test-clock"), threading.Event()
    clock.start()
    clock.after(0, lambda: pykka.ActorRegistry.no_such_thing)
    clock.after(0, rung.set)
    assert rung.wait(PATIENCE)
    assert clock.stop(PATIENCE)
    assert down.seen.get(timeout=PATIENCE) == "an alarm failed"


def test_a_report_that_fails_does_not_end_the_watch(down):
    loop, again = EventLoop("test-loop"), queue.SimpleQueue()
    loop.start()

    def tick():
        again.put(None)
        raise LookupError

    dog = Watchdog("test-watchdog", loop, 0.01, on_blocked=print, on_free=print, on_tick=tick)
    dog.start()
    for _ in range(3):
        again.get(timeout=PATIENCE)
    assert dog.stop(PATIENCE)
    assert down.seen.get(timeout=PATIENCE) == "a report of the watchdog failed"
    assert loop.stop(PATIENCE)


@pytest.mark.parametrize("how", ["a call", "a callback"])
def test_a_callback_that_fails_does_not_end_the_event_loop(down, how):
    loop = EventLoop("test-loop")
    loop.start()

    def fail():
        raise LookupError

    if how == "a call":
        loop.call(fail)
    else:
        loop.call(lambda: asyncio.get_running_loop().call_soon(fail))
    down.seen.get(timeout=PATIENCE)
    assert loop.submit(asyncio.sleep(0, "alive")).result(PATIENCE) == "alive"
    assert loop.stop(PATIENCE)
