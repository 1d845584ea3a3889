"""The example with scripts that lie: each lie is found, told to the agent, and no task is verified."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from callboard import EventName, Outcome, ScriptedModel, Supervisor, Task, TaskResult
from callboard.testing import assert_replays
from support import PATIENCE

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "sales_report"
SCRIPT = yaml.safe_load((EXAMPLE / "script.yaml").read_text(encoding="utf-8"))
TASK = yaml.safe_load((EXAMPLE / "task.yaml").read_text(encoding="utf-8"))
EXCEL = "app/excel/report.xlsx"
CHART = {"chart": "report.xlsx!Sales", "name": "all quarters", "contains": {"ranges": ["Sales!E2:E5"]}}

Script = dict[str, list[dict[str, Any]]]


def write_nothing(script: Script) -> None:
    script[EXCEL] = [{"Status": "FINISH", "Comment": "All written.", "Result": {"chart": "chart-1"}}]


def write_a_wrong_number(script: Script) -> None:
    wrong = {"sheet": "Sales", "cell": "B2", "values": [[999]]}
    script[EXCEL][1]["Actions"].append({"function": "write_range", "arguments": wrong})


def damage_another_file(script: Script) -> None:
    script["host"].insert(3, {"Status": "ASSIGN", "ControlText": "budget.csv", "Current Sub-Task": "tidy up"})
    row = {"Function": "append_rows", "Args": {"rows": [["South", 0]]}, "Status": "CONTINUE"}
    script["app/csv/budget.csv"] = [row, {"Status": "FINISH"}]


def chart_the_wrong_range(script: Script) -> None:
    (chart,) = [each for each in script[EXCEL][1]["Actions"] if each["function"] == "insert_chart"]
    chart["arguments"] |= {"cells": "A1:D5"}


def mend_it(script: Script) -> None:
    """Write a wrong number, and the right one after the HostAgent was told."""
    write_a_wrong_number(script)
    correction = {"Status": "ASSIGN", "ControlText": "report.xlsx", "Current Sub-Task": "Correct it"}
    script["host"] = [*script["host"][:-2], correction, {"Status": "FINISH", "Comment": "corrected"}]
    right = {"sheet": "Sales", "cell": "B2", "values": [["${subtasks.1.output.rows.0.1}"]]}
    script[EXCEL] += [{"Function": "write_range", "Args": right, "Status": "CONTINUE"}, {"Status": "FINISH"}]


@pytest.fixture
def play(tmp_path: Path) -> Callable[..., TaskResult]:
    place = Path(shutil.copytree(EXAMPLE, tmp_path / "sales_report"))
    (place / "workspace" / "budget.csv").write_text("region,plan\nNorth,400\n", encoding="utf-8")

    def run(change: Callable[[Script], None] | None, *more: dict[str, Any]) -> TaskResult:
        script = copy.deepcopy(SCRIPT)
        script["host"] += [{"Status": "FINISH", "Comment": "I am sure."}] * 2
        if change is not None:
            change(script)
        model = ScriptedModel(script)
        fields = {**TASK, "checks": [*TASK["checks"], *more]}
        with Supervisor.start(place / "callboard.yaml", models={"host": model, "app": model}) as supervisor:
            handle = supervisor.submit(Task(**fields))
            result = handle.result(PATIENCE)
            told = [event.data["check"]["name"] for event in handle.events() if event.name is EventName.CHECK_FAILED]
        assert_replays(place / "journal.db", result.task_id)
        assert bool(told) == (change is not None)
        return result

    return run


def test_the_example_is_verified(play):
    result = play(None, CHART)
    assert (result.outcome, result.verified) == (Outcome.FINISHED, True)
    assert [check.held for check in result.checks] == [True] * 5


@pytest.mark.parametrize(
    ("lie", "failed"),
    [
        (write_nothing, ["the workbook has the table of the report", "a bar chart of it", "all quarters"]),
        (write_a_wrong_number, ["the workbook has the table of the report"]),
        (damage_another_file, ["only report.xlsx"]),
        (chart_the_wrong_range, ["all quarters"]),
    ],
)
def test_a_lie_is_found_and_never_verified(play, lie, failed):
    result = play(lie, CHART)
    assert (result.outcome, result.verified) == (Outcome.FAILED, False)
    assert [check.name for check in result.checks if not check.held] == failed
    assert len(result.causes) == len(failed)


def test_a_mistake_that_is_mended_is_verified(play):
    result = play(mend_it)
    assert (result.outcome, result.verified, len(result.subtasks)) == (Outcome.FINISHED, True, 3)
