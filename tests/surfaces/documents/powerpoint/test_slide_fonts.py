"""Fonts of texts on slides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from lxml import etree

from callboard.surfaces import ToolError

pptx = pytest.importorskip("pptx")

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call

DECK = "deck.pptx"
TEXT = "slide-2-text-1"
"""The paragraphs "Sales in **spring**" and "North"."""


def runs(path: Path, slide: int = 1) -> list[tuple[str, Any]]:
    """List the runs of a slide's contents with their fonts."""
    frame = pptx.Presentation(str(path)).slides[slide].placeholders[1].text_frame
    return [(run.text, run.font) for paragraph in frame.paragraphs for run in paragraph.runs]


def test_font_of_all_of_a_text_is_set(deck: Path, call: Call) -> None:
    look = {"font": "Georgia", "size": 20.5, "italic": True, "underline": True, "color": "#00aa10"}
    answer = call("format_shape", DECK, control_id=TEXT, **look)
    assert answer["control_id"] == TEXT
    assert [text for text, _ in runs(deck)] == ["Sales in ", "spring", "North"]
    for _, font in runs(deck):
        assert (font.name, font.size.pt, font.italic, font.underline) == ("Georgia", 20.5, True, True)
        assert str(font.color.rgb) == "00AA10"
    assert [font.bold for _, font in runs(deck)] == [None, True, None]


def test_font_of_matches_alone_is_set_across_runs(deck: Path, call: Call) -> None:
    for _ in range(2):  # the second call changes nothing
        call("format_shape", DECK, control_id=TEXT, find_text="in spr", color="red", bold=False)
    pieces = [(text, font.bold, font.color.type is not None) for text, font in runs(deck)]
    assert pieces == [
        ("Sales ", None, False),
        ("in ", False, True),
        ("spr", False, True),
        ("ing", True, False),
        ("North", None, False),
    ]
    assert call("read_text", DECK, control_id=TEXT)["text"].endswith("Sales in spring\n  North")


def test_each_match_in_a_paragraph_is_set(deck: Path, call: Call) -> None:
    call("write_text", DECK, control_id=TEXT, lines=["a cat, a dog, a bird"])
    call("format_shape", DECK, control_id=TEXT, find_text="a ", italic=True)
    assert [(text, font.italic) for text, font in runs(deck)] == [
        ("a ", True),
        ("cat, ", None),
        ("a ", True),
        ("dog, ", None),
        ("a ", True),
        ("bird", None),
    ]


def test_omitted_properties_stay_and_a_color_is_taken_away(deck: Path, call: Call) -> None:
    call("format_shape", DECK, control_id=TEXT, size=30, color="blue")
    call("format_shape", DECK, control_id=TEXT, bold=True, color="none")
    assert {(font.size.pt, font.bold, font.color.type) for _, font in runs(deck)} == {(30, True, None)}


def test_properties_stand_in_the_order_of_the_schema(deck: Path, call: Call) -> None:
    presentation = pptx.Presentation(str(deck))
    run = presentation.slides[1].placeholders[1].text_frame.paragraphs[0].runs[0]
    run.hyperlink.address = "https://example.org/"
    properties = run._r.rPr
    properties.insert(0, properties.makeelement(f"{{{properties.nsmap['a']}}}ln"))
    presentation.save(str(deck))
    call("format_shape", DECK, control_id=TEXT, font="Arial", color="red")
    properties = pptx.Presentation(str(deck)).slides[1].placeholders[1].text_frame.paragraphs[0].runs[0]._r.rPr
    names = [etree.QName(child).localname for child in properties]
    assert names == ["ln", "solidFill", "latin", "cs", "hlinkClick"]


def test_next_text_of_an_empty_shape_has_the_font(deck: Path, call: Call) -> None:
    call("add_slide", DECK, title="New")
    call("format_shape", DECK, control_id="slide-6-text-1", size=40, bold=True)
    call("write_text", DECK, control_id="slide-6-text-1", lines=["x"])
    ((text, font),) = runs(deck, 5)
    assert (text, font.size.pt, font.bold) == ("x", 40, True)


def test_cells_of_a_table_get_a_font(deck: Path, call: Call) -> None:
    call("format_shape", DECK, control_id="slide-3-table-1", find_text="Total", bold=True)
    call("format_shape", DECK, control_id="slide-3-table-1", size=11)
    table = next(shape.table for shape in pptx.Presentation(str(deck)).slides[2].shapes if shape.has_table)
    fonts = {run.text: run.font for cell in table.iter_cells() for run in cell.text_frame.paragraphs[0].runs}
    assert (fonts["Total"].bold, fonts["North"].bold) == (True, None)
    assert {font.size.pt for font in fonts.values()} == {11}


def test_font_and_place_are_set_together(deck: Path, call: Call) -> None:
    call("format_shape", DECK, control_id="slide-5-text-1", place=[10, 10, 40, 10], bold=True)
    shape = pptx.Presentation(str(deck)).slides[4].shapes[1]
    assert shape.text_frame.paragraphs[0].runs[0].font.bold
    assert shape.left == 914_400


def test_larger_font_that_needs_more_room_is_reported(deck: Path, call: Call) -> None:
    assert "overflow" in call("format_shape", DECK, control_id=TEXT, size=300)


@pytest.mark.parametrize(
    ("control", "arguments", "error"),
    [
        (TEXT, {}, "nothing to set"),
        (TEXT, {"find_text": "Sales"}, "nothing to set"),
        (TEXT, {"find_text": "Costs", "bold": True}, "'Costs' does not occur in 'slide-2-text-1'"),
        (TEXT, {"color": "reddish"}, "'reddish' is no color"),
        ("slide-4-chart-1", {"bold": True}, "is a chart; this needs a title or text or table"),
        ("slide-5-picture-1", {"size": 9}, "is a picture; this needs a title or text or table"),
    ],
)
def test_font_that_can_not_be_set_changes_nothing(
    deck: Path, call: Call, control: str, arguments: dict[str, Any], error: str
) -> None:
    before = deck.read_bytes()
    with pytest.raises(ToolError, match=error):
        call("format_shape", DECK, control_id=control, **arguments)
    assert deck.read_bytes() == before
