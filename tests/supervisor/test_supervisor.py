"""The supervisor as a host program uses it."""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import re
import sys
import threading

import pykka
import pytest
from pydantic import ValidationError

import forks
from callboard import EventName, FunctionModel, Outcome, Settings, Supervisor, Task, tool
from callboard.journal import JournalFile
from callboard.messages import (
    AgentKind,
    Effect,
    LeaseVoidError,
    SettingsError,
    SupervisorStoppedError,
    Target,
    TargetKind,
    TaskRefusedError,
    UnknownTargetError,
    UnknownTaskError,
    WouldDeadlockError,
)
from callboard.surfaces import committing
from callboard.testing import MemoryServer
from support import ASSIGN, HELD, PATIENCE, lone, write

FINISH = {"Status": "FINISH", "Comment": "done"}
WRITE = write(status="FINISH")


def test_a_task_runs_to_its_result(start):
    supervisor = start(host=[ASSIGN, FINISH], app=[WRITE])
    result = supervisor.submit(Task(request="say hello")).result(PATIENCE)
    assert result.outcome is Outcome.FINISHED
    assert result.ok
    assert result.output == "hello"
    assert result.comment == "done"
    assert [done.address for done in result.subtasks] == ["app/memo/one"]
    assert (result.usage.steps, result.usage.model_calls, result.usage.commands) == (3, 3, 1)
    assert result.causes == ()


def test_a_tasks_events_begin_with_its_submission_and_end_with_its_end(start):
    supervisor = start(host=[ASSIGN, FINISH], app=[WRITE])
    handle = supervisor.submit(Task(request="say hello"))
    events = list(handle.events())
    assert events[0].name is EventName.TASK_SUBMITTED
    assert events[-1].name is EventName.TASK_ENDED
    assert {event.task_id for event in events} == {handle.task_id}
    assert [event.seq for event in events] == sorted(event.seq for event in events)
    assert [event.name for event in handle.events()] == [event.name for event in events]


async def test_a_handle_is_awaited_and_iterated_in_a_coroutine(start):
    supervisor = start(host=[ASSIGN, FINISH], app=[WRITE])
    handle = supervisor.submit(Task(request="say hello"))
    names = [event.name async for event in handle]
    result = await handle
    assert names[-1] is EventName.TASK_ENDED
    assert result.ok


async def test_giving_up_an_await_does_not_cancel_the_task(start):
    go = asyncio.Event()
    loop = asyncio.get_running_loop()
    asked, release = threading.Event(), threading.Event()

    async def host(_request):
        asked.set()
        await asyncio.to_thread(release.wait)
        return FINISH

    supervisor = start(host=FunctionModel(host))
    handle = supervisor.submit(Task(request="wait"))
    waiting = asyncio.ensure_future(asyncio.wait_for(_wait(handle), PATIENCE))
    await loop.run_in_executor(None, asked.wait)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    release.set()
    go.set()
    assert (await handle).ok


async def _wait(handle):
    return await handle


def test_a_lone_target_needs_no_host_agent(start):
    supervisor = start(app=[WRITE])
    result = supervisor.submit(Task(request="write hello", target="memo:one")).result(PATIENCE)
    assert result.outcome is Outcome.FINISHED
    assert result.output == "hello"
    assert result.rounds == 1
    assert "host" not in {agent.partition("/")[0] for agent in supervisor.status().agents}


@pytest.mark.parametrize("target", ["memo:one", "app/memo/one"])
def test_a_target_is_named_by_id_or_address(start, target):
    supervisor = start(app=[WRITE])
    assert supervisor.submit(Task(request="write hello", target=target)).result(PATIENCE).ok


def test_mobile_and_linux_agents_run_on_test_tools(start):
    surface = MemoryServer(MemoryServer.device("phone"), MemoryServer.shell("box"))
    nested = {
        "action": {"function": "write", "arguments": {"control_id": "field-1", "text": "x"}, "status": "FINISH"},
        "thought": "one tap is enough",
    }
    supervisor = start(mobile=[nested], linux=[nested], servers=[surface])
    results = [supervisor.submit(Task(request="tap", target=name)).result(PATIENCE) for name in ("phone", "box")]
    assert [result.subtasks[0].address for result in results] == ["mobile/phone", "linux/box"]
    assert surface.effects == [("phone", "field-1", "x"), ("box", "field-1", "x")]


