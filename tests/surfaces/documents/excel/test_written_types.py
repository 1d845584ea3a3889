"""Types of values: times, numbers in texts, and changes."""

from __future__ import annotations

import datetime as dt
import zipfile
from typing import TYPE_CHECKING, Any

import openpyxl
import pytest
import xlsxwriter
from hypothesis import given
from hypothesis import strategies as st
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from pydantic import ValidationError

from callboard.surfaces import ToolError
from callboard.surfaces.documents.excel._cell_values import Date, parse_span, to_json

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call


def made(workspace: Path, rows: list[list[Any]], formats: dict[str, str] | None = None) -> Path:
    path = workspace / "book.xlsx"
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for cell, code in (formats or {}).items():
        book.active[cell].number_format = code
    book.save(path)
    return path


def cell(path: Path, name: str) -> Any:
    return openpyxl.load_workbook(path).active[name]


# Times and durations


def timesheet(workspace: Path, code: str = "[h]:mm") -> Path:
    rows = [["Who", "Hours"], ["a", 0.25], ["b", 1.5], ["c", 0.5]]
    return made(workspace, rows, dict.fromkeys(["B2", "B3", "B4"], code))


@pytest.mark.parametrize("code", ["[h]:mm", "[hh]:mm:ss", "h:mm", "hh:mm:ss", '[h]"h" mm', "h:mm AM/PM"])
def test_durations_are_read_summed_and_compared(workspace: Path, call: Call, code: str) -> None:
    path = timesheet(workspace, code)
    figures = call("summarize", path.name)["summary"]["Hours"]
    assert (figures["times"], figures["sum"], figures["max"]) == (3, "54:00:00", "36:00:00")
    assert call("read_range", path.name, cells="B3")["values"] == [["36:00:00"]]
    for value in ({"date": "12:00"}, "12:00:00"):
        where = [{"column": "Hours", "operator": ">=", "value": value}]
        assert call("summarize", path.name, where=where)["rows"] == 2
    assert call("summarize", path.name, where=[{"column": "Hours", "value": "6:00"}])["rows"] == 1


@pytest.mark.parametrize(
    ("text", "number", "code"),
    [
        ("08:00:00", 1 / 3, "hh:mm:ss"), ("8:30", 8.5 / 24, "hh:mm:ss"), ("36:00:00", 1.5, "[h]:mm:ss"),
        ("-1:30", -1.5 / 24, "[h]:mm:ss"), ("00:00:00.5", 0.5 / 86400, "hh:mm:ss"),
        ("100:15", 100.25 / 24, "[h]:mm:ss"),
    ],
)  # fmt: skip
def test_times_and_durations_are_written(workspace: Path, call: Call, text: str, number: float, code: str) -> None:
    path = made(workspace, [["x"]])
    answer = call("write_range", path.name, cell="A1", values=[[{"date": text}]])
    sheet = zipfile.ZipFile(path).read("xl/worksheets/sheet1.xml").decode()
    assert float(sheet.partition("<v>")[2].partition("<")[0]) == pytest.approx(number)
    assert cell(path, "A1").number_format == code
    assert ("negative time" in str(answer["types"])) == text.startswith("-")


@pytest.mark.parametrize("text", ["25", "8:61", "8:00:61", "noon", "1:2:3:4", ""])
def test_invalid_time_is_refused(text: str) -> None:
    with pytest.raises(ValidationError, match=r"a (date|time or duration) is written like"):
        Date(date=text)  # type: ignore[arg-type]


@given(st.timedeltas(dt.timedelta(days=-4000), dt.timedelta(days=4000)))
def test_duration_survives_its_json(span: dt.timedelta) -> None:
    assert Date.model_validate_json(Date(date=span).model_dump_json()).date == span
    whole = dt.timedelta(seconds=round(span.total_seconds()))
    assert parse_span(str(to_json(whole))) == whole


def test_form_that_is_read_can_be_written_back(workspace: Path, call: Call) -> None:
    formats = {"A1": "[h]:mm", "B1": "yyyy-mm-dd", "C1": "dd.mm.yy hh:mm", "D1": "h:mm"}
    path = made(workspace, [[1.5, 45443, 45443.25, 0.25]], formats)
    values = call("read_range", path.name)["values"]
    assert values == [["36:00:00", "2024-05-31", "2024-05-31T06:00:00", "06:00:00"]]
    call("write_range", path.name, cell="A1", values=values)
    assert call("read_range", path.name)["dates"] == ["A1", "B1", "C1", "D1"]
    assert call("read_range", path.name)["values"] == values
    call("write_range", path.name, cell="A1", values=[["about 8:00", "2024-02-30", "x", "25:61"]])
    assert [cell(path, name).data_type for name in ("A1", "B1", "C1", "D1")] == ["s"] * 4


def test_appended_times_are_times(workspace: Path, call: Call) -> None:
    path = timesheet(workspace)
    call("append_rows", path.name, values=[["d", "8:00:00"], ["e", {"date": "30:00"}]])
    assert call("summarize", path.name)["summary"]["Hours"]["sum"] == "92:00:00"
    call("sort_range", path.name, by=[{"column": "Hours", "descending": True}])
    assert [row[0] for row in call("read_range", path.name, cells="A2:A6")["values"]] == ["b", "e", "c", "d", "a"]


