"""The four transition tables, whole: every source, target and cause."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

from callboard.actors.agent import Agent, AgentContext
from callboard.actors.app import AppAgent
from callboard.actors.host import HostAgent
from callboard.actors.linux import LinuxAgent
from callboard.actors.mobile import MobileAgent
from callboard.actors.processing import AGENTS, MACHINES
from callboard.actors.runtime import EventStream, VirtualClock
from callboard.actors.states import AgentStateManager, By, HostAgentStateManager, Move, Run
from callboard.config import Limits
from callboard.messages import Assign, EventName, IllegalMoveError

HOST = {
    ("CONTINUE", "CONTINUE"): "model|system",
    ("CONTINUE", "ASSIGN"): "model",
    ("CONTINUE", "FINISH"): "model",
    ("CONTINUE", "FAIL"): "model|user|system|timeout",
    ("CONTINUE", "PENDING"): "model",
    ("CONTINUE", "CONFIRM"): "model|system",
    ("CONTINUE", "ERROR"): "system",
    ("ASSIGN", "CONTINUE"): "system",
    ("ASSIGN", "FINISH"): "system",
    ("ASSIGN", "FAIL"): "system",
    ("ASSIGN", "ERROR"): "system",
    ("PENDING", "CONTINUE"): "user|system",
    ("PENDING", "FAIL"): "system|timeout",
    ("PENDING", "ERROR"): "system",
    ("CONFIRM", "CONTINUE"): "user|system",
    ("CONFIRM", "FAIL"): "user|system|timeout",
    ("CONFIRM", "ERROR"): "system",
    ("FAIL", "FINISH"): "system",
    ("ERROR", "FINISH"): "system",
}
APP = {
    ("CONTINUE", "CONTINUE"): "model|system",
    ("CONTINUE", "SCREENSHOT"): "model",
    ("CONTINUE", "FINISH"): "model",
    ("CONTINUE", "FAIL"): "model|user|system|timeout",
    ("CONTINUE", "PENDING"): "model",
    ("CONTINUE", "CONFIRM"): "model|system",
    ("CONTINUE", "ERROR"): "model|system",
    ("SCREENSHOT", "SCREENSHOT"): "model",
    ("SCREENSHOT", "CONTINUE"): "model|system",
    ("SCREENSHOT", "CONFIRM"): "model|system",
    ("SCREENSHOT", "FAIL"): "user|system|timeout",
    ("SCREENSHOT", "ERROR"): "system",
    ("PENDING", "CONTINUE"): "user|system",
    ("PENDING", "FAIL"): "system|timeout",
    ("PENDING", "ERROR"): "system",
    ("CONFIRM", "CONTINUE"): "user|system",
    ("CONFIRM", "FINISH"): "user|timeout",
    ("CONFIRM", "FAIL"): "system|timeout",
    ("CONFIRM", "ERROR"): "system",
    ("FAIL", "FINISH"): "system",
    ("ERROR", "FINISH"): "system",
}
THREE_STATES = {
    ("CONTINUE", "CONTINUE"): "model|system",
    ("CONTINUE", "FINISH"): "model",
    ("CONTINUE", "FAIL"): "model|user|system|timeout",
    ("FAIL", "FINISH"): "system",
}
EXPECTED = {
    HostAgent: (HOST, ("CONTINUE", "ASSIGN", "PENDING", "CONFIRM", "FAIL", "ERROR", "FINISH")),
    AppAgent: (APP, ("CONTINUE", "SCREENSHOT", "PENDING", "CONFIRM", "FAIL", "ERROR", "FINISH")),
    MobileAgent: (THREE_STATES, ("CONTINUE", "FAIL", "FINISH")),
    LinuxAgent: (THREE_STATES, ("CONTINUE", "FAIL", "FINISH")),
}
MOVES = [
    pytest.param(agent, source, target, by, id=f"{agent.__name__}-{source}-{target}-{by}")
    for agent, (_, statuses) in EXPECTED.items()
    for source, target, by in itertools.product(statuses, statuses, By)
]


def is_expected(agent: type[Agent], source: str, target: str, by: By) -> bool:
    table, _ = EXPECTED[agent]
    return str(by) in table.get((source, target), "").split("|")


def kind_of(agent):
    return next(kind for kind, machine in MACHINES.items() if machine.agent_class() is agent)


def machine_of(agent: type[Agent]) -> type[AgentStateManager]:
    return MACHINES[kind_of(agent)]


def agent_in(agent: type[Agent], status: str) -> tuple[Agent, EventStream]:
    """Make an agent that was never started, in the middle of its work: no thread, no jobs."""
    stream = EventStream(VirtualClock(), kept=10, queue=10)
    nothing = dict.fromkeys(field.name for field in dataclasses.fields(AgentContext))
    actor = agent(f"{kind_of(agent)}/a/b", AgentContext(**{**nothing, "stream": stream, "agents": AGENTS}))
    assign = Assign(task_id="t", run_id="t~1", address=actor.address, token=1, request="do it", number=1)
    actor._run = Run(assign=assign, limits=Limits(), status=status)
    return actor, stream


@pytest.mark.parametrize("agent", EXPECTED, ids=lambda agent: agent.__name__)
def test_a_machine_has_exactly_the_expected_statuses(agent):
    machine = machine_of(agent)
    assert tuple(machine.transitions) == EXPECTED[agent][1]
    assert machine.initial == "CONTINUE"
    assert machine.final == "FINISH"


@pytest.mark.parametrize(("agent", "source", "target", "by"), MOVES)
def test_the_check_lets_through_exactly_the_expected_moves(agent, source, target, by):
    machine = machine_of(agent)
    if is_expected(agent, source, target, by):
        assert machine.check(source, target, by) is None
    else:
        with pytest.raises(IllegalMoveError) as refused:
            machine.check(source, target, by)
        assert (refused.value.source, refused.value.target, refused.value.by) == (source, target, str(by))


@pytest.mark.parametrize(("agent", "source", "target", "by"), MOVES)
def test_an_agent_makes_only_expected_moves_and_others_change_nothing(agent, source, target, by, monkeypatch):
    actor, stream = agent_in(agent, source)
    feed = stream.open()
    before = actor._run
    decisions = [Move(target, by)]
    monkeypatch.setattr(actor.machine, "decide", lambda _run: decisions.pop() if decisions else None)
    if is_expected(agent, source, target, by):
        actor._move_on()
        assert actor._run.status == target
        name = EventName.STATE_CHANGED
    else:
        with pytest.raises(IllegalMoveError):
            actor._move_on()
        assert actor._run is before
        name = EventName.STATE_REFUSED
    events = [event for event in iter(feed.take, None) if event.name is not EventName.RUN_FAILED]
    assert [(event.name, event.data) for event in events] == [
        (name, {"source": source, "target": target, "by": str(by)})
    ]


@pytest.mark.parametrize("agent", EXPECTED, ids=lambda agent: agent.__name__)
@pytest.mark.parametrize("by", [By(0), By.MODEL | By.SYSTEM])
def test_a_move_needs_exactly_one_cause(agent, by):
    machine = machine_of(agent)
    with pytest.raises(IllegalMoveError):
        machine.check("CONTINUE", "CONTINUE", by)


@pytest.mark.parametrize("agent", EXPECTED, ids=lambda agent: agent.__name__)
@pytest.mark.parametrize("unknown", ["", "continue", "DONE"])
def test_a_move_from_or_to_an_unknown_status_is_refused(agent, unknown):
    machine = machine_of(agent)
    for source, target in ((unknown, "FINISH"), ("CONTINUE", unknown)):
        for by in By:
            with pytest.raises(IllegalMoveError):
                machine.check(source, target, by)


OFFERED = {
    (HostAgent, "CONTINUE"): ("CONTINUE", "ASSIGN", "FINISH", "FAIL", "PENDING", "CONFIRM"),
    (AppAgent, "CONTINUE"): ("CONTINUE", "SCREENSHOT", "FINISH", "FAIL", "PENDING", "CONFIRM", "ERROR"),
    (AppAgent, "SCREENSHOT"): ("SCREENSHOT", "CONTINUE", "CONFIRM"),
    (MobileAgent, "CONTINUE"): ("CONTINUE", "FINISH", "FAIL"),
    (LinuxAgent, "CONTINUE"): ("CONTINUE", "FINISH", "FAIL"),
}


@pytest.mark.parametrize(
    ("agent", "status"), [(agent, status) for agent, (_, statuses) in EXPECTED.items() for status in statuses]
)
def test_a_model_is_offered_its_choices_and_none_where_it_is_not_asked(agent, status):
    machine = machine_of(agent)
    assert machine.offered(status) == OFFERED.get((agent, status), ())


def test_a_model_is_offered_nothing_in_an_unknown_status():
    assert HostAgentStateManager.offered("DONE") == ()
