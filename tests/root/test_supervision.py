"""Supervision: crashed or hung parts go on from the journal, as often as allowed; a stop leaves nothing."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import threading
from pathlib import Path

import pykka
import pytest

from callboard import EventName, FunctionModel, Outcome, Task, tool
from callboard.actors.agent import Agent, Continue
from callboard.actors.blackboard import Blackboard, RowsKept
from callboard.actors.late_results import JobReturned
from callboard.actors.states import Run
from callboard.journal import JournalFile
from callboard.messages import Effect, JournalError, LeaseVoidError, Pause, StepDone, SubtaskEnding
from callboard.surfaces import committing
from callboard.testing import MemoryServer, VirtualClock, assert_replays
from support import ASSIGN, FINISH, HELD, PATIENCE, append, lone

NO_WAIT = {"backoff": 0.0, "max_backoff": 0.0}


@pytest.fixture(params=["memory", "file"])
def journal(request, tmp_path):
    """Either journal: both are enough to restart an agent; the file is replayed."""
    if request.param == "memory":
        yield {}
        return
    path = tmp_path / "journal.db"
    yield {"path": path}
    assert_replays(path)


@pytest.fixture
def crashes(monkeypatch, caplog):
    """Let agents crash: ``crashes(when, times)`` raises while they handle a message for which `when` holds."""
    caplog.set_level(logging.CRITICAL, "pykka")
    original = Agent.receive

    def plan(when, times, error=ValueError):
        left = [times]

        def receive(self, message):
            if left[0] and when(self, message):
                left[0] -= 1
                msg = "a bug"
                raise error(msg)
            original(self, message)

        monkeypatch.setattr(Agent, "receive", receive)

    return plan


def stacks(seen, thread=""):
    """Give the stacks of blocked threads; on a busy machine other threads are late, too."""
    blocked = [event.data for event in seen if event.name is EventName.THREAD_BLOCKED]
    return [data["stack"] for data in blocked if thread in data["thread"]]


def step_done(number):
    return lambda _agent, message: (
        isinstance(message, JobReturned)
        and isinstance(message.result, StepDone)
        and message.result.record.step == number
    )


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt])
def test_crashed_agent_is_restarted_and_continues_with_the_next_step(start, crashes, journal, error):
    crashes(step_done(2), 1, error)
    surface, calls = MemoryServer(MemoryServer.window()), []

    def app(request):
        calls.append(request.call)
        return append(str(request.call), "FINISH" if request.call == 3 else "CONTINUE")

    supervisor = start(app=app, host=[ASSIGN, FINISH], servers=[surface], journal=journal, supervision=NO_WAIT)
    handle = supervisor.submit(Task(request="x"))
    result = handle.result(PATIENCE)
    assert result.ok, result.causes
    assert [text for _, _, text in surface.effects] == ["1", "2", "3"]
    assert calls == [1, 2, 3]
    events = list(handle.events())
    assert EventName.RUN_RECOVERED in {event.name for event in events}


def test_a_crashed_host_agent_hears_of_the_end_of_its_subtask(start, crashes, journal):
    crashed = threading.Event()

    def host_step(agent, message):
        mine = agent.address.startswith("host/") and isinstance(message, JobReturned)
        if mine and message.next_result is not None and message.next_result.result.kind == "assign":
            crashed.set()
            return True
        return False

    crashes(host_step, 1)

    def app(_request):
        crashed.wait(PATIENCE)
        return FINISH

    supervisor = start(app=app, host=[ASSIGN, FINISH], journal=journal, supervision={"backoff": 0.05})
    result = supervisor.submit(Task(request="x")).result(PATIENCE)
    assert result.ok, result.causes
    assert len(result.subtasks) <= 1


def test_too_many_crashes_end_the_work_with_the_chain_of_causes(start, crashes, journal):
    crashes(lambda agent, message: isinstance(message, JobReturned | Continue), 100)
    supervisor = start(app=[{"Status": "CONTINUE"}] * 9, journal=journal, supervision={**NO_WAIT, "intensity": 2})
    result = supervisor.submit(lone()).result(PATIENCE)
    assert result.outcome is Outcome.ERROR
    assert [cause.reason for cause in result.causes] == ["a bug"] * 3


class Files(MemoryServer):
    """A window with a tool that writes a file."""

    def __init__(self, folder):
        super().__init__(self.window())
        self.folder = folder

    @tool(effect=Effect.ONCE)
    def save(self, target: str, name: str) -> str:
        """Write a file."""
        path = self.folder / name
        with committing(path):
            path.write_text(target, encoding="utf-8")
        return name

    def path(self, name):
        return str(self.folder / name)


def save(name, status="CONTINUE"):
    return {"Status": status, "Function": "save", "Args": {"name": name}}


def of_apps(when):
    return lambda agent, message: agent.address.startswith("app/") and when(agent, message)


def test_result_has_the_work_of_an_agent_that_crashed_too_often(start, crashes, journal, tmp_path):
    crashes(step_done(3), 1)
    surface = Files(tmp_path)
    app = [save("a"), save("b"), {"Status": "CONTINUE", "Result": "all of it"}]
    supervisor = start(app=app, servers=[surface], journal=journal, supervision={"intensity": 0})
    handle = supervisor.submit(lone())
    result = handle.result(PATIENCE)
    assert (result.outcome, [cause.reason for cause in result.causes]) == (Outcome.ERROR, ["a bug"])
    assert result.artifacts == result.subtasks[0].made == (surface.path("a"), surface.path("b"))
    assert (result.output, result.rounds) == ("all of it", 1)
    assert (result.usage.steps, result.usage.model_calls, result.usage.commands) == (3, 3, 2)


def test_result_has_the_work_of_a_step_that_a_crash_broke_off(start, crashes, journal, tmp_path):
    begun, told = threading.Event(), threading.Event()
    crashes(lambda _agent, message: isinstance(message, Pause), 1)

    class Slow(Files):
        @tool(effect=Effect.ONCE)
        def wait(self, target: str) -> str:
            """Wait."""
            begun.set()
            told.wait(PATIENCE)
            return target

    surface = Slow(tmp_path)
    calls = [{"function": "save", "arguments": {"name": "a"}}, {"function": "wait"}]
    supervisor = start(
        app=[{"Status": "FINISH", "Actions": calls}], servers=[surface], journal=journal, supervision={"intensity": 0}
    )
    handle = supervisor.submit(lone())
    assert begun.wait(PATIENCE)
    handle.pause()
    result = handle.result(PATIENCE)
    told.set()
    assert (result.outcome, result.artifacts) == (Outcome.ERROR, (surface.path("a"),))
    assert (result.usage.steps, result.usage.model_calls) == (1, 1)


def test_a_host_agent_hears_what_a_subtask_had_done_that_crashed_too_often(start, crashes, journal, tmp_path):
    crashes(of_apps(step_done(2)), 1)
    surface = Files(tmp_path)
    supervisor = start(
        host=[ASSIGN],
        app=[save("a"), {"Status": "CONTINUE"}],
        servers=[surface],
        journal=journal,
        supervision={"intensity": 0},
    )
    result = supervisor.submit(Task(request="x")).result(PATIENCE)
    [subtask] = result.subtasks
    assert (subtask.outcome, subtask.artifacts, subtask.usage.steps) == (Outcome.ERROR, (surface.path("a"),), 2)
    assert (result.outcome, result.usage.steps, result.usage.model_calls) == (Outcome.ERROR, 3, 3)


def test_a_round_whose_host_agent_crashed_too_often_has_what_it_had_done(start, crashes, journal):
    crashes(lambda agent, message: agent.address.startswith("host/") and isinstance(message, SubtaskEnding), 1)
    supervisor = start(host=[ASSIGN], app=[append("1", "FINISH")], journal=journal, supervision={"intensity": 0})
    result = supervisor.submit(Task(request="x")).result(PATIENCE)
    assert (result.outcome, result.rounds) == (Outcome.ERROR, 1)
    assert (result.usage.steps, result.usage.model_calls) == (2, 2)
    assert [subtask.outcome for subtask in result.subtasks] == [Outcome.FINISHED]


def test_ending_sent_before_the_last_crash_stands(start, crashes, journal):
    crashes(lambda _agent, message: isinstance(message, JobReturned) and message.next_result is not None, 1)
    supervisor = start(app=[append("1", "FINISH")], journal=journal, supervision={"intensity": 0})
    result = supervisor.submit(lone()).result(PATIENCE)
    assert (result.outcome, result.usage.steps, result.subtasks[0].causes) == (Outcome.FINISHED, 1, ())


def test_result_has_the_work_of_an_agent_that_hung_too_often(start, journal):
    clock, surface = VirtualClock(), Stubborn()
    answers = [append("1"), {"Status": "FINISH", "Function": "resist"}]
    supervisor = start(
        app=answers,
        servers=[surface],
        clock=clock,
        journal=journal,
        supervision={"intensity": 0, "hung_seconds": 0.05},
    )
    handle = supervisor.submit(lone())
    assert surface.begun.wait(PATIENCE)
    clock.advance(700)
    result = handle.result(PATIENCE)
    surface.loop.call_soon_threadsafe(surface.go.set)
    assert surface.refused.wait(PATIENCE)
    assert (result.outcome, result.output) == (Outcome.ERROR, "1")
    assert (result.usage.steps, result.usage.model_calls) == (2, 2)


def test_a_cancel_of_work_that_waits_for_a_hung_target_keeps_what_was_done(start, journal):
    clock, surface, crashed = VirtualClock(), Stubborn(), threading.Event()
    supervisor = start(
        app=[append("1"), {"Status": "FINISH", "Function": "resist"}],
        servers=[surface],
        clock=clock,
        journal=journal,
        supervision={**NO_WAIT, "hung_seconds": 0.05},
    )
    supervisor.subscribe(lambda event: event.name is EventName.AGENT_CRASHED and crashed.set())
    handle = supervisor.submit(lone())
    assert surface.begun.wait(PATIENCE)
    clock.advance(700)
    assert crashed.wait(PATIENCE)
    supervisor.status()
    clock.advance(1)
    supervisor.status()  # by now the restart is due, and waits for the job to end
    handle.cancel()
    result = handle.result(PATIENCE)
    assert (result.outcome, result.usage.steps, result.output) == (Outcome.CANCELLED, 2, "1")
    surface.loop.call_soon_threadsafe(surface.go.set)
    assert surface.refused.wait(PATIENCE)
    assert supervisor.submit(lone()).result(PATIENCE) is not None


def test_a_history_that_can_not_be_folded_ends_the_work_with_its_causes(start, crashes, journal, monkeypatch):
    def break_down(*_args):
        monkeypatch.undo()
        msg = "another bug"
        raise ValueError(msg)

    def at_step_two(agent, message):
        if step_done(2)(agent, message):
            monkeypatch.setattr(Run, "begin", break_down)  # the history is folded once the agent is given up
            return True
        return False

    crashes(at_step_two, 1)
    supervisor = start(app=[append("1"), {"Status": "CONTINUE"}, FINISH], journal=journal, supervision={"intensity": 0})
    result = supervisor.submit(lone()).result(PATIENCE)
    assert (result.outcome, [cause.reason for cause in result.causes]) == (Outcome.ERROR, ["a bug"])
    assert supervisor.submit(lone()).result(PATIENCE).ok


def test_a_crash_in_one_application_never_disturbs_another(start, crashes):
    crashes(lambda agent, _message: agent.address == "app/memo/one", 100)
    surface = MemoryServer(MemoryServer.window("one"), MemoryServer.window("two"))
    supervisor = start(app=lambda _request: FINISH, servers=[surface], supervision={"intensity": 0})
    bad = supervisor.submit(lone())
    good = [supervisor.submit(Task(request="x", target="memo:two")) for _ in range(5)]
    assert bad.result(PATIENCE).outcome is Outcome.ERROR
    assert all(handle.result(PATIENCE).ok for handle in good)


def test_a_cancel_while_an_agent_waits_for_its_restart_ends_the_task(start, crashes, until):
    crashes(step_done(1), 1)
    supervisor = start(app=[append("1"), FINISH], supervision={"backoff": 1000.0, "max_backoff": 1000.0})
    handle = supervisor.submit(lone())
    for event in handle.events():
        if event.name is EventName.STEP_STARTED:
            break
    feed = []
    crashed = threading.Event()
    supervisor.subscribe(
        lambda event: (feed.append(event), event.name is EventName.AGENT_CRASHED and crashed.set()), after=0
    )
    assert crashed.wait(PATIENCE)
    handle.cancel()
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED
    assert supervisor.submit(lone()).result(PATIENCE) is not None


def waiting_for_its_restart(start, crashes, until, task, **given):
    """A task whose agent has taken two steps, crashed, and is not to be restarted for a long time."""
    crashes(of_apps(step_done(2)), 1)
    supervisor = start(supervision={"backoff": 1000.0, "max_backoff": 1000.0}, **given)
    crashed = threading.Event()
    supervisor.subscribe(lambda event: event.name is EventName.AGENT_CRASHED and crashed.set(), after=0)
    handle = supervisor.submit(task)
    assert crashed.wait(PATIENCE)
    return supervisor, handle


def test_a_cancel_while_an_agent_waits_for_its_restart_keeps_what_was_done(start, crashes, until, journal, tmp_path):
    surface = Files(tmp_path)
    given = {"app": [save("a"), save("b"), FINISH], "servers": [surface], "journal": journal}
    supervisor, handle = waiting_for_its_restart(start, crashes, until, lone(), **given)
    handle.cancel()
    result = handle.result(PATIENCE)
    assert (result.outcome, [cause.reason for cause in result.causes]) == (
        Outcome.CANCELLED,
        ["cancelled by the host program"],
    )
    assert result.artifacts == (surface.path("a"), surface.path("b"))
    assert (result.usage.steps, result.usage.model_calls, result.subtasks[0].outcome) == (2, 2, Outcome.CANCELLED)
    assert supervisor.submit(lone()).result(PATIENCE) is not None


def test_a_host_hears_what_a_subtask_did_that_timed_out_before_a_restart(start, crashes, until):
    clock = VirtualClock()
    given = {"host": [ASSIGN, FINISH], "app": [append("1"), append("2"), FINISH], "clock": clock}
    _, handle = waiting_for_its_restart(
        start, crashes, until, Task(request="x"), limits={"subtask_seconds": 60.0}, **given
    )
    clock.advance(61)
    result = handle.result(PATIENCE)
    assert [(done.outcome, done.usage.steps, done.output) for done in result.subtasks] == [(Outcome.TIMED_OUT, 2, "12")]
    assert result.outcome is Outcome.FINISHED


class Stubborn(MemoryServer):
    """A window with a tool on the event loop that does not listen when it is told to stop."""

    def __init__(self):
        super().__init__(self.window())
        self.begun, self.go, self.refused = threading.Event(), asyncio.Event(), threading.Event()
        self.hangs = True

    @tool(effect=Effect.IDEMPOTENT)
    async def resist(self, target: str) -> str:
        """Wait, and never mind."""
        if not self.hangs:
            return "at once"
        self.hangs = False
        self.loop = asyncio.get_running_loop()
        self.begun.set()
        while not self.go.is_set():
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                continue
        try:
            with committing():
                self.effects.append((target, "resist", "late"))
        except LeaseVoidError:
            self.refused.set()
            raise
        return "late"


def test_a_hung_jobs_actions_are_refused_and_its_subtask_resumes_later(start, journal):
    clock, surface = VirtualClock(), Stubborn()
    answers = [{"Status": "FINISH", "Function": "resist"}]
    supervisor = start(
        app=answers, servers=[surface], clock=clock, journal=journal, supervision={**NO_WAIT, "hung_seconds": 0.05}
    )
    crashed = threading.Event()
    seen = []

    def watch(event):
        if event.name is EventName.AGENT_CRASHED:
            seen.append(event)
            crashed.set()

    supervisor.subscribe(watch)
    handle = supervisor.submit(lone())
    assert surface.begun.wait(PATIENCE)
    clock.advance(700)
    assert crashed.wait(PATIENCE)
    assert "long past its deadline" in seen[0].data["causes"][0]
    assert not handle.done()
    surface.loop.call_soon_threadsafe(surface.go.set)
    assert surface.refused.wait(PATIENCE)
    supervisor.status()  # by now the restart is due
    clock.advance(1)
    result = handle.result(PATIENCE)
    assert result.ok, result.causes
    assert surface.effects == []


def watched(supervisor, place, go):
    """Release a thread held up at a place once it is reported; return all events, and an event set when it is freed."""
    seen, held_up, freed = [], set(), threading.Event()

    def watch(event):
        seen.append(event)
        if event.name is EventName.THREAD_BLOCKED and place in event.data["stack"]:
            held_up.add(event.data["thread"])
            go.set()
        if event.name is EventName.THREAD_FREED and event.data["thread"] in held_up:
            freed.set()

    supervisor.subscribe(watch)
    return seen, freed


def test_a_blocked_loop_is_reported_with_its_stack_and_when_it_is_freed(start):
    go = threading.Event()

    async def blocks_here(request):
        go.wait(HELD)
        return FINISH

    supervisor = start(app=FunctionModel(blocks_here), supervision={"hung_seconds": 0.05})
    seen, freed = watched(supervisor, "blocks_here", go)
    handle = supervisor.submit(lone())
    assert freed.wait(PATIENCE)
    assert any("blocks_here" in stack for stack in stacks(seen))
    assert handle.result(PATIENCE).ok


def test_a_journal_that_waits_for_its_disk_is_reported(start, tmp_path, monkeypatch):
    go, waits = threading.Event(), threading.Event()
    commit = JournalFile.commit

    def slow_disk(self):
        if waits.is_set():
            go.wait(HELD)
        commit(self)

    monkeypatch.setattr(JournalFile, "commit", slow_disk)
    supervisor = start(app=[FINISH], supervision={"hung_seconds": 0.05}, journal={"path": tmp_path / "journal.db"})
    seen, freed = watched(supervisor, "slow_disk", go)
    waits.set()
    handle = supervisor.submit(lone())
    assert freed.wait(PATIENCE)
    assert any("slow_disk" in stack for stack in stacks(seen))
    assert handle.result(PATIENCE).ok


def test_an_agents_thread_that_is_held_up_is_reported(start, monkeypatch):
    go, original = threading.Event(), Agent.receive

    def blocks_here(self, message):
        if isinstance(message, JobReturned):
            go.wait(HELD)
        original(self, message)

    monkeypatch.setattr(Agent, "receive", blocks_here)
    supervisor = start(app=[FINISH], supervision={"hung_seconds": 0.05})
    seen, freed = watched(supervisor, "blocks_here", go)
    handle = supervisor.submit(lone())
    assert freed.wait(PATIENCE)
    assert any("blocks_here" in stack for stack in stacks(seen, "callboard-loop"))
    assert handle.result(PATIENCE).ok


def test_dead_blackboard_is_rebuilt_from_the_journal(start, monkeypatch, caplog, journal):
    caplog.set_level(logging.CRITICAL, "pykka")
    original = Blackboard.receive
    left = [1]

    def receive(self, message):
        shown = getattr(message, "rows", ())
        if left[0] and any(isinstance(row.message, StepDone) for row in shown):
            left[0] -= 1
            raise SystemExit
        original(self, message)

    monkeypatch.setattr(Blackboard, "receive", receive)
    go, reached = threading.Event(), threading.Event()

    def app(request):
        if request.call == 2:
            reached.set()
            go.wait(HELD)
        return append(str(request.call), "FINISH" if request.call == 2 else "CONTINUE")

    supervisor = start(app=app, journal=journal)
    rebuilt = threading.Event()
    supervisor.subscribe(lambda event: event.name is EventName.BLACKBOARD_REBUILT and rebuilt.set(), after=0)
    handle = supervisor.submit(lone(id="t"))
    assert reached.wait(PATIENCE)
    assert rebuilt.wait(PATIENCE)
    go.set()
    assert handle.result(PATIENCE).ok
    board = supervisor.blackboard("t")
    assert [entry.content["step"] for entry in board.trajectories] == [1, 2]
    assert len(board.requests) == 1


def crash_blackboard(supervisor):
    """Let the blackboard that was started last die, and wait until another one has taken its place."""
    rebuilt = threading.Event()
    end = supervisor.subscribe(lambda event: event.name is EventName.BLACKBOARD_REBUILT and rebuilt.set())
    pykka.ActorRegistry.get_by_class(Blackboard)[-1].tell(RowsKept(["no row at all"]))
    assert rebuilt.wait(PATIENCE)
    end()


def test_a_rebuilt_blackboard_has_ended_and_running_conversations(start, caplog, journal):
    caplog.set_level(logging.CRITICAL, "pykka")
    go, reached = threading.Event(), threading.Event()

    def host(request):
        if request.request == "wait":
            reached.set()
            go.wait(HELD)
        return FINISH

    supervisor = start(host=host, journal=journal, blackboard={"tasks": 3})
    for name in "bacd":
        supervisor.submit(Task(id=name, request=name)).result(PATIENCE)
    supervisor.handle("a").follow_up("more").result(PATIENCE)
    last = supervisor.handle("a").follow_up("wait")
    assert reached.wait(PATIENCE)
    before = [supervisor.blackboard(name) for name in "acd"]
    assert [len(board.requests) for board in before] == [3, 1, 1]
    crash_blackboard(supervisor)
    assert [supervisor.blackboard(name) for name in "acd"] == before
    go.set()
    assert last.result(PATIENCE).ok
    crash_blackboard(supervisor)
    assert [len(supervisor.blackboard(name).requests) for name in "abcd"] == [3, 0, 1, 1]


def test_a_rebuilt_blackboard_has_ended_lone_tasks_if_a_file_keeps_them(start, caplog, tmp_path):
    caplog.set_level(logging.CRITICAL, "pykka")
    supervisor = start(app=lambda _: FINISH, journal={"path": tmp_path / "journal.db"}, blackboard={"tasks": 2})
    for name in "abc":
        supervisor.submit(lone(id=name)).result(PATIENCE)
    before = [supervisor.blackboard(name) for name in "abc"]
    crash_blackboard(supervisor)
    assert [supervisor.blackboard(name) for name in "abc"] == before
    assert [len(board.requests) for board in before] == [0, 1, 1]


def test_a_rebuilt_blackboard_has_a_conversation_of_another_process(start, caplog, tmp_path):
    caplog.set_level(logging.CRITICAL, "pykka")
    journal = {"path": tmp_path / "journal.db"}
    reached, go = threading.Event(), threading.Event()

    def host(request):
        if request.request == "three":
            reached.set()
            go.wait(HELD)
        return FINISH

    first = start(host=host, journal=journal)
    first.submit(Task(id="t", request="one")).result(PATIENCE)
    first.stop()
    second = start(host=host, journal=journal)
    assert second.handle("t").follow_up("two").result(PATIENCE).ok
    crash_blackboard(second)
    assert [entry.content for entry in second.blackboard("t").requests] == ["one", "two"]
    last = second.handle("t").follow_up("three")
    assert reached.wait(PATIENCE)
    second.stop(0.1)
    third = start(host=host, journal=journal)
    crash_blackboard(third)
    go.set()
    assert third.handle(last.task_id).result(PATIENCE).ok
    assert [entry.content for entry in third.blackboard("t").requests] == ["one", "two", "three"]


def test_a_journal_that_can_not_write_closes_the_intake_and_stops_agents(start, tmp_path):
    path, surface = tmp_path / "journal.db", MemoryServer(MemoryServer.window())
    deleted, reached = threading.Event(), threading.Event()

    def app(request):
        if request.call == 2:
            reached.set()
            deleted.wait(PATIENCE)
        return append(str(request.call))

    supervisor = start(app=app, servers=[surface], journal={"path": path})
    failed = threading.Event()
    supervisor.subscribe(lambda event: event.name is EventName.JOURNAL_FAILED and failed.set())
    handle = supervisor.submit(lone())
    assert reached.wait(PATIENCE)
    path.rename(tmp_path / "elsewhere.db")
    deleted.set()
    assert failed.wait(PATIENCE)
    with pytest.raises(JournalError, match="was deleted or replaced"):
        handle.result(PATIENCE)
    assert [text for _, _, text in surface.effects] == ["1"]
    with pytest.raises(JournalError):
        supervisor.submit(lone())
    assert supervisor.status().accepting is False


def test_a_task_that_can_not_be_kept_is_refused(start, tmp_path):
    path = tmp_path / "journal.db"
    supervisor = start(app=[FINISH], journal={"path": path})
    path.rename(tmp_path / "elsewhere.db")
    with pytest.raises(JournalError):
        supervisor.submit(lone())


def open_files():
    folder = Path("/proc/self/fd")
    return {(entry.name, os.path.realpath(entry)) for entry in folder.iterdir()} if folder.is_dir() else set()


@pytest.mark.parametrize("kept", [False, True])
def test_a_stop_leaves_no_thread_and_no_open_file(start, tmp_path, kept):
    before = set(threading.enumerate())
    files = open_files()
    journal = {"path": tmp_path / "journal.db"} if kept else {}
    supervisor = start(app=lambda request: append(str(request.call)), journal=journal, limits={"steps": 1000})
    handles = [supervisor.submit(lone()) for _ in range(20)]
    supervisor.subscribe(lambda event: None)
    next(iter(handles[0].events()))
    assert supervisor.stop() == ()
    for thread in set(threading.enumerate()) - before:
        thread.join(PATIENCE)
    assert set(threading.enumerate()) - before == set()
    assert open_files() - files == set()
    if kept:
        left = [path.name for path in tmp_path.iterdir()]
        assert left == ["journal.db"]
        with sqlite3.connect(tmp_path / "journal.db") as file:
            assert file.execute("SELECT count(*) FROM tasks WHERE ended IS NULL").fetchone() == (20,)


def test_without_a_journal_a_stop_cancels(start):
    supervisor = start(app=lambda request: append(str(request.call)), limits={"steps": 1000})
    handle = supervisor.submit(lone())
    supervisor.stop()
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED
