"""Slides are added, copied, moved and deleted, and nothing is left over."""

from __future__ import annotations

import io
import itertools
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from callboard.surfaces import ToolError
from callboard.surfaces.documents._package import Package
from callboard.surfaces.documents.powerpoint import DeckFile
from callboard.surfaces.documents.powerpoint import _slide_list as slides
from callboard.surfaces.documents.powerpoint._shapes import title_of
from callboard.surfaces.documents.powerpoint._slide_notes import notes_of

pptx = pytest.importorskip("pptx")
slide_decks = pytest.importorskip("slide_decks")
faults_in, parts_of = slide_decks.faults_in, slide_decks.parts_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Call

DECK = "deck.pptx"
P = "http://schemas.openxmlformats.org/presentationml/2006/main"
R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
P14 = "http://schemas.microsoft.com/office/powerpoint/2010/main"


def with_sections(data: bytes, first: int) -> bytes:
    """Put the first slides into one section, and the others into another one."""
    deck = pptx.Presentation(io.BytesIO(data))
    ids = [f'<p14:sldId id="{entry.id}"/>' for entry in deck.part._element.sldIdLst]
    guid = "11111111-1111-1111-1111-11111111111"
    parts = (("First", ids[:first]), ("Second", ids[first:]))
    sections = [
        f'<p14:section name="{name}" id="{{{guid}{len(name)}}}"><p14:sldIdLst>{"".join(part)}</p14:sldIdLst>'
        "</p14:section>"
        for name, part in parts
    ]
    xml = (
        f'<p:extLst xmlns:p="{P}"><p:ext uri="{{521415D9-36F7-43E2-AB2F-B90AF26B5E84}}"><p14:sectionLst '
        f'xmlns:p14="{P14}">{"".join(sections)}</p14:sectionLst></p:ext></p:extLst>'
    )
    deck.part._element.append(etree.fromstring(xml))
    out = io.BytesIO()
    deck.save(out)
    return out.getvalue()


def sections_of(data: bytes) -> list[list[str]]:
    """List the numbers of the slides in each section."""
    root = etree.fromstring(parts_of(data)["ppt/presentation.xml"])
    return [
        [entry.get("id") for entry in section.iter(f"{{{P14}}}sldId")] for section in root.iter(f"{{{P14}}}section")
    ]


OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["add", "duplicate", "move", "delete", "hide"]), st.integers(0, 9), st.integers(0, 9)),
    max_size=12,
)


@settings(max_examples=25, deadline=None)
@given(operations=OPERATIONS)
def test_slides_follow_a_plain_list(operations: list[tuple[str, int, int]]) -> None:
    file = DeckFile(Package(DECK, parts_of(with_sections(slide_decks.sample_deck(), 2))), "ppt/presentation.xml")
    model = [(title_of(slide), notes_of(slide), False) for slide in file.slides()]
    for name, at, to in operations:
        count = len(model)
        number, goal = (at % count if count else 0), (to % count if count else 0)
        match name:
            case "add":
                slides.add_slide(file, slides.default_layout(file), goal + 1)
                model.insert(goal, ("", "", False))
            case "duplicate" if count:
                slides.duplicate_slide(file.slides()[number], goal + 1)
                model.insert(goal, model[number])
            case "move" if count:
                slides.move_slide(file.slides()[number], goal + 1)
                model.insert(goal, model.pop(number))
            case "delete" if count:
                slides.delete_slide(file.slides()[number])
                del model[number]
            case "hide" if count:
                slides.hide_slide(file.slides()[number], hidden=True)
                model[number] = (*model[number][:2], True)
    assert [(title_of(slide), notes_of(slide), slide.hidden) for slide in file.slides()] == model
    data = file.to_bytes()
    assert faults_in(parts_of(data)) == []
    ids = [entry.get("id") for entry in file.package.tree(file.main).find("{*}sldIdLst")]
    assert (len({*ids}), sorted(itertools.chain(*sections_of(data)))) == (len(model), sorted(ids))
    assert len(pptx.Presentation(io.BytesIO(data)).slides) == len(model)


def test_moved_slide_joins_the_section_there(deck: Path, call: Call, sample_deck: bytes) -> None:
    deck.write_bytes(with_sections(sample_deck, 2))
    assert sections_of(deck.read_bytes()) == [["256", "257"], ["258", "259", "260"]]
    call("move_slide", DECK, control_id="slide-1", number=4)
    assert sections_of(deck.read_bytes()) == [["257"], ["258", "259", "256", "260"]]
    controls = call("get_controls", DECK)["controls"]
    assert [control["detail"]["section"] for control in controls if control["kind"] == "slide"] == [
        "First",
        *["Second"] * 4,
    ]