def test_a_host_agent_works_with_mobile_and_linux_agents(start):
    surface = MemoryServer(MemoryServer.device("phone"), MemoryServer.shell("box"))
    host = [
        {"Status": "ASSIGN", "ControlText": "phone", "Current Sub-Task": "tap"},
        {"Status": "ASSIGN", "ControlText": "box", "Current Sub-Task": "list"},
        FINISH,
    ]
    done = [{"action": {"function": "read", "arguments": {"control_id": "field-1"}, "status": "FINISH"}}]
    supervisor = start(host=host, mobile=done, linux=done, servers=[surface])
    result = supervisor.submit(Task(request="both")).result(PATIENCE)
    assert result.ok
    assert [done.address for done in result.subtasks] == ["mobile/phone", "linux/box"]


def test_the_blackboard_is_readable_while_and_after_a_task_runs(start):
    supervisor = start(host=[ASSIGN, FINISH], app=[WRITE])
    handle = supervisor.submit(Task(request="say hello"))
    handle.result(PATIENCE)
    board = supervisor.blackboard(handle.task_id)
    assert [entry.content for entry in board.requests] == ["say hello"]
    assert [entry.content["outcome"] for entry in board.subtasks] == ["finished"]
    assert [entry.author for entry in board.trajectories] == [
        f"host/{handle.task_id}",
        "app/memo/one",
        f"host/{handle.task_id}",
    ]
    assert board.dropped == 0


def test_the_blackboard_keeps_no_more_rows_than_the_settings_say(start):
    steps = [{"Status": "CONTINUE"}] * 5 + [FINISH]
    supervisor = start(app=steps, blackboard={"rows": 3}, limits={"repeats": 10})
    handle = supervisor.submit(Task(request="wander", target="memo:one"))
    handle.result(PATIENCE)
    board = supervisor.blackboard(handle.task_id)
    rows = [*board.requests, *board.questions, *board.trajectories, *board.subtasks]
    assert len(rows) == 3
    assert board.dropped == 5


def test_unknown_task_has_an_empty_blackboard(start):
    assert start().blackboard("nothing").requests == ()


@pytest.mark.parametrize(
    "fields", [{}, {"request": ""}, {"request": "  \n"}, {"request": 5}, {"request": "x", "colour": "red"}]
)
def test_a_bad_task_is_refused_when_it_is_made(fields):
    with pytest.raises(ValidationError):
        Task(**fields)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda handle, request: handle.approve(request), "handle.approve(request.id); this is of the type Approval"),
        (lambda handle, request: handle.approve((request,)), "handle.approve(request.id); this is of the type tuple"),
        (lambda handle, request: handle.reject(request), "handle.reject(request.id); this is of the type Approval"),
        (lambda handle, request: handle.answer(request, "x"), "handle.answer(question.id, text); this is of the type"),
        (lambda handle, _: handle.result("5"), "result: timeout is a number of seconds, or None, not of the type str"),
    ],
)
def test_handle_refuses_other_types(start, call, words):
    supervisor = start(app=[write("a"), FINISH], policy=[{"verdict": "approve", "tool": "write", "reason": "look"}])
    handle = supervisor.submit(lone())
    next(event for event in handle.events() if event.name is EventName.APPROVAL_REQUESTED)
    (request,) = handle.approvals()
    with pytest.raises(TypeError, match=re.escape(words)):
        call(handle, request)
    assert handle.approvals() == (request,)


def test_subscribe_refuses_what_is_no_function(start):
    with pytest.raises(TypeError, match="subscribe takes a function that gets each event, not str"):
        start().subscribe("print")


def test_submit_refuses_other_types(start):
    with pytest.raises(TypeError, match="Task"):
        start().submit("do something")


def test_an_unknown_target_is_refused_before_anything_starts(start):
    supervisor = start(app=[WRITE])
    with pytest.raises(UnknownTargetError, match="memo:one") as refused:
        supervisor.submit(Task(request="x", target="memo:two"))
    assert refused.value.known == ("memo:one",)
    assert supervisor.status().tasks == ()
    assert supervisor.status().agents == ()


def test_an_application_is_no_lone_target(start, tmp_path):
    supervisor = start(documents={"workspace": tmp_path}, servers=[])
    with pytest.raises(TaskRefusedError, match="application"):
        supervisor.submit(Task(request="x", target="excel"))


