"""A test of the task, with the answers of script.yaml."""

from __future__ import annotations

import shutil
from pathlib import Path

import openpyxl
import yaml

from callboard import ScriptedModel, Supervisor, Task
from callboard.testing import assert_replays

FOLDER = Path(__file__).parent


def test_the_expenses_and_their_total_are_in_the_workbook(tmp_path: Path) -> None:
    # A copy without results of earlier runs: agents change the documents that they work on.
    earlier = shutil.ignore_patterns("runs", "journal.db*", "expenses.xlsx", ".*")
    folder = shutil.copytree(FOLDER, tmp_path / "copy", ignore=earlier)
    task = Task.model_validate(yaml.safe_load((folder / "task.yaml").read_text(encoding="utf-8")))
    script = ScriptedModel.load(folder / "script.yaml")
    with Supervisor.start(folder / "callboard.yaml", models={"host": script, "app": script}) as supervisor:
        result = supervisor.submit(task).result(timeout=60)
    assert result.verified, result.causes
    book = folder / "workspace" / "expenses.xlsx"
    assert result.made == (str(book),)
    sheet = openpyxl.load_workbook(book)["Sheet1"]
    assert [cell.value for cell in sheet["C"]] == ["Amount", 89.9, 132, 24.5, 61.2]
    assert sheet["F1"].value == "=SUM(Expenses[Amount])"
    assert_replays(folder / "journal.db")  # the journal alone leads to the same decisions
