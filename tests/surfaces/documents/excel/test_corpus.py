"""An edit keeps the features of Excel that it does not touch."""

from __future__ import annotations

import collections
import io
import re
import struct
import zipfile
import zlib
from typing import TYPE_CHECKING, Any

import openpyxl
import pytest
import xlsxwriter
from lxml import etree

from callboard.surfaces.documents.excel import _engines

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Call

CHARTS = [
    ("area", None), ("area", "stacked"), ("bar", None), ("bar", "stacked"), ("column", None),
    ("column", "percent_stacked"), ("line", None), ("pie", None), ("doughnut", None), ("scatter", "smooth"),
    ("radar", "filled"), ("stock", None),
]  # fmt: skip
MAIN = b"http://schemas.openxmlformats.org/spreadsheetml/2006/main"
ROW = b"\x00" + b"\xff\x00\x00" * 4


def picture() -> bytes:
    """Make a small PNG."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 4, 4, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(ROW * 4)) + chunk(b"IEND", b"")


def chart(kind: str, subtype: str | None) -> Callable[[Any, Any], None]:
    """Add a chart of a kind; a line is combined with columns."""

    def add(book: Any, sheet: Any) -> None:
        made = book.add_chart({"type": kind, **({"subtype": subtype} if subtype else {})})
        for column in "BCD" if kind == "stock" else "BC":
            made.add_series({
                "name": f"=Sheet1!${column}$1", "categories": "=Sheet1!$A$2:$A$6",
                "values": f"=Sheet1!${column}$2:${column}$6",
            })  # fmt: skip
        if kind == "column":
            line = book.add_chart({"type": "line"})
            line.add_series(
                {"values": "=Sheet1!$C$2:$C$6", "y2_axis": True, "y_error_bars": {"type": "standard_error"}}
            )
            made.combine(line)
            made.set_chartarea({"gradient": {"colors": ["#FFEFD1", "#F0EBD5"]}})
        sheet.insert_chart("H2", made, {"description": "An alternative text"})

    return add


def chart_sheet(book: Any, sheet: Any) -> None:
    made = book.add_chart({"type": "bar"})
    made.add_series({"values": "=Sheet1!$B$2:$B$6"})
    book.add_chartsheet("Chart").set_chart(made)


def pictures(book: Any, sheet: Any) -> None:
    image = {"image_data": io.BytesIO(picture())}
    sheet.insert_image("H2", "p.png", image)
    sheet.embed_image("H9", "p.png", {"image_data": io.BytesIO(picture())})
    sheet.set_header("&L&G", {"image_left": "p.png", "image_data_left": io.BytesIO(picture())})
    sheet.set_background(io.BytesIO(picture()))


def table(book: Any, sheet: Any) -> None:
    columns = [{"header": "Item", "total_string": "Total"}, {"header": "A", "total_function": "sum"}]
    columns.append({"header": "B", "formula": "=Goods[@A]*2"})
    data = [["x", 1], ["y", 3], ["z", 5]]
    sheet.add_table("H2:J6", {"name": "Goods", "total_row": True, "columns": columns, "data": data})


def rules(book: Any, sheet: Any) -> None:
    red = book.add_format({"bg_color": "#FFC7CE"})
    sheet.conditional_format("B2:B6", {"type": "cell", "criteria": ">", "value": 5, "format": red})
    sheet.conditional_format("C2:C6", {"type": "3_color_scale"})
    sheet.conditional_format("D2:D6", {"type": "data_bar", "data_bar_2010": True})
    sheet.conditional_format("B2:D6", {"type": "formula", "criteria": "=$B2>$C2", "format": red})
    sheet.data_validation("B2:B6", {"validate": "integer", "criteria": "between", "minimum": 1, "maximum": "=C10"})
    sheet.data_validation("H2", {"validate": "list", "source": "=$A$2:$A$6"})
    sheet.add_sparkline("H3", {"range": "Sheet1!B2:C2"})
    sheet.ignore_errors({"number_stored_as_text": "A1:D6"})


def notes(book: Any, sheet: Any) -> None:
    sheet.write_comment("B4", "a note", {"author": "Ada"})
    sheet.write_comment("A2", "another one", {"visible": True})
    sheet.write_url("H2", "https://example.org/")
    sheet.write_url("H4", "internal:Sheet1!A1")


def names(book: Any, sheet: Any) -> None:
    book.define_name("Quantities", "=Sheet1!$B$2:$B$6")
    book.define_name("Sheet1!Local", "=Sheet1!$C$2")
    sheet.write_formula("H1", "=SUM(Quantities)", None, 30)


def texts(book: Any, sheet: Any) -> None:
    sheet.write_rich_string("H2", "a ", book.add_format({"bold": 1}), "bold", " word")
    sheet.write_string("H3", "  spaces  ")
    sheet.write_string("H4", "_x000D_ is no line break\n")
    sheet.merge_range("J3:L5", "wide")


def layout(book: Any, sheet: Any) -> None:
    for row in range(2, 5):
        sheet.set_row(row, None, None, {"level": 1})
    sheet.set_column("B:C", 12, None, {"level": 1})
    sheet.freeze_panes(1, 1)
    sheet.print_area("A1:D7")
    sheet.repeat_rows(0)
    sheet.set_h_pagebreaks([4])
    sheet.autofilter("A1:D6")
    sheet.set_footer("&CPage &P")
    book.add_worksheet("Hidden").very_hidden()


def objects(book: Any, sheet: Any) -> None:
    sheet.insert_textbox("H2", "", {"textlink": "=$A$2"})
    sheet.insert_button("H12", {"caption": "Press"})
    sheet.insert_checkbox("N1", True)  # noqa: FBT003 - as XlsxWriter has it


def modern(book: Any, sheet: Any) -> None:
    sheet.write_dynamic_array_formula("H10:H10", "=SUM(SORT(B2:B6))", None, 30)
    sheet.write_formula("H11", "=_xlfn.LET(_xlpm.x,B2,_xlpm.x*2)", None, 4)
    book.set_custom_property("Checked", True)  # noqa: FBT003 - as XlsxWriter has it


FEATURES: dict[str, Callable[[Any, Any], None]] = {
    **{f"chart_{kind}_{subtype}": chart(kind, subtype) for kind, subtype in CHARTS},
    **{
        made.__name__: made
        for made in (chart_sheet, pictures, table, rules, notes, names, texts, layout, objects, modern)
    },
}
EDITS: dict[str, tuple[str, dict[str, Any]]] = {
    "write": ("write_range", {"cell": "B2", "values": [[99]]}),
    "insert_rows": ("insert_rows_or_columns", {"what": "rows", "at": "4", "count": 2}),
    "insert_column": ("insert_rows_or_columns", {"what": "columns", "at": "C"}),
    "delete_row": ("delete_rows_or_columns", {"what": "rows", "at": "5"}),
    "delete_cells": (
        "delete_rows_or_columns",
        {"what": "rows", "cells": "A1:D6", "where": [{"column": "Quantity", "value": 4}], "whole_rows": False},
    ),
    "filter": ("filter_rows", {"cells": "A1:D6", "where": [{"column": "Quantity", "operator": ">", "value": 4}]}),
    "validation": ("set_validation", {"kind": "whole", "cells": "C2:C6", "operator": ">", "limits": [0]}),
    "copy": ("copy_range", {"cells": "A1:D6", "to": "A20"}),
    "conditional": (
        "format_cells",
        {"cells": "A2:A6", "where": [{"operator": "filled"}], "conditional": "add", "bold": True},
    ),
    "format_where": ("format_cells", {"cells": "A1:D6,H2", "where": [{"operator": ">", "value": 3}], "fill": "red"}),
    "format": ("format_cells", {"cells": "A1:D1", "bold": True, "width": 20}),
    "add_sheet": ("add_sheet", {"title": "New", "position": 1}),
}
LESS = {"v", "f", "Override", "Relationship", "calcChain", "row", "c"}
"""Elements whose number an edit may lower: those of results, of a deleted row, of the calculation chain."""


def make(name: str) -> bytes:
    """Make the workbook of a feature."""
    out = io.BytesIO()
    book = xlsxwriter.Workbook(out)
    sheet = book.add_worksheet("Sheet1")
    sheet.write_row(0, 0, ["Item", "Quantity", "Price", "Total"])
    for row in range(1, 6):
        sheet.write_row(row, 0, [f"item {row}", row * 2, row * 1.5])
        sheet.write_formula(row, 3, f"=B{row + 1}*C{row + 1}", None, row * row * 3)
    sheet.write_row(6, 0, ["Sum"])
    sheet.write_formula(6, 1, "=SUM(B2:B6)", None, 30)
    FEATURES[name](book, sheet)
    book.close()
    return out.getvalue()


def parts(data: bytes) -> dict[str, bytes]:
    """Unpack a workbook."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def counted(part: bytes) -> collections.Counter[str]:
    """Count the elements of a part by their names."""
    return collections.Counter(etree.QName(each).localname for each in etree.fromstring(part).iter(etree.Element))


