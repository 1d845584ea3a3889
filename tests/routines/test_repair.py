"""Repairs of routines by a live model become proposed changes of them."""

from __future__ import annotations

import pytest
import yaml

from callboard import EventName, Task
from callboard.journal import JournalReader
from callboard.messages import Routine, RoutineError
from callboard.routines import dump, propose
from callboard.testing import MemoryServer
from support import PATIENCE


def control(name="field-1"):
    return {"kind": "field", "name": name, "id": name}


def write(text, field="field-1", **facts):
    action = {"tool": "write", "arguments": {"control_id": "${controls.0.id}", "text": text}, "control": 0}
    return {"status": "CONTINUE", "controls": [control(field)], "actions": [{**action, **facts}]}


def answer(text, field="field-1", status="CONTINUE", **facts):
    return {"Status": status, "Function": "write", "Args": {"control_id": field, "text": text}, **facts}


def lone(*steps, **facts):
    subtask = {"target": "memo:one", "kind": "app", "request": "fill it", "steps": [*steps, {"status": "FINISH"}]}
    content = {"routine": "fill", "request": "Fill it for ${who}", "subtasks": [subtask], **facts}
    return Routine.model_validate({"parameters": {"who": {"value": "Ann"}}, **content})


def in_order(answers):
    """Make a model that gives its answers in order."""
    left = iter(answers)
    return lambda _: next(left)


@pytest.fixture
def repaired(begin, tmp_path):
    """Run a routine with a model behind it, and propose its repair."""

    def run(routine, model, *, surface=None, **facts):
        window = surface or MemoryServer(MemoryServer.window(), controls={"field-1": "", "field-2": ""})
        settings = {"system": {"ask_question": False}, **facts.pop("settings", {})}
        models = {"app": model, **facts.pop("models", {})}
        supervisor = begin(servers=[window], **settings, **{kind: in_order(each) for kind, each in models.items()})
        handle = supervisor.submit(Task(routine=routine, **facts))
        result = handle.result(PATIENCE)
        supervisor.stop()
        with JournalReader.open(tmp_path / "journal.db") as reader:
            rows = list(reader.rows(handle.task_id))
        return result, propose(rows)

    return run


MODEL = [answer("two for Bob", "field-2"), answer("three", status="FINISH")]


def test_repair_keeps_the_steps_before_the_miss_as_written(repaired):
    first = {**write("one"), "why": "written by a person"}
    routine = lone(first, write("two for ${who}", "gone"))
    result, proposal = repaired(routine, MODEL, parameters={"who": "Bob"})
    assert result.ok
    steps = proposal.proposed.subtasks[0].steps
    assert steps[0] == routine.subtasks[0].steps[0]
    assert [action.arguments for step in steps for action in step.actions] == [
        {"control_id": "${controls.0.id}", "text": "one"},
        {"control_id": "${controls.0.id}", "text": "two for ${who}"},
        {"control_id": "${controls.0.id}", "text": "three"},
    ]
    assert steps[1].controls[0].name == "field-2"
    same = {"request", "parameters", "checks", "recorded", "routine", "host"}
    assert proposal.proposed.model_dump(include=same) == routine.model_dump(include=same)
    assert proposal.proposed.proposal_for == routine.digest
    assert [miss.step for miss in proposal.misses] == [2]


def test_difference_has_the_repair_alone(repaired):
    _, proposal = repaired(lone(write("one"), write("two", "gone")), MODEL)
    lines = proposal.difference.splitlines()
    assert lines[:2] == ["--- fill.routine.yaml", "+++ fill.routine.proposed.yaml"]
    assert any(line.startswith("-") and "gone" in line for line in lines)
    assert any(line.startswith("+") and "field-2" in line for line in lines)
    assert not any(line[0] in "+-" and "field-1" in line and "one" in line for line in lines)


@pytest.mark.parametrize("text", ["${steps.1.results.0.value}", "b"])
def test_repaired_routine_runs_without_a_model(repaired, start, text):
    routine = lone(write("a"), write(text, "gone"))
    _, proposal = repaired(routine, [answer("b", "field-2", "FINISH")])
    surface = MemoryServer(MemoryServer.window(), controls={"field-1": "", "field-2": ""})
    routine = Routine.model_validate(yaml.safe_load(dump(proposal.proposed)))
    result = start(servers=[surface], system={"ask_question": False}).submit(Task(routine=routine)).result(PATIENCE)
    assert (result.ok, result.usage.model_calls, result.usage.missed) == (True, 0, 0)
    assert [text for _, _, text in surface.effects] == ["a", "b"]


def test_followed_loop_stays_a_loop(repaired):
    loop = {"each": "rows", "steps": [write("${item}")]}
    routine = lone(loop, write("x", "gone"), parameters={"who": {"value": "A"}, "rows": {"value": ["a", "b"]}})
    _, proposal = repaired(routine, [answer("x", status="FINISH")], parameters={"rows": ["c", "d", "e"]})
    steps = proposal.proposed.subtasks[0].steps
    assert steps[0] == routine.subtasks[0].steps[0]
    assert len(steps) == 2
    assert proposal.proposed.parameters == routine.parameters


