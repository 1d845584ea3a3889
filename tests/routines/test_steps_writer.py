"""Repeated steps are folded into loops, and values into references."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.messages import (
    Action,
    CommandResult,
    Control,
    ControlRef,
    Effect,
    Observation,
    ResultStatus,
    RoutineLoop,
)
from callboard.routines._origins import Origins
from callboard.routines._parameter_values import ParameterValues
from callboard.routines._step_draft import StepDraft
from callboard.routines._steps_writer import StepsWriter

WINDOW = Observation(
    controls=(
        Control(id="field-1", name="First name", kind="text field"),
        Control(id="button-1", name="Save", kind="button"),
        Control(id="sheet-1", name="Sheet1", kind="sheet"),
    )
)


FOLDERS = {"workspace": "/home/ada/work", "cwd": "/home/ada/work/june", "folder": "notes", "title": "/home/ada"}


def draft(index: int, tool: str, result: Any = None, **arguments: Any) -> tuple[StepDraft, list[Any]]:
    window = WINDOW.model_copy(update={"window": FOLDERS})
    step = StepDraft(index, "CONTINUE", window, visible=frozenset({1, 2}))
    action = Action(tool=tool, arguments=arguments, call_id=f"t~1.{index}.0")
    done = CommandResult(
        call_id=action.call_id, tool=tool, status=ResultStatus.SUCCESS, effect=Effect.ONCE, value=result
    )
    step.add(action, None, {})  # type: ignore[arg-type] # any result is expected
    return step, [(action, done)]


def writer_of(calls: list[dict[str, Any]], *outputs: Any, **parameters: str) -> StepsWriter:
    """Make a writer of one-action steps after subtasks with outputs."""
    origins = Origins()
    for number, output in enumerate(outputs, 1):
        origins.add_output(number, number, output)
    drafts = []
    for index, call in enumerate(calls):
        step, done = draft(index, **copy.deepcopy(call))
        drafts.append(step)
        origins.add_step(index, done)
    return StepsWriter(drafts, origins, ParameterValues(parameters))


def written(calls: list[dict[str, Any]], *outputs: Any, **parameters: str) -> list[Any]:
    """Write them."""
    return list(writer_of(calls, *outputs, **parameters).entries())


def arguments(entries: list[Any]) -> list[dict[str, Any]]:
    return [action.arguments for step in entries for action in step.actions]


def look_up(path: str, tree: Any) -> Any:
    for part in path.split("."):
        tree = tree[int(part)] if isinstance(tree, list) else tree[part]
    return tree


def filled(value: Any, tree: dict[str, Any]) -> Any:
    """Fill the references in, by the meaning that the format gives them."""
    if isinstance(value, dict):
        return {key: filled(item, tree) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, tree) for item in value]
    if not isinstance(value, str):
        return value
    whole = re.fullmatch(r"\$\{([^{}]*)\}", value)
    if whole:
        return look_up(whole[1], tree)
    pattern = re.compile(r"\$\$\{|\$\{([^{}]*)\}")
    return pattern.sub(lambda match: "${" if match[1] is None else str(look_up(match[1], tree)), value)


def unrolled(entries: list[Any], calls: list[dict[str, Any]], outputs: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Return the calls of a routine.

    A step's number is that in the file, and stands for its latest run.
    """
    tree: dict[str, Any] = {
        "subtasks": {str(number): {"output": output} for number, output in enumerate(outputs, 1)},
        "steps": {},
    }
    made: list[dict[str, Any]] = []

    def run(step: Any, number: int, **more: Any) -> None:
        (action,) = step.actions
        result = calls[len(made)].get("result")
        made.append({"tool": action.tool, **filled(action.arguments, {**tree, **more})})
        tree["steps"][str(number)] = {"results": [{"value": result}]}

    number = 1
    for entry in entries:
        if not isinstance(entry, RoutineLoop):
            run(entry, number)
            number += 1
            continue
        items = look_up(entry.each, tree)
        for place, item in enumerate(items):
            last = entry.last if place == len(items) - 1 else None
            for offset, step in enumerate(entry.steps[:last]):
                run(step, number + offset, item=item)
        number += len(entry.steps)
    return made


CELLS = st.sampled_from(["Ada", "Bo", "x", "Grace ${month}", "Alan Turing", 4, 4.0, True, None, "North", "$${a}"])
ROWS = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=2, max_size=4)
)
BODY = st.lists(
    st.tuples(st.sampled_from(["tap", "type", "press"]), st.sampled_from(["cell", "text", "fixed", "result"])),
    min_size=1,
    max_size=3,
)


