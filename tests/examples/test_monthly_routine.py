"""The example: a routine of the sales report, repeated for other documents."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import docx
import openpyxl
import pytest

from callboard import EventName, FunctionModel, Outcome, Supervisor, Task
from callboard.config import Settings, load_yaml
from callboard.errors import TaskRefusedError
from support import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard import TaskHandle, TaskResult

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "monthly_routine"
SOURCE = "sales-june.docx"


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """A fresh copy of the example."""
    return Path(shutil.copytree(EXAMPLE, tmp_path / "monthly_routine"))


def play(example: Path, models: dict[str, Any] | None = None, **changes: Any) -> tuple[TaskResult, TaskHandle]:
    settings = Settings.load(example / "callboard.yaml", system={"ask_question": False})
    with Supervisor.start(settings, models=models) as supervisor:
        handle = supervisor.submit(Task.model_validate(load_yaml(example / "task.yaml") | changes))
        return handle.result(PATIENCE), handle


def rows_of(example: Path, name: str = "june.xlsx") -> list[list[Any]]:
    book = openpyxl.load_workbook(example / "workspace" / name)
    return [list(row) for row in book["Sales"].values]


def source_rows(example: Path, name: str = SOURCE) -> list[list[Any]]:
    tables = docx.Document(str(example / "workspace" / name)).tables
    rows = [[cell.text for cell in row.cells] for row in tables[-1].rows]
    return [rows[0], *([region, *(float(text.replace(",", "")) for text in numbers)] for region, *numbers in rows[1:])]


def edited(example: Path, change: Callable[[Any], None]) -> None:
    path = example / "workspace" / SOURCE
    document = docx.Document(str(path))
    change(document)
    document.save(str(path))


def test_more_rows_in_another_order_need_no_model(example: Path) -> None:
    result, _ = play(example)
    assert result.comment == "end of the routine monthly-sales"
    assert (result.outcome, result.verified) == (Outcome.FINISHED, True)
    assert (result.usage.model_calls, result.usage.replayed) == (0, 9)
    assert rows_of(example) == source_rows(example)
    assert len(rows_of(example)) == 7


def add_row(document: Any) -> None:
    table = document.element.body.tbl_lst[0]
    table.append(copy.deepcopy(table.tr_lst[-1]))
    document.tables[0].rows[-1].cells[0].text = "Islands"


def add_table_elsewhere(document: Any) -> None:
    """Put a table with the same header and other numbers under another heading."""
    body = document.element.body
    body[0].addnext(copy.deepcopy(body.tbl_lst[0]))
    for row in document.tables[0].rows[1:]:
        for cell in row.cells[1:]:
            cell.text = "1.0"


def add_paragraphs(document: Any) -> None:
    for number in range(3):
        document.paragraphs[0].insert_paragraph_before(f"Note {number}")


def change_value(document: Any) -> None:
    document.tables[0].cell(1, 1).text = "999.5"


@pytest.mark.parametrize("change", [add_row, add_table_elsewhere, add_paragraphs, change_value])
def test_routine_survives_changes_that_keep_the_table(example: Path, change: Callable[[Any], None]) -> None:
    edited(example, change)
    result, _ = play(example)
    assert (result.outcome, result.verified, result.usage.model_calls) == (Outcome.FINISHED, True, 0)
    assert rows_of(example) == source_rows(example)


def rename_column(document: Any) -> None:
    document.tables[0].cell(0, 1).text = "January"


def add_column(document: Any) -> None:
    table = document.tables[0]
    table.add_column(table.columns[1].width)
    table.cell(0, 5).text = "Year"


def remove_table(document: Any) -> None:
    table = document.element.body.tbl_lst[0]
    table.getparent().remove(table)


def add_table_beside(document: Any) -> None:
    """Put a second table with the same header into the same chapter."""
    table = document.element.body.tbl_lst[0]
    table.addnext(copy.deepcopy(table))


@pytest.mark.parametrize("change", [rename_column, add_column, remove_table, add_table_beside])
def test_other_tables_stop_the_routine_before_anything_is_written(example: Path, change: Callable[[Any], None]) -> None:
    edited(example, change)
    result, handle = play(example)
    assert result.outcome is Outcome.FAILED
    assert result.verified is False
    assert not (example / "workspace" / "june.xlsx").exists()
    missed = [event for event in handle.events() if event.name is EventName.ROUTINE_MISSED]
    assert (missed[0].agent, missed[0].data["place"]) == (f"app/word/{SOURCE}", 1)


def test_missing_source_and_existing_report_stop_the_routine(example: Path) -> None:
    with pytest.raises(TaskRefusedError, match=r"july\.docx"):
        play(example, parameters={"source": "july.docx", "report": "july.xlsx"})
    openpyxl.Workbook().save(example / "workspace" / "june.xlsx")
    before = (example / "workspace" / "june.xlsx").read_bytes()
    result, _ = play(example)
    assert result.outcome is Outcome.FAILED
    assert (example / "workspace" / "june.xlsx").read_bytes() == before


def test_one_model_call_repairs_a_renamed_column(example: Path) -> None:
    edited(example, rename_column)
    asked = []

    def read(request: Any) -> dict[str, Any]:
        asked.append(request.observation.notes)
        table = next(control for control in request.observation.controls if control.kind == "table")
        arguments = {"control_id": table.id, "decimal": "."}
        return {"Status": "FINISH", "Function": "read_table", "Args": arguments}

    result, _ = play(example, models={"app": FunctionModel(read)})
    assert (result.outcome, result.verified) == (Outcome.FINISHED, True)
    assert (result.usage.model_calls, len(asked)) == (1, 1)
    assert any("January" in note for note in asked[0])
    assert rows_of(example) == source_rows(example)
