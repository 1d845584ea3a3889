"""Excel workbooks: their controls, and the tools to read and edit them."""

from __future__ import annotations

import datetime as dt
import io
import zipfile
from math import isfinite
from typing import TYPE_CHECKING

import openpyxl
import pytest
import xlsxwriter
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.styles.numbers import BUILTIN_FORMATS

from callboard.surfaces import ToolError
from callboard.surfaces.documents import DocumentSurface
from callboard.surfaces.documents.excel import _engines
from callboard.surfaces.documents.excel._cell_format_tools import number_code
from callboard.surfaces.documents.excel._cell_values import Date
from callboard.surfaces.documents.excel._sort_reorder import SortKey

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call

HEADER = ["Month", "Revenue", "Cost"]
ROWS = [["Feb", 20, 5], ["Jan", 10.5, 7], ["mar", 30, 6]]
LETTERED = dict(zip("ABC", HEADER, strict=True))
FIRST_ROWS = {f"A{number}": row for number, row in enumerate(ROWS, 2)}
TEXTS = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), min_size=1, max_size=20
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False).map(lambda number: float(f"{number:.16g}")).filter(isfinite)
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**15), 10**15), FLOATS, TEXTS,
    st.sampled_from(["=1+1", "=", "#N/A", "#REF!", "2024-05-31", "007", "1e5", " x "]),
    st.sampled_from(["a\nb", "TRUE", "+1", "@a", "_x0041_"]),
)  # fmt: skip


@pytest.fixture
def book(workspace: Path, call: Call) -> Path:
    """Give a workbook with a table on its only sheet."""
    call("create_document", path="book.xlsx")
    call("insert_table", "book.xlsx", header=HEADER, rows=ROWS, name="Sales")
    return workspace / "book.xlsx"


def values(call: Call, **arguments: object) -> list[list[object]]:
    """Read the values of the workbook."""
    return call("read_range", "book.xlsx", **arguments)["values"]


def parts(path: Path) -> dict[str, bytes]:
    """Unpack a workbook."""
    with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_sheets_used_ranges_tables_and_charts_are_controls_with_stable_ids(book: Path, call: Call) -> None:
    call("insert_chart", book.name, type="line", title="Trend")
    call("add_sheet", book.name, title="Empty")
    found = {control["id"]: control for control in call("get_controls", book.name)["controls"]}
    assert {name: control["name"] for name, control in found.items()} == {
        "sheet-1": "Sheet1", "range-1": "Sheet1!A1:C4", "table-1": "Sales", "chart-1": "Trend", "sheet-2": "Empty",
    }  # fmt: skip
    assert found["table-1"]["detail"] == {
        "sheet": "sheet-1",
        "cells": "A1:C4",
        "header": dict(zip("ABC", HEADER, strict=True)),
        "rows": 3,
    }
    assert found["range-1"]["detail"] == found["table-1"]["detail"] | {"first_rows": FIRST_ROWS}
    tree = call("get_tree", book.name)["children"]
    assert [child["id"] for child in tree[0]["children"]] == ["range-1", "table-1", "chart-1"]


def test_a_look_shows_the_first_rows_and_counts_all(workspace: Path, call: Call) -> None:
    call("create_document", path="wide.xlsx")
    rows = [[f"{number} {'x' * 40}", *range(10)] for number in range(50)]
    call("write_range", "wide.xlsx", values=[list(range(11)), *rows], cell="B3")
    (found,) = [each for each in call("get_controls", "wide.xlsx")["controls"] if each["kind"] == "range"]
    assert (found["name"], found["detail"]["rows"]) == ("Sheet1!B3:L53", 50)
    assert found["detail"]["first_rows"] == {
        f"B{number + 4}": [f"{number} {'x' * 21}…", *range(7)] for number in range(3)
    }


def test_a_table_apart_from_the_other_cells_shows_its_own_rows(book: Path, call: Call) -> None:
    call("write_range", book.name, values=[["note"]], cell="F9")
    found = {each["id"]: each["detail"] for each in call("get_controls", book.name)["controls"]}
    assert (found["range-1"]["cells"], found["range-1"]["rows"]) == ("A1:F9", 8)
    assert found["table-1"]["first_rows"] == FIRST_ROWS


def test_a_range_is_read_by_cells_sheet_or_control(book: Path, call: Call) -> None:
    assert values(call) == [HEADER, *ROWS]
    assert values(call, cells="B2:C3", sheet="sheet1") == [[20, 5], [10.5, 7]]
    assert values(call, cells="Sheet1!A2") == [["Feb"]]
    assert values(call, control_id="table-1", control_name="Sales") == [HEADER, *ROWS]
    assert values(call, control_id="range-1") == [HEADER, *ROWS]
    call("add_sheet", book.name, title="Empty")
    assert values(call, sheet="Empty") == []


