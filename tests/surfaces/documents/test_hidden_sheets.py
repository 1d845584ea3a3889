"""Hidden sheets are in no PDF and no picture of a workbook."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import openpyxl
import pytest
from office_files import need_office

from callboard.surfaces.documents import _libre_office, _save, compared_pages
from callboard.surfaces.documents._hidden_sheets import without_hidden_areas
from callboard.surfaces.documents._libre_office import LIBRE_OFFICE

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call

pypdfium2 = pytest.importorskip("pypdfium2")

SHEETS = [
    ("visible", "", "shown first"),
    ("hidden", "A1:B2", "secret one"),
    ("hidden", "", "secret two"),
    ("veryHidden", "A1:B2", "secret three"),
    ("veryHidden", "", "secret four"),
    ("visible", "A1:B2", "shown last"),
]


def book(*sheets: tuple[str, str, str]) -> bytes:
    """Make a workbook of sheets: a state, a print area and a text each."""
    workbook = openpyxl.Workbook()
    workbook.remove(workbook.active)
    for number, (state, area, text) in enumerate(sheets):
        sheet = workbook.create_sheet(f"S{number}")
        sheet["A1"], sheet.sheet_state = text, state
        if area:
            sheet.print_area = area
    out = io.BytesIO()
    workbook.save(out)
    return out.getvalue()


def texts(path: Path) -> list[str]:
    """Return the text of each page of a PDF."""
    document = pypdfium2.PdfDocument(path)
    return [page.get_textpage().get_text_range().strip() for page in document]


@pytest.fixture
def saved(workspace: Path) -> Path:
    """Write a workbook with sheets of all states, with and without print areas."""
    need_office(".xlsx")
    (workspace / "book.xlsx").write_bytes(book(*SHEETS))
    return workspace


def test_pdf_leaves_out_hidden_sheets(saved: Path, call: Call) -> None:
    before = (saved / "book.xlsx").read_bytes()
    call("save_as", "book.xlsx", path="book.pdf")
    assert texts(saved / "book.pdf") == ["shown first", "shown last"]
    assert (saved / "book.xlsx").read_bytes() == before


def test_pdf_of_a_plain_office_leaves_out_hidden_sheets(saved: Path, call: Call, monkeypatch: Any) -> None:
    monkeypatch.setattr(_save, "lacking_office", lambda _suffix: "not on Linux")
    call("save_as", "book.xlsx", path="book.pdf")
    assert texts(saved / "book.pdf") == ["shown first", "shown last"]


def test_pictures_of_a_workbook_leave_out_hidden_sheets(saved: Path, call: Call) -> None:
    assert call("save_as", "book.xlsx", path="page.png") == {"files": ["page-1.png", "page-2.png"], "pages": 2}


def test_compared_pages_leave_out_hidden_sheets() -> None:
    need_office(".xlsx")
    compared = compared_pages(book(*SHEETS), book(*SHEETS[:5], ("visible", "A1:B2", "changed")), ".xlsx")
    assert (compared.before_count, compared.after_count, compared.differing) == (2, 2, 1)


@pytest.mark.parametrize(("suffix", "output_filter"), [(".ods", "calc8"), (".xls", "MS Excel 97")])
def test_compared_pages_of_old_workbooks_leave_out_hidden_sheets(
    monkeypatch: pytest.MonkeyPatch, suffix: str, output_filter: str
) -> None:
    need_office(suffix)
    monkeypatch.setitem(_libre_office._FILTERS, ("calc", suffix[1:]), output_filter)
    books = [book(*SHEETS[:5], ("visible", "A1:B2", text)) for text in ("shown last", "changed")]
    files = LIBRE_OFFICE.convert(books, ".xlsx", suffix[1:])
    compared = compared_pages(files[0] or b"", files[1] or b"", suffix)
    assert (compared.before_count, compared.after_count, compared.differing) == (2, 2, 1)


@pytest.mark.parametrize(
    "workbook",
    [b"PK\x03\x04 broken", b"", book(("visible", "A1:B2", "x"), ("hidden", "", "y"))],
    ids=["broken", "empty", "no area"],
)
def test_other_workbook_is_returned_as_it_is(workbook: bytes) -> None:
    assert without_hidden_areas(workbook) is workbook
