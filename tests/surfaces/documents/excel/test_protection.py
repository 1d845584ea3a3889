"""Protected sheets, workbooks with macros, and files of other formats."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING, Any

import openpyxl
import pytest
import xlsxwriter
from office_files import changed, parts

from callboard import FunctionModel, Settings, Supervisor, Task
from callboard.errors import UnknownTargetError
from callboard.surfaces import ToolError
from callboard.surfaces.documents import DocumentSurface, advice_on

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call

MACROS = b"\xd0\xcf\x11\xe0 not really a project"


def form(workspace: Path, *, ranges: str = "", locked: bool = False) -> Path:
    """Write a protected form whose cells B2 and B3 are unlocked."""
    path = workspace / "form.xlsx"
    book = xlsxwriter.Workbook(str(path))
    sheet = book.add_worksheet("Form")
    sheet.write_row(0, 0, ["Field", "Value"])
    open_cell = book.add_format({"locked": locked})
    for row, name in enumerate(["Name", "City"], start=1):
        sheet.write(row, 0, name)
        sheet.write(row, 1, "old", open_cell)
    sheet.write_formula("B4", '=B2&" "&B3')
    sheet.protect("secret")
    if ranges:
        sheet.unprotect_range(ranges)
    book.close()
    return path


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("write_range", {"cell": "B2", "values": [["Ada"], ["Paris"]]}),
        ("replace_text", {"find_text": "old", "new_text": "new"}),
        ("set_formula", {"cells": "B2:B3", "formula": "=A2"}),
        ("write_range", {"cell": "B2", "values": [[None]]}),
    ],
)
def test_unlocked_cells_of_a_protected_sheet_are_filled(
    workspace: Path, call: Call, surface: DocumentSurface, name: str, arguments: Any
) -> None:
    path = form(workspace)
    target = next(target for target in surface.targets() if target.name == "form.xlsx")
    assert surface.observe(target).controls[0].detail["unlocked"] == "B2:B3"
    call(name, path.name, **arguments)
    assert openpyxl.load_workbook(path)["Form"]["B2"].value != "old"
    assert openpyxl.load_workbook(path)["Form"].protection.sheet


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("write_range", {"cell": "A2", "values": [["x", "y"]]}, r"A2 is locked, .*unlocked cells \(B2:B3\)"),
        ("write_range", {"cell": "C2", "values": [["x"]]}, "C2 is locked"),
        ("replace_text", {"find_text": "Name", "new_text": "new"}, "A2 is locked"),
        ("set_formula", {"cells": "B4", "formula": "=B2"}, "B4 is locked"),
        ("append_rows", {"values": [["x", "y"]]}, "is protected"),
        ("insert_table", {"cell": "E1", "header": ["x"], "rows": [["y"]]}, "is protected"),
        ("format_cells", {"cells": "B2", "bold": True}, "is protected"),
        ("sort_range", {"by": [{"column": "Value"}]}, "is protected"),
        ("insert_rows_or_columns", {"what": "rows", "at": "2"}, "is protected"),
    ],
)
def test_locked_cells_and_formats_are_refused(workspace: Path, call: Call, name: str, arguments: Any, why: str) -> None:
    path = form(workspace)
    before = path.read_bytes()
    with pytest.raises(ToolError, match=why):
        call(name, path.name, **arguments)
    assert path.read_bytes() == before


def test_range_that_everyone_may_edit_is_unlocked(workspace: Path, call: Call) -> None:
    path = form(workspace, ranges="A2:A3", locked=True)
    call("write_range", path.name, cell="A2", values=[["First name"]])
    with pytest.raises(ToolError, match="B2 is locked"):
        call("write_range", path.name, cell="B2", values=[["x"]])
    data = path.read_bytes()
    sheet = "xl/worksheets/sheet1.xml"
    path.write_bytes(
        changed(data, lambda found: found.update({sheet: found[sheet].replace(b"sqref=", b'password="CC1A" sqref=')}))
    )
    call("get_controls", path.name)
    with pytest.raises(ToolError, match=r"A2 is locked.*it has no unlocked cells"):
        call("write_range", path.name, cell="A2", values=[["x"]])


def with_macros(workspace: Path) -> Path:
    path, project = workspace / "book.xlsm", workspace / "vba.bin"
    project.write_bytes(MACROS)
    book = xlsxwriter.Workbook(str(path))
    book.add_vba_project(str(project))
    sheet = book.add_worksheet("Data")
    for row in range(3):
        sheet.write_row(row, 0, [f"item {row}", row])
    sheet.insert_button("D2", {"macro": "Run"})
    book.close()
    return path


def test_macros_are_kept_byte_for_byte(workspace: Path, call: Call) -> None:
    path = with_macros(workspace)
    before = parts(path.read_bytes())
    call("open_document", path=path.name)
    call("write_range", path.name, cell="A1", values=[["new"]])
    call("insert_rows_or_columns", path.name, what="rows", at="9")
    call("append_rows", path.name, values=[["more", 5]])
    call("rename_sheet", path.name, sheet="Data", title="Numbers")
    after = parts(path.read_bytes())
    assert after["xl/vbaProject.bin"] == before["xl/vbaProject.bin"] == MACROS
    assert b"macroEnabled" in after["[Content_Types].xml"]
    call("save_as", path.name, path="copy.xlsm")
    assert zipfile.ZipFile(workspace / "copy.xlsm").read("xl/vbaProject.bin") == MACROS


def test_macros_are_not_saved_where_none_belong(workspace: Path, call: Call) -> None:
    path = with_macros(workspace)
    with pytest.raises(ToolError, match=r"can only be saved as another \.xlsm, \.pdf, \.png, \.jpg or \.jpeg file"):
        call("save_as", path.name, path="copy.xlsx")
    with pytest.raises(ToolError, match="a new workbook has no macros"):
        call("create_document", path="new.xlsm")


OTHERS = ["a.xlt", "a.DOT", "a.ots", "a.ott", "a.wps", "a.pages", "a.numbers", "a.xlsb", "a.docm", "a.msg", "a.xltx"]


@pytest.mark.parametrize("name", OTHERS)
def test_file_of_another_format_gets_advice(workspace: Path, call: Call, name: str) -> None:
    (workspace / name).write_bytes(b"\xd0\xcf\x11\xe0")
    advice = advice_on(name)
    assert advice.partition("as .")[1]
    with pytest.raises(ToolError, match=advice.replace(".", r"\.")):
        call("open_document", path=name)


def test_task_on_a_file_of_another_format_gets_advice(workspace: Path) -> None:
    (workspace / "old.xlsb").write_bytes(b"\xd0\xcf\x11\xe0")
    settings = Settings.model_validate({"documents": {"workspace": str(workspace)}})
    with Supervisor.start(settings, models={"app": FunctionModel(lambda _: {})}) as supervisor:
        with pytest.raises(
            UnknownTargetError, match=r"'old\.xlsb' is no target: .*; save it as \.xlsx; there are: "
        ) as why:
            supervisor.submit(Task(request="x", target="old.xlsb"))
        assert why.value.reason == advice_on("old.xlsb")