def test_a_long_range_is_cut_after_whole_rows(book: Path, call: Call) -> None:
    read = call("read_range", book.name, cells="A1:C10000")
    assert (len(read["values"]), read["left_out"]) == (6666, 3334)


@settings(max_examples=30)
@given(
    st.integers(1, 4).flatmap(
        lambda width: st.lists(st.lists(VALUES, min_size=width, max_size=width), min_size=1, max_size=4)
    )
)
def test_written_values_are_read_back(tmp_path_factory: pytest.TempPathFactory, rows: list[list[object]]) -> None:
    surface = DocumentSurface(tmp_path_factory.mktemp("book"))
    surface.create_document("book.xlsx")
    excel = surface._excel
    excel.write_range("book.xlsx", rows)
    width = len(rows[0])
    cells = f"A1:{'ABCD'[width - 1]}{len(rows)}"
    read = excel.read_range("book.xlsx", cells=cells)
    assert read["values"] == rows
    assert read["formulas"] == {}


def test_a_text_that_begins_with_an_equals_sign_never_becomes_a_formula(book: Path, call: Call) -> None:
    call("write_range", book.name, values=[["=1+1", '=HYPERLINK("http://x")', "+1", "#N/A"]], cell="A10")
    call("sort_range", book.name, by=[{"column": "A"}], cells="A10:D11", header=False)
    cells = openpyxl.load_workbook(book).active[10]
    assert [cell.data_type for cell in cells[:4]] == ["s"] * 4
    assert cells[0].quotePrefix
    assert b"<f>" not in parts(book)["xl/worksheets/sheet1.xml"]


def test_dates_are_written_as_dates_and_read_as_iso_texts(book: Path, call: Call) -> None:
    call(
        "write_range",
        book.name,
        values=[[{"date": "2024-05-31"}, {"date": "2024-05-31T09:30:00"}, "2024-05-31"]],
        cell="E1",
    )
    read = call("read_range", book.name, cells="E1:G1")
    assert read["values"] == [["2024-05-31", "2024-05-31T09:30:00", "2024-05-31"]]
    assert read["dates"] == ["E1", "F1"]
    assert openpyxl.load_workbook(book).active["E1"].value == dt.datetime(2024, 5, 31)  # noqa: DTZ001
    for date in ("1899-01-01", "2024-05-31T09:30:00+02:00"):
        with pytest.raises(ToolError, match="can't be held"):
            call("write_range", book.name, values=[[{"date": date}]])


def test_writing_null_empties_a_cell_and_keeps_its_format(book: Path, call: Call) -> None:
    call("format_cells", book.name, cells="B2:B4", number_format="#,##0.00")
    call("write_range", book.name, values=[[None]], cell="B2")
    cell = openpyxl.load_workbook(book).active["B2"]
    assert (cell.value, cell.number_format) == (None, "#,##0.00")


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("currency", '"$"#,##0.00_);("$"#,##0.00)'),
        ("Percent", "0.00%"),
        ("date", "yyyy-mm-dd"),
        ("General;[Red]-General", "General;[Red]-General"),
        ('0.0 "kg"', '0.0 "kg"'),
        ("[h]:mm:ss.00", "[h]:mm:ss.00"),
        ("[$€-407] #,##0.00", "[$€-407] #,##0.00"),
    ],
)
def test_number_format_is_a_name_or_a_code(book: Path, call: Call, given: str, code: str) -> None:
    assert call("format_cells", book.name, cells="B2", number_format=given)["number_format"] == code
    assert openpyxl.load_workbook(book)["Sheet1"]["B2"].number_format == code


def test_the_built_in_number_formats_are_accepted() -> None:
    assert [number_code(code) for code in BUILTIN_FORMATS.values()] == list(BUILTIN_FORMATS.values())


@pytest.mark.parametrize("code", ["money", 'bad"', "[Red0", "0]", "0 EUR", "0 m", "[Rot]0", "0\\", "0;0;0;0;0"])
def test_a_malformed_number_format_is_refused(book: Path, call: Call, code: str) -> None:
    with pytest.raises(ToolError, match=r'is no number format: .*currency.*0\.0 "kg"'):
        call("format_cells", book.name, cells="B2", number_format=code)


