"""Places of a document's controls, and the guard of a routine on changed documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import docx
import openpyxl
import pytest
from guard_changes import STOP, control_of, decision, recorded_step
from openpyxl.chart import BarChart, Reference
from openpyxl.worksheet.table import Table
from pptx import Presentation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from callboard.messages import Observation, Target

    Observe = Callable[[str], tuple[Observation, Target]]

ROWS = (("North", 1, 2), ("South", 3, 4))
HEADER = ("Region", "Q1", "Q2")


@pytest.fixture
def observe(surface: Any) -> Observe:
    """Give the function that observes a document, with its target."""

    def look(name: str) -> tuple[Observation, Target]:
        target = next(target for target in surface.targets() if target.id == name)
        return surface.observe(target), target

    return look


def workbook(
    path: Path, title: str = "Sales", header: tuple[str, ...] = HEADER, rows: Iterable[tuple[object, ...]] = ROWS
) -> openpyxl.Workbook:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = title
    for row in (header, *rows):
        sheet.append(row)
    sheet.add_table(Table(displayName="Regions", ref=sheet.dimensions))
    book.save(path)
    return book


def document(
    path: Path, *tables: tuple[str, tuple[str, ...]], rows: Iterable[tuple[object, ...]] = ROWS, text: str = "In May."
) -> None:
    file = docx.Document()
    file.add_heading("Report", 1)
    for heading, header in tables:
        file.add_heading(heading, 2)
        file.add_paragraph(text)
        table = file.add_table(1, len(header))
        for cell, name in zip(table.rows[0].cells, header, strict=True):
            cell.text = name
        for row in rows:
            for cell, value in zip(table.add_row().cells, row, strict=False):
                cell.text = str(value)
    file.save(path)


def test_controls_of_a_workbook_name_their_sheet(workspace, observe):
    book = workbook(workspace / "a.xlsx")
    chart = BarChart()
    chart.add_data(Reference(book.active, min_col=2, min_row=1, max_row=3), titles_from_data=True)
    book.active.add_chart(chart, "F2")
    book.save(workspace / "a.xlsx")
    places = {control.id: control.place for control in observe("a.xlsx")[0].controls}
    assert places == {"sheet-1": "", "range-1": "Sales", "table-1": "Sales", "chart-1": "Sales"}


def test_controls_of_a_text_name_the_heading_above(workspace, observe):
    document(workspace / "a.docx", ("Sales", HEADER), ("Costs", HEADER))
    places = [(control.name, control.place) for control in observe("a.docx")[0].controls if control.kind != "paragraph"]
    table = "Region | Q1 | Q2"
    assert places == [("Report", ""), ("Sales", "Report"), (table, "Sales"), ("Costs", "Report"), (table, "Costs")]


def test_shapes_of_a_deck_name_their_slide(workspace, observe):
    deck = Presentation()
    for title in ("Sales", "Costs"):
        deck.slides.add_slide(deck.slide_layouts[1]).shapes.title.text = title
    deck.save(workspace / "a.pptx")
    places = {control.id: control.place for control in observe("a.pptx")[0].controls}
    assert {id_[:7]: place for id_, place in places.items() if len(id_) > 7} == {"slide-1": "Sales", "slide-2": "Costs"}
    assert (places["slide-1"], places["slide-2"]) == ("", "")


SALES: dict[str, tuple[dict[str, Any], bool]] = {
    "unchanged": ({}, True),
    "order": ({"rows": reversed(ROWS)}, True),
    "value": ({"rows": [("North", 10, 20), ROWS[1]]}, True),
    "extra rows": ({"rows": [*ROWS, ("West", 5, 6), ("East", 7, 8)]}, True),
    "sheet renamed": ({"title": "Verkauf"}, False),
    "other columns": ({"header": ("Region", "Jan", "Feb")}, False),
    "fewer columns": ({"header": HEADER[:2], "rows": [row[:2] for row in ROWS]}, False),
}


@pytest.mark.parametrize(("kind", "name"), [("range", "Sales!{}"), ("table", "Regions")])
@pytest.mark.parametrize(("change", "stays"), SALES.values(), ids=SALES)
def test_guard_on_a_changed_workbook(workspace, observe, kind, name, change, stays):
    path = workspace / "a.xlsx"
    workbook(path)
    seen, target = observe(path.name)
    step = recorded_step(seen, target, control_of(seen, name.format("A1:C3"), kind))
    workbook(path, **change)
    now, target = observe(path.name)
    found = decision(step, now, target)
    assert found == (f"{kind}-1" if stays else STOP)


def test_guard_follows_a_sheet_that_moved(workspace, observe):
    path = workspace / "a.xlsx"
    book = workbook(path)
    seen, target = observe(path.name)
    steps = [
        recorded_step(seen, target, control_of(seen, *which))
        for which in (("Sales", "sheet"), ("Sales!A1:C3", "range"))
    ]
    look_alike = book.create_sheet("Copy", 0)
    for row in (HEADER, *ROWS):
        look_alike.append(row)
    book.save(path)
    now, target = observe(path.name)
    assert [decision(step, now, target) for step in steps] == ["sheet-2", "range-2"]
    book["Sales"].sheet_state = "hidden"
    book.save(path)
    now, target = observe(path.name)
    assert [decision(step, now, target) for step in steps] == [STOP, STOP]


TEXTS: dict[str, tuple[list[tuple[str, tuple[str, ...]]], dict[str, Any], str]] = {
    "unchanged": ([("Sales", HEADER)], {}, "table-1"),
    "ids renumbered": ([("Costs", ("Item", "Sum")), ("Sales", HEADER)], {}, "table-2"),
    "text and value": ([("Sales", HEADER)], {"text": "In June.", "rows": [("North", 7, 8)]}, "table-1"),
    "extra rows": ([("Sales", HEADER)], {"rows": [*ROWS, *ROWS]}, "table-1"),
    "look-alike elsewhere": ([("Forecast", HEADER), ("Sales", HEADER)], {}, "table-2"),
    "only a look-alike remains": ([("Forecast", HEADER)], {}, STOP),
    "two of the same name": ([("Sales", HEADER), ("Sales", HEADER)], {}, STOP),
    "other columns": ([("Sales", ("Region", "Jan", "Feb"))], {}, STOP),
}


@pytest.mark.parametrize(("tables", "change", "right"), TEXTS.values(), ids=TEXTS)
def test_guard_on_a_changed_text(workspace, observe, tables, change, right):
    path = workspace / "a.docx"
    document(path, ("Sales", HEADER))
    seen, target = observe(path.name)
    step = recorded_step(seen, target, control_of(seen, "Region | Q1 | Q2", "table"))
    document(path, *tables, **change)
    now, target = observe(path.name)
    assert decision(step, now, target) == right


def test_guard_on_another_kind_of_document(workspace, observe):
    document(workspace / "a.docx", ("Sales", HEADER))
    workbook(workspace / "a.xlsx")
    seen, target = observe("a.xlsx")
    step = recorded_step(seen, target, control_of(seen, "Sales", "sheet"))
    assert step.window == "Excel"
    assert decision(step, *observe("a.docx")) == STOP
