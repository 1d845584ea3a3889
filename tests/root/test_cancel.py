"""Cancel: prompt, in any state, without losing finished work."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from callboard import EventName, FunctionModel, Outcome, Task, tool
from callboard.messages import Effect, LeaseVoidError, NotWaitingError
from callboard.surfaces import committing
from callboard.testing import MemoryServer, VirtualClock
from support import ASSIGN, FINISH, HELD, PATIENCE, lone, write

WRITE = write(status="FINISH")


class _Endless:
    """A model that is in the middle of its call until it is cancelled."""

    def __init__(self):
        self.asked = threading.Event()
        self.cancelled = threading.Event()

    async def __call__(self, _request):
        self.asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


def test_cancel_in_the_middle_of_a_model_call_ends_at_once(start):
    model = _Endless()
    supervisor = start(host=model)
    handle = supervisor.submit(Task(request="for ever"))
    assert model.asked.wait(PATIENCE)
    assert handle.cancel("enough")
    result = handle.result(PATIENCE)
    assert result.outcome is Outcome.CANCELLED
    assert result.causes[0].reason == "enough"
    assert model.cancelled.wait(PATIENCE)


def test_cancel_during_a_subtask_stops_both_agents_and_keeps_what_was_done(start):
    model = _Endless()

    async def app(request):
        return WRITE if request.request == "first" else await model(request)

    host = [{**ASSIGN, "Current Sub-Task": "first"}, {**ASSIGN, "Current Sub-Task": "second"}, FINISH]
    supervisor = start(host=host, app=FunctionModel(app))
    handle = supervisor.submit(Task(request="two things"))
    assert model.asked.wait(PATIENCE)
    handle.cancel()
    result = handle.result(PATIENCE)
    assert result.outcome is Outcome.CANCELLED
    assert [done.outcome for done in result.subtasks] == [Outcome.FINISHED, Outcome.CANCELLED]
    assert result.subtasks[0].output == "hello"


def test_cancel_in_a_queue_never_starts_the_work(start):
    model = _Endless()
    supervisor = start(app=model)
    first = supervisor.submit(lone())
    assert model.asked.wait(PATIENCE)
    second = supervisor.submit(Task(request="y", target="memo:one"))
    second.cancel()
    result = second.result(PATIENCE)
    assert result.outcome is Outcome.CANCELLED
    assert result.subtasks[0].usage.steps == 0
    assert not first.done()


def test_cancel_while_a_question_waits_takes_it_away(start, until):
    supervisor = start(app=[{"Status": "PENDING", "Comment": "which one?"}])
    handle = supervisor.submit(lone())
    until(handle, EventName.QUESTION_ASKED)
    question = handle.questions()[0]
    handle.cancel()
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED
    with pytest.raises(NotWaitingError):
        handle.answer(question.id, "this one")


def test_cancel_is_idempotent_and_the_first_reason_stays(start):
    model = _Endless()
    supervisor = start(host=model)
    handle = supervisor.submit(Task(request="for ever"))
    assert model.asked.wait(PATIENCE)
    assert handle.cancel("one")
    handle.cancel("two")
    assert handle.result(PATIENCE).causes[0].reason == "one"
    assert handle.cancel("three") is False


def test_cancel_after_the_end_changes_nothing(start):
    handle = start(host=[FINISH]).submit(Task(request="x"))
    assert handle.result(PATIENCE).ok
    assert handle.cancel() is False
    assert handle.result(0).ok


def test_cancel_from_many_threads_is_one_cancel(start):
    model = _Endless()
    supervisor = start(host=model)
    handle = supervisor.submit(Task(request="for ever"))
    assert model.asked.wait(PATIENCE)
    said: list[bool] = []
    threads = [threading.Thread(target=lambda: said.append(handle.cancel())) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert said.count(True) == 1
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED


def test_after_a_cancel_the_target_is_free_for_the_next_task(start):
    model = _Endless()

    async def app(request):
        return WRITE if request.request == "next" else await model(request)

    surface = MemoryServer(MemoryServer.window())
    supervisor = start(app=FunctionModel(app), servers=[surface])
    first = supervisor.submit(lone())
    assert model.asked.wait(PATIENCE)
    second = supervisor.submit(Task(request="next", target="memo:one"))
    first.cancel()
    assert second.result(PATIENCE).ok
    assert surface.effects == [("memo:one", "field-1", "hello")]


def test_a_task_deadline_ends_it_as_timed_out(start):
    clock, model = VirtualClock(), _Endless()
    supervisor = start(host=model, clock=clock, limits={"task_seconds": 60})
    handle = supervisor.submit(Task(request="for ever"))
    assert model.asked.wait(PATIENCE)
    clock.advance(59)
    assert not handle.done()
    clock.advance(1)
    result = handle.result(PATIENCE)
    assert result.outcome is Outcome.TIMED_OUT
    assert "60 s" in result.causes[0].reason


# In every state


class _Curtain(MemoryServer):
    """A window, a device and a shell that are invisible while the curtain is closed."""

    def __init__(self):
        super().__init__(self.window(), self.device("phone"), self.shell("box"))
        self.closed, self.open = threading.Event(), threading.Event()
        self.looked = threading.Event()

    def _look(self):
        if self.closed.is_set():
            self.looked.set()
            assert self.open.wait(HELD)

    def targets(self):
        self._look()
        return super().targets()

    def observe(self, target):
        self._look()
        return super().observe(target)


@pytest.fixture
def curtain():
    made = _Curtain()
    yield made
    made.open.set()


STATES = {
    "host": ("CONTINUE", "ASSIGN", "PENDING", "CONFIRM", "FAIL", "ERROR", "FINISH"),
    "app": ("CONTINUE", "SCREENSHOT", "PENDING", "CONFIRM", "FAIL", "ERROR", "FINISH"),
    "mobile": ("CONTINUE", "FAIL", "FINISH"),
    "linux": ("CONTINUE", "FAIL", "FINISH"),
}
TARGETS = {"host": None, "app": "memo:one", "mobile": "phone", "linux": "box"}
ANSWERS = {
    "ASSIGN": ASSIGN,
    "SCREENSHOT": {"Status": "SCREENSHOT", "ControlReannotate": ["field-1"]},
    "PENDING": {"Status": "PENDING", "Comment": "which one?"},
    "CONFIRM": {"Status": "CONFIRM", "Comment": "may I?"},
    "FAIL": {"Status": "FAIL"},
    "FINISH": FINISH,
}


class _Into:
    """A model that leads its agent into a state; once there it is in the middle of a call, if it is asked again."""

    def __init__(self, state, curtain):
        self.state, self.curtain = state, curtain
        self.endless = _Endless()
        self.asked, self.let_go = threading.Event(), threading.Event()

    async def __call__(self, request):
        if request.call > 1 or self.state == "CONTINUE":
            return await self.endless(request)
        if self.state in {"FAIL", "ERROR"}:
            self.curtain.closed.set()
        if self.state == "ERROR":
            msg = "the line is down"
            raise ConnectionError(msg)
        if self.state == "FINISH":
            self.asked.set()
            await asyncio.to_thread(self.let_go.wait, HELD)
        return ANSWERS[self.state]


def _led_into(supervisor, kind, model, until, worker=None):
    """Submit a task, and wait until its agent is in a state and stays there."""
    state = model.state
    handle = supervisor.submit(Task(request="x", target=TARGETS[kind]))
    if state == "FINISH":  # stays there only while the task is paused
        assert model.asked.wait(PATIENCE)
        handle.pause()
        model.let_go.set()
    until(handle, EventName.STATE_CHANGED, target=state)
    match state:
        case "CONTINUE" | "SCREENSHOT":
            assert model.endless.asked.wait(PATIENCE)
        case "ASSIGN":
            assert worker.asked.wait(PATIENCE)
        case "PENDING":
            until(handle, EventName.QUESTION_ASKED)
        case "CONFIRM":
            until(handle, EventName.APPROVAL_REQUESTED)
        case "FAIL" | "ERROR":
            assert model.curtain.looked.wait(PATIENCE)
    return handle


@pytest.mark.parametrize(("kind", "state"), [(kind, state) for kind, states in STATES.items() for state in states])
def test_a_cancel_ends_a_task_in_every_state(start, until, curtain, kind, state):
    model, worker = _Into(state, curtain), _Endless()
    models = {"app": FunctionModel(worker), kind: FunctionModel(model)}
    supervisor = start(**models, servers=[curtain], clock=VirtualClock())  # so that no deadline comes to its help
    handle = _led_into(supervisor, kind, model, until, worker)
    assert handle.cancel("enough")
    result = handle.result(PATIENCE)
    assert (result.outcome, result.causes[0].reason) == (Outcome.CANCELLED, "enough")
    (task,) = [event for event in handle.events() if event.name is EventName.TASK_ENDED]
    assert task.data["outcome"] == "cancelled"
    assert supervisor.status().approvals == supervisor.status().questions == ()


@pytest.mark.parametrize(("state", "outcome"), [("FAIL", Outcome.FAILED), ("ERROR", Outcome.ERROR)])
def test_cancel_in_a_cleanup_leaves_what_the_subtask_had_come_to(start, until, curtain, state, outcome):
    model = _Into(state, curtain)
    supervisor = start(app=FunctionModel(model), servers=[curtain])
    handle = _led_into(supervisor, "app", model, until)
    handle.cancel()
    assert [done.outcome for done in handle.result(PATIENCE).subtasks] == [outcome]


def test_cancel_at_any_moment_ends_the_task_once_and_keeps_what_was_done(start):
    """Each time a little later: after so many events of the task."""
    surface = MemoryServer(MemoryServer.window())

    def host(request):
        return ASSIGN if len(request.subtasks) < 2 else FINISH

    supervisor = start(host=host, app=lambda _request: WRITE, servers=[surface])
    for moment in range(1, 60, 2):
        handle = supervisor.submit(Task(request="two things"))
        for number, _ in enumerate(handle.events()):
            if number == moment:
                stopped = handle.cancel()
                break
        else:
            stopped = handle.cancel()
        result = handle.result(PATIENCE)
        assert result.outcome is (Outcome.CANCELLED if stopped else Outcome.FINISHED)
        finished = [done for done in result.subtasks if done.outcome is Outcome.FINISHED]
        assert len(finished) <= len(surface.effects) <= len(finished) + 1
        surface.effects.clear()
    assert supervisor.status().tasks == ()


# Processes that are really stopped


class _Tools(MemoryServer):
    """A window with tools that take their time."""

    def __init__(self, pipe=None):
        super().__init__(self.window())
        self.pipe = pipe
        self.begun, self.let_go, self.ended = threading.Event(), threading.Event(), threading.Event()
        self.refused = None

    @tool(effect=Effect.ONCE)
    async def wait(self, target: str) -> str:
        """Wait for ever, then do something."""
        self.begun.set()
        try:
            await asyncio.Event().wait()
            self.effects.append((target, "wait", "done"))
        finally:
            self.ended.set()
        return target

    @tool(effect=Effect.ONCE)
    async def write_and_wait(self, target: str, path: str) -> str:
        """Write a file, then wait for ever."""
        with committing(Path(path)):
            Path(path).write_text("half")  # noqa: ASYNC240 - a few bytes, in a test
        self.begun.set()
        await asyncio.Event().wait()
        return target

    @tool(effect=Effect.ONCE)
    def write_slowly(self, target: str, path: str) -> str:
        """Write a file, and be slow in the very middle of it."""
        try:
            with committing(Path(path)):
                self.begun.set()
                assert self.let_go.wait(HELD)
                Path(path).write_text("whole", encoding="utf-8")
        finally:
            self.ended.set()
        return target

    @tool(effect=Effect.ONCE)
    async def resist(self, target: str) -> str:
        """Wait, and do not listen when told to stop."""
        self.begun.set()
        waiting = asyncio.ensure_future(asyncio.to_thread(self.let_go.wait, HELD))
        while not waiting.done():
            try:
                await asyncio.shield(waiting)
            except asyncio.CancelledError:
                continue
        with committing():
            self.effects.append((target, "resist", "done"))
        return target

    @tool(effect=Effect.ONCE)
    def block(self, target: str) -> str:
        """Block a thread, then do something."""
        self.begun.set()
        try:
            assert self.let_go.wait(HELD)
            with committing():
                self.effects.append((target, "block", "done"))
        except LeaseVoidError as error:
            self.refused = error
            raise
        finally:
            self.ended.set()
        return target

    @tool(effect=Effect.ONCE)
    async def program(self, target: str) -> str:
        """Run a program that starts another one; both hold the pipe open while they live."""
        script = "(echo child; exec sleep 1000) & echo parent; wait"
        process = subprocess.Popen(["/bin/sh", "-c", script], stdout=self.pipe, start_new_session=True)  # noqa: ASYNC220 - no cancel may come between the start and the try
        try:
            await asyncio.to_thread(process.wait)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return target


@pytest.fixture
def tools():
    made = _Tools()
    yield made
    made.let_go.set()


def _doing(supervisor, tools):
    handle = supervisor.submit(lone())
    assert tools.begun.wait(PATIENCE)
    return handle


def _calling(name):
    return lambda request: {"Status": "FINISH", "Function": name} if request.request == "x" else WRITE


def test_an_async_tool_is_really_stopped(start, tools):
    supervisor = start(app=_calling("wait"), servers=[tools])
    handle = _doing(supervisor, tools)
    handle.cancel()
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED
    assert tools.ended.wait(PATIENCE)
    assert supervisor.submit(Task(request="next", target="memo:one")).result(PATIENCE).ok
    assert tools.effects == [("memo:one", "field-1", "hello")]


def _read(pipe):
    """Wait for a pipe's output; empty once no process holds its other end."""
    readable, _, _ = select.select([pipe], [], [], 10)
    assert readable, "nothing comes, and somebody still holds the other end"
    return os.read(pipe, 1000)


