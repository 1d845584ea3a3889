"""Word documents: their controls, and the tools to read and edit them."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import docx
import pytest
from docx.enum.text import WD_BREAK
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from docx.shared import Pt
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.surfaces import ToolError
from callboard.surfaces.documents import DocumentSurface
from callboard.surfaces.documents.word import WordFile

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call

SALES = [["Jan", "1,234.50", "12 %"], ["Feb", "2,000", "13 %"], ["Mar", "", "n/a"]]
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Co"], exclude_characters="\ufffe\uffff"), max_size=30)
"""Texts without characters of private use: Word's symbols are among them, and are read as `[symbol]`."""


@pytest.fixture
def sales(workspace: Path) -> Path:
    """Give a document with headings, paragraphs and a table."""
    path = workspace / "sales.docx"
    document = docx.Document()
    document.add_heading("Sales 2024", 1)
    paragraph = document.add_paragraph("Revenue ")
    paragraph.add_run("rose").bold = True
    paragraph.add_run(" in spring.")
    document.add_paragraph("")
    document.add_heading("Figures", 2)
    table = document.add_table(0, 3)
    for row in [["Month", "Revenue", "Share"], *SALES]:
        for cell, text in zip(table.add_row().cells, row, strict=True):
            cell.text = text
    document.add_heading("Outlook", 1)
    document.add_paragraph("Good.")
    document.save(str(path))
    return path


def ids(call: Call, document: str = "sales.docx") -> dict[str, str]:
    """List the names of a document's controls by id."""
    return {control["id"]: control["name"] for control in call("get_controls", document)["controls"]}


def test_headings_paragraphs_and_tables_are_controls_with_stable_ids(sales: Path, call: Call) -> None:
    assert ids(call) == {
        "heading-1": "Sales 2024",
        "paragraph-1": "Revenue rose in spring.",
        "heading-2": "Figures",
        "table-1": "Month | Revenue | Share",
        "heading-3": "Outlook",
        "paragraph-3": "Good.",
    }
    call("edit_paragraph", sales.name, control_id="paragraph-3", text="Very good.")
    assert ids(call)["paragraph-3"] == "Very good."
    assert ids(call)["table-1"] == "Month | Revenue | Share"


def test_a_look_shows_the_outline_and_the_first_rows_of_tables(sales: Path, call: Call) -> None:
    window = call("get_window_info", sales.name)
    assert window["outline"] == ["Sales 2024 (1 paragraph)", "  Figures (1 table)", "Outlook (1 paragraph)"]
    (table,) = [each for each in call("get_controls", sales.name)["controls"] if each["kind"] == "table"]
    assert (table["detail"]["rows"], table["detail"]["first_rows"]) == (
        len(SALES) + 1,
        dict(zip("234", SALES, strict=False)),
    )


def test_a_long_outline_is_cut(workspace: Path, call: Call) -> None:
    document = docx.Document()
    for number in range(33):
        document.add_heading(f"Part {number}", 3)
    document.save(str(workspace / "parts.docx"))
    shown = call("get_window_info", "parts.docx")["outline"]
    assert (len(shown), shown[0], shown[-1]) == (31, "    Part 0", "(3 more headings)")


def test_the_tree_puts_everything_below_its_heading(sales: Path, call: Call) -> None:
    tree = call("get_tree", sales.name)
    assert [node["id"] for node in tree["children"]] == ["heading-1", "heading-3"]
    assert [node["id"] for node in tree["children"][0]["children"]] == ["paragraph-1", "heading-2"]
    assert [node["id"] for node in tree["children"][0]["children"][1]["children"]] == ["table-1"]


def test_long_document_lists_some_controls_and_counts_the_rest(workspace: Path, call: Call) -> None:
    document = docx.Document()
    for number in range(410):
        document.add_paragraph(f"line {number}")
    document.save(str(workspace / "long.docx"))
    seen = call("get_controls", "long.docx")
    assert (len(seen["controls"]), seen["left_out"]) == (400, 10)
    assert call("read_text", "long.docx", control_id="paragraph-405")["text"] == "line 404"


def test_text_is_read_whole_below_a_heading_or_in_parts(sales: Path, call: Call) -> None:
    whole = call("read_text", sales.name)["text"]
    assert whole.startswith("# Sales 2024\nRevenue rose in spring.\n\n## Figures\nMonth\tRevenue\tShare\n")
    assert call("read_text", sales.name, control_id="heading-3")["text"] == "# Outlook\nGood."
    part = call("read_text", sales.name, offset=2, limit=5)
    assert (part["text"], part["left_out"]) == ("Sales", len(whole) - 7)