def test_a_task_id_is_used_once(start):
    supervisor = start(host=[FINISH])
    supervisor.submit(Task(id="same", request="x")).result(PATIENCE)
    with pytest.raises(TaskRefusedError, match="same"):
        supervisor.submit(Task(id="same", request="y"))


@pytest.mark.parametrize("name", [{"key": "order-17"}, {"id": "order-17"}])
def test_a_task_that_is_over_is_the_same_task_when_it_is_asked_for_again(start, name):
    surface = MemoryServer(MemoryServer.window())
    supervisor = start(app=[WRITE], servers=[surface])
    first = supervisor.submit(Task(request="write hello", target="memo:one", **name))
    done = first.result(PATIENCE)
    for _ in range(2):
        again = supervisor.submit(Task(request="write hello", target="memo:one", **name))
        assert (again.task_id, again.done(), again.result(0)) == (first.task_id, True, done)
    assert supervisor.handle(first.task_id).result(0) == done
    assert len(surface.effects) == 1
    assert supervisor.status().ended_tasks == 1


def test_a_key_is_one_task_however_many_ask_at_a_time(start):
    surface = MemoryServer(MemoryServer.window())
    supervisor = start(app=lambda _: WRITE, servers=[surface])
    ids, together = queue.Queue(), threading.Barrier(8)

    def ask():
        together.wait(PATIENCE)
        for number in range(20):
            handle = supervisor.submit(Task(request="write hello", target="memo:one", key=f"k{number}"))
            ids.put((number, handle.task_id, handle.result(PATIENCE).ok))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    answers = [ids.get(timeout=PATIENCE) for _ in range(160)]
    assert len(set(answers)) == len(surface.effects) == 20
    assert all(ok for _, _, ok in answers)


@pytest.mark.parametrize("name", [{"key": "order-17"}, {"id": "order-17"}])
def test_a_task_submitted_again_during_its_target_lookup_is_the_same_one(start, monkeypatch, name):
    surface, first = MemoryServer(MemoryServer.window()), []
    supervisor = start(app=[WRITE], servers=[surface])

    def task():
        return Task(request="write hello", target="memo:one", **name)

    def targets(asked):
        monkeypatch.undo()
        first.append(supervisor.submit(task()))
        assert first[0].result(PATIENCE).ok
        return supervisor._assembly.lookup.targets(asked)

    monkeypatch.setattr(supervisor._assembly.lookup, "targets", targets)
    second = supervisor.submit(task())
    assert (second.task_id, second.result(0)) == (first[0].task_id, first[0].result(0))
    assert len(surface.effects) == 1
    assert supervisor.pending() == ()
    assert supervisor.submit(Task(request="write hello", target="memo:one")).result(PATIENCE).ok


def test_a_task_with_secrets_that_is_asked_for_again_stays_paused(start, until):
    asked, release = threading.Event(), threading.Event()

    async def app(_request):
        asked.set()
        await asyncio.to_thread(release.wait)
        return WRITE

    task = Task(id="t", request="write hello", target="memo:one", secrets={"PIN": "1234-5678"})
    supervisor = start(app=FunctionModel(app))
    handle = supervisor.submit(task)
    assert asked.wait(PATIENCE)
    assert handle.pause()
    assert supervisor.submit(task.model_copy()).task_id == "t"
    assert supervisor.status().tasks[0].paused
    release.set()
    assert handle.resume()
    assert handle.result(PATIENCE).ok
    assert supervisor.submit(task.model_copy()).result(0).ok


def test_stopped_supervisor_takes_no_task(start):
    supervisor = start(host=[FINISH])
    assert supervisor.stop() == ()
    with pytest.raises(SupervisorStoppedError):
        supervisor.submit(Task(request="x"))
    with pytest.raises(SupervisorStoppedError):
        supervisor.status()


def test_stopped_supervisor_looks_for_no_targets(start):
    before = set(threading.enumerate())
    surface = MemoryServer(MemoryServer.window())
    looks = []
    surface.targets = lambda: looks.append(1)
    supervisor = start(servers=[surface])
    supervisor.stop()
    for call in (supervisor.targets, lambda: supervisor.submit(lone())):
        with pytest.raises(SupervisorStoppedError):
            call()
    assert (looks, set(threading.enumerate()) - before) == ([], set())