def test_a_program_and_its_children_are_really_stopped(start):
    ours, theirs = os.pipe()
    supervisor = start(app=_calling("program"), servers=[_Tools(theirs)])
    handle = supervisor.submit(lone())
    said = b""
    while not {b"parent", b"child"} <= set(said.split()):
        said += _read(ours)
    os.close(theirs)
    handle.cancel()
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED
    assert _read(ours) == b""
    os.close(ours)


REMOTE = """
import os

import anyio
from mcp.server.mcpserver import MCPServer

server = MCPServer("remote", log_level="ERROR")


@server.tool()
async def hang(pipe: str) -> str:
    with open(pipe, "w") as line:
        print("begun", file=line, flush=True)
        try:
            await anyio.sleep_forever()
        finally:
            print("left", file=line, flush=True)


@server.tool()
def add(a: int, b: int) -> int:
    return a + b


server.run("stdio")
"""


def test_cancel_stops_an_mcp_call_and_its_server_continues(start, tmp_path):
    program, pipe = tmp_path / "remote.py", tmp_path / "pipe"
    program.write_text(REMOTE, encoding="utf-8")
    os.mkfifo(pipe)
    ours = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    def app(request):
        calls = {"x": ("remote.hang", {"pipe": str(pipe)}), "y": ("remote.add", {"a": 1, "b": 2})}
        function, args = calls[request.request]
        return {"Status": "FINISH", "Function": function, "Args": args}

    servers = {"remote": {"command": sys.executable, "args": [str(program)], "surface": False}}
    supervisor = start(app=app, mcpServers=servers, policy=[{"verdict": "allow", "tool": "remote.*"}])
    handle = supervisor.submit(lone())
    assert _read(ours) == b"begun\n"
    handle.cancel()
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED
    assert _read(ours) == b"left\n"
    os.close(ours)
    assert supervisor.submit(Task(request="y", target="memo:one")).result(PATIENCE).output == {"result": 3}