@st.composite
def repeated(draw: Any) -> tuple[list[dict[str, Any]], dict[str, Any], int]:
    """Make calls that repeat for each row, between other calls.

    The length of the repetition is returned, too.
    """
    rows, body = draw(ROWS), draw(BODY)
    last = draw(st.integers(1, len(body)))
    calls: list[dict[str, Any]] = [{"tool": "open", "result": {"id": "window-7"}}] * draw(st.integers(0, 1))
    for number, row in enumerate(rows):
        for place, (tool, form) in enumerate(body[: last if number == len(rows) - 1 else None]):
            column = place % len(row)
            value = {
                "cell": row[column],
                "text": f"Dear {row[column]}, ${{x}}",
                "fixed": "the same text",
                "result": calls[-1].get("result") if calls else None,
            }[form]
            calls.append({"tool": tool, "value": value, "result": {"made": f"{tool}-{number}-{place}"}})
    calls += [{"tool": "close", "value": calls[-1]["result"]}] * draw(st.integers(0, 1))
    return calls, {"rows": rows, "count": len(rows)}, last


def plain(call: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in call.items() if key != "result"}


@settings(max_examples=300)
@given(case=repeated())
def test_written_steps_make_the_same_calls_again(case):
    calls, output, _ = case
    entries = written(calls, output)
    assert json.dumps(unrolled(entries, calls, (output,))) == json.dumps([plain(call) for call in calls])


def typed(*texts: Any) -> list[dict[str, Any]]:
    calls = []
    for text in texts:
        calls += [{"tool": "type", "text": text}, {"tool": "tap", "key": "BACK"}]
    return calls


def test_steps_for_each_row_become_a_loop():
    rows = [["Ada", 1], ["Bo", 2], ["Grace", 3]]
    (loop,) = written(typed("Ada", "Bo", "Grace"), {"rows": rows})
    assert (loop.each, loop.last) == ("subtasks.1.output.rows", None)
    assert arguments(list(loop.steps)) == [{"text": "${item.0}"}, {"key": "BACK"}]


def tapped(name: str) -> Observation:
    return Observation(controls=(Control(id="row-1", name=name, kind="row"),))


def test_controls_may_be_named_by_the_rows_of_a_loop():
    origins, drafts = Origins(), []
    origins.add_output(1, 1, [{"name": "Ada", "city": "Ulm"}, {"name": "Bob", "city": "Kiel"}])
    for index, name in enumerate(("Ada", "Bob")):
        step = StepDraft(index, "CONTINUE", tapped(f"{name}, ${{x}}"), visible=frozenset({1}))
        action = Action(tool="tap", arguments={"control_id": "row-1"}, control=ControlRef(id="row-1"))
        assert step.add(action, None, {})  # type: ignore[arg-type] # any result is expected
        drafts.append(step)
    (loop,) = StepsWriter(drafts, origins, ParameterValues({})).entries()
    assert isinstance(loop, RoutineLoop)
    (control,) = loop.steps[0].controls
    assert (loop.each, control.name) == ("subtasks.1.output", "${item.name}, $${x}")
    assert arguments(list(loop.steps)) == [{"control_id": "${controls.0.id}"}]


def test_the_last_row_may_have_fewer_steps():
    loop, end = written([*typed("Ada", "Grace")[:-1], {"tool": "close"}], ["Ada", "Grace"])
    assert (loop.each, loop.last, end.actions[0].tool) == ("subtasks.1.output", 1, "close")
    assert arguments(list(loop.steps))[0] == {"text": "${item}"}


def test_texts_around_a_row_become_templates():
    (loop,) = written(typed("Dear Ada Lovelace,", "Dear Alan Turing,"), [["Ada", "Lovelace"], ["Alan", "Turing"]])
    assert arguments(list(loop.steps))[0] == {"text": "Dear ${item.0} ${item.1},"}


def test_rows_in_another_order_or_only_some_of_them_are_no_loop():
    for texts in (("Bob", "Ada"), ("Ada", "Bob", "Bob"), ("Ada",)):
        assert not any(isinstance(entry, RoutineLoop) for entry in written(typed(*texts), ["Ada", "Bob", "Cem"]))


def test_a_step_after_a_loop_is_named_by_its_number_in_the_file():
    calls = [*typed("Ada", "Bob"), {"tool": "open", "result": "window-7"}, {"tool": "close", "id": "window-7"}]
    _, _, close = written(calls, ["Ada", "Bob"])
    assert close.actions[0].arguments == {"id": "${steps.3.results.0.value}"}


