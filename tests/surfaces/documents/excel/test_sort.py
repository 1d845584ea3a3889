"""The order of sorted texts, and what belongs to rows and columns."""

from __future__ import annotations

import io
import re
import zipfile
from typing import TYPE_CHECKING, Any

import openpyxl
import pytest
import xlsxwriter
from openpyxl.comments import Comment
from openpyxl.drawing.image import Image
from openpyxl.formatting.rule import FormulaRule
from openpyxl.styles import PatternFill
from openpyxl.worksheet.datavalidation import DataValidation
from PIL import Image as Picture

from callboard.surfaces import ToolError
from callboard.surfaces.documents import _collation

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call

WORDS = ["Apfel", "Ärger", "banane", "Éclair", "Öl", "Otto", "Zebra"]


def made(workspace: Path, rows: list[list[Any]]) -> tuple[Path, openpyxl.Workbook]:
    path = workspace / "book.xlsx"
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    return path, book


def column(path: Path, letter: str) -> list[object]:
    return [cell.value for cell in openpyxl.load_workbook(path).active[letter]]


# The order of texts


@pytest.mark.parametrize(
    "words",
    [
        WORDS, ["cote", "coté", "côte", "côté"], ["ähnlich", "Bär", "Strasse", "Straße", "Straßen"],
        ["mañana", "manzana", "ñandú", "oso"], ["Ágnes", "Béla", "Çelik", "Émile", "Żaneta"], ["Ἀθήνα", "Βόλος", "Ώρα"],
        ["Альфа", "Ёлка", "Жук"], ["1", "10", "2", "Ä"],
    ],
)  # fmt: skip
def test_texts_are_sorted_as_in_dictionaries(workspace: Path, call: Call, words: list[str]) -> None:
    for header, start in (("Name", sorted(words)), ("Wort", words[::-1])):
        path, book = made(workspace, [[header], *([word] for word in start)])
        book.save(path)
        call("get_controls", path.name)
        answer = call("sort_range", path.name, by=[{"column": header}])
        assert [str(word).casefold() for word in column(path, "A")[1:]] == [word.casefold() for word in words]
        assert answer["order"].startswith("Unicode's default order")


def test_order_is_named_without_the_library(workspace: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_collation, "_collator", lambda: None)
    path, book = made(workspace, [["Name"], *([word] for word in WORDS)])
    book.save(path)
    answer = call("sort_range", path.name, by=[{"column": "Name"}])
    assert column(path, "A")[1:] == ["Apfel", "banane", "Otto", "Zebra", "Ärger", "Éclair", "Öl"]
    assert "callboard[excel]" in answer["order"]


def test_sort_of_plain_letters_gives_no_note_on_order(workspace: Path, call: Call) -> None:
    path, book = made(workspace, [["Name"], ["b"], ["A"], ["a"]])
    book.save(path)
    assert "order" not in call("sort_range", path.name, by=[{"column": "Name", "descending": True}])
    assert column(path, "A") == ["Name", "b", "A", "a"]


# All that belongs to a row


COLORS = ["red", "green", "blue"]


def anchors(path: Path) -> dict[str, int]:
    """Return the row of each picture and shape, by its color."""
    with zipfile.ZipFile(path) as archive:
        xml = archive.read("xl/drawings/drawing1.xml").decode()
    found = re.findall(r"<(?:xdr:)?from>.*?<(?:xdr:)?row>(\d+)<.*?(?:descr|name)=\"(red|green|blue)", xml, re.DOTALL)
    return {color: int(row) + 1 for row, color in found}


@pytest.mark.parametrize("size", [10, 90])
@pytest.mark.parametrize("position", [1, 2])
def test_pictures_follow_their_rows(workspace: Path, call: Call, size: int, position: int) -> None:
    path = workspace / "book.xlsx"
    book = xlsxwriter.Workbook(str(path))
    sheet = book.add_worksheet()
    sheet.write_row(0, 0, ["Product", "Photo"])
    for row, color in enumerate(COLORS, start=1):
        data = io.BytesIO()
        Picture.new("RGB", (size, size), color).save(data, "PNG")
        sheet.write(row, 0, color)
        sheet.insert_image(
            row, 1, f"{color}.png", {"image_data": data, "object_position": position, "description": color}
        )
    book.close()
    answer = call("sort_range", path.name, by=[{"column": "Product"}], cells="A1:B4")
    assert (anchors(path), answer["objects_moved"]) == ({"blue": 2, "green": 3, "red": 4}, 2)
    call("reorder_columns", path.name, order=["Photo"], cells="A1:B4")
    with zipfile.ZipFile(path) as archive:
        drawing = archive.read("xl/drawings/drawing1.xml").decode()
    assert re.findall(r"<xdr:from><xdr:col>(\d)", drawing) == ["0"] * 3


def test_pictures_of_openpyxl_follow(workspace: Path, call: Call) -> None:
    path, book = made(workspace, [["Product"], *([color] for color in COLORS)])
    for row, color in enumerate(COLORS, start=2):
        data = io.BytesIO()
        Picture.new("RGB", (10, 10), color).save(data, "PNG")
        book.active.add_image(Image(data), f"A{row}")
    book.save(path)
    assert pictures(path) == [(1, "rId1"), (2, "rId2"), (3, "rId3")]
    call("sort_range", path.name, by=[{"column": "Product"}])
    assert pictures(path) == [(3, "rId1"), (2, "rId2"), (1, "rId3")]