def test_loop_that_missed_is_a_loop_again(repaired):
    loop = {"each": "rows", "steps": [write("${item}", "gone")]}
    rows = ["row 1", "row 2", "row 3"]
    routine = lone(loop, parameters={"who": {"value": "A"}, "rows": {"value": rows}})
    answers = [*(answer(row) for row in rows), {"Status": "FINISH"}]
    _, proposal = repaired(routine, answers)
    [repaired_loop, _] = proposal.proposed.subtasks[0].steps
    assert repaired_loop.each == "rows"
    assert repaired_loop.steps[0].actions[0].arguments["text"] == "${item}"


def test_result_of_another_form_is_expected_afterwards(repaired):
    routine = lone(write("one", expect={"changes": True, "members": ["rows"]}))
    _, proposal = repaired(routine, [{"Status": "FINISH"}])
    [first, last] = proposal.proposed.subtasks[0].steps
    assert first.actions[0].expect.members != ("rows",)
    assert last.status == "FINISH"


def hosted(first, second):
    host = [
        {"status": "ASSIGN", "assign": [{"subtask": 1}]},
        {"status": "ASSIGN", "assign": [{"subtask": 2}]},
        {"status": "FINISH", "result": "${subtasks.2.output}"},
    ]
    subtasks = [
        {"target": f"memo:{name}", "kind": "app", "request": f"write {name}", "steps": [step, finish]}
        for name, step, finish in (("one", *first), ("two", *second))
    ]
    return Routine.model_validate({"routine": "pair", "request": "both", "host": host, "subtasks": subtasks})


FINISH = {"status": "FINISH", "result": "${steps.1.output}"}


def windows():
    return MemoryServer(MemoryServer.window(), MemoryServer.window("two"))


def test_followed_host_and_subtasks_stay_as_written(repaired):
    routine = hosted((write("first text"), FINISH), (write("${subtasks.1.output} again", "gone"), FINISH))
    model = [answer("first text", status="FINISH", Result="first text")]
    result, proposal = repaired(routine, model, surface=windows())
    assert result.ok
    assert proposal.proposed.host == routine.host
    assert proposal.proposed.subtasks[0] == routine.subtasks[0]
    repaired_part = proposal.proposed.subtasks[1]
    assert repaired_part.steps != routine.subtasks[1].steps
    assert repaired_part.steps[0].actions[0].arguments["text"] == "${subtasks.1.output}"
    assert (repaired_part.target, repaired_part.request) == ("memo:two", "write two")


def test_repaired_host_keeps_its_first_steps(repaired):
    routine = hosted((write("first text"), FINISH), (write("other"), FINISH))
    changed = routine.model_dump(mode="json", exclude_defaults=True)
    changed["subtasks"][1]["target"] = "memo:three"
    host = [{"Status": "ASSIGN", "Current Sub-Task": "write 2", "ControlText": "memo:two"}, {"Status": "FINISH"}]
    model = [answer("by a model", status="FINISH")]
    result, proposal = repaired(Routine.model_validate(changed), model, surface=windows(), models={"host": host})
    assert result.ok
    assert proposal.proposed.host[0] == routine.host[0]
    assert [part.target for part in proposal.proposed.subtasks] == ["memo:one", "memo:two"]
    assert proposal.proposed.subtasks[0] == routine.subtasks[0]
    assert proposal.proposed.subtasks[1].request == "write 2"


def test_run_without_a_miss_proposes_nothing(repaired):
    assert repaired(lone(write("one")), MODEL)[1] is None


def test_task_without_a_routine_proposes_nothing(begin, tmp_path):
    handle = begin(app=[{"Status": "FINISH"}]).submit(Task(request="x", target="memo:one"))
    handle.result(PATIENCE)
    with JournalReader.open(tmp_path / "journal.db") as reader:
        assert propose(reader.rows(handle.task_id)) is None


def test_answer_about_a_routine_is_no_repair(begin, until, tmp_path):
    supervisor = begin()
    handle = supervisor.submit(Task(routine=lone(write("one"), write("two", "gone"))))
    until(handle, EventName.QUESTION_ASKED)
    handle.answer(handle.questions()[0].id, "it is done, go on")
    result = handle.result(PATIENCE)
    assert (result.ok, result.usage.missed) == (True, 1)
    with JournalReader.open(tmp_path / "journal.db") as reader:
        assert propose(reader.rows(handle.task_id)) is None


def test_run_that_did_not_finish_proposes_nothing(repaired):
    with pytest.raises(RoutineError, match="ended as failed"):
        repaired(lone(write("one", "gone")), [{"Status": "FAIL"}])


def test_equal_repairs_have_one_fingerprint_whatever_their_values(repaired):
    routine = lone(write("one"), write("two", "gone"))
    prints = set()
    for name in ("Bob", "Cyd"):
        _, proposal = repaired(routine, [answer(f"for {name}", status="FINISH")], parameters={"who": name})
        prints.add(proposal.fingerprint)
    _, other = repaired(routine, [answer("other", status="FINISH")], parameters={"who": "Bob"})
    assert len(prints) == 1
    assert other.fingerprint not in prints
