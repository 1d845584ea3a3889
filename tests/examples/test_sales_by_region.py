"""The example: the tables of two documents are read side by side, and written into one workbook."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import docx
import openpyxl
import pytest
from openpyxl.chart import BarChart

from callboard import Outcome, Supervisor, Task, TaskResult
from callboard.config import Settings, load_yaml
from support import PATIENCE, command_line

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "sales_by_region"
REGIONS = {"North": "north.docx", "South": "south.docx"}


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """A fresh copy of the example."""
    return Path(shutil.copytree(EXAMPLE, tmp_path / "sales_by_region"))


def play(example: Path) -> TaskResult:
    with Supervisor.start(Settings.load(example / "callboard.yaml")) as supervisor:
        task = Task.model_validate(load_yaml(example / "task.yaml"))
        return supervisor.submit(task).result(PATIENCE)


def rows_of(example: Path, document: str) -> list[list[Any]]:
    """The rows of a document's table, with numbers."""
    (table,) = docx.Document(str(example / "workspace" / document)).tables
    header, *rows = [[cell.text for cell in row.cells] for row in table.rows]
    return [header, *([city, *(float(text.replace(",", "")) for text in texts)] for city, *texts in rows)]


def written(sheet: Any) -> list[list[Any]]:
    (table,) = sheet.tables.values()
    return [[cell.value for cell in row] for row in sheet[table.ref]]


def test_the_workbook_holds_the_tables_of_both_documents(example: Path) -> None:
    result = play(example)
    assert (result.outcome, result.verified) == (Outcome.FINISHED, True)
    book = openpyxl.load_workbook(example / "workspace" / "sales.xlsx")
    assert book.sheetnames == list(REGIONS)
    for region, document in REGIONS.items():
        assert written(book[region]) == rows_of(example, document)
        (chart,) = book[region]._charts
        assert isinstance(chart, BarChart)


def test_both_documents_are_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = command_line("run", EXAMPLE)
    assert done.exit_code == 0, done.output
    steps = [line.split(maxsplit=2)[2] for line in done.stdout.splitlines() if re.match(r" +[0-9.]+ s  ", line)]
    begun = [steps.index(next(step for step in steps if f"{name}  starts" in step)) for name in REGIONS.values()]
    first_end = next(index for index, step in enumerate(steps) if step.endswith("  finished"))
    assert max(begun) < first_end
    assert (tmp_path / "runs/sales_by_region-1/workspace/sales.xlsx").is_file()


def test_subtasks_are_numbered_by_the_answer(example: Path) -> None:
    result = play(example)
    assert [(done.number, done.group, done.address) for done in result.subtasks] == [
        (1, 1, "app/word/north.docx"),
        (2, 1, "app/word/south.docx"),
        (3, 0, "app/excel/sales.xlsx"),
    ]


def test_an_edited_document_gives_another_workbook(example: Path) -> None:
    path = example / "workspace" / "south.docx"
    document = docx.Document(str(path))
    for cell, text in zip(document.tables[0].add_row().cells, ["Augsburg", "10", "2,000.5", "0", "7.25"], strict=True):
        cell.text = text
    document.save(str(path))
    assert play(example).verified
    book = openpyxl.load_workbook(example / "workspace" / "sales.xlsx")
    assert written(book["South"])[-1] == ["Augsburg", 10, 2000.5, 0, 7.25]


def test_a_document_without_a_table_makes_no_workbook(example: Path) -> None:
    docx.Document().save(str(example / "workspace" / "north.docx"))
    result = play(example)
    assert (result.outcome, result.verified) == (Outcome.ERROR, False)
    assert "table-1" in " ".join(cause.reason for cause in result.causes)
    assert not (example / "workspace" / "sales.xlsx").exists()


def test_no_number_of_the_documents_is_in_the_script() -> None:
    script = (EXAMPLE / "script.yaml").read_text(encoding="utf-8")
    numbers = {number for name in REGIONS.values() for row in rows_of(EXAMPLE, name)[1:] for number in row[1:]}
    assert not numbers & {float(text) for text in re.findall(r"\d+\.\d+", script)}


def test_libreoffice_opens_the_workbook(example: Path, tmp_path: Path) -> None:
    soffice = shutil.which("soffice")
    if soffice is None:
        if os.environ.get("REQUIRE_SOFFICE") == "1":
            pytest.fail("soffice is not installed")
        pytest.skip("soffice is not installed")
    play(example)
    profile = f"-env:UserInstallation={(tmp_path / 'profile').as_uri()}"
    book = example / "workspace" / "sales.xlsx"
    command = [soffice, profile, "--headless", "--convert-to", "xlsx", "--outdir", str(tmp_path / "out"), str(book)]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    again = openpyxl.load_workbook(tmp_path / "out" / "sales.xlsx")
    for region, document in REGIONS.items():
        assert [list(row) for row in again[region].values] == rows_of(example, document)
        assert isinstance(again[region]._charts[0], BarChart)