def test_merged_cells_are_read_at_their_corner_and_not_written_within(book: Path, call: Call) -> None:
    other = openpyxl.load_workbook(book)
    other.active["E1"] = "wide"
    other.active.merge_cells("E1:F2")
    other.save(book)
    read = call("read_range", book.name, cells="E1:F2")
    assert (read["values"], read["merged"]) == ([["wide", None], [None, None]], ["E1:F2"])
    call("get_controls", book.name)
    call("write_range", book.name, values=[["new", None]], cell="E1")
    with pytest.raises(ToolError, match="merged"):
        call("write_range", book.name, values=[["x"]], cell="F2")
    with pytest.raises(ToolError, match="merged"):
        call("sort_range", book.name, by=[{"column": "E"}], cells="A1:F4")


def test_a_table_is_a_real_one_with_a_header_and_its_own_name(book: Path, call: Call) -> None:
    table = openpyxl.load_workbook(book).active.tables["Sales"]
    assert (table.ref, table.column_names) == ("A1:C4", HEADER)
    assert call("insert_table", book.name, header=["a"], rows=[[1]], cell="F1")["table"] == "Table1"
    plain = call("insert_table", book.name, header=["a"], rows=[[1]], cell="H1", table=False)
    assert plain == {"sheet": "Sheet1", "cells": "H1:H2", "table": None}
    with pytest.raises(ToolError, match=r"is not empty .* choose empty cells \(the next free row is 5\)"):
        call("insert_table", book.name, header=["a"], rows=[[1]], cell="C4")


def test_errors_suggest_a_name_for_a_wrong_one(book: Path, call: Call) -> None:
    with pytest.raises(ToolError, match=r"no column 'Revenues' in A1:C4; there are: .*; did you mean 'Revenue'"):
        call("sort_range", book.name, by=[{"column": "Revenues"}])
    with pytest.raises(ToolError, match=r"no control 'table1' in the workbook; .* did you mean 'table-1'\?"):
        call("sort_range", book.name, by=[{"column": "Revenue"}], control_id="table1")
    with pytest.raises(ToolError, match=r"to see its controls$"):
        call("sort_range", book.name, by=[{"column": "Revenue"}], control_id="xyz")


def test_a_column_may_be_named_in_other_capitals_if_only_one_is_called_so(book: Path, call: Call) -> None:
    call("sort_range", book.name, by=[{"column": "revenue"}])
    assert values(call, cells="B2:B4") == [[10.5], [20], [30]]
    call("write_range", book.name, values=[["COST", "Cost"], [1, 2]], cell="F1")
    with pytest.raises(ToolError, match="no column 'cost'"):
        call("sort_range", book.name, by=[{"column": "cost"}], cells="F1:G2")


def test_rows_are_sorted_as_excel_does(book: Path, call: Call) -> None:
    mixed = [["b"], [2], [None], [True], ["A"], [-1], [False]]
    call("write_range", book.name, values=mixed, cell="F1")
    call("sort_range", book.name, by=[{"column": "F"}], cells="F1:F7", header=False)
    assert [row[0] for row in values(call, cells="F1:F7")] == [-1, 2, "A", "b", False, True, None]
    call("sort_range", book.name, by=[{"column": "F", "descending": True}], cells="F1:F7", header=False)
    assert [row[0] for row in values(call, cells="F1:F7")] == [True, False, "b", "A", 2, -1, None]


def test_a_table_is_sorted_by_its_headers_with_formulas_going_along(book: Path, call: Call) -> None:
    call("set_formula", book.name, cells="D2:D4", formula="=B2-C2")
    call("sort_range", book.name, by=[{"column": "Revenue", "descending": True}], cells="A1:D4")
    assert [row[0] for row in values(call)] == ["Month", "mar", "Feb", "Jan"]
    assert call("read_range", book.name)["formulas"] == {"D2": "=B2-C2", "D3": "=B3-C3", "D4": "=B4-C4"}


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=8))
def test_sorting_by_two_columns_keeps_the_order_of_equal_rows(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[int, int]]
) -> None:
    surface = DocumentSurface(tmp_path_factory.mktemp("sorted"))
    surface.create_document("book.xlsx")
    excel = surface._excel
    rows = [[*pair, number] for number, pair in enumerate(pairs)]
    excel.write_range("book.xlsx", rows)
    excel.sort_range("book.xlsx", [SortKey(column="B"), SortKey(column="A", descending=True)], header=False)
    read = excel.read_range("book.xlsx")["values"]
    assert read == sorted(rows, key=lambda row: (row[1], -row[0]))


