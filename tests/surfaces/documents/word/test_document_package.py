"""Edits of Word files that keep all other parts byte for byte."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import docx
import pytest
from docx.oxml.ns import qn
from office_files import changed, letter, parts, rewritten, with_part

from callboard.surfaces import ToolError
from callboard.surfaces.documents.word._paragraph_styles import WordStyles

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call

MAIN, TYPES, STYLES = "word/document.xml", "[Content_Types].xml", "word/styles.xml"
RELS, NUMBERING = "word/_rels/document.xml.rels", "word/numbering.xml"
OFFICE = b"http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
GLOSSARY = b'<Relationship Id="rId99" Type="' + OFFICE + b'glossaryDocument" Target="glossary/document.xml"/>'


def odd(data: bytes) -> bytes:
    """Give a document parts that python-docx would drop, rewrite or stumble over."""
    data = changed(data, with_part("word/orphan.bin", b"\x00\x01"))
    data = changed(data, with_part("customXml/item1.xml", b"<a  b='1' />\n<!-- kept -->"))
    data = changed(data, with_part("word/comments.xml", b"<not even xml"))
    data = changed(data, rewritten(MAIN, b"<w:body>", b'<w:body>\n  <x:own xmlns:x="urn:x" x:a="1"> </x:own>\n'))
    return changed(data, rewritten(RELS, b"</Relationships>", GLOSSARY + b"</Relationships>"))


def without(*names: str, rels: bytes = b"") -> Any:
    """Take parts away, and the references to one of them."""

    def take(entries: dict[str, bytes]) -> None:
        for name in names:
            del entries[name]
        if rels:
            found = docx.oxml.parser.etree.fromstring(entries[RELS])
            for entry in list(found):
                if entry.get("Type", "").encode() == OFFICE + rels:
                    found.remove(entry)
            entries[RELS] = docx.oxml.parser.etree.tostring(found)

    return take


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("insert_paragraph", {"text": "one", "more_texts": ["two"], "alignment": "center"}),
        ("insert_table", {"header": ["a"], "rows": [["b"]]}),
        ("insert_heading", {"text": "Part"}),
        ("edit_paragraph", {"control_id": "paragraph-1", "text": "Dear Bob,"}),
        ("replace_text", {"find_text": "Ada", "new_text": "Bob"}),
        ("set_font", {"control_id": "paragraph-1", "bold": True, "find_text": "Ada"}),
        ("format_paragraph", {"control_id": "paragraph-1", "alignment": "right", "style": "Quote"}),
        ("append_rows", {"control_id": "table-1", "rows": [["a", "b"]]}),
        ("write_cell", {"control_id": "table-1", "row": 1, "column": 1, "value": "x"}),
        ("delete_from_table", {"control_id": "table-1", "columns": [1]}),
        ("delete_control", {"control_id": "table-1"}),
    ],
)
def test_an_edit_keeps_every_other_part_byte_for_byte(
    workspace: Path, call: Call, name: str, arguments: dict[str, Any]
) -> None:
    path, before = workspace / "a.docx", odd(letter())
    path.write_bytes(before)
    call(name, path.name, **arguments)
    old, new = parts(before), parts(path.read_bytes())
    assert list(new) == list(old)
    assert {part for part in old if old[part] != new[part]} == {MAIN}
    assert b'  <x:own xmlns:x="urn:x" x:a="1"> </x:own>' in new[MAIN]


def test_a_list_adds_its_definition_and_nothing_else(workspace: Path, call: Call) -> None:
    path = workspace / "a.docx"
    before = odd(changed(letter(), without(NUMBERING, rels=b"numbering")))
    path.write_bytes(before)
    call("insert_paragraph", path.name, text="one", list_type="number")
    old, new = parts(before), parts(path.read_bytes())
    assert set(new) - set(old) == {NUMBERING}
    assert {part for part in old if old[part] != new[part]} == {MAIN, RELS}
    assert new[RELS].count(b"<Relationship ") == old[RELS].count(b"<Relationship ") + 1
    assert GLOSSARY in new[RELS]


def test_a_heading_adds_a_missing_style_and_nothing_else(workspace: Path, call: Call) -> None:
    path = workspace / "a.docx"
    before = changed(letter(), rewritten(STYLES, b'"heading 4"', b'"old 4"'))
    path.write_bytes(before)
    call("insert_heading", path.name, text="Deep", level=4)
    old, new = parts(before), parts(path.read_bytes())
    assert {part for part in old if old[part] != new[part]} == {MAIN, STYLES}
    assert docx.Document(str(path)).paragraphs[-1].style.name == "Heading 4"
    assert call("get_controls", path.name)["controls"][-1]["detail"]["level"] == 4


def test_a_document_without_styles_gets_those_it_needs_alone(workspace: Path, call: Call) -> None:
    path = workspace / "a.docx"
    path.write_bytes(changed(letter(), without(STYLES, rels=b"styles")))
    call("insert_paragraph", path.name, text="plain")
    assert STYLES not in parts(path.read_bytes())
    call("insert_heading", path.name, text="Part")
    assert parts(path.read_bytes())[STYLES].count(b"<w:style ") == 1
    assert docx.Document(str(path)).paragraphs[-1].style.name == "Heading 1"


def test_a_relationship_that_leads_nowhere_does_not_matter(workspace: Path, call: Call) -> None:
    path = workspace / "a.docx"
    path.write_bytes(changed(letter(), rewritten(RELS, b"</Relationships>", GLOSSARY + b"</Relationships>")))
    call("insert_paragraph", path.name, text="x")
    assert call("read_text", path.name)["text"].endswith("x")
    assert GLOSSARY in parts(path.read_bytes())[RELS]


def test_a_missing_picture_does_not_matter(workspace: Path, call: Call) -> None:
    path = workspace / "a.docx"
    picture = b'<Relationship Id="rId98" Type="' + OFFICE + b'image" Target="media/image1.gif"/></Relationships>'
    path.write_bytes(changed(letter(), rewritten(RELS, b"</Relationships>", picture)))
    call("insert_paragraph", path.name, text="x")
    assert picture in parts(path.read_bytes())[RELS]


def test_the_main_part_may_have_another_name(workspace: Path, call: Call) -> None:
    path, other = workspace / "a.docx", "word/document2.xml"

    def rename(entries: dict[str, bytes]) -> None:
        entries[other], entries["word/_rels/document2.xml.rels"] = entries.pop(MAIN), entries.pop(RELS)
        for name in (TYPES, "_rels/.rels"):
            entries[name] = entries[name].replace(b"word/document.xml", other.encode())

    path.write_bytes(changed(letter(), rename))
    call("insert_paragraph", path.name, text="x")
    assert b"<w:t>x</w:t>" in parts(path.read_bytes())[other]


def test_a_style_without_a_type_is_a_paragraph_style(workspace: Path, call: Call) -> None:
    path = workspace / "a.docx"
    typeless = b'<w:style w:styleId="odd"><w:name w:val="Odd one"/></w:style></w:styles>'
    path.write_bytes(changed(letter(), rewritten(STYLES, b"</w:styles>", typeless)))
    call("insert_paragraph", path.name, text="x", style="odd one")
    call("insert_heading", path.name, text="y")
    body = docx.Document(str(path)).element.body
    styles = [each.get(qn("w:val")) for each in body.iter(qn("w:pStyle"))]
    assert styles == ["odd", "Heading1"]


def test_a_document_without_page_settings_gets_a_table(workspace: Path, call: Call) -> None:
    path = workspace / "a.docx"
    document = docx.Document()
    document.element.body.remove(document.element.body.sectPr)
    document.save(str(path))
    call("insert_table", path.name, header=["a", "b"], rows=[["c", "d"]])
    assert call("read_table", path.name, control_id="table-1")["rows"] == [["c", "d"]]


@pytest.mark.parametrize("part", [MAIN, STYLES, "word/settings.xml", RELS])
def test_the_error_names_the_damaged_part(workspace: Path, call: Call, part: str) -> None:
    path = workspace / "a.docx"
    path.write_bytes(changed(letter(), with_part(part, b"<w:broken")))
    with pytest.raises(ToolError, match=f"damaged.*{part}"):
        call("get_window_info", path.name)


def test_an_entity_in_a_part_is_not_read(workspace: Path, call: Call) -> None:
    (workspace / "secret.txt").write_text("the secret")
    path = workspace / "a.docx"
    attack = f'<!DOCTYPE x [<!ENTITY e SYSTEM "file://{workspace}/secret.txt">]>'.encode()
    path.write_bytes(changed(letter(), rewritten(MAIN, b"<w:document", attack + b"<w:document")))
    with pytest.raises(ToolError, match="entities"):
        call("read_text", path.name)


@pytest.mark.parametrize("target", ["../../../../etc/passwd", "/etc/passwd", "file:///etc/passwd"])
def test_a_relationship_does_not_lead_out_of_the_file(workspace: Path, call: Call, target: str) -> None:
    path = workspace / "a.docx"
    outside = b'<Relationship Id="rId97" Type="' + OFFICE + b'styles" Target="%s"/></Relationships>' % target.encode()
    before = changed(letter(), without(STYLES, rels=b"styles"))
    path.write_bytes(changed(before, rewritten(RELS, b"</Relationships>", outside)))
    call("insert_heading", path.name, text="Part")
    assert b"root" not in b"".join(parts(path.read_bytes()).values())
    assert parts(path.read_bytes())[STYLES].count(b"<w:style ") == 1


def test_styles_are_looked_through_once_for_all_paragraphs(
    workspace: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = docx.Document()
    for _ in range(50):
        document.add_paragraph("one", style="List Number")
    document.save(workspace / "a.docx")
    found = WordStyles._all
    looks: list[str] = []
    monkeypatch.setattr(WordStyles, "_all", lambda self, kind: looks.append(kind) or found(self, kind))
    assert "50 list numbers" in call("get_window_info", "a.docx")["not_shown"]
    assert len(looks) < 10
