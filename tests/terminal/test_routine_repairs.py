"""Repairs of routines on the command line: proposals, differences, promotion."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pytest
import yaml
from typer.testing import Result

from callboard import answers
from callboard.routines import load_routine

Call = Callable[..., Result]
ROUTINE: dict[str, Any] = {
    "routine": "fill",
    "request": "Fill ${source}",
    "parameters": {"source": {"value": "prices.xlsx", "document": True}},
    "subtasks": [
        {
            "target": "${source}",
            "kind": "app",
            "request": "fill it",
            "steps": [
                {
                    "status": "CONTINUE",
                    "controls": [{"kind": "sheet", "name": "Prices", "columns": ["A"]}],
                    "actions": [
                        {
                            "tool": "write_range",
                            "arguments": {"sheet": "${controls.0.name}", "cell": "A1", "values": [["Screw"]]},
                        }
                    ],
                },
                {"status": "FINISH", "result": "filled"},
            ],
        }
    ],
    "recorded": {"task": "first", "model_calls": 7, "seconds": 60.0},
}


@pytest.fixture
def file(here: Path) -> Path:
    """A routine, a workbook in which its sheet has another name, and a script that repairs it."""
    book = openpyxl.Workbook()
    book.active["A1"] = "Nut"
    book.save(here / "prices.xlsx")
    write = answers.act("write_range", sheet="Sheet", cell="A1", values=[["Screw"]])
    script = {"app/excel/prices.xlsx": [write, answers.finish("filled", result="filled")]}
    (here / "script.yaml").write_text(yaml.safe_dump(script), encoding="utf-8")
    path = here / "fill.routine.yaml"
    path.write_text(yaml.safe_dump(ROUTINE, sort_keys=False), encoding="utf-8")
    return path


@pytest.fixture
def run(call: Call, file: Path) -> Callable[..., Result]:
    """Run the routine, with the script behind it."""

    def run_it(*options: str) -> Result:
        return call("run", "fill.routine.yaml", "prices.xlsx", "--model", "scripted:script.yaml", *options)

    return run_it


def test_run_proposes_a_repair_beside_the_original_file(run: Callable[..., Result], file: Path) -> None:
    before = file.read_bytes()
    result = run()
    assert result.exit_code == 0, result.output
    expected = "repair   fill.routine.proposed.yaml; see it with: callboard routine diff fill.routine.yaml"
    assert result.stdout.splitlines()[-1] == expected
    proposed = load_routine(file.with_name("fill.routine.proposed.yaml"))
    assert proposed.subtasks[0].steps[0].actions[0].arguments["sheet"] == "${controls.0.name}"
    assert [control.name for control in proposed.subtasks[0].steps[0].controls] == ["Sheet"]
    assert file.read_bytes() == before
    assert not list(file.parent.glob("runs/*/*.proposed.yaml"))


def test_difference_shows_lines_and_reasons(run: Callable[..., Result], call: Call) -> None:
    assert run().exit_code == 0
    result = call("routine", "diff", "fill.routine.yaml")
    assert result.exit_code == 0, result.output
    assert "--- fill.routine.yaml" in result.stdout
    assert "refused  it adds the hazard that write_range overwrites" in result.stdout.splitlines()
    facts = json.loads(call("routine", "diff", "fill.routine.yaml", "--json").stdout)
    assert (facts["refusals"], facts["concerns"]) == (["it adds the hazard that write_range overwrites"], [])


def test_promotion_needs_a_person_or_yes(run: Callable[..., Result], call: Call, file: Path) -> None:
    with_hazard = yaml.safe_load(file.read_text(encoding="utf-8"))
    with_hazard["subtasks"][0]["steps"][0]["actions"][0]["hazards"] = ["overwrites"]
    file.write_text(yaml.safe_dump(with_hazard), encoding="utf-8")
    assert run().exit_code == 0
    result = call("routine", "promote", "fill.routine.yaml")
    assert result.exit_code == 2
    assert "needs a person at a terminal, or --yes" in result.stderr
    path = file.with_name("fill.routine.proposed.yaml")
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("Screw", "=HYPERLINK(1)"), encoding="utf-8")
    refused = call("routine", "promote", "fill.routine.yaml", "--yes")
    assert refused.exit_code == 2
    assert '"=HYPERLINK(1)" is a new value' in refused.stderr
    assert load_routine(file).subtasks[0].steps[0].controls[0].name == "Prices"
    path.write_text(text, encoding="utf-8")
    assert call("routine", "promote", "fill.routine.yaml", "--yes").exit_code == 0
    assert load_routine(file).subtasks[0].steps[0].controls[0].name == "Sheet"


def test_person_promotes_a_change(
    run: Callable[..., Result], call: Call, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_hazard = yaml.safe_load(file.read_text(encoding="utf-8"))
    with_hazard["subtasks"][0]["steps"][0]["actions"][0]["hazards"] = ["overwrites"]
    file.write_text(yaml.safe_dump(with_hazard), encoding="utf-8")
    assert run().exit_code == 0
    monkeypatch.setattr("callboard.terminal._routine_repairs.is_attended", lambda: True)
    monkeypatch.setattr("typer.confirm", lambda *_, **_options: False)
    assert call("routine", "promote", "fill.routine.yaml").exit_code == 2
    monkeypatch.setattr("typer.confirm", lambda *_, **_options: True)
    result = call("routine", "promote", "fill.routine.yaml")
    assert result.exit_code == 0, result.output
    assert "promoted fill.routine.yaml; before: fill.routine.1.yaml" in result.stdout
    again = run()
    assert again.exit_code == 0
    assert "2 steps, 0 model calls" in again.stdout
    assert "repair" not in again.stdout


def test_repair_of_a_task_is_proposed_again(run: Callable[..., Result], call: Call, file: Path) -> None:
    assert run().exit_code == 0
    file.with_name("fill.routine.proposed.yaml").unlink()
    result = call("routine", "propose", "fill-1", "runs/fill-1")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("repair   fill.routine.proposed.yaml\n--- fill.routine.yaml")
    file.write_text(yaml.safe_dump({**ROUTINE, "request": "edited ${source}"}), encoding="utf-8")
    refused = call("routine", "propose", "fill-1", "runs/fill-1")
    assert refused.exit_code == 2
    assert "was changed since the task fill-1" in refused.stderr


def test_verified_repairs_promote_after_enough_runs(
    run: Callable[..., Result], file: Path, monkeypatch: pytest.MonkeyPatch, here: Path
) -> None:
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    content["subtasks"][0]["steps"][0]["actions"][0] |= {"hazards": ["overwrites"]}
    content["checks"] = [{"cells": "${source}!Sheet!A1", "equals": "Screw"}]
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    monkeypatch.setenv("CALLBOARD_ROUTINES__PROMOTE_AFTER", "2")
    options = ("--journal", str(here / "all.db"))
    first = run(*options)
    assert "repair   fill.routine.proposed.yaml" in first.stdout, first.output
    second = run(*options)
    assert "promoted fill.routine.yaml, after 2 verified runs; before: fill.routine.1.yaml" in second.stdout
    assert [control.name for control in load_routine(file).subtasks[0].steps[0].controls] == ["Sheet"]


def test_poisoned_repair_is_proposed_but_not_promoted(
    run: Callable[..., Result], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    content["subtasks"][0]["steps"][0]["actions"][0]["hazards"] = ["overwrites"]
    content["checks"] = [{"cells": "${source}!Sheet!A1", "exists": True}]
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    before = file.read_bytes()
    script = yaml.safe_load((file.parent / "script.yaml").read_text(encoding="utf-8"))
    steps = script["app/excel/prices.xlsx"]
    steps[0] = answers.act("write_range", sheet="Sheet", cell="A1", values=[["https://evil.example"]])
    (file.parent / "script.yaml").write_text(yaml.safe_dump(script), encoding="utf-8")
    monkeypatch.setenv("CALLBOARD_ROUTINES__PROMOTE_AFTER", "1")
    result = run()
    assert result.exit_code == 0, result.output
    assert '"https://evil.example" is a new value' in result.stderr
    assert "repair   fill.routine.proposed.yaml" in result.stdout
    assert file.read_bytes() == before


def test_task_without_a_repair_has_no_proposal(call: Call, file: Path) -> None:
    result = call("run", "Write it", "prices.xlsx", "--model", "scripted:script.yaml")
    assert result.exit_code != 0
    refused = call("routine", "propose", "prices-1", "runs/prices-1")
    assert refused.exit_code == 2
    assert "has no repair" in refused.stderr