def test_no_target_is_looked_up_after_all_actors_were_stopped(start):
    surface = MemoryServer(MemoryServer.window())
    looks = []
    surface.targets = lambda: looks.append(1)
    supervisor = start(servers=[surface])
    pykka.ActorRegistry.stop_all()
    for call in (supervisor.targets, lambda: supervisor.submit(lone())):
        with pytest.raises(SupervisorStoppedError):
            call()
    assert looks == []


def test_a_target_lookup_during_a_stop_does_not_call_the_target_unknown(start):
    asked, go, refused = threading.Event(), threading.Event(), queue.Queue()

    class Slow(MemoryServer):
        def targets(self):
            asked.set()
            go.wait(HELD)
            return ()

    def submit():
        with pytest.raises(SupervisorStoppedError) as error:
            supervisor.submit(lone())
        refused.put(error.value)

    supervisor = start(servers=[Slow(MemoryServer.window())])
    asking = threading.Thread(target=submit)
    asking.start()
    assert asked.wait(PATIENCE)
    assert "lane memory:" in supervisor.stop(0.1)
    go.set()
    assert str(refused.get(timeout=PATIENCE)) == "the supervisor is stopped"
    asking.join(PATIENCE)


@pytest.mark.parametrize("kept", [False, True])
def test_a_hanging_function_is_named_by_its_own_supervisors_stop_alone(start, tmp_path, kept):
    asked, release = threading.Event(), threading.Event()

    def app(_request):
        asked.set()
        release.wait(HELD)
        return FINISH

    journal = {"path": tmp_path / "journal.db"} if kept else {}
    blocked, other = start(app=app, journal=journal), start(app=[FINISH])
    blocked.submit(lone())
    assert asked.wait(PATIENCE)
    assert other.stop() == ()
    assert "callboard-model-app/memo/one" in blocked.stop(0.1)
    release.set()
    for thread in threading.enumerate():
        if thread.name == "callboard-model-app/memo/one":
            thread.join(PATIENCE)


def test_a_function_that_returns_while_the_supervisor_stops_is_waited_for(start):
    asked, release = threading.Event(), threading.Event()

    def app(_request):
        asked.set()
        release.wait(HELD)
        return FINISH

    supervisor = start(app=app)
    handle = supervisor.submit(lone())
    assert asked.wait(PATIENCE)
    waiting = threading.Thread(target=lambda: (handle.result(PATIENCE), release.set()))
    waiting.start()
    assert supervisor.stop() == ()
    waiting.join()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("callboard-model")]


def test_stop_waits_for_a_hanging_root_up_to_its_limit(start, monkeypatch):
    monkeypatch.setattr("callboard.actors.assembly.BLOCKED_SECONDS", 0.05)
    supervisor, let_go, stopped = start(app=[WRITE]), threading.Event(), queue.SimpleQueue()

    class Hanging:
        def handle(self, _message, _reply_to):
            let_go.wait(HELD)

    supervisor._assembly.schedulers.root.put(Hanging(), None)
    threading.Thread(target=lambda: stopped.put(supervisor.stop(0.01)), daemon=True).start()
    try:
        assert stopped.get(timeout=PATIENCE) == ("the root", "callboard-root")
    finally:
        let_go.set()
    assert supervisor._assembly.schedulers.root.stop(PATIENCE)


class Busy:
    """A subscriber that does not return from its first event before it is let go."""

    def __init__(self):
        self.threads, self.let_go, self.heard = queue.SimpleQueue(), threading.Event(), []

    def __call__(self, event):
        if not self.let_go.is_set():
            self.threads.put(threading.current_thread())
            self.let_go.wait(HELD)
        self.heard.append(event.name)


@pytest.fixture
def busy():
    subscriber = Busy()
    yield subscriber
    subscriber.let_go.set()


def test_a_stop_names_a_subscriber_that_does_not_return(start, busy):
    supervisor = start()
    supervisor.subscribe(busy, after=0)
    thread = busy.threads.get(timeout=PATIENCE)
    assert thread.name in supervisor.stop(0.1)
    busy.let_go.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_stop_waits_for_a_subscriber_up_to_its_limit(start, busy, monkeypatch):
    supervisor, waited, join = start(), [], threading.Thread.join
    supervisor.subscribe(busy, after=0)
    subscribers = busy.threads.get(timeout=PATIENCE)

    def joined(thread, timeout=None):
        if thread is subscribers:
            waited.append(timeout)
            busy.let_go.set()  # it returns because it is waited for
        join(thread, timeout)

    monkeypatch.setattr(threading.Thread, "join", joined)
    assert (supervisor.stop(PATIENCE), waited) == ((), [PATIENCE])
    assert busy.heard[-1] is EventName.SUPERVISOR_STOPPED