def test_columns_are_reordered_with_their_formats_and_the_table_follows(book: Path, call: Call) -> None:
    call("format_cells", book.name, cells="B2:B4", number_format="0.00")
    answer = call("reorder_columns", book.name, order=["Cost", "Month"], control_id="table-1")
    assert answer["before"] == ["C", "A", "B"]
    assert values(call)[:2] == [["Cost", "Month", "Revenue"], [5, "Feb", 20]]
    sheet = openpyxl.load_workbook(book).active
    assert (sheet["C2"].number_format, sheet["A2"].number_format) == ("0.00", "General")
    assert sheet.tables["Sales"].column_names == ["Cost", "Month", "Revenue"]


def test_columns_that_something_refers_to_are_not_reordered(book: Path, call: Call) -> None:
    call("set_formula", book.name, cells="F1", formula="=SUM(B2:B4)")
    with pytest.raises(ToolError, match=r"Sheet1!F1 refers to B2:B4"):
        call("reorder_columns", book.name, order=["Cost"], control_id="table-1")
    call("write_range", book.name, values=[[None]], cell="F1")
    call("insert_chart", book.name, type="bar", control_id="table-1")
    with pytest.raises(ToolError, match="a chart on Sheet1"):
        call("reorder_columns", book.name, order=["Cost"], control_id="table-1")


def test_a_column_moves_with_the_total_below_it(book: Path, call: Call) -> None:
    call("write_range", book.name, values=[["x", "y"], [1, 2]], cell="F1")
    call("set_formula", book.name, cells="F3:G3", formula="=SUM(F2:F2)")
    call("reorder_columns", book.name, order=["y", "x"], cells="F1:G3")
    assert call("read_range", book.name, cells="F1:G3")["formulas"] == {"F3": "=SUM(F2:F2)", "G3": "=SUM(G2:G2)"}


def test_a_formula_is_written_filled_and_known_as_not_computed_yet(
    book: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    for engine in (_engines.IronCalc, _engines.Office):
        monkeypatch.setattr(engine, "is_available", lambda _: False)
    call("set_formula", book.name, cells="D2:D4", formula="=B2*$C$2")
    read = call("read_range", book.name, cells="D2:D4")
    assert read["formulas"] == {"D2": "=B2*$C$2", "D3": "=B3*$C$2", "D4": "=B4*$C$2"}
    assert read["values"] == [["(not computed)"]] * 3
    assert read["not_computed"] == ["D2", "D3", "D4"]
    assert b'fullCalcOnLoad="1"' in parts(book)["xl/workbook.xml"]


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("=ifs(B2>1,1)", "=_xlfn.IFS(B2>1,1)"),
        ("=BINOM.DIST(1,2,0.5,TRUE)", "=_xlfn.BINOM.DIST(1,2,0.5,TRUE)"),
        ("=_xlfn.T.TEST(B2:B4,C2:C4,1,1)", "=_xlfn.T.TEST(B2:B4,C2:C4,1,1)"),
        ("=PERCENTRANK.INC(B2:B4,B3)", "=_xlfn.PERCENTRANK.INC(B2:B4,B3)"),
        ("=AGGREGATE(9,4,B2:B4)", "=_xlfn.AGGREGATE(9,4,B2:B4)"),
        ("=NETWORKDAYS.INTL(B2,B3)", "=NETWORKDAYS.INTL(B2,B3)"),
    ],
)
def test_a_function_newer_than_the_format_is_written_as_files_hold_it(
    book: Path, call: Call, written: str, stored: str
) -> None:
    assert call("set_formula", book.name, cells="D1", formula=written)["formula"] == stored


@pytest.mark.parametrize(
    ("formula", "why"),
    [
        ("B2", "begins with ="), ("=", "begins with ="), ("=SUM(B2", "not a formula"), ("=SUM(B2))", "not a formula"),
        ("=SUMME(B2)", "not a known function"), ("=SUM(B2;B3)", "commas"),
        ("=AVERAGEIFFS(B2)", "English names; did you mean 'AVERAGEIFS'"),
        ("=VSTACK(A2:A4,B2:B4)", "VSTACK needs the form of files for dynamic arrays.*filter_rows"),
        ("=_xlfn.TAKE(A2:A4,1)", "TAKE needs the form of files"), ("=LET(x,1,x)", "LET needs the form of files"),
        ('=WEBSERVICE("http://x")', "outside the workbook"),
        ('=HYPERLINK("http://x","y")', "outside the workbook"), ("=cmd|'/C calc'!A0", "refused|not a formula"),
        ("=[other.xlsx]Sheet1!A1", "outside the workbook"), ("='[other.xlsx]Sheet1'!A1", "outside the workbook"),
        ("=ZZZ9", "beyond the last cell"),
    ],
)  # fmt: skip
def test_a_formula_that_is_wrong_or_reaches_out_of_the_workbook_is_refused(
    book: Path, call: Call, formula: str, why: str
) -> None:
    before = book.read_bytes()
    with pytest.raises(ToolError, match=why):
        call("set_formula", book.name, cells="D2", formula=formula)
    assert book.read_bytes() == before


