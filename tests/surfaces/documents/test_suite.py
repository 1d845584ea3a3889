"""Documents of all formats pass the tests that every surface should pass."""

from __future__ import annotations

import io
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from functools import partial
from typing import TYPE_CHECKING

import docx
import openpyxl
import pytest

from callboard.surfaces.documents import DocumentSurface
from callboard.testing import SurfaceCall, SurfaceCase, surface_suite
from short_suite import short_suite

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytest.importorskip("pdfplumber")
pptx = pytest.importorskip("pptx")
Image = pytest.importorskip("PIL.Image")
pytest.importorskip("icalendar")

MARK = "done once"
EVENT = b"BEGIN:VEVENT\r\nUID:1\r\nDTSTAMP:20260101T000000Z\r\nDTSTART:20260601T090000Z\r\nSUMMARY:%s\r\nEND:VEVENT\r\n"


def word(text: str) -> bytes:
    document, file = docx.Document(), io.BytesIO()
    document.add_paragraph(text)
    document.save(file)
    return file.getvalue()


def powerpoint(text: str) -> bytes:
    deck, file = pptx.Presentation(), io.BytesIO()
    deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = text
    deck.save(file)
    return file.getvalue()


def excel(text: str) -> bytes:
    book, file = openpyxl.Workbook(), io.BytesIO()
    book.active.append([text, 1])
    book.save(file)
    return file.getvalue()


def mail(text: str) -> bytes:
    message = EmailMessage()
    message["Subject"] = text
    message.set_content(text)
    return message.as_bytes()


def calendar(text: str) -> bytes:
    return b"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\n" + EVENT % text.encode() + b"END:VCALENDAR\r\n"


def picture(text: str) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (len(text), 4)).save(file, "PNG")
    return file.getvalue()


def pdf(text: str) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (len(text), 4)).save(file, "PDF")
    return file.getvalue()


def texts(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def paragraphs(path: Path) -> list[str]:
    return [paragraph.text for paragraph in docx.Document(str(path)).paragraphs]


def titles(path: Path) -> list[str]:
    return [slide.shapes.title.text for slide in pptx.Presentation(str(path)).slides]


def cells(path: Path) -> list[object]:
    return [cell for row in openpyxl.load_workbook(path).active.values for cell in row]


def attached(path: Path) -> list[str]:
    message = BytesParser(policy=policy.default).parsebytes(path.read_bytes())
    return [part.get_content().strip() for part in message.iter_attachments()]


def events(path: Path) -> list[str]:
    return [line.removeprefix("SUMMARY:") for line in texts(path)]


def copies(path: Path) -> list[str]:
    return [MARK for each in path.parent.iterdir() if each.stem == "copy"]


def case(
    folder: Path,
    *,
    name: str,
    make: Callable[[str], bytes],
    once: SurfaceCall,
    found: Callable[[Path], list[object]],
    same: tuple[SurfaceCall, ...] = (),
) -> SurfaceCase:
    """Make a case for a document whose `once` call leaves a mark or a copy."""
    work = folder / "work"
    work.mkdir(parents=True, exist_ok=True)
    path = work / name
    path.write_bytes(make("before"))
    (work / "mark.txt").write_text(MARK, encoding="utf-8")
    return SurfaceCase(
        server=lambda: DocumentSurface(work),
        target=name,
        change=lambda: path.write_bytes(make("changed")),
        once=once,
        done=lambda: found(path).count(MARK),
        same=same,
    )


TestWord = short_suite(
    partial(
        case,
        name="a.docx",
        make=word,
        once=SurfaceCall("insert_paragraph", {"text": MARK}),
        found=paragraphs,
        same=(
            SurfaceCall("insert_paragraph", {"text": "a"}),
            SurfaceCall("replace_text", {"find_text": "b", "new_text": "c"}),
        ),
    )
)
TestPowerPoint = short_suite(
    partial(
        case,
        name="a.pptx",
        make=powerpoint,
        once=SurfaceCall("add_slide", {"title": MARK}),
        found=titles,
        same=(
            SurfaceCall("write_text", {"lines": ["b"], "control_id": "slide-1-title-1"}),
            SurfaceCall("replace_text", {"find_text": "b", "new_text": "c"}),
        ),
    )
)
TestExcel = short_suite(
    partial(
        case,
        name="a.xlsx",
        make=excel,
        once=SurfaceCall("append_rows", {"values": [[MARK, 2]]}),
        found=cells,
        same=(
            SurfaceCall("write_range", {"values": [[1]], "cell": "B2"}),
            SurfaceCall("write_range", {"values": [[1]], "cell": "Sheet!B2"}),
        ),
    )
)
TestPdf = short_suite(
    partial(case, name="a.pdf", make=pdf, once=SurfaceCall("save_as", {"path": "copy.pdf"}), found=copies)
)
TestMail = short_suite(
    partial(
        case,
        name="a.eml",
        make=mail,
        once=SurfaceCall("write_message", {"attachments": ["mark.txt"]}),
        found=attached,
        same=(SurfaceCall("write_message", {"text": "a"}), SurfaceCall("write_message", {"subject": "b"})),
    )
)
TestCalendar = short_suite(
    partial(
        case,
        name="a.ics",
        make=calendar,
        once=SurfaceCall("write_event", {"summary": MARK, "start": "2026-06-01"}),
        found=events,
        same=(SurfaceCall("write_event", {"summary": "a"}), SurfaceCall("write_event", {"summary": "b"})),
    )
)
TestCsv = short_suite(
    partial(
        case,
        name="a.csv",
        make=str.encode,
        once=SurfaceCall("append_rows", {"rows": [[MARK]]}),
        found=texts,
        same=(
            SurfaceCall("append_rows", {"rows": [["a"]]}),
            SurfaceCall("write_cell", {"row": 1, "column": 1, "value": "b"}),
        ),
    )
)
TestText = surface_suite(
    partial(
        case,
        name="a.txt",
        make=str.encode,
        once=SurfaceCall("write_text", {"text": MARK}),
        found=texts,
        same=(
            SurfaceCall("write_text", {"text": "a"}),
            SurfaceCall("replace_text", {"find_text": "b", "new_text": "c"}),
        ),
    )
)
TestPicture = short_suite(
    partial(case, name="a.png", make=picture, once=SurfaceCall("save_as", {"path": "copy.jpg"}), found=copies)
)