def test_text_is_read_as_it_is_shown(workspace: Path, call: Call) -> None:
    document = docx.Document()
    paragraph = document.add_paragraph("kept ")
    deleted = OxmlElement("w:del")
    run = paragraph.add_run("gone")._r
    run.find(qn("w:t")).tag = qn("w:delText")
    deleted.append(run)
    paragraph._p.append(deleted)
    inserted = OxmlElement("w:ins")
    inserted.append(paragraph.add_run("new")._r)
    paragraph._p.append(inserted)
    document.save(str(workspace / "a.docx"))
    assert call("read_text", "a.docx")["text"] == "kept new"


def test_a_table_is_read_with_its_numbers_as_numbers(sales: Path, call: Call) -> None:
    read = call("read_table", sales.name, control_id="table-1")
    assert read["header"] == ["Month", "Revenue", "Share"]
    assert read["rows"] == [["Jan", 1234.5, 0.12], ["Feb", 2000, 0.13], ["Mar", None, "n/a"]]
    assert read["units"] == ["", "", "%"]
    assert read["kept_as_text"] == []


def test_a_table_is_read_as_text_where_that_is_wanted(sales: Path, call: Call) -> None:
    read = call("read_table", sales.name, control_id="table-1", numbers=False, start=1, limit=1)
    assert (read["rows"], read["row_count"], read["left_out"]) == ([SALES[1]], 3, 1)


def test_an_ambiguous_number_is_reported_as_text_without_a_separator(workspace: Path, call: Call) -> None:
    call("create_document", path="a.docx")
    call("insert_table", "a.docx", header=["Paid"], rows=[["1.200"], ["850"]])
    read = call("read_table", "a.docx", control_id="table-1")
    assert read["rows"] == [["1.200"], [850]]
    assert read["kept_as_text"] == [{"row": 1, "column": 1, "text": "1.200"}]
    assert call("read_table", "a.docx", control_id="table-1", decimal=",")["rows"] == [[1200], [850]]
    assert call("read_table", "a.docx", control_id="table-1", decimal=".")["rows"] == [[1.2], [850]]


def test_decimal_separator_is_inferred_from_the_same_column_only(workspace: Path, call: Call) -> None:
    call("create_document", path="a.docx")
    call("insert_table", "a.docx", header=["Day", "Paid"], rows=[["12.10", "1.200"]])
    assert call("read_table", "a.docx", control_id="table-1")["rows"] == [[12.1, "1.200"]]


def test_merged_cells_are_read_once_at_their_corner(workspace: Path, call: Call) -> None:
    document = docx.Document()
    table = document.add_table(3, 3)
    for row in range(3):
        for column in range(3):
            table.cell(row, column).text = str(3 * row + column)
    table.cell(1, 0).merge(table.cell(2, 0)).text = "10"
    table.cell(0, 1).merge(table.cell(0, 2)).text = "head"
    document.save(str(workspace / "a.docx"))
    read = call("read_table", "a.docx", control_id="table-1")
    assert read["header"] == ["0", "head", ""]
    assert read["rows"] == [[10, 4, 5], [None, 7, 8]]
    assert {"row": 1, "column": 1, "rows": 2, "columns": 1} in read["merged"]
    assert {"row": 0, "column": 2, "rows": 1, "columns": 2} in read["merged"]
    with pytest.raises(ToolError, match="merged"):
        call("write_cell", "a.docx", control_id="table-1", row=3, column=1, value="x")


def test_an_empty_table_is_read_as_one(workspace: Path, call: Call) -> None:
    document = docx.Document()
    document.add_table(0, 2)
    document.save(str(workspace / "a.docx"))
    read = call("read_table", "a.docx", control_id="table-1")
    assert (read["header"], read["rows"], read["row_count"]) == ([], [], 0)


def test_paragraphs_headings_and_tables_are_inserted_where_they_are_wanted(sales: Path, call: Call) -> None:
    call("insert_paragraph", sales.name, text="Intro", control_id="heading-1", style="Quote")
    made = call("insert_heading", sales.name, text="Details", level=2, control_id="paragraph-2", position="after")
    assert made == {"control_id": "heading-2", "control_name": "Details"}
    call("insert_table", sales.name, header=["a"], rows=[[1.5]], control_id="heading-3", position="before")
    texts = call("read_text", sales.name)["text"].split("\n")
    assert texts[:4] == ["# Sales 2024", "Intro", "Revenue rose in spring.", "## Details"]
    assert call("read_table", sales.name, control_id="table-1")["rows"] == [[1.5]]
    call("insert_paragraph", sales.name, text="The end")
    assert call("read_text", sales.name)["text"].endswith("\nThe end")


def test_a_table_beside_a_table_stays_a_table_of_its_own(sales: Path, call: Call) -> None:
    call("insert_table", sales.name, header=["a"], rows=[["b"]], control_id="table-1")
    assert [control for control in ids(call) if control.startswith("table")] == ["table-1", "table-2"]
    body = [child.tag for child in docx.Document(str(sales)).element.body]
    assert (qn("w:tbl"), qn("w:tbl")) not in set(pairwise(body))