@pytest.mark.parametrize(
    ("formula", "code"),
    [
        ("=SUM(A1:A3)", "[h]:mm:ss"), ("=A1-A2", "[h]:mm:ss"), ("=MAX(A:A)-MIN($A$1,A2)", "[h]:mm:ss"),
        ("=SUM(Sheet!A1:A2)", "[h]:mm:ss"), ("=SUM(A1:A2)*24", "General"), ("=SUM(A1:B2)", "General"),
        ("=A1+1", "General"), ("=SUM(C1:C3)", "General"), ("=COUNT(A1:A2)", "General"),
    ],
)  # fmt: skip
def test_formula_of_times_shows_a_duration(workspace: Path, call: Call, formula: str, code: str) -> None:
    path = made(workspace, [[1.5, 8], [0.25, 9], ["text", None]], {"A1": "[h]:mm", "A2": "h:mm"})
    call("set_formula", path.name, cells="D1", formula=formula)
    assert cell(path, "D1").number_format == code


def test_duration_is_a_named_number_format(workspace: Path, call: Call) -> None:
    path = made(workspace, [[1.5]])
    call("format_cells", path.name, cells="A1", number_format="duration")
    assert call("read_range", path.name)["values"] == [["36:00:00"]]


def test_dates_have_a_range_and_no_sum(workspace: Path, call: Call) -> None:
    path = made(workspace, [["Day"], [dt.datetime(2024, 5, 31)], [dt.datetime(2023, 1, 1)]])  # noqa: DTZ001 - no zone
    figures = call("summarize", path.name, columns=["Day"])["summary"]["Day"]
    assert figures == {"filled": 2, "numbers": 0, "dates": 2, "earliest": "2023-01-01", "latest": "2024-05-31"}


def test_errors_are_named_by_sums(workspace: Path, call: Call) -> None:
    path = made(workspace, [["Item", "Amount"], ["a", 10], ["b", "#N/A"], ["#REF!", 5]])
    answer = call("summarize", path.name, columns=["Amount"])
    assert (answer["summary"]["Amount"]["sum"], answer["errors_not_counted"]) == (15, ["B3"])


def test_dates_in_texts_are_named_by_questions(workspace: Path, call: Call) -> None:
    days = [dt.datetime(2024, 5, 31), "2024-01-15", "3/1/2023", "1.2.3", "soon", "7 days"]  # noqa: DTZ001 - no zone
    path = made(workspace, [["Day"], *([day] for day in days)])
    assert call("summarize", path.name, columns=["Day"])["texts_not_counted"] == ["A3", "A4", "A5"]
    assert "sorted_as_texts" in call("sort_range", path.name, by=[{"column": "Day"}])


@pytest.mark.parametrize(("operator", "value"), [(">", 2024), ("=", "2024"), ("<", 45443)])
def test_dates_are_not_compared_with_numbers(workspace: Path, call: Call, operator: str, value: object) -> None:
    path = made(workspace, [["Day", "Hours"], [dt.datetime(2024, 5, 31), 8]])  # noqa: DTZ001 - no zone
    with pytest.raises(ToolError, match="'Day' holds dates"):
        call("summarize", path.name, where=[{"column": "Day", "operator": operator, "value": value}])
    assert call("summarize", path.name, where=[{"column": "Hours", "value": 8}])["rows"] == 1


# Changes of types


@pytest.mark.parametrize(
    ("old", "code", "new", "said"),
    [
        (None, "yyyy-mm-dd", 55, "the number 55 shows as 1900-02-24"),
        (None, "[h]:mm", 8, "the number 8 shows as 192:00:00"),
        (45443, "#,##0.00", {"date": "2024-05-31"}, "shows as the number 45443"),
        (100, "General", "n/a", "the number 100 has become the text n/a"),
        ("x", "General", 5, "the text x has become the number 5"),
        (True, "General", "yes", "the truth value True has become the text yes"),
        (None, "0%", 60, "the number 60 shows as 6000%"),
        (0.5, '0.0%" p.a."', 1.5, "the number 1.5 shows as 150%"),
        (None, "@", 10, "stands in a cell that is formatted as text"),
        (None, "dd.mm.yyyy", "31.12.2024", "is no date or time, although the cell shows such values"),
    ],
)
def test_change_of_type_is_reported(
    workspace: Path, call: Call, old: object, code: str, new: object, said: str
) -> None:
    path = made(workspace, [["Head"], [old]], {"A2": code})
    assert said in call("write_range", path.name, cell="A2", values=[[new]])["types"]["A2"]


def test_text_below_numbers_is_reported(workspace: Path, call: Call) -> None:
    path = made(workspace, [["Head"], [5]])
    types = call("append_rows", path.name, values=[["120"], ["7,5"], ["x"], ["8"]])["types"]
    assert [*types] == ["A3", "A4"]
    assert all("sums leave it out" in each for each in types.values())
    assert "types" not in call("write_range", path.name, cell="B3", values=[["120", 7, "x"]])