def pictures(path: Path) -> list[tuple[int, str]]:
    with zipfile.ZipFile(path) as archive:
        xml = archive.read("xl/drawings/drawing1.xml").decode()
    return [(int(row), link) for row, link in re.findall(r"<(?:xdr:)?row>(\d)<.*?embed=\"(rId\d)", xml)]


def test_shape_in_a_row_follows_and_a_chart_stays(workspace: Path, call: Call) -> None:
    path = workspace / "book.xlsx"
    book = xlsxwriter.Workbook(str(path))
    sheet = book.add_worksheet()
    for row, color in enumerate(["Color", *COLORS]):
        sheet.write_row(row, 0, [color, row or "Size"])
    sheet.insert_textbox(1, 1, "red", {"width": 20, "height": 10, "description": "red", "object_position": 1})
    chart = book.add_chart({"type": "bar"})
    chart.add_series({"values": "=Sheet1!$B$2:$B$4"})
    sheet.insert_chart("B4", chart)
    book.close()
    answer = call("sort_range", path.name, by=[{"column": "Color"}])
    assert (answer["objects_moved"], answer["objects_not_moved"]) == (1, 1)
    assert anchors(path)["red"] == 4


def test_form_control_in_the_rows_is_refused(workspace: Path, call: Call) -> None:
    path = workspace / "book.xlsx"
    book = xlsxwriter.Workbook(str(path))
    sheet = book.add_worksheet()
    for row, color in enumerate(["Color", *COLORS]):
        sheet.write(row, 0, color)
    sheet.insert_button("A3", {"width": 20, "height": 10})
    book.close()
    before = path.read_bytes()
    with pytest.raises(ToolError, match=r"a form control \(Button\) stands on A3"):
        call("sort_range", path.name, by=[{"column": "Color"}])
    assert path.read_bytes() == before


def test_heights_rules_and_notes_follow_their_rows(workspace: Path, call: Call) -> None:
    path, book = made(workspace, [["Name", "Value"], ["c", 3], ["a", 1], ["b", 2]])
    sheet = book.active
    sheet.row_dimensions[2].height = 40
    sheet["B2"].comment = Comment("of c", "Ada", height=50, width=50)
    for name, cells in (("c only", "B2"), ("all", "B2:B4")):
        rule = DataValidation(type="whole", operator="greaterThan", formula1="A2" if name == "c only" else "0")
        rule.promptTitle = name
        rule.add(cells)
        sheet.add_data_validation(rule)
    sheet.conditional_formatting.add("A2:B2", FormulaRule(["$B2>A$1"], fill=PatternFill("solid", "FFFF00")))
    book.save(path)
    call("sort_range", path.name, by=[{"column": "Name"}])
    sheet = openpyxl.load_workbook(path).active
    assert [sheet.row_dimensions[row].height for row in (2, 4)] == [None, 40]
    rules = {rule.promptTitle: (str(rule.sqref), rule.formula1) for rule in sheet.data_validations.dataValidation}
    assert rules == {"c only": ("B4", "A4"), "all": ("B2:B4", "0")}
    formats = [(str(area.sqref), area.rules[0].formula) for area in sheet.conditional_formatting]
    assert (formats, sheet["B4"].comment.text) == ([("A4:B4", ["$B4>A$1"])], "of c")


def test_heights_stay_beside_other_cells(workspace: Path, call: Call) -> None:
    path, book = made(workspace, [["Name", None, "other"], ["c", None, "x"], ["a", None, "y"]])
    book.active.row_dimensions[2].height = 40
    book.save(path)
    call("sort_range", path.name, by=[{"column": "Name"}], cells="A1:A3")
    assert openpyxl.load_workbook(path).active.row_dimensions[2].height == 40


def test_rules_follow_reordered_columns(workspace: Path, call: Call) -> None:
    path, book = made(workspace, [["Name", "State", "City", "Age"], ["c", "Open", "x", 3]])
    rule = DataValidation(type="list", formula1='"Open,Closed"')
    rule.add("B2:B9")
    book.active.add_data_validation(rule)
    book.active.conditional_formatting.add("A2:B2", FormulaRule(["1=1"], fill=PatternFill("solid", "FFFF00")))
    book.save(path)
    call("reorder_columns", path.name, order=["City", "Name", "Age"])
    sheet = openpyxl.load_workbook(path).active
    assert str(sheet.data_validations.dataValidation[0].sqref) == "D2:D9"
    assert [str(area.sqref) for area in sheet.conditional_formatting] == ["B2 D2"]


def test_rules_below_stay_where_other_cells_follow(workspace: Path, call: Call) -> None:
    path, book = made(workspace, [["Name", "State"], ["c", "Open"], [], [], ["x", "y"]])
    rule = DataValidation(type="list", formula1='"Open,y"')
    rule.add("B2:B9")
    book.active.add_data_validation(rule)
    book.save(path)
    call("reorder_columns", path.name, order=["State"], cells="A1:B2")
    rule = openpyxl.load_workbook(path).active.data_validations.dataValidation[0]
    assert sorted(str(rule.sqref).split()) == ["A2", "B3:B9"]
