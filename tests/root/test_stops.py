"""Stops: a task that a stop interrupts goes on in the next process, and never ends by an effect of the stop itself."""

from __future__ import annotations

import asyncio
import functools
import random
import threading
import time

import pytest

from callboard import EventName, Model, Task, ToolError, tool
from callboard.actors.late_results import JobReturned
from callboard.actors.root import StopAgents
from callboard.actors.runtime import EventLoop, Lanes, ScheduledActor, Scheduler
from callboard.journal import JournalFile
from callboard.messages import ModelError, SupervisorStoppedError
from callboard.surface import Effect, Probe, current_call
from callboard.testing import Faults, MemoryServer
from support import ASSIGN, FINISH, HELD, PATIENCE, append, lone


class Turned:
    """Holds the agents' thread, so that the last job comes back right before the agents are stopped."""

    def __init__(self):
        self.put, self.returned, self.go = Scheduler.put, threading.Event(), threading.Event()
        self.held, self.armed = [], False

    def handle(self, _message, _reply_to):
        assert self.go.wait(HELD)

    def __call__(self, scheduler, actor, message, reply_to=None):
        if self.armed and isinstance(message, JobReturned):
            self.held.append((scheduler, actor, message))
            self.returned.set()
        elif self.armed and isinstance(message, StopAgents):
            assert self.returned.wait(PATIENCE)
            self.put(self.held[0][0], self, None)
            for late in self.held:
                self.put(*late)
            self.put(scheduler, actor, message, reply_to)
            self.go.set()
        else:
            self.put(scheduler, actor, message, reply_to)


def test_stop_of_the_agents_lets_no_step_begin(begin, monkeypatch):
    turned, acting, go, events = Turned(), threading.Event(), threading.Event(), []
    monkeypatch.setattr(Scheduler, "put", functools.partialmethod(turned))
    with Faults() as faults:
        faults.before("effect", lambda: (acting.set(), go.wait(HELD)))
        supervisor = begin(app=[append("1"), FINISH])
        supervisor.subscribe(events.append)
        supervisor.submit(lone(id="t"))
        assert acting.wait(PATIENCE)
        turned.armed = True
        go.set()
        supervisor.stop()
        turned.armed = False
    assert [event.name for event in events].count(EventName.STEP_STARTED) == 1
    assert begin(app=[append("1"), FINISH]).handle("t").result(PATIENCE).ok


class Broken(Model):
    """A model whose client breaks when a stop cancels it, or closes it; or one that fails of itself."""

    def __init__(self, breaks):
        self.breaks, self.asked, self.closed = breaks, threading.Event(), asyncio.Event()

    async def answer(self, _request):
        self.asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if self.breaks == "closed":
                await self.closed.wait()
            msg = "the client is closed"
            raise ModelError(msg) from None

    async def close(self):
        self.closed.set()


@pytest.mark.parametrize("breaks", ["cancelled", "closed"])
def test_a_model_that_a_stop_breaks_has_not_failed(begin, breaks):
    model = Broken(breaks)
    supervisor = begin(app=model)
    supervisor.submit(lone(id="t"))
    assert model.asked.wait(PATIENCE)
    supervisor.stop(0.1 if breaks == "closed" else PATIENCE)
    assert begin(app=[FINISH]).handle("t").result(PATIENCE).ok


class GivingUp(MemoryServer):
    """A surface whose tool fails while the supervisor stops: as it is told to, or for a reason of its own."""

    def __init__(self, told):
        super().__init__(MemoryServer.window())
        self.told, self.began, self.go, self.over = told, threading.Event(), threading.Event(), threading.Event()

    def probe(self, *_):
        return Probe.DONE if self.effects else Probe.NOT_DONE

    def _work(self, effect):
        if self.began.is_set():
            self.effects.append(("memo:one", effect, "done"))
            return
        self.began.set()
        if self.told:
            end = time.monotonic() + PATIENCE
            while not current_call().given_up and time.monotonic() < end:
                self.over.wait(0.01)
        else:
            assert self.go.wait(HELD)
        msg = "nothing was done"
        raise ToolError(msg)

    @tool(effect=Effect.ONCE)
    def once(self, target: str) -> None:
        """Work."""
        self._work("once")

    @tool(effect=Effect.IDEMPOTENT)
    def again(self, target: str) -> None:
        """Work."""
        self._work("again")


