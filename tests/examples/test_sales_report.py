"""The example: a sales table from Word becomes a bar chart in Excel, whatever the table holds."""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import docx
import openpyxl
import pytest
from openpyxl.chart import BarChart

import forks
from callboard import EventName, Outcome, Supervisor, Task, TaskResult
from callboard.config import Settings
from support import PATIENCE

if TYPE_CHECKING:
    from docx.table import Table

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "sales_report"
REQUEST = "Extract the sales table from Word and create a bar chart in Excel"


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """A fresh copy of the example."""
    return Path(shutil.copytree(EXAMPLE, tmp_path / "sales_report"))


def play(example: Path) -> TaskResult:
    settings = Settings.load(example / "callboard.yaml")
    with Supervisor.start(settings) as supervisor:
        return supervisor.submit(Task(request=REQUEST)).result(PATIENCE)


def table_of(document: Any) -> Table:
    (table,) = document.tables
    return table


def texts_of(example: Path) -> list[list[str]]:
    table = table_of(docx.Document(str(example / "workspace" / "sales.docx")))
    return [[cell.text for cell in row.cells] for row in table.rows]


def numbers_of(texts: list[list[str]]) -> list[list[float]]:
    return [[float(text.replace(",", "")) for text in row[1:]] for row in texts[1:]]


def edit(example: Path, *, factor: float, new_row: list[str]) -> None:
    """Change every number of the table and add a row, as its author would."""
    path = example / "workspace" / "sales.docx"
    document = docx.Document(str(path))
    table = table_of(document)
    for row in table.rows[1:]:
        for cell in row.cells[1:]:
            cell.text = f"{float(cell.text.replace(',', '')) * factor:,.2f}"
    for cell, text in zip(table.add_row().cells, new_row, strict=True):
        cell.text = text
    document.save(str(path))


def sheet_of(example: Path) -> Any:
    book = openpyxl.load_workbook(example / "workspace" / "report.xlsx")
    (sheet,) = book.worksheets
    return sheet


def values_of(sheet: Any) -> list[list[Any]]:
    return [[cell.value for cell in row] for row in sheet[sheet.tables["Sales"].ref]]


def references_of(sheet: Any) -> list[tuple[str, str, str]]:
    """The cells of each series of the only chart: name, categories, values."""
    (chart,) = sheet._charts
    assert isinstance(chart, BarChart)
    found = [(one.tx.strRef.f, one.cat.strRef.f, one.val.numRef.f) for one in chart.series]
    return [
        (name.replace("$", ""), categories.replace("$", ""), values.replace("$", ""))
        for name, categories, values in found
    ]


def expected_references(rows: int) -> list[tuple[str, str, str]]:
    return [
        (f"'Sales'!{column}1", f"'Sales'!A2:A{rows + 1}", f"'Sales'!{column}2:{column}{rows + 1}") for column in "BCDE"
    ]


def test_the_task_finishes_and_names_the_new_workbook(example: Path) -> None:
    result = play(example)
    assert result.outcome is Outcome.FINISHED, result.causes
    assert result.artifacts == (str(example.resolve() / "workspace" / "report.xlsx"),)
    assert result.made == result.artifacts
    assert [done.address for done in result.subtasks] == ["app/word/sales.docx", "app/excel/report.xlsx"]
    assert result.comment


def test_the_workbook_holds_the_documents_numbers_as_numbers(example: Path) -> None:
    play(example)
    texts = texts_of(example)
    written = values_of(sheet_of(example))
    assert written[0] == texts[0]
    assert [row[0] for row in written[1:]] == [row[0] for row in texts[1:]]
    assert [row[1:] for row in written[1:]] == numbers_of(texts)
    assert all(isinstance(value, int | float) for row in written[1:] for value in row[1:])


def test_the_numbers_have_a_format(example: Path) -> None:
    play(example)
    sheet = sheet_of(example)
    assert {cell.number_format for row in sheet["B2:E5"] for cell in row} == {"#,##0.0"}


def test_a_bar_chart_is_drawn_over_the_whole_table(example: Path) -> None:
    play(example)
    sheet = sheet_of(example)
    assert sheet.tables["Sales"].ref == "A1:E5"
    assert references_of(sheet) == expected_references(4)


def test_an_edited_document_gives_another_workbook(example: Path) -> None:
    edit(example, factor=3.5, new_row=["East", "1,250", "999.5", "12", "7,000.75"])
    assert play(example).ok
    texts, sheet = texts_of(example), sheet_of(example)
    assert [row[1:] for row in values_of(sheet)[1:]] == numbers_of(texts)
    assert values_of(sheet)[5] == ["East", 1250, 999.5, 12, 7000.75]
    assert sheet.tables["Sales"].ref == "A1:E6"
    assert references_of(sheet) == expected_references(5)


