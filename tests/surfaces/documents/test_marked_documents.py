"""PDFs and Word documents that one call makes of a text and rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import docx
import pytest
from office_files import need_office

from callboard.surfaces import ToolError
from callboard.surfaces.documents._libre_office import LIBRE_OFFICE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from conftest import Call

TEXT = r"""# Report
For the board.
Berlin

## Results ##
Revenue: **12 %**, not a*b*c.
- North
  - Kiel
* South
more of it

1. First

2. Second
---
| Region | Q1 |
|:---|--:|
| North \| East | **1** |
| South |
Behind the table
3) Third
"""


@pytest.fixture(scope="module", autouse=True)
def warm_office() -> Iterator[None]:
    """Keep one LibreOffice for the tests of this module."""
    LIBRE_OFFICE.open()
    yield
    LIBRE_OFFICE.close()


def test_marks_become_headings_lists_and_tables(workspace: Path, call: Call) -> None:
    call("create_document", path="a.docx", text=TEXT)
    document = docx.Document(str(workspace / "a.docx"))
    paragraphs = [(paragraph.style.name, paragraph.text) for paragraph in document.paragraphs if paragraph.text]
    assert paragraphs == [
        ("Heading 1", "Report"),
        ("Normal", "For the board.\nBerlin"),
        ("Heading 2", "Results"),
        ("Normal", "Revenue: 12 %, not a*b*c."),
        ("List Paragraph", "North"),
        ("List Paragraph", "Kiel"),
        ("List Paragraph", "South\nmore of it"),
        ("List Paragraph", "First"),
        ("List Paragraph", "Second"),
        ("Normal", "Behind the table"),
        ("List Paragraph", "Third"),
    ]
    assert [run.text for paragraph in document.paragraphs for run in paragraph.runs if run.bold] == ["12 %"]
    (table,) = document.tables
    assert [[cell.text for cell in row.cells] for row in table.rows] == [
        ["Region", "Q1"], ["North | East", "1"], ["South", ""],
    ]  # fmt: skip
    lists = [paragraph._p.pPr.numPr for paragraph in document.paragraphs if paragraph.style.name == "List Paragraph"]
    levels = [(numbering.numId.val, numbering.ilvl.val) for numbering in lists]
    numbers = [number for number, _ in levels]
    assert [level for _, level in levels] == [0, 1, 0, 0, 0, 0]
    assert numbers[0] == numbers[1] == numbers[2] != numbers[3] == numbers[4] != numbers[5]


def test_pdf_is_made_of_a_text_and_rows_in_one_call(workspace: Path, call: Call) -> None:
    pytest.importorskip("pdfplumber")
    need_office(".docx")
    rows = [[f"Row {number}", number / 2] for number in range(60)]
    window = call("create_document", path="a.pdf", text=TEXT, header=["Name", "Amount"], rows=rows)
    assert window.address == "app/pdf/a.pdf"
    answer = call("read_text", "a.pdf")
    assert answer["pages"] == 2
    for words in ("Report\nFor the board.\nBerlin\nResults", "1. First\n2. Second", "Row 59 29.5"):
        assert words in answer["text"]
    assert call("read_table", "a.pdf", page=2)["header"] == ["Name", "Amount"]  # repeated
    assert sorted(path.name for path in workspace.iterdir()) == ["a.pdf"]


def test_document_of_rows_alone_has_a_table(workspace: Path, call: Call) -> None:
    call("create_document", path="a.docx", rows=[["x", None, 1.5]])
    (table,) = docx.Document(str(workspace / "a.docx")).tables
    assert [cell.text for cell in table.rows[0].cells] == ["x", "", "1.5"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"path": "a.pdf"}, "a PDF can't be made empty: pass its text or rows"),
        ({"path": "a.txt", "text": "x"}, r"only \.pdf and \.docx are made with a text or rows"),
        ({"path": "a.pdf", "header": ["x"], "rows": [[1, 2]]}, "the header has 1 cells, but each row has 2"),
        ({"path": "here.pdf", "text": "x"}, "already a file"),
        ({"path": "../a.pdf", "text": "x"}, "leads out of the workspace"),
        ({"path": "a.docx", "text": "\0"}, "which a document can't hold"),
    ],
)
def test_wrong_contents_are_refused(workspace: Path, call: Call, arguments: dict[str, Any], reason: str) -> None:
    (workspace / "here.pdf").write_bytes(b"mine")
    with pytest.raises(ToolError, match=reason):
        call("create_document", **arguments)
    assert [(path.name, path.read_bytes()) for path in workspace.iterdir()] == [("here.pdf", b"mine")]


@pytest.mark.parametrize(
    "text", ["# x" + " " * 190_000 + "y", "**a " * 45_000, "x" + "*" * 190_000], ids=["heading", "open", "stars"]
)
def test_texts_of_many_marks_are_read_in_linear_time(workspace: Path, call: Call, text: str) -> None:
    call("create_document", path="many.docx", text=text)  # it took minutes, in which nothing else could run
    words = "".join(paragraph.text for paragraph in docx.Document(str(workspace / "many.docx")).paragraphs)
    assert words.strip() == text.removeprefix("# ").strip()


def test_an_open_mark_leaves_later_bold_words_alone(workspace: Path, call: Call) -> None:
    call("create_document", path="open.docx", text="# C#\n\n2 ** 3 and **a *b* c** and **d")
    paragraphs = docx.Document(str(workspace / "open.docx")).paragraphs
    heading, text = [paragraph for paragraph in paragraphs if paragraph.text]
    assert heading.text == "C#"
    assert [run.text for run in text.runs if run.bold] == ["a *b* c"]


@pytest.mark.parametrize(("columns", "is_wide"), [(7, False), (8, True)])
@pytest.mark.parametrize("place", ["rows", "text"])
def test_pages_of_wide_tables_are_turned(
    workspace: Path, call: Call, columns: int, place: str, *, is_wide: bool
) -> None:
    header = [f"Column {number}" for number in range(columns)]
    table = {"header": header, "rows": [header]} if place == "rows" else {"text": f"| {' | '.join(header)} |"}
    call("create_document", path="a.docx", **table)
    (section,) = docx.Document(str(workspace / "a.docx")).sections
    assert (section.page_width > section.page_height) is is_wide
    widths = [cell.width for cell in docx.Document(str(workspace / "a.docx")).tables[0].rows[0].cells]
    assert sum(widths) == pytest.approx(section.page_width - section.left_margin - section.right_margin, rel=0.05)
