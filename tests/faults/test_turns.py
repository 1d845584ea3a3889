"""After a crash, started work on a target resumes before queued work, each agent with its memory."""

from __future__ import annotations

import pytest

from callboard import EventName, Task
from callboard.actors.agent import Agent
from callboard.messages import Answer
from callboard.testing import MemoryServer
from support import ASSIGN, FINISH, PATIENCE, append

WAIT = {"Status": "PENDING", "Questions": ["go on?"]}
HOSTS = {"queued": [WAIT, ASSIGN], "twice": [ASSIGN, WAIT, ASSIGN]}


@pytest.fixture
def surface():
    return MemoryServer(MemoryServer.window())


@pytest.fixture
def remembered():
    """An agent's memory at each call, by task."""
    return []


@pytest.fixture
def begin(begin, surface, remembered):
    def host(request):
        script = HOSTS[request.task_id]
        return script[len(request.memory)] if len(request.memory) < len(script) else FINISH

    def app(request):
        remembered.append((request.task_id, request.run_id, len(request.memory)))
        if request.task_id == "begun":
            return [append("begun 1 "), WAIT, append("begun 2 "), FINISH][len(request.memory)]
        return append(f"{request.run_id} ") if request.step == 1 else FINISH

    return lambda: begin(host=host, app=app, servers=[surface])


@pytest.mark.parametrize("task", HOSTS)
@pytest.mark.parametrize("restarts", [0, 1, 2])
def test_after_a_restart_a_queued_task_waits_for_the_one_that_had_begun(
    begin, until, surface, remembered, task, restarts
):
    def answer(supervisor, name):
        handle = supervisor.handle(name)
        until(handle, EventName.QUESTION_ASKED)
        handle.answer(handle.questions()[0].id, "yes")

    supervisor = begin()
    older = supervisor.submit(Task(id=task, request="do it"))
    until(older, EventName.QUESTION_ASKED)
    until(supervisor.submit(Task(id="begun", request="do it", target="memo:one")), EventName.QUESTION_ASKED)
    answer(supervisor, task)
    until(older, EventName.SUBTASK_QUEUED)
    for _ in range(restarts):
        supervisor.stop()
        supervisor = begin()
    handle = supervisor.handle("begun")
    handle.answer(handle.questions()[0].id, "yes")
    assert handle.result(PATIENCE).ok
    assert supervisor.handle(task).result(PATIENCE).ok
    first = ["twice~1 "] if task == "twice" else []
    assert [text for _, _, text in surface.effects] == [*first, "begun 1 ", "begun 2 ", f"{task}~{len(first) + 1} "]
    assert [known for name, _, known in remembered if name == "begun"] == [0, 1, 2, 3]
    assert [known for name, _, known in remembered if name == task] == list(range(2 * len(first) + 2))


def test_a_restarted_agent_gets_other_tasks_memory_with_their_next_work(
    begin, until, surface, remembered, monkeypatch, caplog
):
    caplog.set_level("CRITICAL", "pykka")
    receive, crashes = Agent.receive, ["once"]

    def crash_at_the_answer(self, message):
        if isinstance(message, Answer) and message.task_id == "begun" and crashes:
            raise SystemExit(crashes.pop())
        receive(self, message)

    monkeypatch.setattr(Agent, "receive", crash_at_the_answer)
    supervisor = begin()
    twice = supervisor.submit(Task(id="twice", request="do it"))
    until(twice, EventName.QUESTION_ASKED)
    begun = supervisor.submit(Task(id="begun", request="do it", target="memo:one"))
    until(begun, EventName.QUESTION_ASKED)
    begun.answer(begun.questions()[0].id, "yes")
    assert begun.result(PATIENCE).ok
    twice.answer(twice.questions()[0].id, "yes")
    assert twice.result(PATIENCE).ok
    assert crashes == []
    assert [text for _, _, text in surface.effects] == ["twice~1 ", "begun 1 ", "begun 2 ", "twice~2 "]
    assert [known for name, _, known in remembered if name == "twice"] == [0, 1, 2, 3]
