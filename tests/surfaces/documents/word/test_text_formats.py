"""Formatting Word documents: lists, alignment, styles, fonts, and table lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import docx
import pytest
from docx.enum.text import WD_ALIGN_PARAGRAPH
from docx.oxml.ns import qn
from hypothesis import given, settings
from hypothesis import strategies as st
from office_files import changed, parts

from callboard.surfaces import ToolError
from callboard.surfaces.documents import DocumentSurface

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call
    from docx.text.paragraph import Paragraph


@pytest.fixture
def notes(workspace: Path) -> Path:
    """Give a document with five paragraphs and a table."""
    path = workspace / "notes.docx"
    document = docx.Document()
    for text in ("one", "two", "three", "four", "five"):
        document.add_paragraph(text)
    document.add_table(2, 2).cell(0, 0).text = "cell"
    document.save(str(path))
    return path


def numbered(path: Path) -> list[tuple[str, str, str, str]]:
    """List the items of lists: text, list id, level and format."""
    document = docx.Document(str(path))
    numbering = document.part.numbering_part.element
    links = {num.numId: num.abstractNumId.val for num in numbering.num_lst}
    found = []
    for paragraph in document.paragraphs:
        look = paragraph._p.pPr.numPr if paragraph._p.pPr is not None else None
        if look is not None:
            level = look.ilvl.val
            form = numbering.xpath(
                f"w:abstractNum[@w:abstractNumId={links[look.numId.val]}]/w:lvl[@w:ilvl={level}]/w:numFmt/@w:val"
            )
            found.append((paragraph.text, look.numId.val, level, form[0]))
    return found


def test_several_paragraphs_are_inserted_in_one_call(notes: Path, call: Call) -> None:
    made = call(
        "insert_paragraph", notes.name, text="a", more_texts=["b", "c"], control_id="paragraph-1", alignment="right"
    )
    assert made == {
        "control_id": "paragraph-2",
        "control_name": "a",
        "more": [
            {"control_id": "paragraph-3", "control_name": "b"},
            {"control_id": "paragraph-4", "control_name": "c"},
        ],
    }
    paragraphs = docx.Document(str(notes)).paragraphs
    assert [each.text for each in paragraphs[:5]] == ["one", "a", "b", "c", "two"]
    assert [each.alignment for each in paragraphs[1:4]] == [WD_ALIGN_PARAGRAPH.RIGHT] * 3


def test_several_paragraphs_keep_their_order_before_a_control(notes: Path, call: Call) -> None:
    call("insert_paragraph", notes.name, text="a", more_texts=["b"], control_id="paragraph-1", position="before")
    assert [each.text for each in docx.Document(str(notes)).paragraphs[:3]] == ["a", "b", "one"]


def test_inserted_list_items_are_one_list(notes: Path, call: Call) -> None:
    call("insert_paragraph", notes.name, text="a", more_texts=["b"], list_type="number", control_id="paragraph-1")
    call("insert_paragraph", notes.name, text="c", list_type="number", control_id="paragraph-3")
    first = numbered(notes)[0][1]
    assert numbered(notes) == [(text, first, 0, "decimal") for text in "abc"]
    assert docx.Document(str(notes)).paragraphs[1].style.name == "List Paragraph"


def test_a_list_elsewhere_counts_from_one_again(notes: Path, call: Call) -> None:
    for control in ("paragraph-1", "paragraph-2", "paragraph-4"):
        call("format_paragraph", notes.name, control_id=control, list_type="number")
    one, two, four = numbered(notes)
    assert one[1] == two[1] != four[1]


def test_list_continues_after_the_items_of_a_deeper_one(notes: Path, call: Call) -> None:
    call("format_paragraph", notes.name, control_id="paragraph-1", list_type="number")
    call("format_paragraph", notes.name, control_id="paragraph-2", list_type="bullet", list_level=2)
    call("format_paragraph", notes.name, control_id="paragraph-3", list_type="number")
    one, two, three = numbered(notes)
    assert one[1:] == three[1:]
    assert two[2:] == (1, "bullet")


def test_a_list_of_a_style_is_joined(notes: Path, call: Call) -> None:
    call("format_paragraph", notes.name, control_id="paragraph-1", style="List Bullet")
    call("format_paragraph", notes.name, control_id="paragraph-2", list_type="bullet")
    document = docx.Document(str(notes))
    style = document.styles["List Bullet"].element.pPr.numPr.numId.val
    assert numbered(notes) == [("two", style, 0, "bullet")]


def test_an_item_leaves_its_list(notes: Path, call: Call) -> None:
    for control in ("paragraph-1", "paragraph-2"):
        call("format_paragraph", notes.name, control_id=control, list_type="bullet")
    call("format_paragraph", notes.name, control_id="paragraph-1", list_type="none")
    assert [text for text, *_ in numbered(notes)] == ["two"]
    call("format_paragraph", notes.name, control_id="paragraph-3", style="List Bullet")
    call("format_paragraph", notes.name, control_id="paragraph-3", list_type="none")
    assert docx.Document(str(notes)).paragraphs[2]._p.pPr.numPr.numId.val == 0


def test_a_second_list_uses_the_definitions_that_are_there(notes: Path, call: Call) -> None:
    before = len(docx.Document(str(notes)).part.numbering_part.element.num_lst)
    call("format_paragraph", notes.name, control_id="paragraph-1", list_type="bullet")
    numbering = docx.Document(str(notes)).part.numbering_part.element
    tags = [child.tag for child in numbering]
    assert len(numbering.num_lst) == before + 1
    assert tags == sorted(tags, key=[qn("w:abstractNum"), qn("w:num")].index)  # the order that the format demands


@pytest.mark.parametrize("alignment", ["left", "center", "right", "justify"])
def test_a_paragraph_is_aligned(notes: Path, call: Call, alignment: str) -> None:
    call("format_paragraph", notes.name, control_id="paragraph-1", alignment=alignment)
    first, second, *_ = docx.Document(str(notes)).paragraphs
    assert (first.alignment, second.alignment) == (WD_ALIGN_PARAGRAPH[alignment.upper()], None)


def test_all_cells_of_a_table_are_aligned(notes: Path, call: Call) -> None:
    made = call("format_paragraph", notes.name, control_id="table-1", alignment="center", style="Table Grid")
    table = docx.Document(str(notes)).tables[0]
    assert made["paragraphs"] == 4
    assert {each.paragraphs[0].alignment for row in table.rows for each in row.cells} == {WD_ALIGN_PARAGRAPH.CENTER}
    assert table.style.name == "Table Grid"


def test_a_paragraph_becomes_a_heading_by_its_style(notes: Path, call: Call) -> None:
    call("format_paragraph", notes.name, control_id="paragraph-2", style="heading 2")
    controls = call("get_controls", notes.name)["controls"]
    assert [(each["id"], each["detail"].get("level")) for each in controls][1] == ("heading-1", 2)


def shown(paragraph: Paragraph) -> list[tuple[str, bool | None]]:
    """List the texts of a paragraph's runs, and whether they are bold."""
    return [(run.text, run.bold) for run in paragraph.runs]


