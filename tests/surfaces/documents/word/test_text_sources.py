"""Word texts whose source is elsewhere, and what a person sees besides letters."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import docx
import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls, qn

from callboard.surfaces import ToolError
from callboard.surfaces.documents import DocumentSurface

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call

NAMESPACES = (
    f'{nsdecls("w", "r")} xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" '
    'xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml" '
    'xmlns:w15="http://schemas.microsoft.com/office/word/2012/wordml" xmlns:v="urn:schemas-microsoft-com:vml" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:se="http://schemas.microsoft.com/office/word/2015/wordml/symex"'
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
    (control("<w:group/>"), "a group whose content is locked"),
    (
        "<w:r><w:ruby><w:rt><w:r><w:t>aid</w:t></w:r></w:rt><w:rubyBase>"
        + text("old")
        + "</w:rubyBase></w:ruby></w:r>",
        "a reading aid",
    ),
    (
        field("FORMTEXT", "old").replace(
            "</w:fldChar>",
            '<w:ffData><w:textInput><w:type w:val="calculated"/></w:textInput></w:ffData></w:fldChar>',
            1,
        ),
        "a form field that computes",
    ),
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


@pytest.mark.parametrize("inner", [field("FORMTEXT", "old"), control("")])
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


@pytest.mark.parametrize(
    "link",
    [
        f'<w:hyperlink w:anchor="x">{text("old.exa") + text("mple")}</w:hyperlink>',
        field('HYPERLINK "http://old.example"', "old.example"),
        f"<w:fldSimple w:instr=' HYPERLINK \"http://old.example\" '>{text('old.example')}</w:fldSimple>",
    ],
)
def test_links_whose_text_changes_are_named(workspace: Path, call: Call, link: str) -> None:
    put(workspace, text("See ") + link)
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


def test_hyphen_element_is_part_of_the_text(workspace: Path, call: Call) -> None:
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


def test_observation_counts_the_content_it_omits(workspace: Path, surface: DocumentSurface, call: Call) -> None:
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
    seen = surface.observe(next(target for target in surface.targets() if target.id == "a.docx"))
    expected = "1 tracked deletion, 1 text box, 1 header, 1 comment"
    assert seen.window["not_shown"] == call("read_text", "a.docx")["not_shown"] == expected


def symbol(font: str, code: str) -> str:
    return f'<w:r><w:sym w:font="{font}" w:char="{code}"/></w:r>'


def in_font(font: str, letters: str) -> str:
    return f'<w:r><w:rPr><w:rFonts w:ascii="{font}"/></w:rPr><w:t>{letters}</w:t></w:r>'


CODE = "<w:r><w:instrText> IF </w:instrText></w:r>"
ALTERNATIVES = '<mc:Choice Requires="se"><se:symEx se:char="2610"/></mc:Choice><mc:Fallback><w:t>☐</w:t></mc:Fallback>'


@pytest.mark.parametrize(
    ("inner", "shown"),
    [
        (mark("begin") + CODE + field("MERGEFIELD G", "m") + mark("separate") + text("Mr") + mark("end"), "Mr"),
        (field("EQ \\f(1,2)", "").replace(mark("separate") + text(""), ""), "[EQ \\f(1,2)]"),
        (field("MACROBUTTON NoMacro Click here", "").replace(mark("separate") + text(""), ""), "Click here"),
        (field('SYMBOL 254 \\f "Wingdings"', "").replace(mark("separate") + text(""), ""), "☒"),
        (symbol("Wingdings", "F052") + symbol("Wingdings 2", "F052") + symbol("Wingdings 2", "F06F"), "☼☒⑥"),
        (symbol("Webdings", "F061") + symbol("Wingdings 3", "F061") + symbol("Arial", "E123"), "✓[symbol][symbol]"),
        (in_font("Wingdings", "þ \uf0a8") + in_font("Symbol", "a1") + in_font("Arial", "\uf0b7"), "☒ ☐α1[symbol]"),
        ('<w:r><se:symEx se:char="1F60A"/></w:r>', "😊"),
        (f"<w:r><mc:AlternateContent>{ALTERNATIVES}</mc:AlternateContent></w:r>", "☐"),
        (text("Left") + "<w:r><w:ptab/></w:r>" + text("Right"), "Left\tRight"),
    ],
)
def test_text_is_read_as_a_person_sees_it(workspace: Path, call: Call, inner: str, shown: str) -> None:
    put(workspace, inner)
    assert call("read_text", "a.docx")["text"] == shown


def test_filled_placeholder_is_not_a_placeholder(workspace: Path, call: Call) -> None:
    style = '<w:r><w:rPr><w:rStyle w:val="PlaceholderText"/></w:rPr><w:t>Enter a name</w:t></w:r>'
    path = put(workspace, control("<w:showingPlcHdr/><w:text/>").replace(text("old"), style))
    call("replace_text", "a.docx", find_text="Enter a name", new_text="Ada")
    assert "showingPlcHdr" not in xml(path)
    assert "PlaceholderText" not in xml(path)


def build(workspace: Path, *blocks: str) -> Path:
    document = docx.Document()
    for block in blocks:
        document.element.body.insert(-1, parse_xml(block.replace(">", f" {NAMESPACES}>", 1)))
    path = workspace / "a.docx"
    document.save(str(path))
    return path


def around(properties: str, inner: str) -> str:
    return f"<w:sdt><w:sdtPr>{properties}</w:sdtPr><w:sdtContent>{inner}</w:sdtContent></w:sdt>"


def row(*texts: str) -> str:
    return f"<w:tr>{''.join(f'<w:tc><w:p>{text(words)}</w:p></w:tc>' for words in texts)}</w:tr>"


def table(*rows: str) -> str:
    return f"<w:tbl><w:tblPr/><w:tblGrid><w:gridCol/><w:gridCol/></w:tblGrid>{''.join(rows)}</w:tbl>"


BOUND = '<w15:dataBinding w:xpath="/a" w:storeItemID="{1}"/><w15:repeatingSection/>'
ITEM = "<w15:repeatingSectionItem/>"
TOC = '<w:r><w:instrText> TOC \\o "1-3" </w:instrText></w:r>'
HALVES = (f"<w:p>{mark('begin')}{TOC}{mark('separate')}{text('One')}</w:p>", f"<w:p>{text('Two')}</w:p>")
KEPT = [
    (around('<w:lock w:val="sdtLocked"/>', f"<w:p>{text('a')}</w:p>"), "delete_control", {}, "that is locked"),
    (around('<w:lock w:val="contentLocked"/>', f"<w:p>{text('a')}</w:p>" * 2), "delete_control", {}, "is locked"),
    (
        table(row("a", "b"), around(BOUND, around(ITEM, row("c", "d")) * 2)),
        "append_rows",
        {"rows": [["e", "f"]]},
        "data",
    ),
    (table(row("a", "b"), around(BOUND, around(ITEM, row("c", "d")) * 2)), "delete_from_table", {"rows": [2]}, "data"),
    (HALVES[0], "delete_control", {}, r"a part of a field \(TOC"),
    (HALVES[1], "delete_control", {}, r"a part of a field \(TOC"),
]


@pytest.mark.parametrize(("block", "tool", "arguments", "reason"), KEPT)
def test_locked_or_computed_blocks_are_not_removed(
    workspace: Path, call: Call, block: str, tool: str, arguments: dict, reason: str
) -> None:
    blocks = [*HALVES, f"<w:p>{mark('end')}</w:p>"] if block in HALVES else [block]
    path = build(workspace, *blocks)
    before = path.read_bytes()
    control_id = f"{'table' if block.startswith('<w:tbl') else 'paragraph'}-{blocks.index(block) + 1}"
    with pytest.raises(ToolError, match=reason):
        call(tool, "a.docx", control_id=control_id, **arguments)
    assert path.read_bytes() == before


def test_new_blocks_stand_outside_of_closed_controls(workspace: Path, call: Call) -> None:
    path = build(workspace, around("<w:text/>", f"<w:p>{text('a')}</w:p>"))
    call("insert_paragraph", "a.docx", text="b", control_id="paragraph-1")
    assert len(docx.Document(str(path)).paragraphs) == 1
    call("delete_control", "a.docx", control_id="paragraph-1")
    assert "<w:sdt>" not in xml(path)


def test_a_row_of_a_repeating_section_is_an_item(workspace: Path, call: Call) -> None:
    rows = row("a", "b") + around("<w15:repeatingSection/>", around(f'<w:id w:val="7"/>{ITEM}', row("c", "1")))
    path = build(workspace, table(rows))
    call("append_rows", "a.docx", control_id="table-1", rows=[["d", 2]])
    assert call("read_table", "a.docx", control_id="table-1")["rows"] == [["c", 1], ["d", 2]]
    assert xml(path).count("repeatingSectionItem/>") == 2
    assert xml(path).count('<w:id w:val="7"/>') == 1


def test_names_and_cells_show_controls_but_no_text_boxes(workspace: Path, call: Call) -> None:
    box = (
        f"<w:r><w:pict><v:textbox><w:txbxContent><w:p>{text('boxed')}</w:p></w:txbxContent></v:textbox></w:pict></w:r>"
    )
    cell = f"<w:tc><w:p>{text('Unit')}</w:p><w:p>{text('price')}{box}</w:p></w:tc>"
    build(workspace, table(f"<w:tr>{around('', cell)}<w:tc><w:p>{text('Sum')}</w:p></w:tc></w:tr>"))
    (shown,) = call("get_controls", "a.docx")["controls"]
    assert shown["name"] == "Unit price | Sum"
    assert call("read_table", "a.docx", control_id="table-1")["header"] == ["Unit\nprice", "Sum"]


def test_matches_in_parts_that_are_not_written_are_named(workspace: Path, call: Call) -> None:
    drawing = "http://schemas.openxmlformats.org/drawingml/2006/main"
    picture = '<w:r><w:drawing><wp:docPr xmlns:wp="urn:x" id="1" name="p" descr="Logo of old"/></w:drawing></w:r>'
    path = put(workspace, text("old ") + picture)
    document = docx.Document(str(path))
    document.add_comment(document.paragraphs[0].runs, text="Ask old")
    document.save(str(path))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("word/diagrams/data1.xml", f'<d xmlns:a="{drawing}"><a:p><a:t>old</a:t></a:p></d>')
    answer = call("replace_text", "a.docx", find_text="old", new_text="new")
    kept = ["1 in comments", "1 in SmartArt graphics", "1 in alternative texts of pictures"]
    assert answer == {"replaced": 1, "not_replaced": kept}


def test_parts_that_no_tool_shows_are_counted(workspace: Path, call: Call) -> None:
    document = docx.Document()
    document.add_paragraph("first", style="List Number")
    document.add_paragraph("dot", style="List Bullet")
    document.element.body.insert(-1, parse_xml(f'<w:altChunk {NAMESPACES} r:id="rId99"/>'))
    watermark = f'<w:r {NAMESPACES}><w:pict><v:shape><v:textpath string="DRAFT"/></v:shape></w:pict></w:r>'
    document.sections[0].header.paragraphs[0]._p.append(parse_xml(watermark))
    document.save(str(workspace / "a.docx"))
    counted = call("read_text", "a.docx")["not_shown"]
    assert counted == "1 embedded text, 1 list number, 1 watermark or drawn text"


@pytest.mark.parametrize(
    ("inner", "shown"),
    [
        ("<m:func><m:fName>{sin}</m:fName><m:e>{x}</m:e></m:func>", "sin(x)"),
        ("<m:limLow><m:e>{lim}</m:e><m:lim>{n→0}</m:lim></m:limLow>{f}", "lim_(n→0) f"),
        ('<m:acc><m:accPr><m:chr m:val="&#772;"/></m:accPr><m:e>{x}</m:e></m:acc>', "x\u0304"),
        ('<m:bar><m:barPr><m:pos m:val="top"/></m:barPr><m:e>{AB}</m:e></m:bar>', "overline(AB)"),
        ('<m:f><m:fPr><m:type m:val="noBar"/></m:fPr><m:num>{n}</m:num><m:den>{k}</m:den></m:f>', "(n over k)"),
        ("<m:sPre><m:sub>{2}</m:sub><m:sup>{3}</m:sup><m:e>{X}</m:e></m:sPre>", "_2^3X"),
        ('<m:d><m:dPr><m:begChr m:val=""/><m:endChr m:val="|"/></m:dPr><m:e>{x}</m:e></m:d>', "x|"),
        ("{x}<w:ins>{+1}</w:ins><w:del>{+2}</w:del>", "x+1"),
    ],
)
def test_an_equation_is_written_in_one_line(workspace: Path, call: Call, inner: str, shown: str) -> None:
    inner = inner.replace("{", "<m:r><m:t>").replace("}", "</m:t></m:r>")
    put(workspace, f"<m:oMath>{inner}</m:oMath>")
    assert call("read_text", "a.docx")["text"] == shown
