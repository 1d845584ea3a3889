"""Several programs write one document: no confirmed write is lost, and no lock is left."""

from __future__ import annotations

import fcntl
import os
import re
import runpy
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import docx
import openpyxl
import pytest

import forks
from callboard.config import ShellSettings
from callboard.surfaces import Stage, ToolError
from callboard.surfaces.documents import DocumentSurface
from callboard.surfaces.shell import ShellSurface
from support import PATIENCE

PROGRAM = Path(__file__).with_name("concurrent_writer.py")
called = runpy.run_path(str(PROGRAM))["called"]
KINDS = ("notes.docx", "book.xlsx", "table.csv", "days.ics", "mail.eml", "notes.txt", "shell")
WRITERS = 3


def lay_out(folder: Path) -> None:
    docx.Document().save(str(folder / "notes.docx"))
    book = openpyxl.Workbook()
    book.active.append(["line"])
    book.save(folder / "book.xlsx")
    (folder / "table.csv").write_text("line\n", encoding="utf-8")
    calendar = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nEND:VCALENDAR\r\n"
    (folder / "days.ics").write_bytes(calendar.encode())
    (folder / "mail.eml").write_bytes(b"From: a@example.org\r\nTo: b@example.org\r\nSubject: x\r\n\r\nfirst\r\n")
    (folder / "notes.txt").write_text("first\n", encoding="utf-8")
    (folder / "list").write_text("END\n", encoding="utf-8")


def content(folder: Path, kind: str) -> str:
    if kind == "notes.docx":
        return "\n".join(paragraph.text for paragraph in docx.Document(str(folder / kind)).paragraphs)
    if kind == "book.xlsx":
        return "\n".join(str(cell.value) for row in openpyxl.load_workbook(folder / kind).active for cell in row)
    return (folder / ("list" if kind == "shell" else kind)).read_text(encoding="utf-8")


@pytest.mark.parametrize("count", [3, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_no_confirmed_write_of_several_programs_is_lost(tmp_path, kind, count):
    lay_out(tmp_path)
    before = {path.name for path in tmp_path.iterdir()}
    words = [sys.executable, PROGRAM, tmp_path, kind]
    writers = [forks.Program([*words, f"w{n}", str(count)], stdout=subprocess.PIPE, text=True) for n in range(WRITERS)]
    confirmed = [line for writer in writers for line in writer.communicate(timeout=5 * PATIENCE)[0].split()]
    assert len(confirmed) == WRITERS * count
    lines = re.findall(r"w\d-\d+", content(tmp_path, kind))
    assert sorted(lines) == sorted(confirmed)
    assert {path.name for path in tmp_path.iterdir()} == before


@pytest.fixture
def locked(tmp_path):
    """Lock the folder as another process does; gives a function that ends the lock."""
    handle = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    yield lambda: fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)


@pytest.fixture
def waiting(monkeypatch):
    """Give an event that is set as soon as a write waits for a lock."""
    event, really = threading.Event(), fcntl.flock

    def flock(handle, operation):
        try:
            really(handle, operation)
        except BlockingIOError:
            event.set()
            raise

    monkeypatch.setattr(fcntl, "flock", flock)
    return event


WRITES = {
    "a document": ("documents", "write_text", {"document": "notes.txt", "text": "mine"}),
    "a new document": ("documents", "create_document", {"path": "new.txt"}),
    "a move": ("documents", "move_file", {"path": "notes.txt", "new_path": "moved.txt"}),
    "a deletion": ("documents", "delete_file", {"path": "notes.txt"}),
    "a file of a shell": ("shell", "write_file", {"shell": "box", "path": "notes.txt", "text": "mine"}),
    "an edit of a shell": ("shell", "edit_file", {"shell": "box", "path": "notes.txt", "old": "first", "new": "mine"}),
}


@pytest.fixture
def surfaces(tmp_path):
    """Give both surfaces on one folder."""
    lay_out(tmp_path)
    stage = Stage("shells")
    shell = ShellSurface({"box": ShellSettings(cwd=tmp_path, isolated=False)})
    shell.open(stage)
    yield {"documents": DocumentSurface(tmp_path), "shell": shell}
    shell.close()
    stage.close()


@pytest.mark.parametrize("write", WRITES)
def test_a_write_checks_and_changes_within_the_lock(tmp_path, surfaces, locked, waiting, write):
    name, tool, arguments = WRITES[write]
    taken = "new.txt" if "new" in write else "notes.txt"
    with ThreadPoolExecutor(1) as side:
        work = side.submit(called, surfaces[name], "text", tool, arguments)
        assert waiting.wait(PATIENCE)
        (tmp_path / taken).write_text("of another program", encoding="utf-8")
        locked()
        with pytest.raises(ToolError, match=r"was changed by another program|there is already a file"):
            work.result(PATIENCE)
    assert (tmp_path / taken).read_text(encoding="utf-8") == "of another program"
