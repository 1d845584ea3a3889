"""Sheets in the real Calc: its cells are read and written by their addresses."""

import pytest

from callboard.surfaces import ToolError


@pytest.fixture(scope="module")
def sheet(share):
    window = share("calc")
    window.control("Sheet Sheet1", "table")
    return window


def shown(sheet, rows, columns):
    read = sheet.do("read_table", "Sheet Sheet1", rows=rows, columns=columns, numbers=False)
    return read["rows"]


def test_numbers_texts_and_formulas_are_written_and_read(sheet):
    rows = [["Region", "Q1", "Sum"], ["North", 412.5, "=B2*2"], ["Süd", -3, None]]
    assert sheet.do("write_cells", "Sheet Sheet1", cell="A1", rows=rows) == {"cells": "A1:C3", "written": 8}
    assert shown(sheet, 3, 3) == [["Region", "Q1", "Sum"], ["North", "412.5", "825"], ["Süd", "-3", ""]]
    read = sheet.do("read_table", "Sheet Sheet1", rows=2, columns=3)
    assert read["rows"] == [["Region", "Q1", "Sum"], ["North", 412.5, 825]]
    assert read["total_rows"] == 1_048_576


def test_texts_stay_texts_whatever_they_look_like(sheet):
    texts = [
        "007",
        "1-2",
        "3/4/2020",
        "TRUE",
        "12 %",
        "abc",
        "ab",
    ]  # the last one would be completed from the one before
    sheet.do("write_cells", "Sheet Sheet1", cell="A10", rows=[[text] for text in texts])
    assert [row[0] for row in shown(sheet, 16, 1)[9:]] == texts


def test_values_that_calc_autocorrects_are_reported(sheet, monkeypatch):
    monkeypatch.setattr("callboard.surfaces.desktop._cells._TAKEN_SECONDS", 1.0)
    with pytest.raises(ToolError, match=r"the sheet did not take all values: A20 shows .*, not 'HEllo'"):
        sheet.do("write_cells", "Sheet Sheet1", cell="A20", rows=[["HEllo"]])


def test_cells_are_selected(sheet):
    assert sheet.do("select_cells", "Sheet Sheet1", cells="A1:C3") == {"selected": "A1:C3"}
    with pytest.raises(ToolError, match="must run to the right and down"):
        sheet.do("select_cells", "Sheet Sheet1", cells="C3:A1")


@pytest.mark.parametrize(("name", "kind"), [("Sheet Sheet1", "table"), ("", "document spreadsheet")])
def test_the_cells_of_a_sheet_are_never_listed(sheet, name, kind):
    control = next(each for each in sheet.look().controls if each.kind == kind and each.name.startswith(name))
    with pytest.raises(ToolError, match="too many entries to list: use read_table, select_cells"):
        sheet.do("select", control, item="B2")


def test_set_text_does_not_touch_a_whole_sheet(sheet):
    sheet.do("write_cells", "Sheet Sheet1", cell="A1", rows=[["Region"]])
    with pytest.raises(ToolError, match=r"is not a field: use type_text, or write_cells for a sheet"):
        sheet.do("set_text", "Sheet Sheet1", text="")
    assert shown(sheet, 1, 1) == [["Region"]]


def test_more_cells_than_a_call_may_have_are_refused(sheet):
    with pytest.raises(ToolError, match="6000 cells are too many for one call"):
        sheet.do("write_cells", "Sheet Sheet1", cell="A1", rows=[[1] * 60] * 100)
    with pytest.raises(ToolError, match="the sheet ends before"):
        sheet.do("write_cells", "Sheet Sheet1", cell="XFD1", rows=[[1, 2]])


def test_controls_of_libreoffice_are_where_they_are_drawn(sheet):
    """It forgets its menu bar where it counts by itself, and a look at its sheet must not list its cells."""
    seen = sheet.look()
    assert len(seen.controls) < 200
    boxes = {control.name: control.box for control in seen.controls}
    file, bold, sheet1 = boxes["File"], boxes["Bold"], boxes["Sheet1"]
    assert file.y + file.height <= bold.y, "GTK's menu bar is above of the tool bars that LibreOffice draws"
    name_box = next(each.box for each in seen.controls if each.kind == "text" and each.detail["text"].startswith("A"))
    assert bold.y + bold.height <= name_box.y + 2, "and the tool bars are above of GTK's field in them"
    assert name_box.y < sheet1.y


def test_a_tab_of_the_row_behind_is_selected(sheet):
    sheet.do("choose_menu", path=["Format", "Cells"])
    assert sheet.do("select", sheet.control("Background", "page tab")) == {"selected": "Background"}
    assert "selected" in sheet.control("Background", "page tab").states
    sheet.do("press", "Cancel")
    sheet.control("File")


def test_parts_of_a_tree_are_opened_and_closed(sheet):
    sheet.do("choose_menu", path=["Tools", "Options"])
    assert sheet.do("expand", "LibreOffice Calc", open=True) == {"open": True}
    assert sheet.control("Formula")
    assert sheet.do("expand", "LibreOffice Calc", open=False) == {"open": False}
    sheet.do("press", "Cancel")
    sheet.control("File")
