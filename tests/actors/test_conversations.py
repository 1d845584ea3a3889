"""Conversations continued in another process, or long after; and each follow-up's additions to a journal."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from pydantic_core import to_json

from callboard import Outcome, PlanStep, Task, tool
from callboard.actors.agent import Agent
from callboard.actors.late_results import JobReturned
from callboard.actors.replay import replay_journal
from callboard.journal import JournalReader
from callboard.messages import Assign, Effect, Event, TaskForgotten, TaskRefusedError
from callboard.surfaces import committing
from callboard.testing import MemoryServer, assert_replays
from support import ASSIGN, FINISH, HELD, PATIENCE, append, lone, stop_blocked


def hosts(request):
    """Assign one subtask for each request."""
    mine = [done for done in request.subtasks if done.run_id.startswith(request.task_id)]
    return FINISH if mine else ASSIGN


def test_a_conversation_that_ended_in_another_process_is_gone_on_with(begin):
    plan = ["first this", "then that"]
    with begin(host=[{**FINISH, "Thought": "noted", "Plan": plan}]) as first:
        assert first.submit(Task(id="t", request="one")).result(PATIENCE).ok
    seen = []

    def host(request):
        seen.append(([record.decision.thought for record in request.memory], request.plan, request.call))
        return {**FINISH, "Result": request.request}

    second = begin(host=host)
    handle = second.handle("t").follow_up("two")
    assert handle.result(PATIENCE).output == "two"
    assert handle.session == "t"
    assert handle.follow_up("three").result(PATIENCE).output == "three"
    assert seen == [(["noted"], tuple(plan), 2), (["noted", ""], tuple(plan), 3)]
    assert [agent for agent in second.status().agents if agent.startswith("host/")] == ["host/t"]


def test_a_task_that_names_its_session_is_such_a_follow_up(begin):
    with begin(host=[FINISH]) as first:
        first.submit(Task(id="t", request="one")).result(PATIENCE)
    assert begin(host=[FINISH, FINISH]).submit(Task(request="two", session="t")).result(PATIENCE).ok


def test_earlier_subtask_results_reach_host_and_agents_in_a_new_process(begin):
    with begin(host=hosts, app=[append("1", "FINISH")]) as first:
        assert first.submit(Task(id="t", request="one")).result(PATIENCE).ok
    seen = {}

    def host(request):
        seen["host"] = [(done.run_id, done.output) for done in request.subtasks]
        return hosts(request)

    def app(request):
        seen["app"] = [(done.run_id, done.output) for done in request.subtasks]
        return append("2", "FINISH")

    handle = begin(host=host, app=app).handle("t").follow_up("two", id="u")
    result = handle.result(PATIENCE)
    assert [done.run_id for done in result.subtasks] == ["u~2"]
    assert seen == {"host": [("t~1", "1"), ("u~2", "12")], "app": [("t~1", "1")]}


def test_the_blackboard_has_the_whole_conversation_again(begin):
    with begin(host=hosts, app=[append("1", "FINISH")]) as first:
        first.submit(Task(id="t", request="one")).result(PATIENCE)
        before = first.blackboard("t")
    second = begin(host=hosts, app=[append("2", "FINISH")])
    second.handle("t").follow_up("two", id="u").result(PATIENCE)
    after = second.blackboard("u")
    assert after == second.blackboard("t")
    assert after.requests[:1] == before.requests
    assert [entry.content for entry in after.requests] == ["one", "two"]
    assert [entry.content["run_id"] for entry in after.subtasks] == ["t~1", "u~2"]
    assert after.trajectories[: len(before.trajectories)] == before.trajectories
    assert len(after.trajectories) == 6


def test_a_conversation_past_the_limit_is_gone_on_with_from_the_journal(begin):
    supervisor = begin(host=hosts, app=lambda request: append(request.task_id, "FINISH"), limits={"sessions": 0})
    first = supervisor.submit(Task(id="t", request="one"))
    first.result(PATIENCE)
    assert not [agent for agent in supervisor.status().agents if agent.startswith("host/")]
    assert first.follow_up("two", id="u").result(PATIENCE).ok
    assert first.follow_up("three", id="v").result(PATIENCE).ok
    board = supervisor.blackboard("t")
    assert Counter(entry.content["run_id"] for entry in board.subtasks) == Counter(["t~1", "u~2", "v~3"])
    assert len(board.trajectories) == 9


@pytest.mark.parametrize(
    ("task", "session"),
    [(Task(id="t", request="x", target="memo:one"), "t"), (Task(id="t", request="x"), "nobody")],
    ids=["no HostAgent", "no such conversation"],
)
def test_follow_up_of_an_unknown_conversation_is_refused(begin, task, session):
    with begin(host=[FINISH], app=[FINISH]) as first:
        first.submit(task).result(PATIENCE)
    with pytest.raises(TaskRefusedError, match="does not exist, or it is no longer kept"):
        begin(host=[FINISH], app=[FINISH]).submit(Task(request="more", session=session))


def test_a_conversation_that_was_dropped_is_refused(begin):
    with begin(host=[FINISH]) as first:
        first.submit(Task(id="t", request="one")).result(PATIENCE)
    second = begin(host=[FINISH], journal={"path": first.settings.journal.path, "days": 1e-9})
    with pytest.raises(TaskRefusedError, match="no longer kept"):
        second.submit(Task(request="two", session="t"))


def test_a_follow_up_in_another_process_may_follow_a_plan(begin):
    with begin(host=hosts, app=[append("1", "FINISH")]) as first:
        first.submit(Task(id="t", request="one")).result(PATIENCE)
    plan = [PlanStep(request=text, target="memo:one") for text in ("2", "3")]
    result = (
        begin(app=lambda request: append(request.request, "FINISH"))
        .handle("t")
        .follow_up("both", plan=plan)
        .result(PATIENCE)
    )
    assert (result.outcome, [done.number for done in result.subtasks]) == (Outcome.FINISHED, [2, 3])


def test_a_follow_up_in_another_process_is_replayed(begin):
    with begin(host=hosts, app=[append("1", "FINISH")]) as first:
        first.submit(Task(id="t", request="one")).result(PATIENCE)
    with begin(host=hosts, app=[append("2", "FINISH")]) as second:
        second.handle("t").follow_up("two", id="u").result(PATIENCE)
        path = second.settings.journal.path
    done = replay_journal(path, "u")
    assert (done.same, done.outcome) == (True, Outcome.FINISHED), str(done.difference)


# Additions of a follow-up


def sizes(path, task_id):
    """Give the sizes of a task's messages, in order.

    The sizes of the rows would depend on timing: consecutive messages share a row if they are written at once.
    """
    with JournalReader.open(path) as journal:
        messages = [row.message for row in journal.rows(task_id) if not isinstance(row.message, Event)]
    return [(type(message).__name__, len(to_json(message, fallback=msgspec.to_builtins))) for message in messages]


def test_the_messages_of_a_follow_up_do_not_grow_with_the_conversation(begin):
    def app(request):
        write = {"Status": "FINISH", "Function": "write", "Args": {"control_id": "field-1", "text": "same"}}
        return {**write, "Result": "x" * 5000}

    with begin(host=hosts, app=app) as supervisor:
        handle = supervisor.submit(Task(id="f-00", request="work"))
        for number in range(1, 11):
            handle.result(PATIENCE)
            handle = handle.follow_up("work", id=f"f-{number:02}")
        assert handle.result(PATIENCE).ok
        path = supervisor.settings.journal.path
    first, tenth = sizes(path, "f-01"), sizes(path, "f-10")
    assert [kind for kind, _ in first] == [kind for kind, _ in tenth]
    assert max(size for _, size in first) > 5000
    assert max(abs(later - earlier) for (_, earlier), (_, later) in zip(first, tenth, strict=True)) < 50


def test_the_rows_of_a_subtask_name_none_of_those_before_it(begin):
    def app(request):
        return {**FINISH, "Result": f"result of {request.task_id}"}

    with begin(host=hosts, app=app) as supervisor:
        first = supervisor.submit(Task(id="one", request="work"))
        first.result(PATIENCE)
        first.follow_up("work", id="two").result(PATIENCE)
        path = supervisor.settings.journal.path
    with JournalReader.open(path) as journal:
        said = [row.message for row in journal.rows("two") if isinstance(row.message, Assign)]
    assert [(assign.subtasks, assign.made) for assign in said] == [((), ())] * 3


class Blocks:
    """A model that answers once it is let go."""

    def __init__(self):
        self.reached, self.go, self.seen = threading.Event(), threading.Event(), []

    def __call__(self, request):
        self.seen.append([(done.run_id, done.output) for done in request.subtasks])
        if request.task_id == "u" and not self.go.is_set():
            self.reached.set()
            self.go.wait(HELD)
        return append(request.task_id, "FINISH")


def test_a_subtask_resumed_by_another_process_knows_the_conversation(begin):
    blocked = Blocks()
    first = begin(host=hosts, app=blocked)
    handle = first.submit(Task(id="t", request="one"))
    handle.result(PATIENCE)
    handle.follow_up("two", id="u")
    assert blocked.reached.wait(PATIENCE)
    stop_blocked(first)
    blocked.go.set()
    second = begin(host=hosts, app=blocked)
    assert second.handle("u").result(PATIENCE).ok
    assert blocked.seen == [[], [("t~1", "t")], [("t~1", "t")]]
    assert [entry.content for entry in second.blackboard("u").requests] == ["one", "two"]


class Drawer(MemoryServer):
    """A surface with a drawer of files."""

    @tool(effect=Effect.IDEMPOTENT)
    def put(self, target: str, path: str) -> str:
        """Make a file."""
        with committing(Path(path)):
            Path(path).write_text("made", encoding="utf-8")
        return path


def test_a_subtask_resumed_elsewhere_knows_what_its_conversation_made(begin, tmp_path):
    drawer, blocked, path = Drawer(MemoryServer.window()), Blocks(), str(tmp_path / "made.txt")

    def app(request):
        if request.task_id == "t":
            return {"Status": "FINISH", "Function": "put", "Args": {"path": path}}
        return blocked(request)

    first = begin(host=hosts, app=app, servers=[drawer])
    handle = first.submit(Task(id="t", request="one"))
    assert handle.result(PATIENCE).subtasks[0].made == (path,)
    handle.follow_up("two", id="u")
    assert blocked.reached.wait(PATIENCE)
    stop_blocked(first)
    blocked.go.set()
    result = begin(host=hosts, app=app, servers=[drawer]).handle("u").result(PATIENCE)
    assert result.subtasks[0].made == (path,)
    assert result.artifacts == ()


def test_subtask_repeated_by_its_host_after_a_crash_knows_the_conversation(begin, monkeypatch, caplog):
    blocked = Blocks()
    blocked.go.set()
    crashes = [True]
    receive = Agent.receive

    def crash(agent, message):
        then = message.next_result if isinstance(message, JobReturned) else None
        if then is not None and isinstance(then.result, Assign) and then.task_id == "u" and crashes:
            crashes.clear()
            msg = "before its word was told"
            raise RuntimeError(msg)
        receive(agent, message)

    monkeypatch.setattr(Agent, "receive", crash)
    supervisor = begin(host=hosts, app=blocked, supervision={"backoff": 0.01})
    handle = supervisor.submit(Task(id="t", request="one"))
    handle.result(PATIENCE)
    after = handle.follow_up("two", id="u")
    assert after.result(PATIENCE).ok
    assert not crashes
    assert blocked.seen == [[], [("t~1", "t")]]


# Memory of other agents


def remembering(seen):
    def app(request):
        seen.append((request.task_id, [record.decision.thought for record in request.memory], request.step))
        return {"Status": "FINISH", "Thought": f"did {request.task_id}"}

    return {"host": hosts, "app": app}


@pytest.mark.parametrize("processes", [1, 2])
def test_an_app_agent_remembers_its_conversation_and_no_other(begin, tmp_path, processes):
    seen = []
    supervisor = begin(**remembering(seen))
    supervisor.submit(Task(id="t", request="make a chart")).result(PATIENCE)
    supervisor.submit(Task(id="other", request="something else")).result(PATIENCE)
    supervisor.submit(lone(id="alone")).result(PATIENCE)
    if processes == 2:
        supervisor.stop()
        supervisor = begin(**remembering(seen))
    supervisor.submit(Task(id="u", request="now make it red", session="t")).result(PATIENCE)
    supervisor.submit(Task(id="v", request="now make it blue", session="t")).result(PATIENCE)
    supervisor.submit(lone(id="alone-2")).result(PATIENCE)
    assert seen == [
        ("t", [], 1),
        ("other", [], 1),
        ("alone", [], 1),
        ("u", ["did t"], 1),
        ("v", ["did t", "did u"], 1),
        ("alone-2", [], 1),
    ]
    supervisor.stop()
    assert_replays(tmp_path / "journal.db")


def test_an_app_agent_that_was_stopped_remembers_from_the_journal(begin):
    seen = []
    supervisor = begin(**remembering(seen), limits={"idle_agents": 0, "sessions": 0})
    supervisor.submit(Task(id="t", request="make a chart")).result(PATIENCE)
    supervisor.submit(Task(id="u", request="now make it red", session="t")).result(PATIENCE)
    assert [memory for _, memory, _ in seen] == [[], ["did t"]]


def test_a_conversation_that_is_dropped_is_forgotten_by_all_its_agents(start, monkeypatch):
    forgotten = []
    real = Agent.receive

    def receive(agent, message):
        if isinstance(message, TaskForgotten):
            forgotten.append((agent.address, message.task_id))
        real(agent, message)

    monkeypatch.setattr(Agent, "receive", receive)
    supervisor = start(**remembering([]), limits={"sessions": 1})
    for name in ("one", "two"):
        supervisor.submit(Task(id=name, request="work")).result(PATIENCE)
    supervisor.stop()
    assert forgotten == [("app/memo/one", "one")]