@pytest.fixture(autouse=True)
def _no_calculator(monkeypatch: pytest.MonkeyPatch) -> None:
    for engine in (_engines.IronCalc, _engines.Office):
        monkeypatch.setattr(engine, "is_available", lambda _: False)


@pytest.mark.filterwarnings("ignore::UserWarning:openpyxl")  # it warns of some parts that it would lose
@pytest.mark.parametrize("feature", FEATURES)
def test_an_edit_keeps_what_a_workbook_has(workspace: Path, call: Call, feature: str) -> None:
    data = make(feature)
    before = parts(data)
    for name, (tool, arguments) in EDITS.items():
        path = workspace / f"{name}.xlsx"
        path.write_bytes(data)
        sheet = {} if name == "add_sheet" else {"sheet": "Sheet1"}
        call(tool, path.name, **arguments, **sheet)
        after = parts(path.read_bytes())
        assert set(before) - set(after) <= {"xl/calcChain.xml"}, name
        for part in set(before) & set(after):
            if before[part] != after[part] and part.endswith(".xml"):
                lost = counted(before[part]) - counted(after[part])
                assert set(lost) <= LESS, f"{name}: {part} lost {lost}"
        touched = {part for part in before if part in after and before[part] != after[part]}
        assert not [part for part in touched if "media" in part or part.startswith("docProps")], name
        if name == "write":
            assert touched <= {"xl/worksheets/sheet1.xml", "xl/workbook.xml"}
        openpyxl.load_workbook(path)


