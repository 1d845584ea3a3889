"""Tests of routines named as models in the settings."""

from __future__ import annotations

import pytest

from callboard import Outcome, Task
from callboard.messages import Routine, SettingsError
from callboard.routines import dump
from callboard.testing import MemoryServer
from support import PATIENCE


def routine(text, **parameter):
    action = {"tool": "write", "arguments": {"control_id": "field-1", "text": text}}
    steps = [{"status": "CONTINUE", "actions": [action]}, {"status": "FINISH"}]
    subtask = {"target": "memo:one", "kind": "app", "request": "fill it", "steps": steps}
    parameters = {"who": parameter} if parameter else {}
    return Routine.model_validate({"routine": "fill", "request": "x", "parameters": parameters, "subtasks": [subtask]})


def test_routine_stands_for_the_model_of_a_kind(start, tmp_path):
    (tmp_path / "fill.routine.yaml").write_text(dump(routine("for ${who}", value="Ann")), encoding="utf-8")
    surface = MemoryServer(MemoryServer.window())
    supervisor = start(servers=[surface], models={"app": f"routine:{tmp_path / 'fill.routine.yaml'}"})
    result = supervisor.submit(Task(request="anything", target="memo:one")).result(PATIENCE)
    assert (result.ok, result.usage.model_calls, result.usage.replayed) == (True, 0, 2)
    assert surface.effects == [("memo:one", "field-1", "for Ann")]


def test_answers_of_a_routine_are_no_calls_that_are_recorded(start, tmp_path):
    (tmp_path / "fill.routine.yaml").write_text(dump(routine("x")), encoding="utf-8")
    surface = MemoryServer(MemoryServer.window())
    record = tmp_path / "calls.jsonl"
    models = {"app": f"routine:{tmp_path / 'fill.routine.yaml'}", "record": str(record)}
    supervisor = start(servers=[surface], models=models)
    result = supervisor.submit(Task(request="anything", target="memo:one")).result(PATIENCE)
    assert (result.ok, result.usage.replayed) == (True, 2)
    assert surface.effects == [("memo:one", "field-1", "x")]
    assert record.read_text(encoding="utf-8") == ""


def test_work_that_the_routine_does_not_know_fails(start, tmp_path):
    (tmp_path / "fill.routine.yaml").write_text(dump(routine("x")), encoding="utf-8")
    surface = MemoryServer(MemoryServer.window("two"))
    models = {"app": f"routine:{tmp_path / 'fill.routine.yaml'}"}
    supervisor = start(servers=[surface], models=models, system={"ask_question": False})
    result = supervisor.submit(Task(request="anything", target="memo:two")).result(PATIENCE)
    assert result.outcome is Outcome.FAILED
    assert surface.effects == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (dump(routine("${who}", description="whom")), "the parameter 'who' has no usual value"),
        ("routine: x\n", "request: is missing"),
        (None, "can't be read"),
    ],
)
def test_file_that_is_no_routine_is_refused_at_the_start(start, tmp_path, content, message):
    file = tmp_path / "fill.routine.yaml"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    with pytest.raises(SettingsError, match=message):
        start(models={"app": f"routine:{file}"})
