"""Work that does not end: a tool that never returns, a model that answers after the cancel, a bad agent."""

from __future__ import annotations

import sys
import threading

import pytest

import forks
from callboard import EventName, FunctionModel, Outcome, Task, tool
from callboard.actors.agent import Agent
from callboard.journal import JournalReader
from callboard.messages import Answered, Effect
from callboard.testing import MemoryServer
from support import HELD, PATIENCE

SHORT = {"limits": {"command_seconds": 1000.0}}

HANGING = """
import sys, threading
from callboard import Settings, Supervisor, Task, tool
from callboard.messages import Effect, Observation
from callboard.testing import MemoryServer

entered = threading.Event()

class Hanging(MemoryServer):
    @tool(effect=Effect.ONCE)
    def hang(self, target: str) -> str:
        '''Never return.'''
        entered.set()
        threading.Event().wait()

settings = Settings.load(journal={"path": sys.argv[1]}, limits={"command_seconds": 1000})
app = lambda request: {"Status": "CONTINUE", "Function": "hang"}
supervisor = Supervisor.start(settings, models={"app": app}, servers=[Hanging(MemoryServer.window())])
supervisor.submit(Task(id="t", request="do it", target="memo:one"))
entered.wait()
print(*supervisor.stop(timeout=0.2), sep="\\n")
"""


def test_stop_names_a_tool_that_never_returns_and_the_process_can_exit(tmp_path, start, until):
    path = tmp_path / "journal.db"
    ended = forks.run([sys.executable, "-c", HANGING, str(path)], timeout=PATIENCE)
    assert ended.returncode == 0, ended.stderr
    assert "lane memory:memo:one" in ended.stdout.splitlines()
    assert ended.stderr == ""
    surface = MemoryServer(MemoryServer.window())
    supervisor = start(app=lambda request: {"Status": "FINISH"}, servers=[surface], journal={"path": path})
    handle = supervisor.handle("t")
    until(handle, EventName.QUESTION_ASKED)  # its action is in doubt, and it is gone: only a person can tell
    handle.answer(handle.questions()[0].id, "it was done")
    assert handle.result(PATIENCE).outcome is Outcome.FINISHED
    assert surface.effects == []


@pytest.fixture
def release():
    """The event that hanging calls wait for; set at the end of the test."""
    event = threading.Event()
    yield event
    event.set()


def test_a_hanging_tool_holds_up_only_tasks_on_its_target_until_a_restart(tmp_path, start, release):
    entered = threading.Event()

    class Hanging(MemoryServer):
        @tool(effect=Effect.ONCE)
        def hang(self, target: str) -> str:
            """Return when the test is over."""
            entered.set()
            release.wait(HELD)
            return target

    def app(request):
        if request.memory:
            return {"Status": "FINISH"}
        if request.task_id == "hanging":
            return {"Status": "CONTINUE", "Function": "hang"}
        return {"Status": "CONTINUE", "Function": "append", "Args": {"control_id": "field-1", "text": request.task_id}}

    def begin():
        surface = Hanging(MemoryServer.window("one"), MemoryServer.window("two"))
        return surface, start(app=app, servers=[surface], journal={"path": tmp_path / "journal.db"}, **SHORT)

    _, supervisor = begin()
    tasks = {"hanging": "memo:one", "behind": "memo:one", "beside": "memo:two"}
    handles = {name: supervisor.submit(Task(id=name, request="do it", target=on)) for name, on in tasks.items()}
    assert entered.wait(PATIENCE)
    assert handles["beside"].result(PATIENCE).ok
    handles["hanging"].cancel()
    assert handles["hanging"].result(PATIENCE).outcome is Outcome.CANCELLED
    assert "lane memory:memo:one" in supervisor.stop(timeout=0.2)
    surface, again = begin()
    assert again.handle("behind").result(PATIENCE).ok
    assert [again.handle(name).result(0).outcome for name in tasks] == ["cancelled", "finished", "finished"]
    assert surface.effects == [("memo:one", "field-1", "behind")]


def test_an_answer_after_the_cancel_changes_nothing_now_or_after_a_restart(tmp_path, start):
    asked, release, said = threading.Event(), threading.Event(), threading.Event()
    surface = MemoryServer(MemoryServer.window())

    def app(request):
        asked.set()
        release.wait(HELD)
        try:
            args = {"control_id": "field-1", "text": "late"}
            return {"Status": "CONTINUE", "Function": "append", "Args": args}
        finally:
            said.set()

    given = {"app": FunctionModel(app), "servers": [surface], "journal": {"path": tmp_path / "journal.db"}}
    supervisor = start(**given)
    handle = supervisor.submit(Task(id="t", request="do it", target="memo:one"))
    assert asked.wait(PATIENCE)
    assert handle.cancel()
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED
    release.set()
    assert said.wait(PATIENCE)
    supervisor.stop()
    with JournalReader.open(tmp_path / "journal.db") as reader:
        assert [row for row in reader.rows("t") if isinstance(row.message, Answered)] == []
    again = start(**given)
    assert again.pending() == ()
    assert again.handle("t").result(0).outcome is Outcome.CANCELLED
    assert surface.effects == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_repeated_systemexit_ends_its_agent_alone_also_after_a_restart(tmp_path, start, monkeypatch, caplog):
    caplog.set_level("CRITICAL", "pykka")
    surface = MemoryServer(MemoryServer.window("one"), MemoryServer.window("two"))
    receive = Agent.receive

    def leave(self, message):
        if self.address == "app/memo/one":
            raise SystemExit(3)
        receive(self, message)

    def app(request):
        args = {"control_id": "field-1", "text": str(request.step)}
        return {"Status": "FINISH"} if request.step > 2 else {"Status": "CONTINUE", "Function": "append", "Args": args}

    given = {
        "app": app,
        "servers": [surface],
        "journal": {"path": tmp_path / "journal.db"},
        "supervision": {"intensity": 2, "backoff": 0.0},
    }
    with monkeypatch.context() as patch:
        patch.setattr(Agent, "receive", leave)
        supervisor = start(**given)
        bad = supervisor.submit(Task(id="bad", request="do it", target="memo:one"))
        good = supervisor.submit(Task(id="good", request="do it", target="memo:two"))
        result = bad.result(PATIENCE)
        assert result.outcome is Outcome.ERROR
        assert [cause.exception for cause in result.causes].count("SystemExit") == 3
        done = good.result(PATIENCE)
        assert done.ok
        supervisor.stop()
    again = start(**given)
    assert again.pending() == ()
    assert (again.handle("bad").result(0), again.handle("good").result(0)) == (result, done)
    assert [(target, text) for target, _, text in surface.effects] == [("memo:two", "1"), ("memo:two", "2")]