@pytest.mark.parametrize("kind", ["bar", "line", "pie"])
def test_a_chart_refers_to_its_data_and_survives_later_writes(book: Path, call: Call, kind: str) -> None:
    arguments = {"type": kind, "title": "Sales & more", "x_title": "Month", "y_title": "EUR", "columns": ["Revenue"]}
    made = call("insert_chart", book.name, control_id="table-1", **arguments)
    assert made["control_id"] == "chart-1"
    chart = parts(book)["xl/charts/chart1.xml"]
    for text in (b"'Sheet1'!B1", b"'Sheet1'!$B$2:$B$4", b"'Sheet1'!$A$2:$A$4", b"Sales &amp; more"):
        assert text in chart
    assert (b'<delete val="0"' in chart, b"Month" in chart, b"EUR" in chart) == (kind != "pie",) * 3
    call("write_range", book.name, values=[["x"]], cell="H30")
    call("insert_chart", book.name, type="bar", control_id="table-1")
    assert parts(book)["xl/charts/chart1.xml"] == chart
    assert [c["name"] for c in call("get_controls", book.name)["controls"] if c["kind"] == "chart"] == [
        "Sales & more",
        "Chart 2",
    ]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"type": "bar", "cells": "Z1:Z5"}, "too small"),
        ({"type": "bar", "cells": "A1:B1"}, "too small"),
        ({"type": "bar", "columns": ["Nothing"]}, "no column"),
        ({"type": "line", "columns": ["Month"]}, "'Feb', which is not a number.*: 'Revenue', 'Cost'$"),
        ({"type": "line", "cells": "X1:Y5"}, "no numbers"),
        ({"type": "pie"}, "one column; name one of these in columns: 'Revenue', 'Cost'$"),
        ({"type": "bar", "sheet": "Nothing"}, "no sheet"),
        ({"type": "bar", "anchor": "nowhere!"}, "not a range"),
    ],
)
def test_chart_of_unsuitable_cells_is_refused(book: Path, call: Call, arguments: dict[str, object], why: str) -> None:
    with pytest.raises(ToolError, match=why):
        call("insert_chart", book.name, **arguments)


def test_columns_that_a_chart_may_draw_are_named_as_they_are_accepted(book: Path, call: Call) -> None:
    header = ["Month", "2026-01-31", "Same", "Same", "a\nb"]
    call("write_range", book.name, values=[header, ["Jan", 1, 2, 3, 4]], cell="J20")
    call("write_range", book.name, values=[[{"date": "2026-01-31"}]], cell="K20")
    with pytest.raises(ToolError, match=r"name one of these in columns: '2026-01-31', 'L', 'M', 'N'$"):
        call("insert_chart", book.name, type="pie", cells="J20:N21")
    for column in ("2026-01-31", "L", "N"):
        call("insert_chart", book.name, type="pie", cells="J20:N21", columns=[column])


def test_the_name_of_a_table_selects_its_cells(book: Path, call: Call) -> None:
    call("insert_table", book.name, header=["Region", "Q1"], rows=[["North", 4.5], ["South", 3]], cell="J20", name="Q")
    read = call("read_range", book.name, cells="q")
    assert (read["cells"], read["values"][0]) == ("J20:K22", ["Region", "Q1"])
    assert call("read_range", book.name, cells="Sheet1!Q") == read
    for arguments in ({"cells": "Q", "sheet": "Other"}, {"cells": "Other!Q"}):
        with pytest.raises(ToolError, match="are not on the sheet 'Other'"):
            call("read_range", book.name, **arguments)
    call("add_sheet", book.name, title="Other")
    call("insert_table", book.name, header=["Month", "Q2"], rows=[["Jan", 7]], sheet="Other", name="P")
    call("insert_chart", book.name, type="bar", cells="Q")
    call("edit_chart", book.name, control_id="chart-1", type="line", cells="P")
    assert b"'Other'!$B$2" in parts(book)["xl/charts/chart1.xml"]
    with pytest.raises(ToolError, match="'Q' is not a range of cells; write"):
        call("insert_chart", book.name, type="bar", cells="Q", anchor="Q")
    with pytest.raises(ToolError, match="'Gone' is not a range of cells or the name of a table"):
        call("read_range", book.name, cells="Gone")