def test_a_part_of_a_text_is_made_bold(notes: Path, call: Call) -> None:
    call("edit_paragraph", notes.name, control_id="paragraph-1", text="Pay 5 % by May, or pay 6 % later")
    made = call("set_font", notes.name, control_id="paragraph-1", bold=True, find_text="by May")
    assert made["runs"] == 1
    assert shown(docx.Document(str(notes)).paragraphs[0]) == [
        ("Pay 5 % ", None),
        ("by May", True),
        (", or pay 6 % later", None),
    ]
    call("set_font", notes.name, control_id="paragraph-1", italic=True, find_text="%")
    assert [run.text for run in docx.Document(str(notes)).paragraphs[0].runs if run.italic] == ["%", "%"]


def test_font_of_a_text_part_keeps_its_other_formats(notes: Path, call: Call) -> None:
    document = docx.Document(str(notes))
    paragraph = document.paragraphs[0]
    paragraph.add_run("\tbig").font.size = docx.shared.Pt(20)
    document.save(str(notes))
    call("get_controls", notes.name)
    call("set_font", notes.name, control_id="paragraph-1", color="FF0000", find_text="big")
    runs = docx.Document(str(notes)).paragraphs[0].runs
    assert [(run.text, run.font.size.pt if run.font.size else None) for run in runs] == [
        ("one", None),
        ("\t", 20),
        ("big", 20),
    ]


@settings(max_examples=20)
@given(st.lists(st.sampled_from(["a", "b", "ab", "ba\t", "aab", "\n"]), max_size=5), st.sampled_from(["a", "ab", "ba"]))
def test_the_font_of_a_part_leaves_the_text_as_it_is(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], find: str
) -> None:
    folder = tmp_path_factory.mktemp("runs")
    document = docx.Document()
    paragraph = document.add_paragraph()
    for text in texts:
        paragraph.add_run(text)
    document.save(str(folder / "a.docx"))
    whole = "".join(texts)
    if find not in whole:
        return
    DocumentSurface(folder)._word.set_font("a.docx", "paragraph-1", bold=True, find_text=find)
    made = docx.Document(str(folder / "a.docx")).paragraphs[0]
    assert made.text == whole
    assert "".join(run.text for run in made.runs if run.bold) == find * whole.count(find)


