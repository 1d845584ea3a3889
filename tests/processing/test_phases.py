"""`phase.ended`: made from the end of its step for its readers, and told by itself where no step ends."""

from __future__ import annotations

import json
import queue

import pytest

from callboard import EventName, Task
from callboard.journal import JournalReader
from support import ASSIGN, FINISH, PATIENCE

WRITE = {"Status": "FINISH", "Function": "write", "Args": {"control_id": "field-1", "text": "hello"}}

PHASES = ["data_collection", "llm_interaction", "action_execution", "memory_update"]


def until(events, name):
    """Take events up to the first of a name."""
    taken = []
    while not taken or taken[-1].name is not name:
        taken.append(events.get(timeout=PATIENCE))
    return taken


def ended(events):
    return [event for event in events if event.name is EventName.PHASE_ENDED]


def test_phases_of_a_step_come_right_before_its_end_without_a_number(start):
    supervisor = start(host=[ASSIGN, FINISH], app=[WRITE])
    handle = supervisor.submit(Task(request="say hello"))
    handle.result(PATIENCE)
    events = list(handle.events())
    steps = [place for place, event in enumerate(events) if event.name is EventName.STEP_ENDED]
    assert len(steps) == 3
    for place in steps:
        step, phases = events[place], events[place - 4 : place]
        assert [phase.phase for phase in phases] == PHASES
        assert {(phase.seq, phase.agent, phase.state, phase.step) for phase in phases} == {
            (step.seq - 1, step.agent, step.state, step.step)
        }
        assert sum(phase.duration for phase in phases) <= step.duration
        assert [phase.at for phase in phases] == sorted(phase.at for phase in phases)


def test_a_program_that_stops_amid_phases_misses_no_end_of_a_step(start):
    supervisor = start(host=[ASSIGN, FINISH], app=[WRITE])
    supervisor.submit(Task(request="say hello")).result(PATIENCE)
    everything, later = queue.SimpleQueue(), queue.SimpleQueue()
    supervisor.subscribe(everything.put, after=0)
    seen = until(everything, EventName.PHASE_ENDED)
    supervisor.subscribe(later.put, after=seen[-1].seq)
    assert until(later, EventName.STEP_ENDED)[-5:] == [seen[-1], *until(everything, EventName.STEP_ENDED)]


def test_a_step_that_failed_tells_the_phases_that_ran_and_the_error(start):
    supervisor = start(host=[ASSIGN, FINISH], app=[{"Status": "NOWHERE"}], limits={"repairs": 0})
    handle = supervisor.submit(Task(request="say hello"))
    handle.result(PATIENCE)
    events = list(handle.events())
    failed = next(event for event in events if event.name is EventName.STEP_FAILED)
    phases = [event for event in ended(events) if event.seq == failed.seq - 1]
    assert [phase.phase for phase in phases] == PHASES[:2]
    assert [bool(phase.data.get("error")) for phase in phases] == [False, True]


def test_look_outside_a_step_has_its_own_event(start):
    supervisor = start(host=[ASSIGN, FINISH], app=[{"Status": "FAIL"}])
    handle = supervisor.submit(Task(request="say hello"))
    handle.result(PATIENCE)
    events = list(handle.events())
    [look] = [event for event in ended(events) if event.state == "FAIL"]
    assert look.phase == "data_collection"
    assert [event.seq for event in events].count(look.seq) == 1


def test_the_journal_keeps_no_row_of_a_phase_but_readers_get_it(start, tmp_path):
    journal = tmp_path / "journal.db"
    with start(host=[ASSIGN, FINISH], app=[WRITE], journal={"path": journal}) as supervisor:
        handle = supervisor.submit(Task(request="say hello"))
        handle.result(PATIENCE)
        live = list(handle.events())
        recovered = []
        supervisor.subscribe(recovered.append, after=0)
    with JournalReader.open(journal) as reader:
        kept = [row.message for row in reader.rows(handle.task_id) if row.message.kind == "event"]
        read = list(reader.events(handle.task_id))
    assert not ended(kept)
    assert len(ended(live)) == 12
    assert read == live
    assert [event for event in recovered if event.task_id == handle.task_id] == live


@pytest.mark.parametrize("level", ["debug", "info"])
def test_the_log_has_a_line_for_each_phase_at_its_level(start, tmp_path, level):
    log = tmp_path / "events.log"
    with start(host=[ASSIGN, FINISH], app=[WRITE], log={"file": log, "level": level}) as supervisor:
        supervisor.submit(Task(request="say hello")).result(PATIENCE)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert sum(line["event"] == "phase.ended" for line in lines) == (12 if level == "debug" else 0)
    assert not any("phases" in line for line in lines)