def test_a_renamed_sheet_is_followed_by_formulas_names_and_charts(book: Path, call: Call) -> None:
    call("add_sheet", book.name, title="Sum", position=1)
    call("set_formula", book.name, cells="A1", sheet="Sum", formula="=SUM(Sheet1!B2:B4)+'Sheet1'!C2")
    call("insert_chart", book.name, type="bar", sheet="Sheet1")
    call("rename_sheet", book.name, sheet="sheet1", title="It's new")
    assert call("read_range", book.name, sheet="Sum")["formulas"] == {"A1": "=SUM('It''s new'!B2:B4)+'It''s new'!C2"}
    chart = parts(book)["xl/charts/chart1.xml"]
    assert b"'It''s new'!$B$2:$B$4" in chart
    assert b"Sheet1" not in chart


def test_a_sheet_is_deleted_unless_others_refer_to_it_or_it_is_the_last(book: Path, call: Call) -> None:
    with pytest.raises(ToolError, match="last visible sheet"):
        call("delete_rows_or_columns", book.name, what="sheet", sheet="Sheet1")
    call("add_sheet", book.name, title="Sum")
    call("set_formula", book.name, cells="A1", sheet="Sum", formula="=Sheet1!B2")
    with pytest.raises(ToolError, match="Sum!A1 refers"):
        call("delete_rows_or_columns", book.name, what="sheet", sheet="Sheet1")
    assert call("delete_rows_or_columns", book.name, what="sheet", control_id="sheet-2")["sheets"] == ["Sheet1"]


def test_a_sheet_with_a_table_that_a_formula_names_is_not_deleted(book: Path, call: Call) -> None:
    call("add_sheet", book.name, title="Goods")
    call("insert_table", book.name, sheet="Goods", header=["Item", "Price"], rows=[["a", 1]], name="Prices")
    call("set_formula", book.name, sheet="Goods", cells="D1", formula="=SUM(Prices[Price])")
    call("set_formula", book.name, sheet="Sheet1", cells="H1", formula="=SUM(prices[Price])")
    before = book.read_bytes()
    with pytest.raises(ToolError, match="Sheet1!H1 refers to the table 'Prices' on the sheet 'Goods'"):
        call("delete_rows_or_columns", book.name, what="sheet", sheet="Goods")
    assert book.read_bytes() == before
    call("write_range", book.name, sheet="Sheet1", cell="H1", values=[['Prices[Price] is "Prices"']])
    assert call("delete_rows_or_columns", book.name, what="sheet", sheet="Goods")["sheets"] == ["Sheet1"]


@pytest.mark.parametrize("title", ["", "a" * 32, "a/b", "'a", "SHEET1", "history"])
def test_a_title_that_no_sheet_can_have_is_refused(book: Path, call: Call, title: str) -> None:
    with pytest.raises(ToolError):
        call("add_sheet", book.name, title=title)


def test_a_protected_sheet_is_not_written(book: Path, call: Call) -> None:
    other = openpyxl.load_workbook(book)
    other.active.protection.sheet = True
    other.save(book)
    call("get_controls", book.name)
    for name, arguments in (("write_range", {"values": [[1]]}), ("sort_range", {"by": [{"column": "A"}]})):
        with pytest.raises(ToolError, match="protected"):
            call(name, book.name, **arguments)


def test_rich_text_in_cells_survives_a_write(book: Path, call: Call) -> None:
    other = openpyxl.load_workbook(book)
    other.active["E1"] = CellRichText("plain ", TextBlock(InlineFont(b=True), "bold"))
    other.save(book)
    call("get_controls", book.name)
    call("write_range", book.name, values=[[1]], cell="E2")
    assert values(call, cells="E1") == [["plain bold"]]
    assert b"<b " in parts(book)["xl/worksheets/sheet1.xml"]