def test_a_paragraph_gets_a_new_text_and_keeps_its_font(sales: Path, call: Call) -> None:
    call("edit_paragraph", sales.name, control_id="heading-1", control_name="Sales 2024", text="Sales\n2025")
    paragraph = docx.Document(str(sales)).paragraphs[0]
    assert (paragraph.text, paragraph.style.name) == ("Sales\n2025", "Heading 1")


def test_a_paragraph_that_holds_more_than_text_is_not_overwritten(sales: Path, call: Call) -> None:
    document = docx.Document(str(sales))
    document.paragraphs[1]._p.append(OxmlElement("w:hyperlink"))
    document.save(str(sales))
    call("get_controls", sales.name)
    with pytest.raises(ToolError, match="a link"):
        call("edit_paragraph", sales.name, control_id="paragraph-1", text="x")


@pytest.mark.parametrize("kind", [WD_BREAK.PAGE, WD_BREAK.COLUMN])
def test_a_page_or_column_break_is_not_overwritten(sales: Path, call: Call, kind: WD_BREAK) -> None:
    document = docx.Document(str(sales))
    document.paragraphs[1].add_run().add_break(kind)
    document.save(str(sales))
    call("get_controls", sales.name)
    with pytest.raises(ToolError, match=f"holds a {kind.name.lower()} break"):
        call("edit_paragraph", sales.name, control_id="paragraph-1", text="x")


def test_a_text_is_replaced_across_runs_and_in_tables(sales: Path, call: Call) -> None:
    assert call("replace_text", sales.name, find_text="rose in", new_text="fell in")["replaced"] == 1
    paragraph = docx.Document(str(sales)).paragraphs[1]
    assert paragraph.text == "Revenue fell in spring."
    assert [run.text for run in paragraph.runs if run.bold] == ["fell in"]
    assert call("replace_text", sales.name, find_text="REVENUE", new_text="Income", match_case=False)["replaced"] == 2
    with pytest.raises(ToolError, match="does not occur"):
        call("replace_text", sales.name, find_text="sal", new_text="x", whole_words=True, match_case=False)
    with pytest.raises(ToolError, match=r"nothing was replaced; did you mean 'spring\.'\?"):
        call("replace_text", sales.name, find_text="Sprin.", new_text="x")
    with pytest.raises(ToolError, match=r"no control 'tabel-1' in the document; .* did you mean 'table-1'\?"):
        call("set_font", sales.name, control_id="tabel-1", bold=True)


@settings(max_examples=30)
@given(st.lists(st.sampled_from(["a", "b", "ab", "ba", "aab"]), max_size=6), st.sampled_from(["a", "ab", "ba"]), TEXTS)
def test_replacing_across_runs_does_what_replacing_in_a_string_does(
    tmp_path_factory: pytest.TempPathFactory, runs: list[str], find: str, new: str
) -> None:
    folder = tmp_path_factory.mktemp("runs")
    document = docx.Document()
    paragraph = document.add_paragraph()
    for run in runs:
        paragraph.add_run(run)
    document.save(str(folder / "a.docx"))
    surface = DocumentSurface(folder)
    if find not in "".join(runs):
        return
    surface._word.replace_text("a.docx", find, new)
    assert docx.Document(str(folder / "a.docx")).paragraphs[0].text == "".join(runs).replace(find, new)


def test_rows_are_appended_and_cells_written_as_the_table_looks(sales: Path, call: Call) -> None:
    call("append_rows", sales.name, control_id="table-1", rows=[["Apr", 5, None]])
    call("write_cell", sales.name, control_id="table-1", row=2, column=2, value=7.25)
    rows = call("read_table", sales.name, control_id="table-1")["rows"]
    assert rows[0][1] == 7.25
    assert rows[-1] == ["Apr", 5, None]
    for bad, why in (({"row": 99, "column": 1}, "rows"), ({"row": 1, "column": 9}, "columns")):
        with pytest.raises(ToolError, match=why):
            call("write_cell", sales.name, control_id="table-1", value="x", **bad)


def test_the_font_of_a_control_is_set_and_the_rest_stays(sales: Path, call: Call) -> None:
    call("set_font", sales.name, control_id="paragraph-1", name="Arial", size=14, italic=True, color="#FF0000")
    runs = docx.Document(str(sales)).paragraphs[1].runs
    assert {(run.font.name, run.font.size, run.italic, str(run.font.color.rgb)) for run in runs} == {
        ("Arial", Pt(14), True, "FF0000")
    }
    assert [run.bold for run in runs] == [None, True, None]
    with pytest.raises(ToolError, match="nothing to set"):
        call("set_font", sales.name, control_id="paragraph-1")