def test_stop_is_idempotent_and_leaves_no_thread(start):
    before = set(threading.enumerate())
    supervisor = start(host=[ASSIGN, FINISH], app=[WRITE])
    supervisor.submit(Task(request="say hello")).result(PATIENCE)
    assert supervisor.stop() == ()
    assert supervisor.stop() == ()
    left = [thread.name for thread in set(threading.enumerate()) - before if not _ends(thread)]
    assert left == []


def _ends(thread):
    thread.join(PATIENCE)
    return not thread.is_alive()


def test_leaving_the_block_cancels_what_runs():
    asked = threading.Event()

    async def host(_request):
        asked.set()
        await asyncio.Event().wait()

    settings = Settings.load()
    with Supervisor.start(settings, models={"host": FunctionModel(host)}) as supervisor:
        handle = supervisor.submit(Task(request="for ever"))
        assert asked.wait(PATIENCE)
    assert handle.result(0).outcome is Outcome.CANCELLED


def test_several_supervisors_live_side_by_side(start):
    one, two = start(host=[FINISH]), start(host=[FINISH])
    assert one.submit(Task(id="t", request="x")).result(PATIENCE).ok
    one.stop()
    assert two.submit(Task(id="t", request="x")).result(PATIENCE).ok


def test_waiting_handles_get_an_error_when_all_actors_are_stopped(start):
    asked = threading.Event()

    async def host(_request):
        asked.set()
        await asyncio.Event().wait()

    supervisor = start(host=FunctionModel(host))
    handle = supervisor.submit(Task(request="for ever"))
    assert asked.wait(PATIENCE)
    pykka.ActorRegistry.stop_all()
    with pytest.raises(SupervisorStoppedError):
        handle.result(PATIENCE)
    assert list(handle.events())[-1].name is not EventName.TASK_ENDED


@pytest.mark.parametrize("kept", [False, True])
def test_actions_stop_when_the_host_program_stops_all_actors(start, tmp_path, kept):
    asked, release, void = threading.Event(), threading.Event(), queue.Queue()

    class Slow(MemoryServer):
        @tool(effect=Effect.IDEMPOTENT, agents=(AgentKind.APP,))
        def slow(self, target: str, number: int) -> str:
            """Do something that takes its time."""
            if number == 1:
                asked.set()
                release.wait(HELD)
            try:
                with committing():
                    self.effects.append((target, "", str(number)))
            except LeaseVoidError as error:
                void.put(error)
                raise
            return "done"

    surface = Slow(MemoryServer.window())
    actions = {
        "Status": "CONTINUE",
        "ActionList": [{"Function": "slow", "Args": {"number": number}} for number in range(8)],
    }
    journal = {"path": tmp_path / "journal.db"} if kept else {}
    supervisor = start(app=lambda _: actions, servers=[surface], journal=journal)
    handle = supervisor.submit(lone())
    assert asked.wait(PATIENCE)
    pykka.ActorRegistry.stop_all()
    with pytest.raises(SupervisorStoppedError):
        handle.result(PATIENCE)
    release.set()
    void.get(timeout=PATIENCE)
    assert supervisor._assembly.jobs.drain(PATIENCE)
    assert [text for _, _, text in surface.effects] == ["0"]
    assert supervisor.stop() == ()


def test_a_blocking_call_from_one_of_our_threads_is_refused_at_once(start):
    refused: list[BaseException] = []

    async def host(_request):
        await asyncio.to_thread(submitted.wait)
        for call in (supervisor.status, supervisor.targets, handles[0].result, handles[0].events):
            try:
                call()
            except WouldDeadlockError as error:
                refused.append(error)
        return FINISH

    handles, submitted = [], threading.Event()
    supervisor = start(host=FunctionModel(host))
    handles.append(supervisor.submit(Task(request="x")))
    submitted.set()
    assert handles[0].result(PATIENCE).ok
    assert len(refused) == 4