def test_a_workbook_whose_elements_have_prefixes_is_edited(workspace: Path, call: Call) -> None:
    path = workspace / "book.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        for name, part in parts(make("notes")).items():
            if name.startswith("xl/work") and name.endswith(".xml"):
                named = re.sub(rb"<(/?)(?=\w)(?![\w]+:)", rb"<\1x:", part)
                part = named.replace(b'xmlns="' + MAIN, b'xmlns:x="' + MAIN)  # noqa: PLW2901
            archive.writestr(name, part)
    assert call("read_range", path.name, cells="A2:B2")["values"] == [["item 1", 2]]
    call("append_rows", path.name, values=[["new", 1]])
    call("format_cells", path.name, cells="A1", bold=True, width=30)
    call("format_cells", path.name, cells="J1:K1", merge=True)
    after = parts(path.read_bytes())["xl/worksheets/sheet1.xml"]
    assert b"ns0" not in after
    assert b"<x:mergeCell ref=" in after
    sheet = openpyxl.load_workbook(path)["Sheet1"]
    assert (sheet["A7"].value, sheet["A1"].font.b, sheet["B8"].value) == ("new", True, "=SUM(B2:B7)")


def test_the_title_of_the_values_is_set_on_the_first_of_two_axes_of_values(workspace: Path, call: Call) -> None:
    (workspace / "book.xlsx").write_bytes(make("chart_column_percent_stacked"))
    call("edit_chart", "book.xlsx", control_id="chart-1", y_title="pieces")
    plot = etree.fromstring(parts((workspace / "book.xlsx").read_bytes())["xl/charts/chart1.xml"]).find(
        ".//{*}plotArea"
    )
    axes = [each for each in plot if etree.QName(each).localname.endswith("Ax")]
    titled = [each for each in axes if each.find("{*}title") is not None]
    assert [etree.QName(each).localname for each in titled] == ["valAx"]
    assert titled[0] is next(each for each in axes if etree.QName(each).localname == "valAx")


@pytest.mark.parametrize("kind", CHARTS, ids=str)
def test_the_charts_of_another_program_follow_their_cells(
    workspace: Path, call: Call, kind: tuple[str, str | None]
) -> None:
    (workspace / "book.xlsx").write_bytes(make(f"chart_{kind[0]}_{kind[1]}"))
    call("insert_rows_or_columns", "book.xlsx", what="rows", at="3", count=2)
    call("insert_rows_or_columns", "book.xlsx", what="columns", at="A")
    drawn = parts((workspace / "book.xlsx").read_bytes())["xl/charts/chart1.xml"]
    assert b"Sheet1!$C$2:$C$8" in drawn
    assert b"Sheet1!$B$2:$B$8" in drawn
    assert b"$B$6" not in drawn
    call("rename_sheet", "book.xlsx", sheet="Sheet1", title="Data")
    assert b"'Data'!$C$2:$C$8" in parts((workspace / "book.xlsx").read_bytes())["xl/charts/chart1.xml"]