def test_the_nearest_result_comes_first_and_echoes_are_none():
    calls = [
        {"tool": "find", "result": {"cells": "A1:E5"}},
        {"tool": "format", "cells": "A1:E5", "result": {"cells": "A1:E5", "style": "bold"}},
        {"tool": "chart", "cells": "A1:E5", "style": "bold"},
    ]
    _, second, third = written(calls, {"cells": "A1:E5"})
    assert second.actions[0].arguments == {"cells": "${steps.1.results.0.value.cells}"}
    assert third.actions[0].arguments == {
        "cells": "${steps.1.results.0.value.cells}",
        "style": "${steps.2.results.0.value.style}",
    }


def test_lone_numbers_and_short_texts_are_no_references():
    (step,) = written([{"tool": "set", "count": 4, "unit": "kg", "on": True}], {"n": 4, "unit": "kg", "on": True})
    assert step.actions[0].arguments == {"count": 4, "unit": "kg", "on": True}


def test_values_of_another_type_are_no_references():
    (step,) = written([{"tool": "set", "rows": [[1, "5550100"]]}], {"rows": [[1.0, "5550100"]], "number": 5550100})
    assert step.actions[0].arguments == {"rows": [[1, "${subtasks.1.output.rows.0.1}"]]}


def test_arguments_of_one_action_come_from_one_result():
    tables = [{"header": ["City"], "rows": [["Kiel"]]}, {"header": ["City"], "rows": [["Ulm"]]}]
    (step,) = written([{"tool": "insert", "header": ["City"], "rows": [["Kiel"]]}], *tables)
    assert step.actions[0].arguments == {"header": "${subtasks.1.output.header}", "rows": "${subtasks.1.output.rows}"}


def test_a_control_is_named_in_an_argument_of_its_kind():
    (step,) = written([{"tool": "insert", "sheet": "Sheet1", "text": "Save"}])
    assert step.actions[0].arguments == {"sheet": "${controls.0.name}", "text": "Save"}
    assert [(control.kind, control.name) for control in step.controls] == [("sheet", "Sheet1")]


def test_parameters_replace_values_also_within_texts():
    call = {"tool": "run", "command": "echo ${HOME} May 2026 xMay 2026", "month": "May 2026", "key": "${secret:KEY}"}
    (step,) = written([call], month="May 2026")
    assert step.actions[0].arguments == {
        "command": "echo $${HOME} ${month} xMay 2026",
        "month": "${month}",
        "key": "${secret:KEY}",
    }


def test_folders_of_the_target_are_references():
    call = {
        "tool": "run",
        "command": "cat '/home/ada/work/june/a.txt' > /home/ada/work/b.txt",
        "other": "/home/ada/works/mnt/home/ada/work /home/ada",
    }
    (step,) = written([call])
    assert step.actions[0].arguments == {
        "command": "cat '${window.cwd}/a.txt' > ${window.workspace}/b.txt",
        "other": "/home/ada/works/mnt/home/ada/work /home/ada",
    }


def test_texts_of_a_loop_have_folders_and_parameters():
    calls = [{"tool": "save", "path": f"/home/ada/work/May/{name}.txt"} for name in ("Kiel", "Ulm")]
    (loop,) = written(calls, {"rows": ["Kiel", "Ulm"]}, month="May")
    assert [step.actions[0].arguments for step in loop.steps] == [{"path": "${window.workspace}/${month}/${item}.txt"}]


def old(calls: list[dict[str, Any]], *outputs: Any) -> list[tuple[str, int]]:
    writer = writer_of(calls, *outputs)
    writer.entries()
    return [(data.tail, data.number) for data in writer.old_data]


def test_rows_that_were_read_before_are_old_data():
    read = {"tool": "read", "result": {"rows": [["Aarhus", "412,300"], ["Bergen", "298,050"], ["Delft", "184,900"]]}}
    write = {"tool": "insert", "rows": [["Aarhus", 412_300], ["Bergen", 298_050], ["Delft", 184_900]]}
    assert old([read, write]) == [("2.actions.0.arguments.rows", 3)]  # the cities are references
    assert old([write], read["result"]) == [("1.actions.0.arguments.rows", 3)]
    assert old([write, read]) == []  # the model made them up, and read them back
    same = {"tool": "insert", "rows": read["result"]["rows"]}
    assert old([read, same]) == []  # it is a reference


def test_own_rows_that_a_tool_repeats_are_no_old_data():
    write = {"tool": "insert", "rows": [["Agenda", "Welcome"], ["Lunch", "Outlook"]]}
    assert old([write | {"result": {"cells": "A1:B2"}}, write]) == []
