"""A kind of agent of one's own, from the example to the next process."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

import forks
from callboard import EventName, FunctionModel, Settings, Supervisor, Task
from callboard.messages import SettingsError, Target, TargetKind
from callboard.testing import MemoryServer, assert_replays
from support import PATIENCE

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "own_agent.py"


@pytest.fixture(scope="module")
def own():
    spec = importlib.util.spec_from_file_location("own_agent", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_example_runs_as_a_reader_would_run_it():
    done = forks.run([sys.executable, "-W", "error", str(EXAMPLE)], timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "CONTINUE: the memo says ''",
        "REVIEW: the memo says 'Helo'",
        "CONTINUE: the memo says 'Hello'",
        "REVIEW: the memo says 'Hello'",
        "memo:one: finished",
    ]


def test_a_host_agent_sees_and_assigns_a_target_for_each_kind(own):
    memo = MemoryServer.window().model_copy(update={"kinds": ("app", "editor")})
    seen = []

    def host(request):
        if request.subtasks:
            return {"Status": "FINISH"}
        seen.extend((target.id, target.address) for target in request.observation.targets)
        return {"Status": "ASSIGN", "ControlText": f"editor:{memo.id}", "Current Sub-Task": "greet"}

    models = {"host": FunctionModel(host), "app": FunctionModel(host), "editor": FunctionModel(own.model)}
    with Supervisor.start(agents=[own.EDITOR], models=models, servers=[own.Memos(memo)]) as supervisor:
        result = supervisor.submit(Task(request="greet")).result(PATIENCE)
    assert seen == [("memo:one", "app/memo/one"), ("editor:memo:one", "editor/memo/one")]
    assert (result.outcome.value, result.subtasks[0].address) == ("finished", "editor/memo/one")


def test_work_of_a_kind_that_is_missing_waits_until_it_is_there(own, tmp_path):
    settings = Settings.load(journal={"path": tmp_path / "journal.db"})
    memo = MemoryServer.window().model_copy(update={"kinds": ("app", "editor")})
    question = {"Status": "PENDING", "Questions": [{"Question": "Which greeting?"}]}
    task = Task(id="t", request="greet", target=f"editor:{memo.id}")
    models = {"editor": FunctionModel(lambda _request: question)}
    with Supervisor.start(settings, agents=[own.EDITOR], models=models, servers=[own.Memos(memo)]) as first:
        handle = first.submit(task)
        next(event for event in handle.events() if event.name is EventName.QUESTION_ASKED)
    with Supervisor.start(settings, servers=[MemoryServer(memo)]) as second:
        assert "there is no kind of agent 'editor'" in second.status().tasks[0].lacks
        second.handle("t").resume()
        assert second.status().tasks[0].paused
    with Supervisor.start(settings, servers=[MemoryServer(memo)]) as third:
        third.handle("t").cancel("no editor")
        assert third.handle("t").result(PATIENCE).outcome.value == "cancelled"


class Shelf(MemoryServer):
    """A shelf from which memos are taken, for editors alone."""

    def targets(self):
        shelf = Target(
            id="shelf",
            name="Shelf",
            kind=TargetKind.APPLICATION,
            address="app/memo/*",
            kinds=("editor",),
            server=self.name,
        )
        return (shelf, *super().targets())

    def start(self, target, arguments):
        self.effects.append((target.id, target.address, "opened"))
        return self.targets()[1]


def run_on_shelf(own, models, settings):
    """Assign a subtask to the shelf, as an editor sees it."""

    class Opened(own.Memos, Shelf):
        pass

    memo = MemoryServer.window().model_copy(update={"kinds": ("app", "editor")})
    opened = Opened(memo)
    with Supervisor.start(settings, agents=[own.EDITOR], models=models, servers=[opened]) as supervisor:
        handle = supervisor.submit(Task(id="t", request="greet"))
        return handle.result(PATIENCE), opened, handle


def test_an_application_for_a_kind_of_its_own_opens_a_window_for_that_kind(own, tmp_path):
    def host(request):
        if request.subtasks:
            return {"Status": "FINISH"}
        return {"Status": "ASSIGN", "ControlText": "editor:shelf", "Current Sub-Task": "greet"}

    path = tmp_path / "journal.db"
    settings = Settings.load(
        journal={"path": path}, policy=[{"verdict": "allow", "hazards": ["launches"]}], log={"level": "error"}
    )
    models = {"host": FunctionModel(host), "editor": FunctionModel(own.model)}
    result, opened, _ = run_on_shelf(own, models, settings)
    assert result.ok, result.causes
    assert opened.effects[0] == ("shelf", "app/memo/*", "opened")
    assert result.subtasks[0].address == "editor/memo/one"
    assert_replays(path, agents=[own.EDITOR])
    with pytest.raises(SettingsError, match=r"agents of the kind 'editor', which does not ship: pass it in `agents`"):
        assert_replays(path)


def test_work_of_a_custom_kind_continues_once_the_kind_is_there_again(own, tmp_path):
    settings = Settings.load(journal={"path": tmp_path / "journal.db"})
    memo = MemoryServer.window().model_copy(update={"kinds": ("app", "editor")})
    asks = {"Status": "PENDING", "Questions": [{"Question": "Which greeting?"}]}
    given = {"agents": [own.EDITOR], "servers": [own.Memos(memo)]}
    with Supervisor.start(settings, models={"editor": FunctionModel(lambda _: asks)}, **given) as first:
        handle = first.submit(Task(id="t", request="greet", target=f"editor:{memo.id}"))
        next(event for event in handle.events() if event.name is EventName.QUESTION_ASKED)
    with Supervisor.start(settings, servers=[MemoryServer(memo)]):
        pass  # a program without editors leaves it as it is
    with Supervisor.start(settings, models={"editor": FunctionModel(own.model)}, **given) as third:
        handle = third.handle("t")
        (question,) = handle.questions()
        handle.answer(question.id, "Hello")
        assert handle.result(PATIENCE).ok
