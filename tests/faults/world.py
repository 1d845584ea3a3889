"""The documents that the tasks work on: their state before, and their contents after."""

from __future__ import annotations

import copy
import csv
import re
import struct
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from email import policy
from email.parser import BytesParser
from pathlib import Path
from typing import Any
from unittest import mock

from docx import Document
from docx.oxml.ns import qn
from docx.table import Table
from openpyxl import Workbook, load_workbook

MARK = re.compile(r"\w+[#~]\d")
COPY = "copy of "
"""The prefix of a copy's name."""

STYLES = {"Normal", "Heading 1", "Default Paragraph Font", "Normal Table", "No List"}
UNUSED = {"stylesWithEffects", "numbering", "theme", "fontTable", "customXml", "webSettings"}


def prepare(workspace: Path, template: Path) -> None:
    """Make the documents that the tasks find, from a template for `lean`."""
    workspace.mkdir()
    with lean(template):
        for name in ("gone", "held", "turn", "late", "slow", "side1", "side2", "side3", "side4"):
            Document().save(str(workspace / f"{name}.docx"))
        document = Document()
    document.add_paragraph("shared")
    table = document.add_table(rows=1, cols=2)
    table.rows[0].cells[0].text, table.rows[0].cells[1].text = "name", "mark"
    document.save(str(workspace / "shared.docx"))
    Workbook().save(workspace / "shared.xlsx")
    _prepare_formats(workspace, template)
    _prepare_routine(workspace, template)


def _prepare_routine(workspace: Path, template: Path) -> None:
    with lean(template):
        document = Document()
    document.add_paragraph("a draft")
    table = document.add_table(rows=1, cols=2)
    table.rows[0].cells[0].text, table.rows[0].cells[1].text = "name", "mark"
    document.save(str(workspace / "again.docx"))
    (workspace / "again.csv").write_bytes(b"one,name,two\r\n1,Ada,4\r\n2,Grace,5\r\n3,Emmy,6\r\n")


def _prepare_formats(workspace: Path, template: Path) -> None:
    with lean(template):
        Document().save(str(workspace / "paper.docx"))
        document = Document()
        document.add_paragraph("to be deleted")
        document.add_paragraph("a draft")
        document.add_table(rows=1, cols=2)
        document.save(str(workspace / "item.docx"))
    book = Workbook()
    book.active.title = "Data"
    book.active.append(["name", "number"])
    book.active.append(["a", 3])
    book.save(workspace / "grid.xlsx")
    files = {
        "rows.csv": b"name,mark\r\n",
        "page.txt": b"a draft\r\n",
        "letter.eml": b"Subject: a draft\r\nContent-Type: text/plain; charset=utf-8\r\n\r\na draft\r\n",
        "letter#1.md": b"attached",
        "date.ics": b"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nBEGIN:VEVENT\r\nUID:1\r\nSUMMARY:to be deleted\r\n"
        b"DTSTAMP:20260101T000000Z\r\nDTSTART:20260601T090000Z\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n",
        "shot.bmp": b"BM" + struct.pack("<IIIIiiHHIIiiII", 246, 0, 54, 40, 8, 8, 1, 24, *[0] * 6) + bytes(192),
    }
    for name, data in files.items():
        (workspace / name).write_bytes(data)


def make_template(path: Path) -> None:
    """Make a template a tenth of the usual size."""
    document = Document()
    for style in list(document.styles):
        if style.name not in STYLES:
            style.delete()
    document.styles.element.remove(document.styles.element.find(qn("w:latentStyles")))
    for rels, unused in ((document.part.rels, UNUSED), (document.part.package.rels, {"thumbnail"})):
        for key in [key for key, rel in rels.items() if rel.reltype.rpartition("/")[2] in unused]:
            rels.pop(key)
    document.save(str(path))


def lean(template: Path) -> AbstractContextManager[Any]:
    """Let new documents be small, since each look and each change reads all of them."""
    return mock.patch("docx.api._default_docx_path", return_value=str(template))


def contents(workspace: Path) -> dict[str, Any]:
    """Read all that stands in the documents, by their names; leftovers of an unfinished write are none."""
    paths = (path for path in sorted(workspace.iterdir()) if path.suffix in READERS)
    return {path.name: _content(path) for path in paths}


def _content(path: Path) -> Any:
    """Read a document, once for the same contents: most documents of most trials are as they were."""
    key = path.suffix, path.read_bytes()
    if key not in _CONTENTS:
        if len(_CONTENTS) == MOST_CONTENTS:
            _CONTENTS.clear()
        _CONTENTS[key] = READERS[path.suffix](path)
    return copy.deepcopy(_CONTENTS[key])


MOST_CONTENTS = 500
_CONTENTS: dict[tuple[str, bytes], Any] = {}
"""The contents of documents by their suffix and bytes; all are dropped when there are too many."""


def marks(read: dict[str, Any]) -> list[str]:
    """List the marks that stand in documents that were read."""
    texts = (text for name, content in read.items() if not name.startswith(COPY) for text in _texts(content))
    return [text for text in texts if MARK.fullmatch(text)]


def _texts(content: Any) -> Iterator[str]:
    match content:
        case str():
            yield content
        case dict():
            yield from _texts([*content, *content.values()])
        case list():
            for part in content:
                yield from _texts(part)


def _in_word(path: Path) -> list[Any]:
    return [
        [[cell.text for cell in row.cells] for row in block.rows]
        if isinstance(block, Table)
        else [block.text, *("bold" for run in block.runs if run.bold)]
        for block in Document(str(path)).iter_inner_content()
    ]


def _in_excel(path: Path) -> dict[str, Any]:
    book = load_workbook(path)
    found = {
        sheet.title: {
            cell.coordinate: [cell.value, cell.number_format]
            for row in sheet.iter_rows()
            for cell in row
            if cell.value is not None
        }
        | {"charts": len(sheet._charts)}
        for sheet in book.worksheets
    }
    book.close()
    return found


def _in_csv(path: Path) -> list[Any]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file, strict=True))


def _in_text(path: Path) -> list[Any]:
    return path.read_bytes().decode().split("\r\n")


def _in_mail(path: Path) -> dict[str, Any]:
    message = BytesParser(policy=policy.default).parsebytes(path.read_bytes())
    texts = [part.get_content().splitlines() for part in message.walk() if part.get_content_type() == "text/plain"]
    attached = [part.get_filename().removesuffix(".md") for part in message.iter_attachments()]
    return {"to": message["To"], "subject": message["Subject"], "texts": texts, "attached": attached}


def _in_calendar(path: Path) -> list[Any]:
    import icalendar

    changing = {"UID", "DTSTAMP", "LAST-MODIFIED"}
    events = icalendar.Calendar.from_ical(path.read_bytes()).walk("VEVENT")
    return [{k: str(getattr(v, "dt", v)) for k, v in event.items() if k not in changing} for event in events]


def _in_picture(path: Path) -> list[Any]:
    from PIL import Image

    with Image.open(path) as picture:
        picture.load()
        return [picture.format, *picture.size]


def _in_pdf(path: Path) -> list[Any]:
    import pdfplumber

    with pdfplumber.open(path) as pdf:
        return [page.extract_text() for page in pdf.pages]


READERS: dict[str, Callable[[Path], Any]] = {
    ".docx": _in_word,
    ".xlsx": _in_excel,
    ".csv": _in_csv,
    ".txt": _in_text,
    ".eml": _in_mail,
    ".ics": _in_calendar,
    ".png": _in_picture,
    ".jpg": _in_picture,
    ".pdf": _in_pdf,
}
"""The functions that read documents, by the suffixes of their names."""
