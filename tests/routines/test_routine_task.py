"""Tests of tasks that name a routine: keys, changed files, other machines."""

from __future__ import annotations

import pytest

from callboard import Task
from callboard.messages import Routine, TaskRefusedError
from callboard.routines import dump
from support import PATIENCE


def fill(text, **parts):
    action = {"tool": "write", "arguments": {"control_id": "field-1", "text": text}}
    steps = [{"status": "CONTINUE", "actions": [action]}, {"status": "FINISH"}]
    subtask = {"target": "memo:one", "kind": "app", "request": "fill it", "steps": steps}
    return Routine.model_validate({"routine": "fill", "request": "Fill it", "subtasks": [subtask], **parts})


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "fill.routine.yaml"
    file.write_text(dump(fill("${who}", parameters={"who": {"value": "Ann"}})), encoding="utf-8")
    return file


def test_action_that_no_tool_takes_is_refused_with_its_place_in_the_file(begin):
    supervisor = begin()
    steps = [
        {"status": "CONTINUE"},
        {"each": "rows", "steps": [{"status": "CONTINUE"}, {"status": "CONTINUE", "actions": [{"tool": "wirte"}]}]},
        {"status": "FINISH"},
    ]
    subtask = {"target": "memo:one", "kind": "app", "request": "fill it", "steps": steps}
    routine = fill("x", parameters={"rows": {"value": [1]}}, subtasks=[subtask])
    with pytest.raises(
        TaskRefusedError, match=r"are there: subtasks\.1\.steps\.2\.steps\.2\.actions\.0: app agents have"
    ):
        supervisor.submit(Task(routine=routine))


@pytest.mark.parametrize("change", [lambda file: file.write_text(dump(fill("other"))), lambda file: file.unlink()])
def test_key_finds_its_task_after_the_file_changed(begin, file, change):
    supervisor = begin()
    task = Task(routine=str(file), parameters={"who": "Bob"}, key="june")
    first = supervisor.submit(task)
    first.result(PATIENCE)
    change(file)
    again = supervisor.submit(Task(routine=str(file), parameters={"who": "Bob"}, key="june"))
    assert (again.task_id, again.result(PATIENCE)) == (first.task_id, first.result(PATIENCE))
    with pytest.raises(TaskRefusedError, match="was used before"):
        supervisor.submit(Task(routine=str(file), parameters={"who": "Eve"}, key="june"))


def test_key_of_another_routine_is_refused_with_both(begin):
    supervisor, routines = begin(), (fill("a"), fill("b"))
    supervisor.submit(Task(routine=routines[0], key="june")).result(PATIENCE)
    with pytest.raises(TaskRefusedError) as refused:
        supervisor.submit(Task(routine=routines[1], key="june"))
    assert all(routine.digest in str(refused.value) for routine in routines)
