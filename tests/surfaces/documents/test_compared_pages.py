"""Pictures of the pages that differ between two versions of a file."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING

import docx
import openpyxl
import pytest
from hostile_documents import remote_documents
from office_files import letter, need_office
from PIL import Image

from callboard.errors import ToolError
from callboard.surfaces.documents import _compared_pages, _libre_office, compared_pages

if TYPE_CHECKING:
    from collections.abc import Callable

LINES = 120
OUTLINE = (200, 0, 40)


def report(changed_line: int = -1, *, lines: int = LINES) -> bytes:
    """Make a document of several pages, with one line that is another one."""
    document = docx.Document()
    for line in range(lines):
        document.add_paragraph(f"line {line} {'CHANGED' if line == changed_line else 'is'} here")
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def picture(color: str = "white", spot: tuple[int, int, int, int] | None = None, kind: str = "PNG") -> bytes:
    """Make a picture with a spot."""
    picture = Image.new("RGB", (200, 100), color)
    if spot is not None:
        picture.paste("blue", spot)
    out = io.BytesIO()
    picture.save(out, kind)
    return out.getvalue()


def pdf(*colors: str) -> bytes:
    """Make a PDF with a page of each color."""
    pages = [Image.new("RGB", (200, 100), color) for color in colors]
    out = io.BytesIO()
    pages[0].save(out, "PDF", save_all=True, append_images=pages[1:])
    return out.getvalue()


def opened(data: bytes) -> Image.Image:
    """Open a picture of a page."""
    return Image.open(io.BytesIO(data), formats=["PNG"]).convert("RGB")


def has_outline(page: Image.Image) -> bool:
    """Look for the colour of outlines."""
    return any(color == OUTLINE for _, color in page.getcolors(2_000_000) or ())


def test_page_that_differs_is_drawn_with_outlines() -> None:
    need_office(".docx")
    compared = compared_pages(report(), report(70), ".docx")
    assert (compared.before_count, compared.after_count, compared.differing) == (5, 5, 1)
    (pair,) = compared.pages
    assert pair.number == 3
    before, after, difference = map(opened, (pair.before, pair.after, pair.difference))
    assert before.size == after.size
    assert difference.width > 2 * before.width
    assert not has_outline(after)
    assert has_outline(difference.crop((0, 0, before.width, before.height)))
    assert has_outline(difference.crop((difference.width - after.width, 0, difference.width, after.height)))


def test_pages_of_a_workbook_are_drawn() -> None:
    need_office(".xlsx")
    books = []
    for value in (1, 2):
        book = openpyxl.Workbook()
        book.active.append(["total", value])
        out = io.BytesIO()
        book.save(out)
        books.append(out.getvalue())
    compared = compared_pages(books[0], books[1], ".xlsx")
    assert [pair.number for pair in compared.pages] == [1]


def test_new_file_has_no_pages_before() -> None:
    compared = compared_pages(b"", pdf("white", "red"), ".pdf")
    assert (compared.before_count, compared.after_count) == (0, 2)
    assert [(pair.number, pair.before, bool(pair.after), pair.difference) for pair in compared.pages] == [
        (1, b"", True, b""),
        (2, b"", True, b""),
    ]


def test_pages_that_look_the_same_are_left_out() -> None:
    compared = compared_pages(pdf("white", "red"), pdf("white", "green", "blue"), ".pdf")
    assert [(pair.number, bool(pair.before), bool(pair.after)) for pair in compared.pages] == [
        (2, True, True),
        (3, False, True),
    ]


@pytest.mark.parametrize(("suffix", "kind"), [(".png", "PNG"), (".jpg", "JPEG")])
def test_changed_picture_has_an_outline_around_each_region(suffix: str, kind: str) -> None:
    spots = picture(spot=(20, 20, 40, 40), kind=kind), picture(spot=(120, 60, 140, 80), kind=kind)
    ((pair),) = compared_pages(*spots, suffix).pages
    difference = opened(pair.difference)
    reds = [(x, y) for x in range(200) for y in range(100) if difference.getpixel((x, y)) == OUTLINE]
    assert min(x for x, _ in reds) in range(4, 20)
    assert not any(60 < x < 100 for x, _ in reds)
    assert not any(y > 90 for _, y in reds)


def test_compared_and_shown_pages_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_compared_pages, "MOST_COMPARED", 3)
    monkeypatch.setattr(_compared_pages, "MOST_SHOWN", 2)
    compared = compared_pages(b"", pdf(*["red"] * 5), ".pdf")
    assert (len(compared.pages), compared.differing, compared.after_count) == (2, 3, 5)


def test_large_page_is_drawn_small() -> None:
    out = io.BytesIO()
    Image.new("1", (30_000, 200)).save(out, "PNG")
    (pair,) = compared_pages(b"", out.getvalue(), ".png").pages
    assert opened(pair.after).width == 1000


def bomb() -> bytes:
    """Make a document whose parts unpack to far more than its size."""
    out = io.BytesIO(letter())
    with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/media/big.bin", bytes(200_000_000))
    return out.getvalue()


def huge_picture() -> bytes:
    """Make a picture that says it has a million pixels on a side."""
    data = bytearray(picture())
    data[16:24] = (1_000_000).to_bytes(4) * 2
    return bytes(data)


@pytest.mark.parametrize(
    ("make", "suffix", "reason"),
    [
        (bomb, ".docx", "unpacks to more than 100 MB"),
        (lambda: b"<html><img src=http://127.0.0.1/x>", ".docx", "LibreOffice can't read it"),
        (lambda: b"%PDF-1.7 nothing", ".pdf", "damaged"),
        (huge_picture, ".png", "pixels are more than|damaged"),
        (lambda: b"<svg/>", ".png", "no picture"),
    ],
)
def test_hostile_file_is_refused_with_a_reason(make: Callable[[], bytes], suffix: str, reason: str) -> None:
    if suffix == ".docx":
        need_office(suffix)
    with pytest.raises(ToolError, match=reason):
        compared_pages(b"", make(), suffix)


def test_document_that_is_drawn_reaches_no_network(listener: tuple[int, list[bytes]]) -> None:
    need_office(".docx")
    port, connections = listener
    documents = remote_documents(f"http://127.0.0.1:{port}")
    for name, suffix in (("letter.docx", ".docx"), ("sheet.ods", ".ods")):
        assert compared_pages(b"", documents[name], suffix).pages
    assert connections == []


def test_lack_of_libreoffice_or_pdfium_gives_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_libre_office, "lacking_office", lambda _: "LibreOffice is not installed")
    with pytest.raises(ToolError, match="LibreOffice is not installed"):
        compared_pages(b"", letter(), ".docx")
    monkeypatch.setattr(_compared_pages, "run_reader", lambda *_: ({"missing": "pypdfium2"}, b""))
    with pytest.raises(ToolError, match=r"it comes with callboard\[pdf\]"):
        compared_pages(b"", pdf("white"), ".pdf")