def test_the_document_itself_stays_as_it_is(example: Path) -> None:
    before = (example / "workspace" / "sales.docx").read_bytes()
    play(example)
    assert (example / "workspace" / "sales.docx").read_bytes() == before


def test_no_number_of_the_document_stands_in_the_script() -> None:
    script = (EXAMPLE / "script.yaml").read_text(encoding="utf-8")
    spoken = set(re.findall(r"\d[\d.,]*\d|\d", script))
    numbers = {text for row in texts_of(EXAMPLE)[1:] for text in row[1:]}
    assert numbers
    assert not spoken & (numbers | {text.replace(",", "") for text in numbers})


def test_the_table_stands_between_other_text() -> None:
    blocks = [
        type(block).__name__ for block in docx.Document(str(EXAMPLE / "workspace" / "sales.docx")).iter_inner_content()
    ]
    place = blocks.index("Table")
    assert blocks.count("Table") == 1
    assert 0 < place < len(blocks) - 1


def test_a_document_that_lost_its_table_is_no_success(example: Path) -> None:
    path = example / "workspace" / "sales.docx"
    document = docx.Document(str(path))
    element = table_of(document)._element
    element.getparent().remove(element)
    document.save(str(path))
    result = play(example)
    assert result.outcome is Outcome.ERROR
    assert "table-1" in " ".join(cause.reason for cause in result.causes)
    assert not (example / "workspace" / "report.xlsx").exists()


def play_and_reject(example: Path, **settings: Any) -> TaskResult:
    """Play the example with a person who refuses whatever waits for approval."""
    loaded = Settings.load(example / "callboard.yaml", **settings)
    with Supervisor.start(loaded) as supervisor:
        handle = supervisor.submit(Task(request=REQUEST))
        for event in handle.events():
            if event.name is EventName.APPROVAL_REQUESTED:
                for request in handle.approvals():
                    handle.reject(request.id)
        return handle.result(PATIENCE)


@pytest.mark.parametrize("asks", [True, False], ids=["and approvals are refused", "and no approvals are asked for"])
def test_a_workspace_that_already_holds_the_workbook_is_no_success(example: Path, *, asks: bool) -> None:
    assert play(example).ok
    before = (example / "workspace" / "report.xlsx").read_bytes()
    result = play_and_reject(example, system={"safe_guard": asks})
    assert result.outcome is Outcome.ERROR
    assert not result.comment
    assert not asks or (example / "workspace" / "report.xlsx").read_bytes() == before


def test_a_chart_that_is_refused_is_no_success(example: Path) -> None:
    result = play_and_reject(example, policy=[{"verdict": "approve", "tool": "insert_chart"}])
    assert result.outcome is Outcome.ERROR
    assert [done.outcome for done in result.subtasks] == [Outcome.FINISHED, Outcome.REJECTED]
    assert "subtasks.2.output.chart" in " ".join(cause.reason for cause in result.causes)


def test_the_program_of_the_readme_leaves_the_example_as_it_is(example: Path, tmp_path: Path) -> None:
    shutil.copytree(example, tmp_path / "examples" / "sales_report")
    program = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)[0]
    for _ in range(2):
        done = forks.run([sys.executable, "-c", program], cwd=tmp_path, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1].startswith("finished ")
    workspace = tmp_path / "examples" / "sales_report" / "workspace"
    assert [path.name for path in workspace.iterdir()] == ["sales.docx"]


@pytest.fixture
def soffice() -> str:
    found = shutil.which("soffice")
    if found is None:
        reason = "soffice is not installed"
        if os.environ.get("REQUIRE_SOFFICE") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


def test_libreoffice_opens_the_workbook(soffice: str, example: Path, tmp_path: Path) -> None:
    play(example)
    profile = f"-env:UserInstallation={(tmp_path / 'profile').as_uri()}"
    book = example / "workspace" / "report.xlsx"
    for kind in ("csv", "xlsx"):
        command = [soffice, profile, "--headless", "--convert-to", kind, "--outdir", str(tmp_path / "out"), str(book)]
        subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    with (tmp_path / "out" / "report.csv").open(encoding="utf-8", newline="") as file:
        assert numbers_of(list(csv.reader(file))) == numbers_of(texts_of(example))
    (again,) = openpyxl.load_workbook(tmp_path / "out" / "report.xlsx").worksheets
    assert isinstance(again._charts[0], BarChart)
    assert len(again._charts[0].series) == 4