STOPS = {
    "a cancel": ({}, lambda handle, _clock: handle.cancel()),
    "a task deadline": ({"task_seconds": 60}, lambda _handle, clock: clock.advance(60)),
    "a subtask deadline": ({"subtask_seconds": 60}, lambda _handle, clock: clock.advance(60)),
    "a step deadline": ({"step_seconds": 50}, lambda _handle, clock: clock.advance(50)),
    "a command deadline": (
        {"command_seconds": 50, "action_failures": 1, "phase_retries": 0},
        lambda _handle, clock: clock.advance(50),
    ),
}


@pytest.mark.parametrize(("limits", "stop"), STOPS.values(), ids=STOPS)
def test_stopped_tool_in_a_thread_continues_but_its_commit_is_refused(start, tools, limits, stop):
    clock = VirtualClock()
    handle = _doing(start(app=_calling("block"), servers=[tools], clock=clock, limits=limits), tools)
    stop(handle, clock)
    assert not handle.result(PATIENCE).ok
    assert not tools.ended.is_set()
    tools.let_go.set()
    assert tools.ended.wait(PATIENCE)
    assert "nothing was changed" in str(tools.refused)
    assert tools.effects == []


@pytest.mark.parametrize("name", ["block", "resist"])
@pytest.mark.parametrize("how", list(STOPS)[:3])
def test_the_target_of_an_unstoppable_call_is_not_leased_until_it_returns(start, until, tools, name, how):
    limits, stop = STOPS[how]
    clock = VirtualClock()
    supervisor = start(app=_calling(name), servers=[tools], clock=clock, limits=limits)
    abandoned, freed = threading.Event(), threading.Event()
    signals = {EventName.TARGET_ABANDONED: abandoned, EventName.TARGET_FREED: freed}
    supervisor.subscribe(lambda event: signals[event.name].set() if event.name in signals else None)
    handle = _doing(supervisor, tools)
    stop(handle, clock)
    assert not handle.result(PATIENCE).ok
    assert abandoned.wait(PATIENCE)
    assert supervisor.status().abandoned == ("app/memo/one",)
    second = supervisor.submit(Task(request="second", target="memo:one"))
    until(second, EventName.SUBTASK_QUEUED)
    tools.let_go.set()
    assert second.result(PATIENCE).ok
    assert freed.wait(PATIENCE)
    assert tools.effects == [("memo:one", "field-1", "hello")]


