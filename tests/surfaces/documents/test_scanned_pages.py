"""Scanned pages of PDFs, which are read by character recognition."""

from __future__ import annotations

import io
import shutil
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from office_files import pdf_of

from callboard.surfaces.documents import _scanned_pages
from callboard.surfaces.documents._scanned_pages import FEW_LETTERS, ScannedPages

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call

pytest.importorskip("pdfplumber")
pytest.importorskip("pytesseract")
Image = pytest.importorskip("PIL.Image")
ImageDraw, ImageFont = pytest.importorskip("PIL.ImageDraw"), pytest.importorskip("PIL.ImageFont")

has_tesseract = pytest.mark.skipif(shutil.which("tesseract") is None, reason="tesseract is not installed")


def scan_of(*pages: list[str]) -> bytes:
    """Make a PDF of A5 pages that are pictures of lines, at 100 dots to the inch."""
    pictures = []
    for lines in pages:
        picture = Image.new("RGB", (583, 827), "white")
        for number, line in enumerate(lines):
            ImageDraw.Draw(picture).text((40, 40 + 40 * number), line, fill="black", font=ImageFont.load_default(20))
        pictures.append(picture)
    output = io.BytesIO()
    pictures[0].save(output, "PDF", resolution=100, save_all=True, append_images=pictures[1:])
    return output.getvalue()


def page_of(letters: int = 0, covered: float = 0.0, lines: int = 0) -> Any:
    """Describe a page as pdfplumber does."""
    image = {"width": 100 * covered, "height": 100}
    chars = [{"text": "x"}, {"text": " "}] * letters
    images = [image] if covered else []
    return SimpleNamespace(chars=chars, images=images, curves=[], rects=[], lines=[0] * lines, width=100, height=100)


@has_tesseract
def test_scanned_pages_are_recognized_with_their_confidence(workspace: Path, call: Call) -> None:
    (workspace / "a.pdf").write_bytes(scan_of(["Invoice 33381", "Total 938.47"], ["Order 5539.06"]))
    answer = call("read_text", "a.pdf")
    assert answer["text"] == (
        "[page 1]\n[by character recognition]\nInvoice 33381\nTotal 938.47\n"
        "[page 2]\n[by character recognition]\nOrder 5539.06"
    )
    assert [reading["page"] for reading in answer["recognized"]] == [1, 2]
    assert min(reading["confidence"] for reading in answer["recognized"]) > 80
    assert set(answer) == {"text", "pages", "next", "recognized"}
    assert call("read_text", "a.pdf", page=2, offset=33, limit=4)["text"] == "[page 2]\n5539"


@has_tesseract
def test_page_with_a_text_is_recognized_only_when_asked(workspace: Path, call: Call) -> None:
    (workspace / "a.pdf").write_bytes(pdf_of(["Invoice 33381"]))
    assert call("read_text", "a.pdf")["text"] == "[page 1]\nInvoice 33381"
    answer = call("read_text", "a.pdf", recognize_all=True)
    assert answer["text"] == "[page 1]\nInvoice 33381\n[by character recognition]\nInvoice 33381"


@has_tesseract
def test_page_that_is_not_recognized_is_named(workspace: Path, call: Call) -> None:
    (workspace / "a.pdf").write_bytes(scan_of(["Invoice 33381"]))
    answer = call("read_text", "a.pdf", language="xxx")
    assert (answer["text"], answer["not_shown"]) == ("[page 1]\n", "1 pictures")
    assert answer["not_recognized"].startswith("page 1 was not recognized: tesseract failed")


@pytest.mark.parametrize(
    ("recognition", "page", "expected"),
    [
        ("scans", page_of(covered=0.9), True),
        ("scans", page_of(covered=0.1), True),  # no letter at all
        ("scans", page_of(lines=3), True),  # letters may be drawn
        ("scans", page_of(), False),
        ("scans", page_of(letters=20, covered=0.9), True),  # a page number, a stamp
        ("scans", page_of(letters=20, covered=0.4), False),
        ("scans", page_of(letters=FEW_LETTERS, covered=1.0), False),  # the text layer of a scanner
        ("all", page_of(letters=FEW_LETTERS), True),
        ("none", page_of(covered=0.9), False),
    ],
)
def test_mixed_pages_are_distinguished(recognition: str, page: Any, expected: bool) -> None:
    assert ScannedPages({"recognition": recognition}, b"", lambda *_: None).is_scan(page) is expected


def test_call_recognizes_a_bounded_number_of_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = {"text": "x", "confidence": 90, "uncertain": []}
    pages = ScannedPages({"recognition": "scans"}, pdf_of(["x"]), lambda *_: (dict(answer), b""))
    recognized = []
    monkeypatch.setattr(_scanned_pages, "MOST_PAGES", 3)
    while not pages.is_full:
        recognized.append(pages.text_of(1))
    assert recognized == ["[by character recognition]\nx"] * 3
    monkeypatch.setattr(_scanned_pages, "SECONDS", 0)
    slow_pages = ScannedPages({"recognition": "scans"}, pdf_of(["x"]), lambda *_: (dict(answer), b""))
    slow_pages.text_of(1)
    assert slow_pages.is_full  # at least one page is read


@pytest.mark.parametrize("error", [ImportError("x", name="pytesseract"), RuntimeError("Tesseract process timeout")])
def test_failed_recognition_stops_the_others(error: Exception) -> None:
    def fail(*_: object) -> None:
        raise error

    pages = ScannedPages({"recognition": "scans"}, pdf_of(["x"]), fail)
    assert pages.text_of(1) == ""
    assert not pages.is_scan(page_of(covered=1.0))
    reason = "pytesseract is not installed: it comes with callboard[ocr]" if error.args == ("x",) else error.args[0]
    assert pages.answer() == {"recognized": [], "not_recognized": f"page 1 was not recognized: {reason}"}
