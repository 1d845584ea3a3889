"""Subtasks of a machine that is away: they wait, a person is asked, or they fail."""

from __future__ import annotations

import pytest

from callboard import EventName, Outcome
from callboard.actors.client import kind_of_request
from callboard.fleet import MemoryEngine
from callboard.testing import MemoryServer
from support import ASK, FINISH, PATIENCE, append, lone, wait_for

REMOTE_WINDOW = "finance-3:memo:finance-3"


def worker(request):
    return append(request.request) if request.step == 1 else FINISH


class Lost:
    """A machine that is away, and a submitter that knows it."""

    def __init__(self, fleet, *, system=None, **settings):
        self.surface = MemoryServer(MemoryServer.window("finance-3"))
        self.engine = MemoryEngine(fleet.hub, "finance-3")
        self.there = fleet.machine("finance-3", surface=self.surface, app=worker, engine=self.engine)
        self.here = fleet.machine("desk", serves=False, fleet=settings, system=system or {})
        assert fleet.submit(self.here, lone(REMOTE_WINDOW, request="known")).result(PATIENCE).ok
        self.told = []
        self.here.subscribe(lambda event: self.told.append(event.name))
        self.engine.cut()
        wait_for(lambda: EventName.MACHINE_AWAY in self.told)

    def come_back(self):
        self.engine.cut(off=False)
        wait_for(lambda: EventName.MACHINE_BACK in self.told)

    @property
    def effects(self):
        return [text for _, _, text in self.surface.effects]


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr("callboard.fleet._machines.AWAY_SECONDS", 0.5)
    monkeypatch.setattr("callboard.fleet._machines.BEAT_SECONDS", 0.2)
    for module in ("_served_work", "_own_state"):
        monkeypatch.setattr(f"callboard.fleet.{module}.BEAT_SECONDS", 0.1)


def test_subtask_fails_where_the_settings_say_so_and_is_not_done_later(fleet):
    lost = Lost(fleet, on_machine_loss="fail")
    result = lost.here.submit(lone(REMOTE_WINDOW, request="late")).result(PATIENCE)
    assert (result.outcome, result.failed_actions) == (Outcome.FAILED, 1)
    assert result.causes[0].reason == "the machine finance-3 was not waited for: what it has done is not known"
    lost.come_back()
    wait_for(lambda: not fleet.hub.queues["finance-3"])
    assert lost.effects == ["known"]


@pytest.mark.parametrize("answer", ["wait", "give up"])
def test_person_says_whether_to_wait(fleet, until, answer):
    lost = Lost(fleet, on_machine_loss="ask")
    handle = lost.here.submit(lone(REMOTE_WINDOW, request="late"))
    until(handle, EventName.QUESTION_ASKED)
    (question,) = handle.questions()
    assert question.questions[0].choices == ("wait", "give up")
    assert kind_of_request(question) == "doubt"  # no caller decides about work that may be done in part
    handle.answer(question.id, answer)
    if answer == "give up":
        assert handle.result(PATIENCE).outcome is Outcome.FAILED
    lost.come_back()
    if answer == "wait":
        assert handle.result(PATIENCE).ok
    wait_for(lambda: not fleet.hub.queues["finance-3"])
    assert lost.effects == (["known", "late"] if answer == "wait" else ["known"])


def test_subtask_waits_if_nobody_is_asked_about_the_machine(fleet):
    lost = Lost(fleet, system={"ask_question": False}, on_machine_loss="ask")
    handle = lost.here.submit(lone(REMOTE_WINDOW, request="late"))
    lost.come_back()
    assert handle.result(PATIENCE).ok
    assert lost.effects == ["known", "late"]


def test_question_is_withdrawn_when_the_machine_is_back(fleet, until):
    lost = Lost(fleet, on_machine_loss="ask")
    handle = lost.here.submit(lone(REMOTE_WINDOW, request="late"))
    until(handle, EventName.QUESTION_ASKED)
    lost.come_back()
    assert handle.result(PATIENCE).ok
    assert handle.questions() == ()
    assert lost.effects == ["known", "late"]


def test_stopped_machine_is_away_at_once_and_says_so(fleet):
    there, told = fleet.machine("finance-3", app=worker), []
    here = fleet.machine("desk", serves=False)
    here.subscribe(told.append)
    assert fleet.submit(here, lone(REMOTE_WINDOW, request="known")).result(PATIENCE).ok
    there.stop()
    handle = here.submit(lone(REMOTE_WINDOW, request="late"))
    wait_for(lambda: [event for event in told if event.task_id == handle.task_id and event.name == "machine.away"])
    events = [event for event in told if event.name is EventName.MACHINE_AWAY]
    assert {(event.stopped, event.seconds) for event in events} == {(True, 0)}
    assert events[-1].waiting == (f"{handle.task_id}~1",)
    handle.cancel(abandon=True)


def test_abandoned_task_of_an_earlier_process_ends_without_the_machine(fleet):
    lost = Lost(fleet)
    handle = lost.here.submit(lone(REMOTE_WINDOW, request="late"))
    assert handle.cancel("enough")
    lost.here.stop()
    again = fleet.machine("desk", serves=False).handle(handle.task_id)
    again.cancel("enough", abandon=True)
    assert again.result(PATIENCE).outcome is Outcome.CANCELLED
    lost.engine.cut(off=False)
    wait_for(lambda: not fleet.hub.queues["finance-3"])
    assert lost.effects == ["known"]


def test_abandoned_task_ends_although_the_server_is_away(fleet, monkeypatch):
    monkeypatch.setattr("callboard.fleet._submitted_work._TELL_SECONDS", 0.05)
    engine = MemoryEngine(fleet.hub, "desk")
    there = fleet.machine("finance-3", app=lambda _: ASK)
    here = fleet.machine("desk", serves=False, engine=engine)
    handle = fleet.submit(here, lone(REMOTE_WINDOW))
    wait_for(lambda: there.status().questions)
    engine.cut()
    handle.cancel("enough", abandon=True)
    result = handle.result(PATIENCE)
    assert (result.outcome, result.failed_actions) == (Outcome.CANCELLED, 1)
    engine.cut(off=False)
    wait_for(lambda: not there.pending())


def test_cancelled_task_may_be_abandoned_and_is_stopped_there_later(fleet):
    lost = Lost(fleet)
    handle = lost.here.submit(lone(REMOTE_WINDOW, request="late"))
    assert handle.cancel("enough")
    assert not handle.cancel("enough", abandon=True)
    result = handle.result(PATIENCE)
    assert (result.outcome, result.causes[0].reason) == (Outcome.CANCELLED, "enough")
    assert (result.failed_actions, "is not known" in result.subtasks[0].comment) == (1, True)
    lost.come_back()
    wait_for(lambda: not fleet.hub.queues["finance-3"])
    assert lost.effects == ["known"]
