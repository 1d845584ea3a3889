"""A document that can't be opened fails its subtask, with the reason: the HostAgent may go another way."""

from __future__ import annotations

import re
import shutil
import zipfile

import pytest
from openpyxl import Workbook

from callboard import Outcome, Task
from callboard.surfaces import ToolError
from callboard.surfaces.documents import DocumentSurface
from support import ASSIGN, FINISH, PATIENCE, call, lone

PASSWORD = bytes.fromhex("d0cf11e0a1b11ae1") + b"E\0n\0c\0r\0y\0p\0t\0e\0d\0P\0a\0c\0k\0a\0g\0e\0" + bytes(600)
"""The beginning of a compound file, as Office writes documents with a password."""


@pytest.fixture
def folder(tmp_path):
    book = tmp_path / "good.xlsx"
    Workbook().save(book)
    return tmp_path


def spoil(book, how):
    if how == "too large":
        shutil.copy(book.with_name("good.xlsx"), book)
        with book.open("ab") as file:
            file.write(bytes(70_000))
    else:
        book.write_bytes(PASSWORD if how == "with a password" else b"half saved by another program")


SAYS = {
    "damaged": "it is a plain text, despite its name",
    "too large": "is too large",
    "with a password": "is protected with a password",
}
WRITE = call("write_range", "FINISH", sheet="Sheet", cell="A1", values=[["done"]])


@pytest.fixture
def begin(start, folder):
    def begin(**agents):
        documents = {"workspace": folder, "max_bytes": 60_000}
        return start(servers=[], documents=documents, policy=[{"verdict": "allow", "tool": "*"}], **agents)

    return begin


@pytest.mark.parametrize("how", SAYS)
@pytest.mark.parametrize("late", [False, True], ids=["from the beginning", "while it is worked on"])
def test_the_host_agent_goes_another_way(begin, folder, how, late):
    bad = folder / "bad.xlsx"
    shutil.copy(folder / "good.xlsx", bad) if late else spoil(bad, how)

    def host(request):
        done = len(request.subtasks)
        return FINISH if done == 2 else ASSIGN | {"ControlText": ["bad.xlsx", "good.xlsx"][done]}

    def app(request):
        if request.address.endswith("bad.xlsx"):
            spoil(bad, how)
            return {"Status": "CONTINUE"}
        return WRITE

    result = begin(host=host, app=app).submit(Task(request="write it down")).result(PATIENCE)
    assert result.outcome is Outcome.FINISHED
    first, second = result.subtasks
    assert (first.outcome, second.outcome) == (Outcome.FAILED, Outcome.FINISHED)
    assert any(SAYS[how] in cause.reason for cause in first.causes), first.causes
    assert result.changed == (str(folder / "good.xlsx"),)


def test_a_cell_behind_the_last_row_is_damage(begin, folder):
    with zipfile.ZipFile(folder / "good.xlsx") as good, zipfile.ZipFile(folder / "bad.xlsx", "w") as bad:
        for name in good.namelist():
            content = good.read(name)
            if name == "xl/worksheets/sheet1.xml":
                content = re.sub(
                    rb"<sheetData ?/>|<sheetData>.*</sheetData>",
                    b'<sheetData><row r="99999999"><c r="A99999999"><v>1</v></c></row></sheetData>',
                    content,
                )
            bad.writestr(name, content)
    result = begin(app=[]).submit(lone("bad.xlsx")).result(PATIENCE)
    assert result.outcome is Outcome.FAILED
    assert any("is damaged" in cause.reason for cause in result.causes)


def test_a_kind_of_its_own_of_a_tool_error_fails_the_subtask_too(begin, monkeypatch):
    class OwnError(ToolError):
        pass

    def broken(_server, _target):
        msg = "the disk hums"
        raise OwnError(msg)

    monkeypatch.setattr(DocumentSurface, "observe", broken)
    assert begin(app=[]).submit(lone("good.xlsx")).result(PATIENCE).outcome is Outcome.FAILED


def test_an_exception_of_a_surface_is_still_an_error(begin, monkeypatch):
    def broken(_server, _target):
        msg = "the disk hums"
        raise RuntimeError(msg)

    monkeypatch.setattr(DocumentSurface, "observe", broken)
    assert begin(app=[]).submit(lone("good.xlsx")).result(PATIENCE).outcome is Outcome.ERROR
