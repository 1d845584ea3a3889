"""Repairs of the examples record a missed step as before."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from callboard import Supervisor, Task
from callboard.journal import JournalReader
from callboard.messages import RecordedControl, Routine, steps_of
from callboard.routines import propose
from support import PATIENCE

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
GONE = {"kind": "button", "name": "gone"}


def broken(routine: Routine, part: str, number: int) -> Routine:
    """Return a routine with a step that can't be repeated."""
    content = routine.model_dump(mode="json", exclude_defaults=True)
    entries = content["host"] if part == "host" else content["subtasks"][int(part)]["steps"]
    step = entries[number]["steps"][0] if "steps" in entries[number] else entries[number]
    step["controls"] = [*step.get("controls", []), GONE]
    return Routine.model_validate(content)


def compared(routine: Routine) -> Any:
    """Return the parts of a routine that an equal repair keeps."""
    lists = {"host": routine.host} | {str(n): subtask.steps for n, subtask in enumerate(routine.subtasks)}
    steps = {name: steps_of(*entries) for name, entries in lists.items()}
    assert all(RecordedControl(**GONE) not in step.controls for part in steps.values() for step in part)
    return {
        name: [
            (step.status, step.window, [(action.tool, action.arguments) for action in step.actions], step.result)
            for step in part
        ]
        for name, part in steps.items()
    }


@pytest.mark.parametrize(
    ("name", "part", "number"),
    [
        ("sales_report", "0", 0),
        ("sales_report", "1", 0),
        ("sales_report", "1", 1),
        ("sales_report", "host", 0),
        ("sales_report", "host", 1),
        ("expenses", "1", 1),
        ("log_report", "1", 0),
        ("log_report", "host", 2),
    ],
)
def test_missed_step_of_an_example_is_repaired_to_the_recorded_one(recorded, tmp_path, name, part, number):
    routine = recorded(name).routine
    folder = tmp_path / name
    shutil.copytree(EXAMPLES / name, folder)
    task = yaml.safe_load((folder / "task.yaml").read_text(encoding="utf-8"))
    with Supervisor.start(folder / "callboard.yaml") as supervisor:
        submitted = Task(id="t", routine=broken(routine, part, number), may_change=task.get("may_change", ()))
        result = supervisor.submit(submitted).result(PATIENCE)
        assert result.ok, result.causes
    with JournalReader.open(folder / "journal.db") as reader:
        proposal = propose(reader.rows("t"))
    assert proposal is not None
    assert result.usage.missed == 1
    assert compared(proposal.proposed) == compared(routine)
    assert proposal.proposed.parameters == routine.parameters
    assert proposal.proposed.checks == routine.checks
    others = [index for index in range(len(routine.subtasks)) if str(index) != part]
    assert all(proposal.proposed.subtasks[index] == routine.subtasks[index] for index in others)