def test_colors_have_the_names_that_they_have_in_excel(sales: Path, call: Call) -> None:
    for color, code in (("Dark Red", "C00000"), ("none", None)):
        call("set_font", sales.name, control_id="paragraph-1", color=color)
        (run, *_) = docx.Document(str(sales)).paragraphs[1].runs
        assert (run.font.color.rgb and str(run.font.color.rgb)) == code
    with pytest.raises(ToolError, match=r"'pinkish' is no color; write it as #RRGGBB, or as one of: black"):
        call("set_font", sales.name, control_id="paragraph-1", color="pinkish")


def test_a_control_is_deleted(sales: Path, call: Call) -> None:
    call("delete_control", sales.name, control_id="table-1")
    assert "table-1" not in ids(call)


def test_tables_stay_apart_when_the_paragraph_between_is_deleted(workspace: Path, call: Call) -> None:
    path, document = workspace / "tables.docx", docx.Document()
    for text in ("between", "below"):
        document.add_table(1, 1).cell(0, 0).text = text
        document.add_paragraph(text)
    document.save(str(path))
    call("get_controls", path.name)
    call("delete_control", path.name, control_id="paragraph-1")
    call("delete_control", path.name, control_id="paragraph-2")
    body = docx.Document(str(path)).element.body
    assert [child.tag for child in body] == [qn(f"w:{name}") for name in ("tbl", "p", "tbl", "p", "sectPr")]
    assert set(ids(call, path.name)) == {"table-1", "table-2"}


def test_a_document_is_saved_under_another_name(sales: Path, call: Call, surface: DocumentSurface) -> None:
    target = call("save_as", sales.name, path="copy.docx")
    assert (target.address, target.binds) == ("app/word/copy.docx", {"document": "copy.docx"})
    assert (sales.parent / "copy.docx").read_bytes() == sales.read_bytes()
    assert target in surface.targets()
    for path, why in (("copy.docx", "already"), ("copy.xlsx", "only be saved as"), ("../copy.docx", "refused")):
        with pytest.raises(ToolError, match=why):
            call("save_as", sales.name, path=path)


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("read_table", {"control_id": "table-9"}, "no control 'table-9'"),
        ("read_table", {"control_id": "heading-1"}, "needs a table"),
        ("edit_paragraph", {"control_id": "table-1", "text": "x"}, "needs a heading or a paragraph"),
        ("edit_paragraph", {"control_id": "heading-1", "control_name": "Other", "text": "x"}, "now called"),
        ("edit_paragraph", {"control_id": "heading-1", "text": " "}, "empty; delete_control removes 'heading-1'"),
        ("insert_heading", {"text": "\n"}, "text is empty"),
        ("insert_paragraph", {"text": "x", "style": "Nothing"}, "no paragraph style"),
        ("insert_paragraph", {"text": "bell\x07"}, "can't hold"),
        ("insert_table", {"header": [], "rows": [["b"] * 64]}, "at most 63 columns, and this one has 64"),
        ("insert_table", {"header": ["a"], "rows": [["b", "c"]]}, "1 cells, but each row has 2: give 2 titles"),
        ("insert_table", {"header": [], "rows": []}, "no cells"),
        ("insert_table", {"header": ["a"], "rows": [["b"]], "style": "Nothing"}, "no table style"),
        ("append_rows", {"control_id": "table-1", "rows": [["b"]]}, "3 columns"),
        ("replace_text", {"find_text": "a", "new_text": "b\nc"}, "line breaks"),
    ],
)
def test_a_mistake_gives_a_clear_error_and_changes_nothing(
    sales: Path, call: Call, name: str, arguments: dict[str, object], why: str
) -> None:
    before = sales.read_bytes()
    with pytest.raises(ToolError, match=why):
        call(name, sales.name, **arguments)
    assert sales.read_bytes() == before


@settings(max_examples=25)
@given(st.lists(TEXTS, min_size=1, max_size=3))
def test_inserted_text_is_read_back(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    surface = DocumentSurface(tmp_path_factory.mktemp("text"))
    surface.create_document("a.docx")
    word = surface._word
    for text in texts:
        word.insert_paragraph("a.docx", text)
    assert word.read_text("a.docx")["text"] == "\n".join(texts)


def test_a_second_reading_parses_only_another_version(workspace, call, monkeypatch):
    document = docx.Document()
    document.add_paragraph("First")
    document.save(workspace / "a.docx")
    answer = call("read_text", "a.docx")
    with monkeypatch.context() as patch:
        patch.setattr(WordFile, "load", None)  # the text is kept
        assert call("read_text", "a.docx") == answer
    document.add_paragraph("Second")
    document.save(workspace / "a.docx")
    assert call("read_text", "a.docx")["text"] == "First\nSecond"
