"""Attacks by a routine's file: all are refused before they change anything."""

from __future__ import annotations

import pytest
import yaml

from callboard import Outcome, Task
from callboard.messages import Routine, TaskRefusedError
from callboard.testing import MemoryServer
from support import PATIENCE

SECRET = "swordfish-4711"


def poisoned(**facts):
    action = {"tool": "write", "arguments": {"control_id": "${controls.0.id}", "text": "x"}, "control": 0}
    step = {"status": "CONTINUE", "controls": [{"kind": "field", "name": "field-1"}], "actions": [action]}
    subtask = {"target": "memo:one", "kind": "app", "request": "fill it", "steps": [step, {"status": "FINISH"}]}
    return {"routine": "fill", "request": "Fill it", "subtasks": [subtask], **facts}


def with_at(content, path, value):
    """Change one part of a routine."""
    part = content
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return content


STEP = ("subtasks", 0, "steps", 0)


@pytest.mark.parametrize(
    "path",
    [
        ("request",),
        ("parameters",),
        ("checks",),
        ("subtasks", 0, "target"),
        ("subtasks", 0, "request"),
        (*STEP, "why"),
        (*STEP, "window"),
        (*STEP, "dialogs"),
        (*STEP, "result"),
        (*STEP, "controls", 0, "kind"),
        (*STEP, "controls", 0, "name"),
        (*STEP, "controls", 0, "id"),
        (*STEP, "actions", 0, "tool"),
        (*STEP, "actions", 0, "arguments", "text"),
    ],
    ids=lambda path: ".".join(map(str, path)),
)
def test_secret_in_a_routine_is_refused(start, path):
    text = f"it is {SECRET}."
    special = {"parameters": {"who": {"value": text}}, "checks": [{"file": text}], "dialogs": [text]}
    routine = Routine.model_validate(with_at(poisoned(), path, special.get(str(path[-1]), text)))
    surface = MemoryServer(MemoryServer.window())
    supervisor = start(servers=[surface], secrets={"pw": SECRET})
    with pytest.raises((TaskRefusedError, ValueError), match=r"quotes a secret|contains the secret|no tool"):
        supervisor.submit(Task(routine=routine))
    assert surface.effects == []


def test_secret_of_the_task_in_its_routine_is_refused(start):
    routine = Routine.model_validate(with_at(poisoned(), (*STEP, "actions", 0, "arguments", "text"), SECRET))
    with pytest.raises(ValueError, match="its routine quotes a secret"):
        start().submit(Task(routine=routine, secrets={"pw": SECRET}))


def test_secret_in_a_parameter_is_refused(start):
    routine = Routine.model_validate(poisoned(parameters={"who": {"value": "Ann"}}))
    with pytest.raises(ValueError, match="its parameters quote a secret"):
        start(secrets={"pw": SECRET}).submit(Task(routine=routine, parameters={"who": SECRET}))


def test_short_secret_may_be_the_name_of_a_tool(start):
    assert start(secrets={"a": "app", "b": "write"}).submit(Task(routine=Routine.model_validate(poisoned())))


GRANTED = {"secrets": {"pw": {"value": "swordfish-4711", "tools": ["write"], "parameters": ["text"]}}}


@pytest.mark.parametrize("text", ["${steps.1.results.0.value}", "pin: ${steps.1.results.0.value}"])
def test_name_of_a_secret_in_data_is_not_filled_in(start, text):
    surface = MemoryServer(MemoryServer.window(), controls={"field-1": "${secret:pw}", "field-2": ""})
    read = {"tool": "read", "arguments": {"control_id": "field-1"}}
    put = {"tool": "write", "arguments": {"control_id": "field-2", "text": text}}
    steps = [{"status": "CONTINUE", "actions": [action]} for action in (read, put)]
    supervisor = start(servers=[surface], system={"ask_question": False})
    routine = with_at(poisoned(), ("subtasks", 0, "steps"), [*steps, {"status": "FINISH"}])
    result = supervisor.submit(Task(routine=Routine.model_validate(routine), **GRANTED)).result(PATIENCE)
    assert result.outcome is Outcome.FAILED
    assert "holds the name of a secret" in result.causes[0].reason
    assert surface.effects == []


def test_parameter_that_names_a_secret_is_refused(start):
    routine = Routine.model_validate(poisoned(parameters={"who": {"value": "Ann"}}))
    task = Task(routine=routine, parameters={"who": "${secret:pw}"}, **GRANTED)
    with pytest.raises(TaskRefusedError, match="the parameter 'who' names a secret"):
        start().submit(task)


def test_step_outside_the_policy_does_nothing(start):
    surface = MemoryServer(MemoryServer.window())
    rules = [{"verdict": "deny", "tool": "write"}]
    supervisor = start(servers=[surface], policy=rules, system={"ask_question": False})
    result = supervisor.submit(Task(routine=Routine.model_validate(poisoned()))).result(PATIENCE)
    assert (result.outcome, surface.effects) == (Outcome.FAILED, [])


@pytest.mark.parametrize("path", ["../out.txt", "/poison.txt", "a/../../out.txt"])
def test_path_out_of_the_workspace_is_not_written(start, tmp_path, path):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    create = {"tool": "create_document", "arguments": {"path": path}}
    assign = {"status": "ASSIGN", "assign": [{"subtask": 1}]}
    content = poisoned(host=[{"status": "CONTINUE", "actions": [create]}, assign, {"status": "FINISH"}])
    supervisor = start(servers=[], documents={"workspace": workspace}, system={"ask_question": False})
    before = set(tmp_path.rglob("*"))
    content["subtasks"][0]["steps"][0]["actions"] = []
    result = supervisor.submit(Task(routine=Routine.model_validate(content))).result(PATIENCE)
    assert (result.outcome, result.actions) == (Outcome.FAILED, 0)
    assert set(tmp_path.rglob("*")) == before
    assert "create_document" in result.causes[0].reason


BOMB = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9))]
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, "alias"),
        ("[" * 5_000, "bomb.routine.yaml"),
        ("request: " + "x" * 1_000_001, "at most 1,000,000"),
        ("!!python/object/apply:os.system ['touch /tmp/x']", "bomb.routine.yaml"),
        (yaml.safe_dump(poisoned(program="rm -rf /")), "unknown key"),
    ],
    ids=["aliases", "depth", "size", "tag", "unknown key"],
)
def test_harmful_file_of_a_routine_is_refused(start, tmp_path, text, message):
    file = tmp_path / "bomb.routine.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(TaskRefusedError, match=message):
        start().submit(Task(routine=str(file)))