def test_a_command_that_was_stopped_is_in_the_events_as_in_doubt(start, tools):
    handle = _doing(start(app=_calling("block"), servers=[tools]), tools)
    handle.cancel()
    handle.result(PATIENCE)
    (ended,) = [event for event in handle.events() if event.name is EventName.COMMAND_ENDED]
    assert ended.data["tool"] == "block"
    assert "in doubt" in ended.data["error"]


def test_the_files_that_a_stopped_command_had_written_are_in_the_result(start, tools, tmp_path):
    path = str(tmp_path / "report.txt")
    answer = {"Status": "FINISH", "Function": "write_and_wait", "Args": {"path": path}}
    handle = _doing(start(app=[answer], servers=[tools]), tools)
    handle.cancel()
    result = handle.result(PATIENCE)
    assert (result.outcome, result.artifacts) == (Outcome.CANCELLED, (path,))
    assert result.subtasks[0].made == (path,)


def test_the_file_of_a_commit_too_slow_to_be_stopped_is_in_the_result(start, tools, tmp_path):
    path = tmp_path / "report.txt"
    answer = {"Status": "FINISH", "Function": "write_slowly", "Args": {"path": str(path)}}
    handle = _doing(start(app=[answer], servers=[tools]), tools)
    handle.cancel()
    result = handle.result(PATIENCE)
    assert (result.outcome, result.artifacts, path.exists()) == (Outcome.CANCELLED, (str(path),), False)
    tools.let_go.set()
    assert tools.ended.wait(PATIENCE)
    assert path.read_text(encoding="utf-8") == "whole"