def test_a_text_is_replaced_in_headers_footers_and_text_boxes(notes: Path, call: Call) -> None:
    document = docx.Document(str(notes))
    document.sections[0].header.paragraphs[0].text = "Draft of ACME"
    document.sections[0].footer.paragraphs[0].text = "ACME, page 1"
    document.save(str(notes))
    box = (
        b'<mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">'
        b'<mc:Choice Requires="wps"><w:drawing><w:txbxContent><w:p><w:r><w:t>ACME</w:t></w:r></w:p></w:txbxContent>'
        b"</w:drawing></mc:Choice><mc:Fallback><w:pict><w:txbxContent><w:p><w:r><w:t>ACME</w:t></w:r></w:p>"
        b"</w:txbxContent></w:pict></mc:Fallback></mc:AlternateContent>"
    )
    main = "word/document.xml"
    notes.write_bytes(
        changed(
            notes.read_bytes(),
            lambda all_: all_.update({main: all_[main].replace(b"<w:t>one", box + b"<w:t>ACME one")}),
        )
    )
    call("get_controls", notes.name)
    assert call("replace_text", notes.name, find_text="ACME", new_text="Bolt")["replaced"] == 4
    assert not [name for name, data in parts(notes.read_bytes()).items() if b"ACME" in data]


def test_error_suggests_the_nearest_text_and_control(notes: Path, call: Call) -> None:
    with pytest.raises(ToolError, match="did you mean 'three'"):
        call("replace_text", notes.name, find_text="thre e", new_text="x")
    with pytest.raises(ToolError, match="did you mean 'paragraph-1'"):
        call("edit_paragraph", notes.name, control_id="paragraf-1", text="x")


def grid(path: Path) -> list[list[str]]:
    """Read the cells of the first table."""
    return [[cell.text for cell in row.cells] for row in docx.Document(str(path)).tables[0].rows]


@pytest.fixture
def figures(workspace: Path) -> Path:
    """Give a table of nine cells, some merged.

    The first row is merged over two columns, the last column over two rows.
    """
    path = workspace / "figures.docx"
    document = docx.Document()
    table = document.add_table(3, 3)
    for row in range(3):
        for column in range(3):
            table.cell(row, column).text = f"{row}{column}"
    table.cell(0, 0).merge(table.cell(0, 1)).text = "head"
    table.cell(1, 2).merge(table.cell(2, 2)).text = "tall"
    document.save(str(path))
    return path


def test_rows_and_columns_of_a_table_are_deleted(figures: Path, call: Call) -> None:
    made = call("delete_from_table", figures.name, control_id="table-1", rows=[3], columns=[1])
    assert made == {"control_id": "table-1", "rows_left": 2, "columns_left": 2}
    assert grid(figures) == [["head", "02"], ["11", "tall"]]
    assert len(docx.Document(str(figures)).tables[0].columns) == 2


def test_the_last_column_of_a_table_is_deleted_with_its_merged_cells(figures: Path, call: Call) -> None:
    call("delete_from_table", figures.name, control_id="table-1", columns=[3])
    assert grid(figures) == [["head", "head"], ["10", "11"], ["20", "21"]]


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("delete_from_table", {"control_id": "table-1", "rows": [2]}, "merged with the rows down to 3"),
        ("delete_from_table", {"control_id": "table-1", "rows": [4]}, "no row 4; it has 3 rows and 3 columns"),
        ("delete_from_table", {"control_id": "table-1", "columns": [1, 2, 3]}, "all columns"),
        ("delete_from_table", {"control_id": "table-1"}, "nothing to delete"),
        ("format_paragraph", {"control_id": "table-1", "list_type": "bullet"}, "is a table"),
        ("format_paragraph", {"control_id": "table-1", "style": "Quote"}, "no table style 'Quote'"),
        ("format_paragraph", {"control_id": "table-1"}, "nothing to set"),
        ("set_font", {"control_id": "table-1", "bold": True, "find_text": "none"}, "does not occur"),
        ("insert_paragraph", {"text": "a", "more_texts": ["bell\x07"]}, "can't hold"),
    ],
)
def test_a_mistake_in_a_format_changes_nothing(
    figures: Path, call: Call, name: str, arguments: dict[str, Any], why: str
) -> None:
    before = figures.read_bytes()
    with pytest.raises(ToolError, match=why):
        call(name, figures.name, **arguments)
    assert figures.read_bytes() == before


def test_deleting_from_a_table_is_a_hazard(surface: DocumentSurface) -> None:
    tools = {entry.name: entry for entry in surface.tools() if "word" in entry.roots}
    assert tools["delete_from_table"].hazards == tools["delete_control"].hazards != frozenset()
    assert not tools["format_paragraph"].hazards


def test_a_copied_row_has_no_ids_of_the_first(notes: Path, call: Call) -> None:
    word14 = b' xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml" w14:paraId="0A0B0C0D"'
    main = "word/document.xml"
    notes.write_bytes(
        changed(
            notes.read_bytes(), lambda all_: all_.update({main: all_[main].replace(b"<w:tr>", b"<w:tr%s>" % word14)})
        )
    )
    call("get_controls", notes.name)
    call("append_rows", notes.name, control_id="table-1", rows=[["a", "b"]])
    assert parts(notes.read_bytes())[main].count(b"paraId=") == 2
