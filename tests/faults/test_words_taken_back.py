"""An agent that crashes at a word it takes back from a job goes on from the journal: its work is done once."""

from __future__ import annotations

import functools

import pytest

from callboard import EventName, Outcome, Task
from callboard.actors.agent import Agent
from callboard.actors.late_results import JobReturned
from callboard.testing import MemoryServer
from support import ASSIGN, FINISH, PATIENCE, append


class Crash:
    """Has the agents of a kind crash at a word, by its number, or at every one."""

    def __init__(self, kind, nth):
        self.kind, self.nth, self.words, self.real = kind, nth, 0, Agent.receive

    def __call__(self, agent, message):
        if agent.address.startswith(f"{self.kind}/") and isinstance(message, JobReturned):
            self.words += 1
            if self.nth in {0, self.words}:
                msg = "the agent fell over"
                raise RuntimeError(msg)
        self.real(agent, message)


@pytest.fixture
def crashing(monkeypatch):
    def set_up(kind, nth):
        monkeypatch.setattr(Agent, "receive", functools.partialmethod(Crash(kind, nth)))

    return set_up


def host(request):
    return FINISH if request.subtasks else ASSIGN


def app(request):
    return append("a") if request.step == 1 else FINISH


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize(("kind", "nth"), [(kind, nth) for kind in ("app", "host") for nth in (1, 2, 3, 4)])
def test_finished_work_is_not_done_or_asked_again(start, begin, crashing, kind, nth, durable):
    surface, asked = MemoryServer(MemoryServer.window()), []

    def noted(answer):
        def model(request):
            asked.append((request.kind.value, request.step))
            return answer(request)

        return model

    crashing(kind, nth)
    supervisor = (begin if durable else start)(servers=[surface], host=noted(host), app=noted(app))
    result = supervisor.submit(Task(request="do it")).result(PATIENCE)
    assert (result.outcome, result.actions, len(result.subtasks)) == (Outcome.FINISHED, 1, 1)
    assert [text for _, _, text in surface.effects] == ["a"]
    assert sorted(asked) == [("app", 1), ("app", 2), ("host", 1), ("host", 2)]


def test_one_that_always_crashes_ends_with_what_it_had_done(begin, monkeypatch):
    surface, real = MemoryServer(MemoryServer.window()), Agent.receive

    def receive(agent, message):
        if agent.address.startswith("app/") and surface.effects:
            msg = "the agent fell over"
            raise RuntimeError(msg)
        real(agent, message)

    monkeypatch.setattr(Agent, "receive", receive)
    handle = begin(servers=[surface], host=host, app=app).submit(Task(request="do it"))
    result = handle.result(PATIENCE)
    assert (result.outcome, result.changed, result.actions) == (Outcome.ERROR, ("memo:one",), 1)
    told = next(event for event in handle.events() if event.name is EventName.RUN_FAILED)
    assert (told.agent, told.state, told.data["outcome"]) == ("app/memo/one", "ERROR", "error")
    assert "the agent fell over" in told.data["reason"]
    assert (told.data["action"]["tool"], told.data["controls"]) == ("append", {"field-1": "field-1"})