@pytest.mark.parametrize("name", ["once", "again"])
def test_a_call_that_a_stop_has_ended_is_made_by_the_next_process(begin, name):
    surface = GivingUp(told=True)
    appended = {"control_id": "field-1", "text": "1"}
    actions = [{"function": name, "arguments": {}}, {"function": "append", "arguments": appended}]
    app = [{"Status": "CONTINUE", "Actions": actions}, FINISH]
    supervisor = begin(app=app, servers=[surface])
    supervisor.submit(lone(id="t"))
    assert surface.began.wait(PATIENCE)
    assert supervisor.stop() == ()
    assert begin(app=app, servers=[surface]).handle("t").result(PATIENCE).ok
    assert [effect for _, *effect in surface.effects] == [[name, "done"], ["field-1", "1"]]


def test_a_call_that_fails_by_itself_during_a_stop_has_failed(begin):
    surface, failures = GivingUp(told=False), []

    def app(request):
        failures.extend(result.error for record in request.memory for result in record.results)
        return FINISH if request.memory else {"Status": "CONTINUE", "Function": "once", "Args": {}}

    supervisor = begin(app=app, servers=[surface])
    handle = supervisor.submit(lone(id="t"))
    assert surface.began.wait(PATIENCE)
    stopping = threading.Thread(target=supervisor.stop)
    stopping.start()
    with pytest.raises(SupervisorStoppedError):
        handle.result(PATIENCE)
    surface.go.set()
    stopping.join(PATIENCE)
    assert begin(app=app, servers=[surface]).handle("t").result(PATIENCE).ok
    assert (surface.effects, failures) == ([], ["nothing was done"])


STOPS = {"short": 30, "long": 300}


@pytest.fixture
def shaken(monkeypatch):
    """Have each hand-over between two threads take a random, tiny time longer; at most 2 ms."""
    chance = random.Random(15)  # noqa: S311 - it keeps no secret

    def slowed(kind, name):
        real = getattr(kind, name)

        def slow(*given, **named):
            if chance.random() < 0.3:
                time.sleep(chance.random() * 0.002)
            return real(*given, **named)

        monkeypatch.setattr(kind, name, slow)

    for kind, name in (
        (Scheduler, "put"),
        (ScheduledActor, "handle"),
        (EventLoop, "call"),
        (Lanes, "_put"),
        (JournalFile, "commit"),
        (MemoryServer, "observe"),
        (MemoryServer, "_text"),
    ):
        slowed(kind, name)
    return chance


@pytest.mark.parametrize("stops", ["short", pytest.param("long", marks=(pytest.mark.slow, pytest.mark.timeout(1800)))])
def test_no_stop_ends_a_task_or_repeats_an_action(begin, shaken, stops):
    surface = MemoryServer(*(MemoryServer.window(str(number)) for number in range(3)))
    steps = STOPS[stops]

    def app(request):
        (field,) = request.observation.controls
        number = field.detail["text"].count(",") + 1
        return append(f"{number},", "FINISH" if number == steps else "CONTINUE")

    def host(request):
        return ASSIGN | {"ControlText": "memo:0"} if request.call == 1 else FINISH

    tasks = [Task(id="led", request="x"), lone("memo:1", id="one"), lone("memo:2", id="two")]
    limits = {"steps": 10 * steps}
    for stop in range(STOPS[stops]):
        supervisor = begin(app=app, host=host, servers=[surface], limits=limits)
        if not stop:
            supervisor.submit_all(tasks)
        time.sleep(shaken.random() * 0.03)
        assert supervisor.stop() == ()
    supervisor = begin(app=app, host=host, servers=[surface], limits=limits)
    for task in tasks:
        assert supervisor.handle(task.id).result(PATIENCE).ok
    for number in range(3):
        written = "".join(text for target, _, text in surface.effects if target == f"memo:{number}")
        assert written == "".join(f"{step}," for step in range(1, steps + 1))