def test_deleted_slide_leaves_no_part_and_no_link(deck: Path, call: Call, titles: Callable[[], list[str]]) -> None:
    presentation = pptx.Presentation(str(deck))
    box = presentation.slides[4].shapes[1]
    box.click_action.target_slide = presentation.slides[3]
    link = presentation.part._element.sldIdLst[3].rId
    shows = (
        f'<p:custShowLst xmlns:p="{P}" xmlns:r="{R}"><p:custShow name="Short" id="0"><p:sldLst><p:sld r:id="{link}"/>'
        "</p:sldLst></p:custShow></p:custShowLst>"
    )
    presentation.part._element.find("{*}notesSz").addnext(etree.fromstring(shows))
    presentation.save(str(deck))
    before = parts_of(deck.read_bytes())
    call("delete_control", DECK, control_id="slide-4")
    assert titles() == ["Report 2026", "Agenda", "Figures", "(no title)"]
    after = parts_of(deck.read_bytes())
    assert faults_in(after) == []
    lost = {re.sub(r"\d+", "", name) for name in before.keys() - after.keys()}
    assert lost == {
        "ppt/slides/slide.xml", "ppt/slides/_rels/slide.xml.rels", "ppt/notesSlides/notesSlide.xml",
        "ppt/notesSlides/_rels/notesSlide.xml.rels", "ppt/charts/chart.xml", "ppt/charts/_rels/chart.xml.rels",
        "ppt/embeddings/Microsoft_Excel_Sheet.xlsx",
    }  # fmt: skip
    assert b"custShow" not in after["ppt/presentation.xml"]
    assert b"hlinkClick" not in after["ppt/slides/slide5.xml"]


def test_copied_slide_has_its_own_parts_but_shares_media(deck: Path, call: Call) -> None:
    package = Package(DECK, parts_of(deck.read_bytes()))
    for kind, name in (("diagramData", "ppt/diagrams/data1.xml"), ("media", "ppt/media/media1.mp4")):
        package.add(name, b"<x/>", "application/x")
        package.relate("ppt/slides/slide5.xml", kind, name)
    deck.write_bytes(package.to_bytes())
    before = parts_of(deck.read_bytes())
    call("duplicate_slide", DECK, control_id="slide-5")
    after = parts_of(deck.read_bytes())
    assert after.keys() - before.keys() == {
        "ppt/slides/slide6.xml", "ppt/slides/_rels/slide6.xml.rels", "ppt/diagrams/data2.xml",
    }  # fmt: skip
    assert faults_in(after) == []


def test_deleted_shape_takes_its_parts_along(deck: Path, call: Call) -> None:
    call("delete_control", DECK, control_id="slide-4-chart-1")
    call("delete_control", DECK, control_id="slide-5-picture-1")
    after = parts_of(deck.read_bytes())
    assert [name for name in after if "charts" in name or "media" in name or "embeddings" in name] == []
    assert faults_in(after) == []


def animated(deck: Path, numbers: dict[str, str]) -> None:
    """Animate shapes of slide 2.

    Args:
        deck: The file.
        numbers: A range of paragraphs, empty for the whole shape, by the number of the shape.
    """
    steps = [
        '<p:par><p:cTn id="1" fill="hold"><p:childTnLst><p:set><p:cBhvr><p:cTn id="2"/><p:tgtEl>'
        f'<p:spTgt spid="{number}">'
        f"{f'<p:txEl><p:pRg {span}/></p:txEl>' if span else ''}</p:spTgt></p:tgtEl></p:cBhvr></p:set></p:childTnLst>"
        "</p:cTn></p:par>"
        for number, span in numbers.items()
    ]
    timing = (
        f'<p:timing xmlns:p="{P}"><p:tnLst><p:par><p:cTn id="9"><p:childTnLst>{"".join(steps)}</p:childTnLst></p:cTn>'
        '</p:par></p:tnLst><p:bldLst><p:bldP spid="3" grpId="0"/></p:bldLst></p:timing>'
    )
    presentation = pptx.Presentation(str(deck))
    presentation.slides[1]._element.append(etree.fromstring(timing))
    presentation.save(str(deck))


def test_animations_of_deleted_shapes_and_paragraphs_go(deck: Path, call: Call) -> None:
    animated(deck, {"2": "", "3": 'st="1" end="1"'})
    call("write_text", DECK, control_id="slide-2-text-1", lines=["one", "two"])
    assert parts_of(deck.read_bytes())["ppt/slides/slide2.xml"].count(b"<p:spTgt") == 2
    call("write_text", DECK, control_id="slide-2-text-1", lines=["one"])
    xml = parts_of(deck.read_bytes())["ppt/slides/slide2.xml"]
    assert (xml.count(b"<p:spTgt"), xml.count(b"<p:par>"), xml.count(b"<p:bldP")) == (1, 2, 1)
    call("delete_control", DECK, control_id="slide-2-text-1")
    assert b"<p:bldLst" not in parts_of(deck.read_bytes())["ppt/slides/slide2.xml"]
    call("delete_control", DECK, control_id="slide-2-title-1")
    assert b"<p:timing" not in parts_of(deck.read_bytes())["ppt/slides/slide2.xml"]


