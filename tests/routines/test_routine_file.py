"""Files of routines are written and read; invalid ones are refused."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.errors import RoutineError
from callboard.messages import (
    ExpectedResult,
    RecordedControl,
    RecordedRun,
    Routine,
    RoutineAction,
    RoutineAssignment,
    RoutineLoop,
    RoutineParameter,
    RoutineStep,
    RoutineSubtask,
)
from callboard.routines import dump, load_routine
from callboard.routines._routine_file import MOST_BYTES

ROOT = Path(__file__).resolve().parents[2]
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12).map(lambda text: text.replace("${", "$("))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,9}", fullmatch=True)
SOME = WORDS.filter(bool)
CONTROLS = st.builds(
    RecordedControl, kind=WORDS, name=WORDS, id=WORDS, place=WORDS, before=WORDS, columns=JSON, alike=st.integers(0, 9)
)
EXPECTED = st.builds(ExpectedResult, changes=st.booleans(), members=st.none() | st.lists(WORDS, max_size=9))
ACTIONS = st.builds(
    RoutineAction, tool=SOME, arguments=st.dictionaries(WORDS, JSON, max_size=3), expect=st.none() | EXPECTED
)
STEPS = st.builds(
    RoutineStep,
    status=SOME,
    why=WORDS,
    dialogs=st.lists(WORDS, max_size=2),
    controls=st.lists(CONTROLS, max_size=2),
    actions=st.lists(ACTIONS, max_size=2),
    result=JSON,
)
ENTRIES = STEPS | st.builds(
    RoutineLoop, each=st.just("each"), steps=st.lists(STEPS, min_size=1, max_size=2), last=st.none() | st.just(1)
)
SUBTASKS = st.builds(
    RoutineSubtask,
    target=SOME,
    kind=st.just("app"),
    request=SOME,
    steps=st.lists(ENTRIES, min_size=1, max_size=2),
)
PARAMETERS = st.builds(RoutineParameter, value=JSON, document=st.booleans(), description=WORDS)
RUNS = st.builds(RecordedRun, verified=st.booleans(), cost=st.floats(0, 9), seconds=st.floats(0, 9))
ROUTINES = st.builds(
    Routine,
    routine=NAMES,
    request=SOME,
    parameters=PARAMETERS.map(lambda parameter: {"each": parameter}),
    host=st.just((RoutineStep(status="ASSIGN", assign=(RoutineAssignment(subtask=1), RoutineAssignment(subtask=2))),)),
    subtasks=st.lists(SUBTASKS, min_size=2, max_size=2),
    checks=st.lists(st.dictionaries(WORDS, JSON, max_size=2), max_size=2),
    recorded=RUNS,
)
SMALL = {"routine": "r", "request": "x", "subtasks": [{"target": "t", "kind": "app", "request": "x", "steps": []}]}


def routine_text(*steps: object, **fields: object) -> str:
    """Write a routine of one subtask."""
    content = {**SMALL, **fields}
    content["subtasks"] = [{**SMALL["subtasks"][0], "steps": list(steps)}]  # type: ignore[index]
    return json.dumps(content)


def refusal(file: Path, text: str) -> str:
    """Return the error of a file, without its name."""
    file.write_text(text, encoding="utf-8")
    with pytest.raises(RoutineError) as refused:
        load_routine(file)
    lines = str(refused.value).splitlines()
    assert all(line.startswith(f"{file}: ") for line in lines)
    return "\n".join(line.removeprefix(f"{file}: ") for line in lines)


@pytest.fixture
def file(tmp_path) -> Path:
    return tmp_path / "monthly.routine.yaml"


@settings(max_examples=40)
@given(routine=ROUTINES)
def test_a_written_routine_is_read_as_the_same(routine, tmp_path_factory):
    file = tmp_path_factory.mktemp("routine") / "r.yaml"
    file.write_text(dump(routine), encoding="utf-8")
    assert load_routine(file) == routine


@settings(max_examples=40)
@given(routine=ROUTINES)
def test_a_written_routine_fits_its_schema(routine):
    schema = json.loads((ROOT / "config" / "schemas" / "routine.json").read_text(encoding="utf-8"))
    jsonschema.Draft7Validator(schema).validate(yaml.safe_load(dump(routine)))


def test_the_first_line_names_the_schema():
    routine = Routine.model_validate(json.loads(routine_text({"status": "FINISH"})))
    assert dump(routine).startswith("# yaml-language-server: $schema=schemas/routine.json\nroutine: r\nversion: 1\n")
    assert "why" not in dump(routine)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty, not a mapping"),
        ("- a\n", "holds a list, not a mapping"),
        ("routine: r\nroutine: s\n", "the key 'routine' appears twice, in lines 1 and 2"),
        ("a: &a [x]\nb: *a\n", "has an alias (`*`) in line 2"),
        ("request: x\nsubtasks: []\n", "routine: is missing"),
        (routine_text(), "subtasks.1.steps: is empty"),
        (routine_text({"status": "FINISH", "actoins": []}), "subtasks.1.steps.1.actoins: unknown key; did you mean 'a"),
        (
            routine_text({"status": "FINISH"}, {"each": "subtasks.1.output", "steps": [], "lats": 1}),
            "subtasks.1.steps.2.steps: is empty\nsubtasks.1.steps.2.lats: unknown key; did you mean 'last'?",
        ),
        (
            routine_text({"status": "CONTINUE", "actions": [{"tool": "t"}, {"tool": "t", "arguments": []}]}),
            "subtasks.1.steps.1.actions.1.arguments: must be a mapping of keys to values",
        ),
        (routine_text({"each": "rows", "steps": [{"stats": 1}]}), "subtasks.1.steps.1.steps.1.status: is missing\n"),
        (routine_text("FINISH"), "subtasks.1.steps.1: must be a mapping of keys to values"),
        (routine_text({"status": "FINISH"}, version=2), "version: must be 1"),
        (routine_text({"status": "FINISH"}, parameters={"item": {}}), "parameters: 'item' has another meaning"),
        (
            routine_text({"status": "FINISH", "result": "d"}).replace('"d"', "2026-05-01"),
            "subtasks.1.steps.1.result: must be text, and is read as a date: put it in quotes",
        ),
    ],
)
def test_an_invalid_file_is_refused_with_the_place(file, text, says):
    assert refusal(file, text).startswith(says)


@pytest.mark.parametrize(
    ("step", "says"),
    [
        ({"result": "${month}"}, "result: ${month} is no parameter; there is none: add it to `parameters`"),
        ({"result": "${steps.2.results.0.value}"}, "result: ${steps.2.results.0.value} leads nowhere"),
        ({"result": f"${{steps.{'9' * 5_000}.output}}"}, "result: ${steps.999"),
        ({"result": "${steps.1.result}"}, "result: ${steps.1.result} has another form than ${steps.1.results.0.value}"),
        ({"result": "${subtasks.1.output}"}, "result: ${subtasks.1.output} leads nowhere: no subtask before it"),
        ({"window": "${app}"}, "window: ${app} is no parameter"),
        ({"result": "${window.titles}"}, "result: ${window.titles} has another form than ${window.folder} or "),
        ({"controls": [{"kind": "a", "name": "${item}"}]}, "controls.0.name: ${item} has a meaning"),
        ({"result": "${item.0}"}, "result: ${item.0} has a meaning in the steps of a loop (`each`) only"),
        (
            {"actions": [{"tool": "t", "arguments": {"a": ["${controls.0.id}"]}}]},
            "actions.0.arguments.a.0: ${controls.0.id} leads nowhere: no of the step's controls",
        ),
    ],
)
def test_a_reference_that_leads_nowhere_is_refused(file, step, says):
    text = routine_text({"status": "CONTINUE"}, {"status": "FINISH", **step})
    assert refusal(file, text).startswith(f"subtasks.1.steps.2.{says}")


def test_a_folder_is_known_in_steps_alone(file):
    text = routine_text({"status": "FINISH", "result": "${window.folder}/a"}, request="${window.folder}")
    assert refusal(file, text) == "request: ${window.folder} has a meaning in steps only"


def test_references_and_escaped_texts_are_accepted(file):
    steps = [
        {"status": "CONTINUE", "actions": [{"tool": "t", "arguments": {"a": "$${HOME} ${secret:KEY} ${month}"}}]},
        {"each": "steps.1.results.0.value", "steps": [{"status": "CONTINUE", "result": "${item.0} ${steps.1.output}"}]},
        {"status": "FINISH", "result": "${steps.2.results.0.value.rows}"},
    ]
    file.write_text(routine_text(*steps, parameters={"month": {"value": "May"}}))
    assert load_routine(file).parameters["month"].value == "May"


def test_a_file_that_is_too_large_or_missing_is_refused(file):
    with pytest.raises(RoutineError, match="can't be read: No such file"):
        load_routine(file)
    assert refusal(file, "#" * (MOST_BYTES + 1)) == "has 1,000,001 bytes, and at most 1,000,000 are possible"


def test_a_file_that_a_journal_could_not_hold_is_refused(file):
    assert refusal(file, routine_text({"status": "FINISH", "result": json.loads("[" * 97 + "]" * 97)})) == (
        "is nested too deeply: at most 100 levels are possible"
    )
    file.write_text(routine_text({"status": "FINISH", "result": json.loads("[" * 95 + "]" * 95)}))
    assert load_routine(file)


def test_the_number_of_problems_in_an_error_is_limited(file):
    text = routine_text(*({"status": "FINISH", "no": 1} for _ in range(15)))
    assert refusal(file, text).splitlines()[-1] == "and 5 more"


END = {"status": "FINISH"}
TYPES = {"tool": "type", "arguments": {"control_id": "b"}, "control": 0}
GO_ON = {"status": "CONTINUE", "controls": [{"kind": "field", "name": "a"}]}


@pytest.mark.parametrize(
    ("steps", "host", "reason"),
    [
        ([END, GO_ON, END], [], "subtasks.1.steps.1: FINISH is not the last step"),
        ([{"each": "rows", "steps": [GO_ON, END]}], [], "subtasks.1.steps.1: FINISH in a loop would leave out"),
        ([GO_ON, END], [END], "subtasks.1 is handed over by no step of host"),
        ([{**GO_ON, "actions": [TYPES]}, END], [], r"its control_id is 'b': write \$\{controls.0.id\}"),
    ],
)
def test_steps_that_would_be_left_out_or_unguarded_are_refused(steps, host, reason):
    subtask = {"target": "t", "kind": "app", "request": "x", "steps": steps}
    rows = {"rows": {"value": [1]}}
    with pytest.raises(ValueError, match=reason):
        Routine.model_validate(
            {"routine": "r", "request": "x", "parameters": rows, "host": host, "subtasks": [subtask]}
        )