def test_a_subscriber_hears_everything_in_order(start):
    supervisor = start(host=[ASSIGN, FINISH], app=[WRITE])
    heard: queue.Queue = queue.Queue()
    supervisor.subscribe(heard.put, after=0)
    supervisor.submit(Task(request="say hello")).result(PATIENCE)
    events = []
    while not events or events[-1].name is not EventName.TASK_ENDED:
        events.append(heard.get(timeout=PATIENCE))
    assert events[0].name is EventName.SUPERVISOR_STARTED
    numbers = [event.seq for event in events if event.name is not EventName.PHASE_ENDED]  # those have none of their own
    assert numbers == list(range(1, len(numbers) + 1))
    assert [event.seq for event in events] == sorted(event.seq for event in events)


def test_subscriber_continues_after_a_number(start):
    supervisor = start(host=[FINISH])
    handle = supervisor.submit(Task(request="x"))
    handle.result(PATIENCE)
    last = list(handle.events())[-1].seq
    heard: queue.Queue = queue.Queue()
    supervisor.subscribe(heard.put, after=last - 2)
    assert [heard.get(timeout=PATIENCE).seq, heard.get(timeout=PATIENCE).seq] == [last - 1, last]


def test_slow_subscriber_gets_a_count_of_missed_events(start):
    entered, release, heard = threading.Event(), threading.Event(), queue.Queue()

    def slow(event):
        entered.set()
        release.wait(HELD)
        heard.put(event)

    supervisor = start(host=[ASSIGN, FINISH], app=[WRITE], events={"queue": 5})
    supervisor.subscribe(slow)
    handle = supervisor.submit(Task(request="say hello"))
    assert entered.wait(PATIENCE)
    assert handle.result(PATIENCE).ok
    release.set()
    first, second = heard.get(timeout=PATIENCE), heard.get(timeout=PATIENCE)
    assert second.name is EventName.EVENTS_MISSED
    third = heard.get(timeout=PATIENCE)
    assert second.data["count"] == third.seq - first.seq - 1


def test_subscriber_that_raises_is_logged_and_continues(start, caplog):
    heard: queue.Queue = queue.Queue()

    def bad(event):
        heard.put(event)
        msg = "my own bug"
        raise RuntimeError(msg)

    supervisor = start(host=[FINISH])
    with caplog.at_level(logging.ERROR, "callboard"):
        end = supervisor.subscribe(bad)
        supervisor.submit(Task(request="x")).result(PATIENCE)
        heard.get(timeout=PATIENCE)
        heard.get(timeout=PATIENCE)
        end()
        end()
    assert "my own bug" in caplog.text


def test_a_subscriber_may_call_the_supervisor(start):
    statuses: queue.Queue = queue.Queue()
    supervisor = start(host=[FINISH])
    supervisor.subscribe(lambda _event: statuses.put(supervisor.status()))
    supervisor.submit(Task(request="x")).result(PATIENCE)
    assert statuses.get(timeout=PATIENCE).accepting


def test_status_tells_what_runs_and_what_waits(start):
    asked, release = threading.Event(), threading.Event()

    async def app(_request):
        asked.set()
        await asyncio.to_thread(release.wait)
        return WRITE

    supervisor = start(app=FunctionModel(app))
    first = supervisor.submit(Task(id="first", request="one", target="memo:one"))
    assert asked.wait(PATIENCE)
    second = supervisor.submit(Task(id="second", request="two", target="memo:one"))
    tasks = {task.task_id: task for task in supervisor.status().tasks}
    release.set()
    assert tasks["first"].runs[0].leased
    assert not tasks["second"].runs[0].leased
    assert first.result(PATIENCE).ok
    assert second.result(PATIENCE).ok
    assert supervisor.status().ended_tasks == 2


def test_a_settings_error_leaves_nothing_running(tmp_path):
    before = set(threading.enumerate())
    with pytest.raises(SettingsError, match="scripted:FILE"):
        Supervisor.start(Settings.load(models={"host": "crystal-ball"}, base=tmp_path))
    with pytest.raises(SettingsError, match=r"missing\.yaml"):
        Supervisor.start(Settings.load(models={"host": "scripted:missing.yaml"}, base=tmp_path))
    assert set(threading.enumerate()) <= before


def test_task_without_a_model_ends_as_an_error_that_names_the_setting(start):
    result = start().submit(Task(request="x")).result(PATIENCE)
    assert result.outcome is Outcome.ERROR
    assert any("models.host" in cause.reason for cause in result.causes)