def test_last_shape_of_a_group_takes_the_group_along(deck: Path, call: Call) -> None:
    presentation = pptx.Presentation(str(deck))
    group = presentation.slides[4].shapes.add_group_shape()
    group.shapes.add_textbox(0, 0, 9, 9).text_frame.text = "inner"
    presentation.save(str(deck))
    call("delete_control", DECK, control_id="slide-5-text-2", control_name="inner")
    assert b"grpSp>" not in parts_of(deck.read_bytes())["ppt/slides/slide5.xml"].replace(b"nvGrpSpPr", b"")


EDITS: list[tuple[str, dict[str, Any], set[str]]] = [
    ("write_text", {"control_id": "slide-2-title-1", "lines": ["x"]}, {"ppt/slides/slide2.xml"}),
    ("replace_text", {"find_text": "Report", "new_text": "Plan"}, {"ppt/slides/slide1.xml"}),
    ("write_cell", {"control_id": "slide-3-table-1", "row": 1, "column": 1, "value": 1}, {"ppt/slides/slide3.xml"}),
    ("append_rows", {"control_id": "slide-3-table-1", "rows": [["a", 1, 2]]}, {"ppt/slides/slide3.xml"}),
    ("delete_from_table", {"control_id": "slide-3-table-1", "rows": [2]}, {"ppt/slides/slide3.xml"}),
    ("move_slide", {"control_id": "slide-2", "hidden": True}, {"ppt/slides/slide2.xml", "docProps/app.xml"}),
    ("move_slide", {"control_id": "slide-2", "number": 1}, {"ppt/presentation.xml", "docProps/app.xml"}),
    ("format_shape", {"control_id": "slide-5-text-1", "alternative_text": "x"}, {"ppt/slides/slide5.xml"}),
    ("write_notes", {"control_id": "slide-1", "text": "x"}, {"ppt/notesSlides/notesSlide1.xml", "docProps/app.xml"}),
    ("set_footer", {"control_id": "slide-2", "text": "x"}, {"ppt/slides/slide2.xml"}),
]


@pytest.mark.parametrize(("name", "arguments", "changed"), EDITS, ids=[edit[0] for edit in EDITS])
def test_an_edit_keeps_every_other_part_byte_for_byte(
    deck: Path, call: Call, name: str, arguments: dict[str, Any], changed: set[str]
) -> None:
    package = Package(DECK, parts_of(deck.read_bytes()))
    package.add("ppt/own.bin", b"\0own", "application/x-own")
    package.relate("ppt/slides/slide2.xml", "own", "ppt/own.bin")
    deck.write_bytes(package.to_bytes())
    before = parts_of(deck.read_bytes())
    call(name, DECK, **arguments)
    after = parts_of(deck.read_bytes())
    assert list(after) == list(before)
    assert {part for part in before if before[part] != after[part]} <= changed
    assert faults_in(after) == []


STRICT = b"purl.oclc.org/ooxml/"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"ppt/presentation.xml": b"<broken"}, "damaged"),
        ({"ppt/slides/slide2.xml": None}, "its slide 2 is missing"),
        ({"ppt/slides/slide2.xml": b'<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>'}, "declares entities"),
        ({"ppt/presentation.xml": b"<x xmlns='http://" + STRICT + b"presentationml/main'/>"}, "Strict Open XML"),
        ({"[Content_Types].xml": b"<Types>wordprocessingml.</Types>"}, "does not match its suffix"),
        ({"ppt/slides/slide2.xml": b"<x/>"}, "its part ppt/slides/slide2.xml has no shapes"),
    ],
)
def test_damaged_and_hostile_decks_are_refused(
    deck: Path, call: Call, sample_deck: bytes, change: dict[str, bytes | None], reason: str
) -> None:
    parts = {**parts_of(sample_deck), **change}
    data = Package(DECK, {name: content for name, content in parts.items() if content is not None}).to_bytes()
    deck.write_bytes(data)
    for name, arguments in (
        ("get_controls", {}),
        ("read_text", {}),
        ("delete_control", {"control_id": "slide-2-title-1"}),
    ):
        with pytest.raises(ToolError, match=reason):
            call(name, DECK, **arguments)
    assert deck.read_bytes() == data


def test_signed_decks_and_those_with_macros_are_not_written(deck: Path, call: Call, sample_deck: bytes) -> None:
    package = Package(DECK, parts_of(sample_deck))
    package.add("_xmlsignatures/sig1.xml", b"<x/>", "application/x")
    deck.write_bytes(package.to_bytes())
    with pytest.raises(ToolError, match="would break its digital signature"):
        call("add_slide", DECK, title="x")
    types = parts_of(sample_deck)["[Content_Types].xml"].replace(b"</Types>", b"<!--macroEnabled--></Types>")
    deck.write_bytes(Package(DECK, {**parts_of(sample_deck), "[Content_Types].xml": types}).to_bytes())
    with pytest.raises(ToolError, match="holds macros despite its suffix"):
        call("get_controls", DECK)