@pytest.mark.parametrize("shared", [False, True])
def test_a_text_is_replaced_within_a_run_of_a_rich_text(workspace: Path, call: Call, *, shared: bool) -> None:
    path = workspace / "rich.xlsx"
    if shared:
        made = xlsxwriter.Workbook(path)
        made.add_worksheet().write_rich_string("A1", "Hello ", made.add_format({"bold": True}), "bold", " world")
        made.close()
    else:
        other = openpyxl.Workbook()
        other.active["A1"] = CellRichText("Hello ", TextBlock(InlineFont(b=True), "bold"), " world")
        other.save(path)
    call("get_controls", path.name)
    call("replace_text", path.name, find_text="WORLD", new_text="<_x0041_>")
    call("replace_text", path.name, find_text="Hello ", new_text="")
    text = openpyxl.load_workbook(path, rich_text=True).active["A1"].value
    assert [str(each) for each in text] == ["bold", " <_x0041_>"]
    assert (text[0].font.b, call("read_range", path.name)["values"]) == (True, [["bold <_x0041_>"]])
    before = path.read_bytes()
    for find, whole in (("old <", False), ("bold <_x0041_>", True)):
        with pytest.raises(ToolError, match="A1: the text stands in parts with different fonts"):
            call("replace_text", path.name, find_text=find, new_text="x", whole_cell=whole)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("read_range", {"cells": "nonsense"}, "not a range"),
        ("read_range", {"cells": "A:B"}, "not a range"),
        ("read_range", {"cells": "C3:A1"}, "'C3:A1' does not begin at its top left cell; write it as A1:C3"),
        ("read_range", {"cells": "$A3:C$1"}, "write it as A1:C3"),
        ("read_range", {"cells": "'sheet1'"}, "is the title of a sheet; give it as sheet"),
        ("read_range", {"control_id": "table-9"}, "no control"),
        ("read_range", {"control_id": "table-1", "control_name": "Old"}, "now called"),
        ("read_range", {"control_id": "table-1", "sheet": "Other"}, "not on the sheet"),
        ("write_range", {"values": []}, "no cells"),
        ("write_range", {"values": [[1], [1, 2]]}, "equally many cells, but row 1 has 1, row 2 has 2"),
        ("write_range", {"values": [[1, 2]], "cell": "XFD1"}, "do not fit"),
        ("write_range", {"values": [[10**16]]}, "exactly"),
        ("write_range", {"values": [["x" * 40000]]}, "32767"),
        ("write_range", {"values": [["\x07"]]}, "can't hold"),
        ("insert_table", {"header": ["a", "A"], "rows": [[1, 2]], "cell": "F1"}, "unique"),
        ("insert_table", {"header": ["a"], "rows": [[1]], "cell": "F1", "name": "Sales"}, "can't name"),
        ("insert_table", {"header": ["a"], "rows": [[1]], "cell": "F1", "name": "A1"}, "can't name"),
        ("sort_range", {"by": [{"column": "Nothing"}]}, "no column 'Nothing'"),
        ("reorder_columns", {"order": ["Cost", "C"]}, "named twice"),
        ("reorder_columns", {"order": ["Cost"], "cells": "B1:C4"}, "exactly its cells"),
        ("rename_sheet", {"sheet": "Nothing", "title": "x"}, "no sheet"),
    ],
)
def test_a_mistake_gives_a_clear_error_and_changes_nothing(
    book: Path, call: Call, name: str, arguments: dict[str, object], why: str
) -> None:
    before = book.read_bytes()
    with pytest.raises(ToolError, match=why):
        call(name, book.name, **arguments)
    assert book.read_bytes() == before


# The edges of a sheet


@pytest.mark.parametrize("cell", ["A1048576", "XFD1", "XFD1048576"])
def test_the_last_row_and_column_are_written_and_read(book: Path, call: Call, cell: str) -> None:
    assert call("write_range", book.name, values=[["last"]], cell=cell)["cells"] == cell
    assert values(call, cells=cell) == [["last"]]
    assert openpyxl.load_workbook(book).active[cell].value == "last"


def test_a_range_may_end_at_the_last_row_and_column(book: Path, call: Call) -> None:
    written = call("write_range", book.name, values=[[1, 2], [3, 4]], cell="XFC1048575")
    assert written["cells"] == "XFC1048575:XFD1048576"
    assert values(call, cells=written["cells"]) == [[1, 2], [3, 4]]


def test_a_table_may_end_at_the_last_row(book: Path, call: Call) -> None:
    made = call("insert_table", book.name, header=["a", "b"], rows=[[1, 2]], cell="XFC1048575", name="Last")
    assert made["cells"] == "XFC1048575:XFD1048576"
    assert values(call, control_id="table-2") == [["a", "b"], [1, 2]]


def test_a_formula_may_refer_to_the_last_row_and_column(book: Path, call: Call) -> None:
    formula = "=A1048576+XFD1+SUM(Sheet1!$XFD$1048576,1048576:1048576)"
    assert call("set_formula", book.name, cells="F1", formula=formula)["formula"] == formula