def test_late_result_of_a_stopped_call_is_dropped_and_logged(start, tools):
    supervisor = start(app=_calling("block"), servers=[tools])
    late = threading.Event()
    supervisor.subscribe(lambda event: late.set() if event.name is EventName.COMMAND_LATE else None)
    handle = _doing(supervisor, tools)
    handle.cancel()
    result = handle.result(PATIENCE)
    assert not late.is_set()
    tools.let_go.set()
    assert late.wait(PATIENCE)
    assert handle.result(0) == result


def test_the_answer_of_a_model_after_its_cancel_is_dropped_and_logged(start):
    asked, let_go, late = threading.Event(), threading.Event(), threading.Event()

    async def app(_request):
        asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.to_thread(let_go.wait)
        return {"Status": "FINISH", "ControlLabel": "field-1", "Function": "write", "Args": {"text": "late"}}

    surface = MemoryServer(MemoryServer.window())
    supervisor = start(app=FunctionModel(app), servers=[surface])
    supervisor.subscribe(lambda event: late.set() if event.name is EventName.MESSAGE_STALE else None)
    handle = supervisor.submit(lone())
    assert asked.wait(PATIENCE)
    handle.cancel()
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED
    let_go.set()
    assert late.wait(PATIENCE)
    assert surface.effects == []