class _Down(MemoryServer):
    def __init__(self, answer):
        super().__init__(name="down")
        self.answer = answer

    def targets(self):
        return self.answer()


def test_a_surface_that_is_down_does_not_hide_the_targets_of_the_others(start):
    def broken():
        msg = "no answer"
        raise ConnectionError(msg)

    supervisor = start(app=[WRITE], servers=[_Down(broken), MemoryServer(MemoryServer.window())])
    assert [target.id for target in supervisor.targets()] == ["memo:one"]
    assert supervisor.submit(lone()).result(PATIENCE).ok
    with pytest.raises(TaskRefusedError, match="the targets of down can't be listed: no answer"):
        supervisor.submit(Task(request="x", target="elsewhere"))  # it may be one of those


def test_a_hanging_surface_delays_the_caller_no_longer_than_a_tool_call(start):
    release = threading.Event()
    surfaces = [_Down(release.wait), MemoryServer(MemoryServer.window())]
    supervisor = start(servers=surfaces, limits={"command_seconds": 2})
    assert [target.id for target in supervisor.targets()] == ["memo:one"]
    release.set()


def test_invalid_target_of_a_surface_is_left_out(start):
    assert start(servers=[_Down(lambda: ["a window"])]).targets() == ()


def test_events_end_with_the_task_also_when_they_are_no_longer_kept(start):
    supervisor = start(host=[FINISH], events={"kept": 20}, limits={"kept_tasks": 1})
    first = supervisor.submit(Task(request="x"))
    first.result(PATIENCE)
    for _ in range(5):
        supervisor.submit(Task(request="y")).result(PATIENCE)
    assert [event.name for event in first.events()] == [EventName.EVENTS_MISSED]


@pytest.mark.parametrize(
    ("targets", "words"),
    [
        (None, "targets() must give Target objects, not NoneType"),
        (["memo:one"], "targets() must give Target objects, not str"),
        (7, "'int' object is not iterable"),
    ],
)
def test_surface_that_lists_no_targets_is_named(start, targets, words):
    surface = MemoryServer(MemoryServer.window())
    surface.targets = lambda: targets
    with pytest.raises(TaskRefusedError, match=re.escape(f"the targets of memory can't be listed: {words}")):
        start(servers=[surface]).submit(lone())


async def test_events_end_in_a_coroutine_too_when_they_are_no_longer_kept(start):
    supervisor = start(host=[FINISH], events={"kept": 20}, limits={"kept_tasks": 1})
    first = supervisor.submit(Task(request="x"))
    await first
    for _ in range(5):
        await supervisor.submit(Task(request="y"))
    assert [event.name async for event in first] == [EventName.EVENTS_MISSED]


def test_a_plain_function_may_block_without_holding_up_anybody(start):
    asked, release = threading.Event(), threading.Event()

    def host(request):
        if request.task_request == "block":
            asked.set()
            release.wait(HELD)
        return FINISH

    supervisor = start(host=host)
    blocked = supervisor.submit(Task(request="block"))
    assert asked.wait(PATIENCE)
    assert supervisor.submit(Task(request="other")).result(PATIENCE).ok
    blocked.cancel()
    assert blocked.result(PATIENCE).outcome is Outcome.CANCELLED
    release.set()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"settings": Settings}, "not the class Settings: Settings.load(**sections)"),
        ({"settings": 42}, "settings must be a file's path, Settings or None, not of the type int: Supervisor.start("),
        ({"settings": {"limits": {}}}, "not of the type dict: Settings.load(**sections)"),
        ({"models": {"pilot": lambda _: FINISH}}, "models: there is no kind of agent 'pilot'"),
        ({"models": {"host": 42}}, "models: host: pass models={'app': decide}: a function or a `Model` for each kind"),
    ],
)
def test_invalid_arguments_are_refused_before_any_thread_starts(arguments, error):
    before = set(threading.enumerate())
    with pytest.raises((TypeError, SettingsError)) as info:
        Supervisor.start(**arguments)
    assert error in str(info.value)
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("arguments", [(), ("callboard.yaml",), (Settings(),)])
@pytest.mark.parametrize("named", [{}, {"servers": []}])
def test_supervisor_that_is_not_started_tells_how_to_start_it(arguments, named):
    with pytest.raises(TypeError, match=r"start it: with Supervisor\.start\('callboard.yaml'\) as supervisor"):
        Supervisor(*arguments, **named)