def test_a_formula_is_filled_until_it_refers_to_the_last_cell(book: Path, call: Call) -> None:
    call("set_formula", book.name, cells="F1:G2", formula="=XFC1048575")
    formulas = call("read_range", book.name, cells="F1:G2")["formulas"]
    assert formulas == {"F1": "=XFC1048575", "G1": "=XFD1048575", "F2": "=XFC1048576", "G2": "=XFD1048576"}


def test_a_chart_without_a_place_is_put_on_the_sheet_however_full_that_is(book: Path, call: Call) -> None:
    call("write_range", book.name, values=[["last"]], cell="XFD1")
    call("insert_chart", book.name, type="bar", control_id="table-1", anchor="A1048576")
    call("insert_chart", book.name, type="bar", control_id="table-1")
    found = {control["id"]: control["detail"] for control in call("get_controls", book.name)["controls"]}
    assert [found[chart]["at"] for chart in ("chart-1", "chart-2")] == ["A1048576", "XFD1048576"]


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("read_range", {"cells": "A1048577"}, "beyond XFD1048576, the last cell of a sheet"),
        ("read_range", {"cells": "A1048576:A1048577"}, "beyond XFD1048576"),
        ("read_range", {"cells": "XFE1"}, "beyond XFD1048576"),
        ("read_range", {"cells": "XFD1:XFE1"}, "beyond XFD1048576"),
        ("write_range", {"values": [[1]], "cell": "A1048577"}, "beyond XFD1048576"),
        ("write_range", {"values": [[1]], "cell": "XFE1"}, "beyond XFD1048576"),
        ("write_range", {"values": [[1], [2]], "cell": "A1048576"}, "2 rows and 1 columns from A1048576 do not fit"),
        ("write_range", {"values": [[1, 2]], "cell": "XFD1"}, "1 rows and 2 columns from XFD1 do not fit"),
        ("insert_table", {"header": ["a"], "rows": [[1]], "cell": "F1048576"}, "do not fit"),
        ("format_cells", {"cells": "XFE1", "number_format": "0"}, "beyond XFD1048576"),
        ("set_formula", {"cells": "XFE1", "formula": "=B2"}, "beyond XFD1048576"),
        ("set_formula", {"cells": "F1", "formula": "=A1048577"}, "refers to A1048577, which lies beyond"),
        ("set_formula", {"cells": "F1", "formula": "=XFE1"}, "refers to XFE1, which lies beyond"),
        ("set_formula", {"cells": "F1", "formula": "=SUM(1:1048577)"}, "refers to 1048577, which lies beyond"),
        ("set_formula", {"cells": "F1", "formula": "=SUM(XFE:XFE)"}, "refers to XFE, which lies beyond"),
        ("set_formula", {"cells": "F1:G1", "formula": "=SUM(XFD:XFD)"}, "would leave the sheet"),
        ("set_formula", {"cells": "F1:G1", "formula": "=SUM(ZZZ:ZZZ)"}, "refers to ZZZ, which lies beyond"),
        ("set_formula", {"cells": "F1:F2", "formula": "=A1048576"}, "would leave the sheet"),
        ("set_formula", {"cells": "F1:G1", "formula": "=XFD1"}, "would leave the sheet"),
        ("insert_chart", {"type": "bar", "anchor": "A1048577"}, "beyond XFD1048576"),
    ],
)
def test_cells_beyond_the_last_row_or_column_are_refused(
    book: Path, call: Call, name: str, arguments: dict[str, object], why: str
) -> None:
    before = book.read_bytes()
    with pytest.raises(ToolError, match=why):
        call(name, book.name, **arguments)
    assert book.read_bytes() == before


def test_date_is_distinguished_from_text_by_its_type() -> None:
    assert Date.model_validate({"date": "2024-05-31"}).date == dt.date(2024, 5, 31)


def test_header_of_a_range_is_read_apart_as_tools_for_tables_take_it(workspace: Path, call: Call) -> None:
    call("create_document", path="a.xlsx")
    call("write_range", "a.xlsx", values=[["Region", 2026, None], ["North", 1.5, True], ["South", 2, "x"]])
    answer = call("read_range", "a.xlsx", cells="A1:C3", header=True)
    assert (answer["header"], answer["rows"]) == (["Region", "2026", ""], [["North", 1.5, True], ["South", 2, "x"]])
    assert "values" not in answer
    call("create_document", path="b.docx")
    call("insert_table", "b.docx", header=answer["header"], rows=answer["rows"])
    assert call("read_table", "b.docx", control_id="table-1")["row_count"] == 2
