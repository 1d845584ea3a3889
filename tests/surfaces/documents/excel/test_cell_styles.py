"""Styles of other programs, and parts that hold anything."""

from __future__ import annotations

import io
import re
import zipfile
from typing import TYPE_CHECKING, Any

import openpyxl
import pytest

from callboard.errors import ToolError
from callboard.surfaces.documents._workspace import window_of
from callboard.surfaces.documents.excel import _cell_styles

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Call

    from callboard.surfaces.documents import DocumentSurface

STYLES = "xl/styles.xml"
FOREIGN: dict[str, Callable[[str], str]] = {
    "an unknown attribute": lambda text: text.replace("<xf ", '<xf applyUnknown="1" '),
    "a style without a name": lambda text: text.replace('<cellStyle name="Normal"', "<cellStyle"),
    "no number of a format": lambda text: text.replace('numFmtId="2"', ""),
    "a format's number that is none": lambda text: text.replace('numFmtId="2"', 'numFmtId="x"'),
    "a format without a number": lambda text: with_formats(text, '<numFmt formatCode="0.000"/>'),
    "a format without a code": lambda text: with_formats(text, '<numFmt numFmtId="164"/>'),
    "a format with a word as its number": lambda text: with_formats(text, '<numFmt numFmtId="abc" formatCode="0"/>'),
    "a comment among the styles": lambda text: re.sub(r"(<cellXfs[^>]*>)", r"\1<!-- x -->", text),
    "no styles of cells": lambda text: re.sub(r"<cellXfs.*</cellXfs>", "", text),
    "an empty list of styles": lambda text: re.sub(r"<cellXfs.*</cellXfs>", "<cellXfs/>", text),
    "no fonts": lambda text: re.sub(r"<fonts.*</fonts>", "", text),
    "a font's number that is none": lambda text: text.replace('fontId="0"', 'fontId="zz"'),
    "a font that is not there": lambda text: text.replace('fontId="0"', 'fontId="99"'),
    "colors that are none": lambda text: text.replace('<color theme="1"', '<color theme="x" rgb="none" tint="a"'),
    "nothing at all": lambda _: '<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"/>',
    "another root": lambda _: "<foo/>",
}
EDITS: dict[str, dict[str, Any]] = {
    "read_range": {"cells": "A1:C2"},
    "write_range": {"cell": "A3", "values": [[{"date": "2024-01-01"}, "=x"]]},
    "format_cells": {
        "cells": "A1:A2", "bold": True, "size": 12, "color": "red", "fill": "blue", "border": "thin",
        "number_format": "0.0000",
    },
    "append_rows": {"values": [[4, 5]]},
    "insert_table": {"cell": "F1", "header": ["x"], "rows": [[1]]},
}  # fmt: skip


def with_formats(text: str, entry: str) -> str:
    """Add a number format."""
    return text.replace('<numFmts count="0"/>', f'<numFmts count="1">{entry}</numFmts>')


def styled(workspace: Path, change: Callable[[str], str]) -> None:
    """Write a workbook with other styles."""
    book = openpyxl.Workbook()
    for row in (["a", "b"], [1, 2]):
        book.active.append(row)
    book.active["A2"].number_format = "0.00"
    out = io.BytesIO()
    book.save(out)
    with zipfile.ZipFile(out) as archive, zipfile.ZipFile(workspace / "book.xlsx", "w") as written:
        for name in archive.namelist():
            part = archive.read(name).decode()
            if name == STYLES:
                assert change(part) != part
            written.writestr(name, change(part) if name == STYLES else part)


@pytest.mark.parametrize("foreign", FOREIGN)
def test_styles_of_other_programs_are_read_and_edited(workspace: Path, call: Call, foreign: str) -> None:
    styled(workspace, FOREIGN[foreign])
    for tool, arguments in EDITS.items():
        call(tool, "book.xlsx", **arguments)
    assert call("read_range", "book.xlsx", cells="A2:B3")["values"] == [[1, 2], ["2024-01-01", "=x"]]


@pytest.mark.parametrize("error", [TypeError, AttributeError, KeyError, IndexError, ValueError, ZeroDivisionError])
def test_an_unexpected_error_names_the_part(
    workspace: Path, call: Call, surface: DocumentSurface, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def fail(*_: object) -> None:
        msg = "surprise"
        raise error(msg)

    styled(workspace, FOREIGN["an unknown attribute"])
    before = (workspace / "book.xlsx").read_bytes()
    monkeypatch.setattr(_cell_styles.Styles, "number_format", fail)
    reason = rf"'book.xlsx' can't be read: its part xl/\S+ holds something .*{error.__name__}"
    with pytest.raises(ToolError, match=reason):
        call("write_range", "book.xlsx", cell="A1", values=[[{"date": "2024-01-01"}]])
    with pytest.raises(ToolError, match=reason):
        surface.observe(window_of("book.xlsx"))
    assert (workspace / "book.xlsx").read_bytes() == before
