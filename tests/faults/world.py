"""The documents that the tasks work on: their state before, and their contents after."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Iterator
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


def prepare(workspace: Path) -> None:
    """Make the documents that the tasks find."""
    workspace.mkdir()
    with lean():
        for name in ("gone", "held", "turn", "late", "slow"):
            Document().save(str(workspace / f"{name}.docx"))
        document = Document()
    document.add_paragraph("shared")
    table = document.add_table(rows=1, cols=2)
    table.rows[0].cells[0].text, table.rows[0].cells[1].text = "name", "mark"
    document.save(str(workspace / "shared.docx"))
    Workbook().save(workspace / "shared.xlsx")


@contextlib.contextmanager
def lean() -> Iterator[None]:
    """Let new documents be a tenth of their usual size, since each look and each change reads all of them."""
    document = Document()
    for style in list(document.styles):
        if style.name not in STYLES:
            style.delete()
    document.styles.element.remove(document.styles.element.find(qn("w:latentStyles")))
    for rels, unused in ((document.part.rels, UNUSED), (document.part.package.rels, {"thumbnail"})):
        for key in [key for key, rel in rels.items() if rel.reltype.rpartition("/")[2] in unused]:
            rels.pop(key)
    with tempfile.NamedTemporaryFile(suffix=".docx") as template:
        document.save(template)
        template.flush()
        with mock.patch("docx.api._default_docx_path", return_value=template.name):
            yield


def contents(workspace: Path) -> dict[str, Any]:
    """Read all that stands in the documents, by their names; leftovers of an unfinished write are none."""
    readers = {".docx": _in_word, ".xlsx": _in_excel}
    paths = (path for path in sorted(workspace.iterdir()) if path.suffix in readers)
    return {path.name: readers[path.suffix](path) for path in paths}


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
        for sheet in book.worksheets
    }
    book.close()
    return found
