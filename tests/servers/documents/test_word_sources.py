"""Word texts whose source is elsewhere, and what a person sees besides letters."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import docx
import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls, qn

from callboard.actors.servers import DocumentServer, ToolError

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call

NAMESPACES = (
    f'{nsdecls("w", "r")} xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" '
    'xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml"'
)


def text(words: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{words}</w:t></w:r>'


def mark(kind: str, inner: str = "") -> str:
    return f'<w:r><w:fldChar w:fldCharType="{kind}">{inner}</w:fldChar></w:r>'


def field(code: str, result: str) -> str:
    code = f'<w:r><w:instrText xml:space="preserve"> {code} </w:instrText></w:r>'
    return mark("begin") + code + mark("separate") + text(result) + mark("end")


def control(properties: str, shown: str = "old") -> str:
    return f"<w:sdt><w:sdtPr>{properties}</w:sdtPr><w:sdtContent>{text(shown)}</w:sdtContent></w:sdt>"


def put(workspace: Path, *paragraphs: str) -> Path:
    document = docx.Document()
    for inner in paragraphs:
        document.element.body.insert(-1, parse_xml(f"<w:p {NAMESPACES}>{inner}</w:p>"))
    path = workspace / "a.docx"
    document.save(str(path))
    return path


def xml(path: Path) -> str:
    return zipfile.ZipFile(path).read("word/document.xml").decode()


LIST = '<w:dropDownList><w:listItem w:displayText="old" w:value="1"/></w:dropDownList>'
COMPUTED = [
    (field("TITLE", "old"), "the result of a field (TITLE)"),
    (field('DATE \\@ "yyyy"', "old"), "the result of a field (DATE"),
    ('<w:fldSimple w:instr=" AUTHOR ">' + text("old") + "</w:fldSimple>", "the result of a field (AUTHOR)"),
    (control('<w:dataBinding w:xpath="/x" w:storeItemID="{1}"/>'), "a property or custom data of the document"),
    (control(LIST), "a drop-down list"),
    (control('<w:lock w:val="sdtContentLocked"/>'), "content is locked"),
    (control('<w:date w:fullDate="2024-05-31T00:00:00Z"/>'), "a date control"),
    (control('<w14:checkbox><w14:checked w14:val="1"/></w14:checkbox>'), "a check box"),
]


@pytest.mark.parametrize(("inner", "reason"), COMPUTED, ids=[reason for _, reason in COMPUTED])
def test_a_text_with_a_source_elsewhere_is_not_replaced(workspace: Path, call: Call, inner: str, reason: str) -> None:
    path = put(workspace, text("See ") + inner)
    before = path.read_bytes()
    with pytest.raises(ToolError) as error:
        call("replace_text", "a.docx", find_text="old", new_text="new")
    assert reason in str(error.value)
    with pytest.raises(ToolError):
        call("edit_paragraph", "a.docx", control_id="paragraph-1", text="new")
    assert path.read_bytes() == before
    path = put(workspace, text("See old ") + inner)
    call("get_controls", "a.docx")
    answer = call("replace_text", "a.docx", find_text="old", new_text="new")
    assert answer["replaced"] == 1
    assert reason in answer["not_replaced"][0]
    assert call("read_text", "a.docx")["text"] == "See new old"


@pytest.mark.parametrize("inner", [field("FORMTEXT", "old"), field('HYPERLINK "http://x.y"', "old"), control("")])
def test_a_text_that_stays_is_replaced(workspace: Path, call: Call, inner: str) -> None:
    put(workspace, inner)
    assert call("replace_text", "a.docx", find_text="old", new_text="new") == {"replaced": 1}


def test_a_line_of_a_table_of_contents_is_not_edited(workspace: Path, call: Call) -> None:
    code = '<w:r><w:instrText> TOC \\o "1-3" </w:instrText></w:r>'
    put(workspace, mark("begin") + code + mark("separate") + text("Intro 1"), text("Prices 2"), mark("end"))
    with pytest.raises(ToolError, match="the result of a field"):
        call("edit_paragraph", "a.docx", control_id="paragraph-2", text="Costs 2")
    with pytest.raises(ToolError, match="stands only in the result of a field"):
        call("replace_text", "a.docx", find_text="Prices", new_text="Costs")


def test_a_cell_within_a_locked_control_is_not_written(workspace: Path, call: Call) -> None:
    document = docx.Document()
    cell = document.add_table(1, 1).cell(0, 0)._tc
    inner = f"<w:p>{text('old')}</w:p>"
    locked = '<w:sdtPr><w:lock w:val="contentLocked"/></w:sdtPr>'
    cell.insert(1, parse_xml(f"<w:sdt {NAMESPACES}>{locked}<w:sdtContent>{inner}</w:sdtContent></w:sdt>"))
    document.save(str(workspace / "a.docx"))
    with pytest.raises(ToolError, match="content is locked"):
        call("write_cell", "a.docx", control_id="table-1", row=1, column=1, value="new")


def test_links_whose_words_change_are_named(workspace: Path, call: Call) -> None:
    put(workspace, f'<w:hyperlink w:anchor="x">{text("old.example")}</w:hyperlink>')
    answer = call("replace_text", "a.docx", find_text="old", new_text="new")
    assert answer == {"replaced": 1, "links_keep_their_targets": ["new.example"]}


def box(state: str) -> str:
    data = f"<w:ffData><w:checkBox><w:sizeAuto/>{state}</w:checkBox></w:ffData>"
    return mark("begin", data) + "<w:r><w:instrText> FORMCHECKBOX </w:instrText></w:r>" + mark("end")


def symbol(font: str, code: str) -> str:
    return f'<w:r><w:sym w:font="{font}" w:char="{code}"/></w:r>'


def math(inner: str) -> str:
    return f"<m:oMath>{inner}</m:oMath>"


def letters(words: str) -> str:
    return f"<m:r><m:t>{words}</m:t></m:r>"


ENTRIES = '<w:listEntry w:val="red"/><w:listEntry w:val="blue"/>'
CHOICES = f'<w:ffData><w:ddList><w:result w:val="1"/>{ENTRIES}</w:ddList></w:ffData>'


@pytest.mark.parametrize(
    ("inner", "shown"),
    [
        (box('<w:default w:val="1"/>'), "☒"),
        (box('<w:default w:val="1"/><w:checked w:val="0"/>'), "☐"),
        (box('<w:default w:val="0"/><w:checked/>'), "☒"),
        (mark("begin", CHOICES) + mark("end"), "blue"),
        (symbol("Wingdings", "F0FE") + symbol("Wingdings", "F0A8"), "☒☐"),
        (symbol("Symbol", "F061") + symbol("Webdings", "F0FF") + symbol("Arial", "2713"), "α[symbol]✓"),
        (math(letters("a=b+c")), "a=b+c"),
        (math(f"<m:f><m:num>{letters('a+b')}</m:num><m:den>{letters('2')}</m:den></m:f>"), "(a+b)/2"),
        (math(f"<m:sSup><m:e>{letters('x')}</m:e><m:sup>{letters('2')}</m:sup></m:sSup>"), "x^2"),
        (math(f"<m:rad><m:deg/><m:e>{letters('x+1')}</m:e></m:rad>"), "√(x+1)"),
        (math(f"<m:d><m:e>{letters('n')}</m:e></m:d>"), "(n)"),
    ],
)
def test_symbols_check_boxes_and_equations_are_read(workspace: Path, call: Call, inner: str, shown: str) -> None:
    put(workspace, text("A ") + inner + text(" B"))
    assert call("read_text", "a.docx")["text"] == f"A {shown} B"
    with pytest.raises(ToolError, match="does not occur"):
        call("replace_text", "a.docx", find_text="A  B", new_text="x")


@pytest.mark.parametrize(
    ("words", "find_text"),
    [
        ("Don\u2019t pay", "Don't pay"), ("10\u00a0000 EUR", "10 000 EUR"), ("1\u202f000", "1 000"),
        ("\u201cYes\u201d", '"Yes"'), ("Ter\u00admin", "Termin"), ("2019\u20132021", "2019-2021"),
        ("and so on\u2026", "so on..."),
        ("Cafe\u0301", "Café"), ("don't", "don\u2019t"),
    ],
)  # fmt: skip
def test_a_text_is_replaced_in_each_typographic_form(workspace: Path, call: Call, words: str, find_text: str) -> None:
    put(workspace, text(f"X {words} Y"))
    answer = call("replace_text", "a.docx", find_text=find_text, new_text="new")
    assert answer["replaced"] == 1
    assert len(answer["also_matched"]) == 1
    (workspace / "a.txt").write_text(f"X {words} Y", encoding="utf-8")
    assert call("replace_text", "a.txt", find_text=find_text, new_text="new") == answer
    assert "new Y" in (workspace / "a.txt").read_text(encoding="utf-8")


def test_a_hyphen_element_is_a_part_of_a_word(workspace: Path, call: Call) -> None:
    path = put(workspace, "<w:r><w:t>co</w:t><w:noBreakHyphen/><w:t>operative</w:t></w:r>")
    call("set_font", "a.docx", control_id="paragraph-1", find_text="co-operative", bold=True)
    call("replace_text", "a.docx", find_text="co-op", new_text="coop")
    assert call("read_text", "a.docx")["text"] == "cooperative"
    assert "noBreakHyphen" not in xml(path)


@pytest.mark.parametrize(("words", "find_text"), [("Strasse", "Straße"), ("\u201cYes\u201d", '"'), ("a\u2014b", "a-b")])
def test_other_letters_and_lone_signs_are_literal(workspace: Path, call: Call, words: str, find_text: str) -> None:
    put(workspace, text(words))
    with pytest.raises(ToolError, match="does not occur"):
        call("replace_text", "a.docx", find_text=find_text, new_text="x")


BOOKMARK = '<w:bookmarkStart w:id="2" w:name="Terms"/>', '<w:bookmarkEnd w:id="2"/>'


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_bookmark_keeps_both_ends(workspace: Path, call: Call, number: int) -> None:
    path = put(workspace, text("a"), BOOKMARK[0] + text("b"), text("c") + BOOKMARK[1], text("d"))
    call("delete_control", "a.docx", control_id=f"paragraph-{number + 1}")
    assert xml(path).count("bookmarkStart") == xml(path).count("bookmarkEnd") == 1
    assert xml(path).index("bookmarkStart") < xml(path).index("bookmarkEnd")


def test_a_bookmark_keeps_both_ends_when_rows_go(workspace: Path, call: Call) -> None:
    document = docx.Document()
    table = document.add_table(3, 1)
    for row, half in ((0, BOOKMARK[0]), (2, BOOKMARK[1])):
        table.cell(row, 0).paragraphs[0]._p.append(parse_xml(half.replace("/>", f" {NAMESPACES}/>")))
    document.save(str(workspace / "a.docx"))
    call("delete_from_table", "a.docx", control_id="table-1", rows=[3])
    assert "bookmarkEnd" in xml(workspace / "a.docx")


@pytest.mark.parametrize("marked", [True, False])
def test_rows_below_a_lone_header_are_plain(workspace: Path, call: Call, marked: bool) -> None:
    document = docx.Document()
    table = document.add_table(1, 2)
    for cell, words in zip(table.rows[0].cells, ("Item", "Price"), strict=True):
        cell.text = words
        cell.paragraphs[0].runs[0].bold = True
        cell._tc.get_or_add_tcPr().append(parse_xml(f'<w:shd {NAMESPACES} w:val="clear" w:fill="000080"/>'))
    if marked:
        table.rows[0]._tr.get_or_add_trPr().append(parse_xml(f"<w:tblHeader {NAMESPACES}/>"))
    document.save(str(workspace / "a.docx"))
    call("append_rows", "a.docx", control_id="table-1", rows=[["a", 1], ["b", 2]])
    call("append_rows", "a.docx", control_id="table-1", rows=[["c", 3]])
    element = docx.Document(str(workspace / "a.docx")).tables[0]._tbl
    counts = [len(list(element.iter(qn(f"w:{name}")))) for name in ("tr", "tblHeader", "b", "shd")]
    assert counts == [4, int(marked), 2, 2]


def test_an_observation_counts_what_it_does_not_show(workspace: Path, server: DocumentServer, call: Call) -> None:
    document = docx.Document()
    document.add_comment(document.add_paragraph("Text").runs, "Check this")
    document.sections[0].header.paragraphs[0].text = "Confidential"
    deleted = f'<w:p {NAMESPACES}><w:del w:id="1" w:author="A"><w:r><w:delText>x</w:delText></w:r></w:del></w:p>'
    boxed = (
        f"<w:p {NAMESPACES}><w:r><w:pict><w:txbxContent><w:p>{text('box')}</w:p></w:txbxContent></w:pict></w:r></w:p>"
    )
    for block in (deleted, boxed):
        document.element.body.insert(-1, parse_xml(block))
    document.save(str(workspace / "a.docx"))
    seen = server.observe(next(target for target in server.targets() if target.id == "a.docx"))
    expected = "1 tracked deletion, 1 text box, 1 header, 1 comment"
    assert seen.window["not_shown"] == call("read_text", "a.docx")["not_shown"] == expected
