"""Pages of changed files, drawn on request."""

from __future__ import annotations

import io
import re
import shutil
import threading
from typing import TYPE_CHECKING

import anyio.to_thread
import pytest
from office_files import letter, need_office
from PIL import Image
from playwright.sync_api import expect

from callboard.console import _file_pages
from callboard.console._file_changes import FileVersions
from callboard.console._file_pages import FilePages, digest_of_page
from callboard.surfaces import ToolError
from callboard.surfaces.documents import ComparedPages, DocumentSurface, PagePair
from support import FINISH, PATIENCE, action, lone

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Office

PNG = b"\x89PNG\r\n\x1a\n"
PICTURE = re.compile(r'data-picture="([0-9a-f]{64})"')


def writes(request):
    """Add a paragraph, and finish."""
    if request.step == 1:
        return {"Status": "CONTINUE", "Actions": [action("insert_paragraph", text="With kind regards")]}
    return FINISH


@pytest.fixture
def folder(tmp_path):
    """Give a workspace with a letter."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "letter.docx").write_bytes(letter())
    return workspace


@pytest.fixture
def written(office, folder) -> Office:
    """Give an office in which a task has changed a letter."""
    opened = office(app=writes, servers=[DocumentSurface(folder)])
    task = lone("letter.docx", id="t-1", may_change=["letter.docx"])
    assert opened.supervisor.submit(task).result(PATIENCE).ok
    return opened


def pages_of(office: Office, number: object = 0) -> tuple[int, str]:
    return office.ask(f"/tasks/t-1/files/{number}/pages", headers=office.sign_in())[:2]


@pytest.fixture
def drawn(monkeypatch):
    """Replace the drawing of pages, and list the versions that are drawn."""
    drawings: list[tuple[bytes, bytes, str]] = []

    def draw(before: bytes, after: bytes, suffix: str) -> ComparedPages:
        drawings.append((before, after, suffix))
        return ComparedPages((PagePair(2, PNG + b"b", PNG + b"a", PNG + b"d"),), 3, 60, 9)

    monkeypatch.setattr(_file_pages, "compared_pages", draw)
    return drawings


def test_pages_are_drawn_on_request_and_once(written, folder, drawn):
    status, body, _ = written.ask("/tasks/t-1", headers=written.sign_in())
    assert (status, 'data-part="tasks/t-1/files/0/pages"' in body, drawn) == (200, True, [])
    for _ in range(2):
        status, body = pages_of(written)
        assert status == 200
    assert drawn == [(letter_before(written, folder), (folder / "letter.docx").read_bytes(), ".docx")]
    assert "Pages that differ: 9 (Before: 3, After: 60)" in body
    assert "shown are the first: 1" in body
    assert "compared are the first: 50" in body
    assert PICTURE.findall(body) == [digest_of_page(PNG + name) for name in (b"b", b"a", b"d")]


def letter_before(office: Office, folder: Path) -> bytes:
    """Read the only version that the journal keeps."""
    kept = [path for path in office.journal.parent.rglob("*") if path.is_file() and folder not in path.parents]
    return next(data for path in kept if (data := path.read_bytes()).startswith(b"PK"))


def test_picture_of_a_page_needs_a_session(written, drawn):
    _, body = pages_of(written)
    assert drawn
    digest = PICTURE.findall(body)[0]
    assert written.ask(f"/pictures/{digest}")[0] == 401
    assert written.ask_bytes(f"/pictures/{digest}", headers=written.sign_in())[:2] == (200, PNG + b"b")


@pytest.mark.parametrize("number", ["1", "-1", "x", "9" * 5000, "0%2f..", "1e3", "%00"])
def test_other_numbers_of_files_are_not_found(written, drawn, number):
    assert pages_of(written, number)[0] == 404
    assert drawn == []


def test_other_tasks_have_no_pages(written, drawn):
    assert written.ask("/tasks/t-2/files/0/pages", headers=written.sign_in())[0] == 404
    assert written.ask("/tasks/t-1/files/0/pages", method="POST", headers=written.sign_in())[0] == 405
    assert drawn == []


def test_file_that_another_program_changed_is_not_drawn(written, folder, drawn):
    (folder / "letter.docx").write_bytes(b"PK\x03\x04 mine")
    assert "changed since the task by another program" in pages_of(written)[1]
    assert drawn == []


def test_link_in_place_of_a_file_is_not_followed(written, folder, drawn):
    shutil.move(folder / "letter.docx", folder.parent / "elsewhere.docx")
    (folder / "letter.docx").symlink_to(folder.parent / "elsewhere.docx")
    assert "not there any more" in pages_of(written)[1]
    assert drawn == []


def test_lack_of_libreoffice_is_shown_in_a_line(written, monkeypatch):
    def fail(*_: object) -> None:
        message = "LibreOffice is not installed <b>"
        raise ToolError(message)

    monkeypatch.setattr(_file_pages, "compared_pages", fail)
    status, body = pages_of(written)
    assert status == 200
    assert "pages can&#39;t be shown: LibreOffice is not installed &lt;b&gt;" in body


def test_other_pages_are_answered_while_one_is_drawn(written, monkeypatch):
    begun, release = threading.Event(), threading.Event()
    at_once: list[int] = []

    def draw(*_: object) -> ComparedPages:
        at_once.append(1)
        assert len(at_once) == 1
        begun.set()
        assert release.wait(PATIENCE)
        at_once.pop()
        return ComparedPages((), 1, 1, 0)

    monkeypatch.setattr(_file_pages.FilePages, "compared", draw)
    session = written.sign_in()
    answers: list[int] = []
    count = int(anyio.run(_threads)) + 5

    def ask() -> None:
        answers.append(written.ask("/tasks/t-1/files/0/pages", headers=session)[0])

    askers = [threading.Thread(target=ask) for _ in range(count)]
    for asker in askers:
        asker.start()
    assert begun.wait(PATIENCE)
    assert written.ask("/", headers=session)[0] == 200
    release.set()
    for asker in askers:
        asker.join()
    assert answers == [200] * count


async def _threads() -> float:
    return anyio.to_thread.current_default_thread_limiter().total_tokens


def test_kept_pictures_are_limited(monkeypatch, drawn):
    monkeypatch.setattr(_file_pages, "_MOST_KEPT_BYTES", 3 * 9)
    pages = FilePages()
    for name in (b"1", b"2"):
        pages.compared(FileVersions(b"", name), ".docx")
        pages.compared(FileVersions(b"", name), ".docx")
    pages.compared(FileVersions(b"", b"1"), ".docx")
    assert [after for _, after, _ in drawn] == [b"1", b"2", b"1"]
    assert pages.picture(digest_of_page(PNG + b"d")) == PNG + b"d"
    assert pages.picture("0" * 64) is None


def test_browser_shows_pages_before_and_after(written, page):
    need_office(".docx")
    page.goto(written.server.link())
    expect(page.get_by_role("heading", name="Tasks")).to_be_visible()
    page.goto(f"{written.origin}/tasks/t-1")
    page.get_by_text("Pages before and after").click()
    for name in ("Before", "After", "differences"):
        image = page.get_by_role("img", name=f"page 1, {name}")
        image.scroll_into_view_if_needed()
        expect(image).to_have_js_property("complete", value=True)
        expect(image).to_have_attribute("src", re.compile("^blob:"))
        assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") > 500


def test_pictures_of_a_page_have_the_headers_of_the_console(written):
    need_office(".docx")
    _, body = pages_of(written)
    session = written.sign_in()
    _, data, headers = written.ask_bytes(f"/pictures/{PICTURE.findall(body)[0]}", headers=session)
    assert Image.open(io.BytesIO(data), formats=["PNG"]).width > 500
    assert headers["content-type"] == "image/png"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
