"""Models that tasks name for themselves."""

from __future__ import annotations

import json

import pytest

from callboard import EventName, Outcome, Task
from callboard.actors.replay import replay_journal
from callboard.messages import TaskRefusedError
from callboard.testing import MemoryServer
from support import FINISH, PATIENCE, append, lone, write


@pytest.fixture
def script(tmp_path):
    """Write a script for the agent of ``memo:one``."""
    file = tmp_path / "own.yaml"
    answers = [append("scripted", "FINISH")]
    file.write_text(json.dumps({"app/memo/one": answers, "host": [FINISH]}), encoding="utf-8")
    return f"scripted:{file}"


def effects(surface):
    return [text for _, _, text in surface.effects]


def test_a_task_has_a_model_of_its_own(start, script):
    surface = MemoryServer(MemoryServer.window())
    supervisor = start(app=lambda _: append("usual", "FINISH"), servers=[surface])
    handle = supervisor.submit(lone(model=script))
    assert handle.result(PATIENCE).ok
    assert supervisor.submit(lone()).result(PATIENCE).ok
    assert effects(surface) == ["scripted", "usual"]
    answered = [event.data["model"] for event in handle.events() if event.name is EventName.MODEL_ANSWERED]
    assert answered == [script]


def test_task_may_use_the_model_of_another_kind_of_agent(start):
    surface = MemoryServer(MemoryServer.window())
    supervisor = start(app=lambda _: write(), linux=lambda _: append("linux", "FINISH"), servers=[surface])
    assert supervisor.submit(lone(model="linux")).result(PATIENCE).ok
    assert effects(surface) == ["linux"]


def test_task_model_serves_the_host_agent_too(start, script):
    assert start().submit(Task(request="x", model=script)).result(PATIENCE).ok  # no kind of agent has a model


def test_all_kinds_of_agents_are_offered_to_its_task(start):
    seen = []

    def host(request):
        seen.append([target.address for target in request.observation.targets])
        return FINISH

    window = MemoryServer.window().model_copy(update={"kinds": ("app", "operator")})
    supervisor = start(host=host, app=lambda _: FINISH, servers=[MemoryServer(window)])
    for model in (None, "host", None):
        assert supervisor.submit(Task(request="x", model=model)).result(PATIENCE).ok
    assert seen == [["app/memo/one"], ["app/memo/one", "operator/memo/one"], ["app/memo/one"]]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("fast", r"'fast' is not a known model; known forms are: scripted:FILE, .*by kind, are: app"),
        ("scripted:none.yaml", r"the script .*none.yaml: can't be read"),
        ("elsewhere:small", r"'elsewhere' is no known kind of provider"),
    ],
)
def test_an_unknown_model_is_refused_at_submission(start, name, reason):
    supervisor = start(app=lambda _: FINISH)
    with pytest.raises(TaskRefusedError, match=reason):
        supervisor.submit(lone(model=name))
    assert supervisor.pending() == ()


def ask(_):
    return {"Status": "PENDING", "Comment": "which one?"}


def test_after_a_restart_a_task_has_its_model(begin, until, script):
    before = begin(app=ask)
    handle = before.submit(lone(id="t", model="app"))
    other = before.submit(Task(request="x", id="s", target="memo:one", model=script))
    until(handle, EventName.QUESTION_ASKED)
    before.stop()
    after = begin(app=lambda _: FINISH)
    handle, other = after.handle("t"), after.handle("s")
    handle.answer(handle.questions()[0].id, "this one")
    assert handle.result(PATIENCE).ok
    assert other.result(PATIENCE).output == "scripted"


@pytest.fixture
def paused(begin, until, script, tmp_path):
    """Start a supervisor whose only task, t, lacks its own model."""
    surface = MemoryServer(MemoryServer.window())
    before = begin(servers=[surface])
    (tmp_path / "own.yaml").write_text(json.dumps({"app/memo/one": [ask(None), append("own", "FINISH")]}))
    until(before.submit(lone(id="t", model=script)), EventName.QUESTION_ASKED)
    before.stop()
    (tmp_path / "own.yaml").unlink()
    return begin(app=lambda _: append("usual", "FINISH"), servers=[surface]), surface


def test_a_task_without_its_model_is_paused_after_a_restart(paused):
    (status,) = paused[0].status().tasks
    assert status.paused
    assert "the task's model: the script" in status.lacks


def test_resumed_task_fails_without_its_own_model(paused):
    supervisor, surface = paused
    handle = supervisor.handle("t")
    assert handle.resume()
    handle.answer(handle.questions()[0].id, "this one")
    result = handle.result(PATIENCE)
    assert result.outcome is Outcome.ERROR
    assert any("the task's model: the script" in cause.reason for cause in result.causes)
    assert effects(surface) == []


def test_a_resumed_task_has_its_model_if_that_is_back(paused, tmp_path):
    supervisor, surface = paused
    script = {"app/memo/one": [ask(None), append("own", "FINISH")]}
    (tmp_path / "own.yaml").write_text(json.dumps(script), encoding="utf-8")
    handle = supervisor.handle("t")
    assert handle.resume()
    handle.answer(handle.questions()[0].id, "this one")
    assert handle.result(PATIENCE).ok
    assert effects(surface) == ["own"]


def test_a_model_with_a_secret_in_its_name_is_refused(start):
    supervisor = start(secrets={"password": "correct-horse"})
    with pytest.raises(ValueError, match="its model contains the secret 'password'"):
        supervisor.submit(lone(model="scripted:correct-horse.yaml"))


@pytest.mark.parametrize("recorded", [True, False])
def test_calls_of_a_tasks_model_are_recorded(start, script, tmp_path, recorded):
    file = tmp_path / "calls.jsonl"
    supervisor = start(app=ask, **({"models": {"record": file}} if recorded else {}))
    assert supervisor.submit(lone(model=script)).result(PATIENCE).ok
    assert file.exists() is recorded
    if recorded:
        assert [json.loads(line)["model"] for line in file.read_text().splitlines()] == [script]


def test_a_follow_up_has_the_usual_model_again(start, script):
    supervisor = start(host=lambda _: {**FINISH, "Result": "usual"})
    first = supervisor.submit(Task(request="x", model=script))
    assert first.result(PATIENCE).output is None
    assert first.follow_up("y").result(PATIENCE).output == "usual"


def test_a_task_with_its_model_can_be_replayed(begin, script, tmp_path):
    supervisor = begin()
    assert supervisor.submit(lone(id="t", model=script)).result(PATIENCE).ok
    supervisor.stop()
    (journal,) = tmp_path.glob("*.db")
    again = replay_journal(journal, "t")
    assert (again.outcome, again.difference) == (Outcome.FINISHED, None)