@pytest.mark.parametrize(
    ("text", "find", "new", "value"),
    [
        ("USD 100", "USD ", "", 100), ("1,234.50 kg", " kg", "", 1234.5), ("abc", "abc", "-7", -7),
        ("12 %x", " %x", "", 12),
        ("a007", "a", "", "007"), ("1.234x", "x", "", "1.234"),
        ("x12345678901234567890", "x", "", "12345678901234567890"),
        ("USD 1 200", "USD ", "", "1 200"), ("USD (300)", "USD ", "", "(300)"), ("USD 50%", "USD ", "", "50%"),
        ("a5", "a", "$", "$5"), ("tel +491234567", "tel ", "", "+491234567"),
    ],
)  # fmt: skip
def test_replaced_text_becomes_a_number(
    workspace: Path, call: Call, text: str, find: str, new: str, value: object
) -> None:
    path = made(workspace, [[text]])
    answer = call("replace_text", path.name, find_text=find, new_text=new)
    assert cell(path, "A1").value == value
    assert ("types" in answer) == (not isinstance(value, str) or value in {"1.234", "$5", "1 200", "(300)", "50%"})


def test_text_stays_in_cells_for_texts_and_with_fonts(workspace: Path, call: Call) -> None:
    path = made(workspace, [["USD 100"]], {"A1": "@"})
    book = openpyxl.load_workbook(path)
    book.active["A2"] = CellRichText("USD ", TextBlock(InlineFont(b=True), "100"))
    book.save(path)
    call("replace_text", path.name, find_text="USD ", new_text="")
    assert [cell(path, name).data_type for name in ("A1", "A2")] == ["s", "s"]


@pytest.mark.parametrize(
    ("text", "find", "variants"),
    [("Don\u2019t", "Don't", ["Don\u2019t"]), ("12\u00a0kg", "12 kg", ["12\u00a0kg"]), ("a - b", "a - b", None)],
)
def test_typographic_forms_are_replaced_and_named(
    workspace: Path, call: Call, text: str, find: str, variants: list[str] | None
) -> None:
    path = made(workspace, [[f"x {text} y"]])
    answer = call("replace_text", path.name, find_text=find, new_text="z")
    assert cell(path, "A1").value == "x z y"
    assert answer.get("also_matched") == variants


def test_numbers_and_formulas_with_the_text_are_named(workspace: Path, call: Call) -> None:
    path = made(workspace, [["item 100", 100, "=100+1", "other"]])
    answer = call("replace_text", path.name, find_text="100", new_text="200")
    assert (answer["cells"], answer["numbers_not_changed"], answer["formulas_not_changed"]) == (["A1"], ["B1"], ["C1"])
    with pytest.raises(ToolError, match=r"is in no text .*; it stands in formulas and numbers"):
        call("replace_text", path.name, find_text="100", new_text="x")


def test_links_follow_the_text_that_shows_them(workspace: Path, call: Call) -> None:
    path = workspace / "book.xlsx"
    book = xlsxwriter.Workbook(str(path))
    sheet = book.add_worksheet()
    links = {
        "https://old.example.org/a": "https://old.example.org/a", "mailto:ada@old.example.org": "ada@old.example.org",
        "https://track.example.com/?to=old.example.org/b": "see old.example.org", "https://old.example.org/c": "here",
    }  # fmt: skip
    for row, (target, text) in enumerate(links.items()):
        sheet.write_url(row, 0, target, string=text)
    book.close()
    answer = call("replace_text", path.name, find_text="old.example.org", new_text="new.example.org")
    targets = [entry.hyperlink.target for entry in openpyxl.load_workbook(path).active["A"]]
    assert targets == ["https://new.example.org/a", "mailto:ada@new.example.org", *[*links][2:]]
    assert (answer["links_changed"], answer["links_not_changed"]) == (["A1", "A2"], ["A3", "A4"])
    assert b"ada@old" not in zipfile.ZipFile(path).read("xl/worksheets/_rels/sheet1.xml.rels")


def test_numbers_in_texts_are_named_by_questions(workspace: Path, call: Call) -> None:
    path = made(workspace, [["Item", "Amount"], ["a", 10], ["b", "20"], ["c", "1,234"], ["d", "0012"], ["e", "n/a"]])
    assert call("summarize", path.name, columns=["Amount"])["texts_not_counted"] == ["B3", "B4"]
    where = [{"column": "Amount", "operator": ">", "value": 7}]
    assert call("summarize", path.name, columns=["Item"], where=where)["texts_not_compared"] == ["B3", "B4"]
    answer = call("sort_range", path.name, by=[{"column": "Amount"}], cells="A1:B6")
    assert answer["sorted_as_texts"] == ["B4", "B5"]
    where = [{"column": "Item", "operator": "contains", "value": "1"}]
    assert "texts_not_compared" not in call("summarize", path.name, where=where)