def test_a_function_is_taken_as_a_model():
    with Supervisor.start(Settings.load(), models={"host": lambda _: FINISH}) as supervisor:
        assert supervisor.submit(Task(request="x")).result(PATIENCE).ok


def test_stopped_supervisor_refuses_subscribers(start):
    supervisor = start()
    supervisor.stop()
    with pytest.raises(SupervisorStoppedError):
        supervisor.subscribe(print)


def test_agents_that_are_idle_are_kept_up_to_the_limit(start):
    surface = MemoryServer(*(MemoryServer.window(str(number)) for number in range(6)))
    supervisor = start(app=lambda _: FINISH, servers=[surface], limits={"idle_agents": 2})
    for number in range(6):
        supervisor.submit(Task(request="x", target=f"memo:{number}")).result(PATIENCE)
    assert supervisor.status().agents == ("app/memo/4", "app/memo/5")


def test_a_target_is_worked_on_by_the_agent_of_its_kind():
    with pytest.raises(ValidationError, match="worked on by mobile agents"):
        Target(id="x", name="x", kind=TargetKind.DEVICE, address="app/m/w", server="memory")


def test_a_surface_that_observes_something_else_fails_where_it_looked(start):
    class Odd(MemoryServer):
        def observe(self, target):
            return "a window"

    result = start(app=[FINISH], servers=[Odd(MemoryServer.window())]).submit(lone()).result(PATIENCE)
    assert result.outcome is Outcome.ERROR
    assert result.causes[0].reason.startswith("the target could not be observed: ")


def test_event_of_a_tool_call_has_its_state_and_step(start):
    handle = start(app=[{"Status": "CONTINUE"}, WRITE]).submit(Task(request="write hello", target="memo:one"))
    handle.result(PATIENCE)
    (ended,) = [event for event in handle.events() if event.name is EventName.COMMAND_ENDED]
    assert (ended.state, ended.step, ended.data["tool"]) == ("CONTINUE", 2, "write")


def test_a_stop_in_a_hurry_still_closes_the_journal_on_a_slow_disk(start, tmp_path, monkeypatch):
    slow, close = threading.Event(), JournalFile.close

    def slowly(file):
        assert not slow.wait(0.3)
        close(file)

    monkeypatch.setattr(JournalFile, "close", slowly)
    journal = {"path": tmp_path / "journal.db"}
    assert "the journal" not in start(app=[WRITE], journal=journal).stop(0.01)
    start(app=[WRITE], journal=journal)


def test_the_latest_tasks_that_are_over_are_known_without_a_journal(start):
    supervisor = start(app=lambda _: FINISH, limits={"kept_tasks": 2}, events={"kept": 20})
    forgotten, *known = (supervisor.submit(lone()).result(PATIENCE).task_id for _ in range(3))
    for task_id in known:
        again = supervisor.handle(task_id)
        assert (again.result(0).task_id, again.task.request) == (task_id, "x")
        names = [event.name for event in again.events()]
        assert (names[0], names[-1]) == (EventName.TASK_SUBMITTED, EventName.TASK_ENDED)
        assert EventName.EVENTS_MISSED not in names
    with pytest.raises(UnknownTaskError):
        supervisor.handle(forgotten)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_forked_child_gets_an_error_at_once(tmp_path):
    code = """
import os, warnings
from callboard import Supervisor, Task
from callboard.messages import CallboardError
from callboard.testing import MemoryServer

warnings.simplefilter("ignore")  # of a fork with threads
surface = MemoryServer(MemoryServer.window())
with Supervisor.start(models={"app": lambda _: {"Status": "FINISH"}}, servers=[surface]) as supervisor:
    if os.fork() == 0:
        for ask in (lambda: supervisor.submit(Task(request="x", target="memo:one")), supervisor.status):
            try:
                ask()
            except CallboardError as error:
                print(error, flush=True)
        assert supervisor.stop() == ()
        os._exit(0)
    os.wait()
    print(supervisor.submit(Task(request="x", target="memo:one")).result(30).outcome.value)
"""
    ran = forks.run([sys.executable, "-c", code], timeout=PATIENCE)
    told = "this process was forked from the one that started the supervisor: start another supervisor here"
    assert (ran.stdout.splitlines(), ran.stderr) == ([told, told, "finished"], "")
