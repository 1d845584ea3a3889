"""Recordings of the examples have the references of their scripts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from callboard.messages import Routine, RoutineParameter, RoutineStep
from callboard.routines import dump, load_routine
from callboard.routines._origins import parts

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = ("sales_report", "log_report", "expenses", "sales_by_region", "quarterly_deck")


def script_references(name: str) -> dict[str, str]:
    """Return a script's references by agent, step and place."""
    script: dict[str, list[dict[str, Any]]] = yaml.safe_load((EXAMPLES / name / "script.yaml").read_text("utf-8"))
    references = {}
    for address, answers in script.items():
        for number, answer in enumerate(answers, 1):
            actions = answer.get("Actions", [answer] if "Function" in answer else [])
            for index, action in enumerate(actions):
                for tail, value in parts("", action.get("arguments", action.get("Args", {}))):
                    references[f"{address.rpartition('/')[2]} {number} {index}{tail}"] = value
            for tail, value in parts("", answer.get("Result")):
                references[f"{address.rpartition('/')[2]} {number} result{tail}"] = value
    return {place: value for place, value in references.items() if is_reference(value)}


def is_reference(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("${") and not value.startswith("${source")


def references_of(routine: Routine) -> dict[str, str]:
    """Return the references of a routine in the same form."""
    names = {f"${{{name}}}": str(parameter.value) for name, parameter in routine.parameters.items()}
    agents = [("host", routine.host), *((names.get(part.target, part.target), part.steps) for part in routine.subtasks)]
    references = {}
    for agent, steps in agents:
        for number, step in enumerate(steps, 1):
            assert isinstance(step, RoutineStep)
            for index, action in enumerate(step.actions):
                for tail, value in parts("", action.arguments):
                    references[f"{agent} {number} {index}{tail}"] = value
            for tail, value in parts("", step.result):
                references[f"{agent} {number} result{tail}"] = value
    return {place: value for place, value in references.items() if is_reference(value)}


OTHER_FORM = {
    "sales_report": {"report.xlsx 1 0.sheet": "${controls.0.name}"},
    "log_report": {
        "errors.xlsx 1 0.sheet": "${controls.0.name}",
        "errors.xlsx 2 0.sheet": "${controls.0.name}",
    },
    "expenses": {},
    "sales_by_region": {"sales.xlsx 1 0.sheet": "${controls.0.name}"},
    "quarterly_deck": {
        **{
            f"summary.docx 1 result{place}": f"${{controls.{number}.name}}"
            for number, place in enumerate(
                (".title", ".highlights.0", ".highlights.1", ".highlights.2", ".outlook.0", ".outlook.1")
            )
        },
        "quarter.pptx 2 0.control_id": "${controls.0.id}",
        "quarter.pptx 2 1.control_id": "${controls.1.id}",
    },
}
"""The references to controls, which a script counts, and a routine knows by their names."""
MORE = {
    "sales_report": {"sales.docx 1 0.control_id"},
    "sales_by_region": {"north.docx 1 0.control_id", "south.docx 1 0.control_id"},
}
"""The references that a script does not need, because it names the control beside the arguments."""
MISSED = {"quarterly_deck": {"quarter.pptx 3 result"}}
"""The references to lone numbers."""


@pytest.mark.parametrize("name", NAMES)
def test_the_references_of_a_script_are_found_again(recorded, name):
    right, made = script_references(name), references_of(recorded(name).routine)
    assert right
    missed = MISSED.get(name, set())
    expected = {place: value for place, value in right.items() if place not in missed} | OTHER_FORM[name]
    assert {place: value for place, value in made.items() if place not in MORE.get(name, set())} == expected


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_routine_is_read_from_its_file(recorded, name, tmp_path):
    file = tmp_path / "r.yaml"
    file.write_text(dump(recorded(name).routine), encoding="utf-8")
    assert load_routine(file) == recorded(name).routine


def test_documents_are_parameters_in_targets_and_checks(recorded):
    routine = recorded("sales_report").routine
    assert routine.parameters == {"source": RoutineParameter(value="sales.docx", document=True)}
    assert [subtask.target for subtask in routine.subtasks] == ["${source}", "report.xlsx"]
    assert routine.checks[2] == {"unchanged": ["${source}"]}
    assert routine.checks[0]["same_as"] == {"table": "${source}!Revenue by region", "args": {"decimal": "."}}


def test_lone_numbers_in_results_are_remarked(recorded):
    assert recorded("quarterly_deck").remarks == (
        "subtasks.3.steps.3.result is always 5: if it counts rows, refer to a result instead",
    )
    assert recorded("sales_report").remarks == ()


def test_a_file_that_the_request_names_is_proposed(recorded):
    assert recorded("expenses").proposals == {"file": "expenses.xlsx"}
    assert recorded("sales_report").proposals == {}


def test_subtasks_that_ran_side_by_side_are_handed_over_in_one_step(recorded):
    first = recorded("sales_by_region").routine.host[0]
    assert isinstance(first, RoutineStep)
    assert ([part.subtask for part in first.assign], first.stops_group) == ([1, 2], True)


def test_reasons_quote_no_value_that_is_not_in_their_step(recorded):
    routine = recorded("sales_report").routine
    reasons = [step.why for step in routine.host if isinstance(step, RoutineStep)]
    assert reasons == [
        "The table is in ${source}. Its agent reads it, before there is anything to draw.",
        "",  # it quotes the number of rows
        "The workbook is there, and empty.",
        "",  # it quotes the chart's id
    ]
