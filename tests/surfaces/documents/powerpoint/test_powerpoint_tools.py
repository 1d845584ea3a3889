"""PowerPoint decks: their controls, and the tools to read and edit them."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, Any

import openpyxl
import pytest

from callboard.actors.runtime import Lease
from callboard.messages import Hazard
from callboard.surfaces import EffectGuard, ToolError
from callboard.surfaces.documents._libre_office import LIBRE_OFFICE, has_libre_office
from callboard.surfaces.documents._package import Package

pptx = pytest.importorskip("pptx")
slide_decks = pytest.importorskip("slide_decks")

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call

    from callboard.surfaces.documents import DocumentSurface

DECK = "deck.pptx"
PRESENTATION = "http://schemas.openxmlformats.org/presentationml/2006/main"


def controls(call: Call) -> dict[str, dict[str, Any]]:
    """List the controls by id."""
    return {control["id"]: control for control in call("get_controls", DECK)["controls"]}


def opened(path: Path) -> Any:
    """Open a deck with python-pptx."""
    return pptx.Presentation(str(path))


# Look


def test_slides_and_their_shapes_are_controls(deck: Path, call: Call) -> None:
    assert {control_id: control["name"] for control_id, control in controls(call).items()} == {
        "slide-1": "Report 2026",
        "slide-1-title-1": "Report 2026",
        "slide-1-text-1": "Sales and costs",
        "slide-2": "Agenda",
        "slide-2-title-1": "Agenda",
        "slide-2-text-1": "Sales in spring North",
        "slide-3": "Figures",
        "slide-3-title-1": "Figures",
        "slide-3-table-1": "Region | Q1 | Q2",
        "slide-4": "Chart",
        "slide-4-title-1": "Chart",
        "slide-4-chart-1": "bar chart",
        "slide-5": "(no title)",
        "slide-5-picture-1": "image.png",
        "slide-5-text-1": "See spring",
    }


def test_details_tell_layouts_notes_tables_and_places(deck: Path, call: Call) -> None:
    controls_by_id = controls(call)
    assert controls_by_id["slide-1"]["detail"] == {"layout": "Title Slide", "notes": 22}
    assert controls_by_id["slide-2-text-1"]["detail"] == {
        "placeholder": "content",
        "lines": 2,
        "place": "5, 23, 90, 66",
    }
    assert controls_by_id["slide-3-table-1"]["detail"]["first_rows"] == {
        "2": ["North", "1.5", "2"],
        "3": ["Total", "1.5", "2"],
    }
    assert controls_by_id["slide-4-chart-1"]["detail"]["type"] == "bar"
    assert controls_by_id["slide-5-picture-1"]["detail"]["alternative_text"] is True


def test_a_look_lists_the_slides_and_the_layouts(deck: Path, call: Call) -> None:
    call("move_slide", DECK, control_id="slide-4", hidden=True)
    window = call("get_window_info", DECK)
    assert window["outline"] == ["1. Report 2026", "2. Agenda", "3. Figures", "4. Chart (hidden)", "5. (no title)"]
    assert window["layouts"][:2] == ["Title Slide", "Title and Content"]
    tree = call("get_tree", DECK)
    assert [node["id"] for node in tree["children"][2]["children"]] == ["slide-3-title-1", "slide-3-table-1"]


def test_a_large_deck_shows_all_slides_first(workspace: Path, call: Call) -> None:
    deck = pptx.Presentation()
    for number in range(1, 151):
        deck.slides.add_slide(deck.slide_layouts[1]).shapes.title.text = f"Part {number}"
    deck.save(str(workspace / DECK))
    answer = call("get_controls", DECK)
    assert (len(answer["controls"]), answer["left_out"]) == (400, 50)
    assert [control["id"] for control in answer["controls"][148:152]] == [
        "slide-149",
        "slide-150",
        "slide-1-title-1",
        "slide-1-text-1",
    ]
    assert call("get_window_info", DECK)["outline"][-1] == "(90 more slides)"
    part = call("read_text", DECK, first_slide=150)["text"]
    assert part == "# Slide 150: Part 150 (Title and Content)\n[slide-150-text-1] (empty placeholder: content)"


def test_text_is_read_whole_by_slides_and_by_control(deck: Path, call: Call) -> None:
    text = call("read_text", DECK)["text"]
    assert "[slide-2-text-1]\nSales in spring\n  North\n" in text
    assert "Region\tQ1\tQ2" in text
    assert call("read_text", DECK, control_id="slide-1")["text"] == (
        "# Slide 1: Report 2026 (Title Slide)\n[slide-1-text-1]\nSales and costs\n[notes]\nWelcome all.\nBe brief."
    )
    assert call("read_text", DECK, control_id="slide-2-text-1", limit=5)["left_out"] == 18


def test_control_that_is_gone_or_renamed_is_refused(deck: Path, call: Call) -> None:
    with pytest.raises(ToolError, match="no control 'slide-9' in the deck; observe it again"):
        call("delete_control", DECK, control_id="slide-9")
    with pytest.raises(ToolError, match="is now called 'Agenda', not 'Costs'"):
        call("write_text", DECK, control_id="slide-2-title-1", control_name="Costs", lines=["x"])


# Slides


def test_a_slide_is_added_with_title_levels_and_notes(deck: Path, call: Call) -> None:
    answer = call("add_slide", DECK, title="Plan", lines=["One", "  Two", "\tThree"], notes="Slowly", number=2)
    assert answer == {"control_id": "slide-2", "control_name": "Plan", "slides": 6}
    slide = opened(deck).slides[1]
    assert [(line.text, line.level) for line in slide.placeholders[1].text_frame.paragraphs] == [
        ("One", 0), ("Two", 1), ("Three", 1),
    ]  # fmt: skip
    assert slide.notes_slide.notes_text_frame.text == "Slowly"


def test_layout_is_found_by_name_or_refused_with_those_there_are(deck: Path, call: Call) -> None:
    assert call("add_slide", DECK, layout="title only", title="x")["control_name"] == "x"
    with pytest.raises(
        ToolError, match=r"no layout 'Title Onyl'; there are: Title Slide, .*; did you mean 'Title Only'"
    ):
        call("add_slide", DECK, layout="Title Onyl")
    with pytest.raises(
        ToolError, match="'Blank' has no place for the title 'x'; choose another layout: Title Slide, "
    ) as refused:
        call("add_slide", DECK, layout="Blank", title="x")
    assert "Blank" not in str(refused.value).partition("choose")[2]
    with pytest.raises(ToolError, match="the deck has 6 slides; a new one can have a number from 1 to 7"):
        call("add_slide", DECK, title="x", number=9)


@pytest.mark.parametrize(("layout", "title"), [("Title Only", "Plan"), ("Blank", "")])
def test_lines_on_a_layout_without_a_place_get_a_text_box(deck: Path, call: Call, layout: str, title: str) -> None:
    answer = call("add_slide", DECK, layout=layout, title=title, lines=["One", "  Two"])
    assert answer["text_box"] == "slide-6-text-1"
    slide = opened(deck).slides[5]
    (box,) = [shape for shape in slide.shapes if shape.has_text_frame and not shape.is_placeholder]
    assert [(line.text, line.level) for line in box.text_frame.paragraphs] == [("One", 0), ("Two", 1)]
    assert not title or box.top >= slide.shapes.title.top + slide.shapes.title.height


def test_title_is_refused_with_advice_where_no_layout_has_one(deck: Path, call: Call) -> None:
    presentation = opened(deck)
    for layout in presentation.slide_layouts:
        for placeholder in [shape for shape in layout.placeholders if "TITLE" in str(shape.placeholder_format.type)]:
            placeholder._element.getparent().remove(placeholder._element)
    presentation.save(deck)
    with pytest.raises(ToolError, match="no layout has one; pass it as the first of lines"):
        call("add_slide", DECK, title="x")


def test_copied_slide_has_a_chart_and_notes_of_its_own(deck: Path, call: Call) -> None:
    assert call("duplicate_slide", DECK, control_id="slide-4")["control_id"] == "slide-5"
    call("write_chart", DECK, control_id="slide-5-chart-1", header=["", "Costs"], rows=[["Q1", 9]], title="New")
    call("write_notes", DECK, control_id="slide-5", text="Costs rose.")
    first, second = (opened(deck).slides[number] for number in (3, 4))
    assert [slide.shapes[1].chart.plots[0].series[0].name for slide in (first, second)] == ["Sales", "Costs"]
    assert [slide.notes_slide.notes_text_frame.text for slide in (first, second)] == ["Sales rose.", "Costs rose."]
    assert second.notes_slide.part.part_related_by(pptx.opc.constants.RELATIONSHIP_TYPE.SLIDE) is second.part


def test_hidden_slide_is_shown_again(deck: Path, call: Call) -> None:
    call("move_slide", DECK, control_id="slide-2", hidden=True)
    assert controls(call)["slide-2"]["detail"]["hidden"] is True
    call("move_slide", DECK, control_id="slide-2", hidden=False)
    assert "hidden" not in controls(call)["slide-2"]["detail"]


def test_footer_and_numbers_are_set_changed_and_removed(deck: Path, call: Call) -> None:
    assert call("set_footer", DECK, text="Draft", numbers=True) == {"slides": 4}
    assert controls(call)["slide-2"]["detail"]["numbered"] is True
    assert "numbered" not in controls(call)["slide-1"]["detail"]  # a title layout
    assert call("add_slide", DECK, title="x")["control_id"] == "slide-6"
    assert "[footer] Draft" in call("read_text", DECK, control_id="slide-6")["text"]
    call("set_footer", DECK, text="Final", numbers=False, control_id="slide-2")
    assert "[footer] Final" in call("read_text", DECK, control_id="slide-2")["text"]
    assert "numbered" not in controls(call)["slide-2"]["detail"]
    with pytest.raises(ToolError, match="nothing to set"):
        call("set_footer", DECK)


COMMENTS = {
    "comments": '<p:cmLst xmlns:p="{p}"><p:cm authorId="0" idx="1"><p:text>Too long</p:text></p:cm></p:cmLst>',
    "threaded": '<q:cmLst xmlns:q="q" xmlns:a="{a}"><q:cm authorId="0"><q:replyLst><q:reply authorId="1"><q:txBody>'
    "<a:p><a:r><a:t>Yes</a:t></a:r></a:p></q:txBody></q:reply></q:replyLst><q:txBody><a:p><a:r><a:t>Too long</a:t>"
    "</a:r></a:p></q:txBody></q:cm></q:cmLst>",
}


@pytest.mark.parametrize(("kind", "count"), [("comments", 1), ("threaded", 2)])
def test_comments_are_read_and_stay_with_their_slide(deck: Path, call: Call, kind: str, count: int) -> None:
    spaces = {"a": "http://schemas.openxmlformats.org/drawingml/2006/main", "p": PRESENTATION}
    package = Package(DECK, slide_decks.parts_of(deck.read_bytes()))
    authors = '<p:list xmlns:p="p"><p:author id="0" name="Ann"/><p:author id="1" name="Bo"/></p:list>'
    package.add("ppt/authors.xml", authors.encode(), "application/x")
    package.relate("ppt/presentation.xml", "authors", "ppt/authors.xml")
    package.add("ppt/comments/comment1.xml", COMMENTS[kind].format(**spaces).encode(), "application/x")
    package.relate("ppt/slides/slide2.xml", "comments", "ppt/comments/comment1.xml")
    deck.write_bytes(package.to_bytes())
    assert controls(call)["slide-2"]["detail"]["comments"] == count
    text = call("read_text", DECK, control_id="slide-2")["text"]
    assert "[comment of Ann] Too long" in text
    assert ("[comment of Bo] Yes" in text) is (count == 2)
    assert call("duplicate_slide", DECK, control_id="slide-2")["comments_not_copied"] == count
    assert call("replace_text", DECK, find_text="Agenda", new_text="Plan")["replaced"] == 2
    with pytest.raises(ToolError, match="'Too long' stands only in comments"):
        call("replace_text", DECK, find_text="Too long", new_text="x")
    call("delete_control", DECK, control_id="slide-2")
    assert slide_decks.faults_in(parts := slide_decks.parts_of(deck.read_bytes())) == []
    assert "ppt/comments/comment1.xml" not in parts


# Texts


def test_text_keeps_the_format_and_levels(deck: Path, call: Call) -> None:
    call("write_text", DECK, control_id="slide-2-text-1", lines=["Costs", "  South", "  West"])
    lines = opened(deck).slides[1].placeholders[1].text_frame.paragraphs
    assert [(line.text, line.level) for line in lines] == [("Costs", 0), ("South", 1), ("West", 1)]
    call("write_text", DECK, control_id="slide-2-text-1", lines=["Last"], append=True)
    assert controls(call)["slide-2-text-1"]["detail"]["lines"] == 4


def test_new_text_has_the_font_of_the_first_letters(deck: Path, call: Call) -> None:
    call("write_text", DECK, control_id="slide-2-text-1", lines=["Plain"])
    (run,) = opened(deck).slides[1].placeholders[1].text_frame.paragraphs[0].runs
    assert (run.text, run.font.bold) == ("Plain", None)  # only its last word was bold


def test_bullets_and_numbers_are_set(deck: Path, call: Call) -> None:
    call("write_text", DECK, control_id="slide-5-text-1", lines=["a", "  b"], bullets="number")
    xml = opened(deck).slides[4].shapes[1]._element.xml
    assert (xml.count("<a:buAutoNum"), 'marL="685800" indent="-342900"' in xml) == (2, True)
    call("write_text", DECK, control_id="slide-5-text-1", lines=["a"], bullets="none")
    assert "<a:buNone/>" in opened(deck).slides[4].shapes[1]._element.xml


def test_text_on_a_slide_becomes_a_box_at_a_free_place(deck: Path, call: Call) -> None:
    answer = call("write_text", DECK, control_id="slide-3", lines=["Source: us"])
    assert answer["control_id"] == "slide-3-text-1"
    assert "covers" not in answer
    with pytest.raises(ToolError, match="is no place; give left, top, width and height"):
        call("write_text", DECK, control_id="slide-3", lines=["x"], place=[1, 2])


def test_text_with_a_link_is_not_written_over(deck: Path, call: Call) -> None:
    presentation = opened(deck)
    run = presentation.slides[1].placeholders[1].text_frame.paragraphs[0].runs[0]
    run.hyperlink.address = "https://example.com"
    presentation.save(str(deck))
    with pytest.raises(ToolError, match="it holds a link, which a new text would remove"):
        call("write_text", DECK, control_id="slide-2-text-1", lines=["x"])
    answer = call("replace_text", DECK, find_text="Sales in", new_text="Costs of")
    assert answer["links_keep_their_targets"] == ["Costs of "]
    assert opened(deck).slides[1].placeholders[1].text_frame.paragraphs[0].runs[0].hyperlink.address


def test_replacement_spans_runs_and_reaches_tables_and_notes(deck: Path, call: Call) -> None:
    answer = call("replace_text", DECK, find_text="Sales in spring", new_text="Sales in autumn")
    assert (answer["replaced"], answer["slides"]) == (1, [2])
    line = opened(deck).slides[1].placeholders[1].text_frame.paragraphs[0]
    assert [(run.text, run.font.bold) for run in line.runs] == [("Sales in autumn", None), ("", True)]
    assert call("replace_text", DECK, find_text="Total", new_text="Sum")["slides"] == [3]
    answer = call("replace_text", DECK, find_text="Sales", new_text="Income")
    assert (answer["slides"], answer["not_replaced"]) == ([1, 2, 4], ["1 in charts"])
    assert opened(deck).slides[3].notes_slide.notes_text_frame.text == "Income rose."
    with pytest.raises(ToolError, match="'Sales' stands only in charts; nothing was replaced"):
        call("replace_text", DECK, find_text="Sales", new_text="x")
    with pytest.raises(ToolError, match="does not occur there; nothing was replaced; did you mean 'Welcome'"):
        call("replace_text", DECK, find_text="Welcom e", new_text="x")


def test_overflow_is_estimated(deck: Path, call: Call) -> None:
    assert "overflow" not in call("write_text", DECK, control_id="slide-2-text-1", lines=["short"] * 5)
    answer = call("write_text", DECK, control_id="slide-2-text-1", lines=["a long line of words, " * 8] * 6)
    assert answer["overflow"].startswith("estimate: the text needs about ")
    answer = call("append_rows", DECK, control_id="slide-3-table-1", rows=[["South", 1, 2]] * 20)
    assert answer["overflow"].startswith("estimate: the table needs about ")
    answer = call("replace_text", DECK, find_text="Agenda", new_text="Agenda of the day " * 9)
    assert [text.partition(":")[0] for text in answer["overflow"]] == ["slide-2-title-1", "slide-2-text-1"]


def test_notes_are_written_where_there_are_none(deck: Path, call: Call) -> None:
    call("write_notes", DECK, control_id="slide-2", text="one\ntwo")
    call("write_notes", DECK, control_id="slide-2", text="three", append=True)
    assert opened(deck).slides[1].notes_slide.notes_text_frame.text == "one\ntwo\nthree"


# Tables


def test_table_is_read_and_written_in_place(deck: Path, call: Call) -> None:
    read = call("read_table", DECK, control_id="slide-3-table-1")
    assert (read["header"], read["rows"]) == (["Region", "Q1", "Q2"], [["North", 1.5, 2], ["Total", 1.5, 2]])
    call("write_cell", DECK, control_id="slide-3-table-1", row=2, column=2, value=2.5)
    answer = call("append_rows", DECK, control_id="slide-3-table-1", rows=[["South", 1, None]])
    assert answer["totals_not_updated"] == ["Total"]
    assert call("delete_from_table", DECK, control_id="slide-3-table-1", columns=[3])["columns_left"] == 2
    rows = call("read_table", DECK, control_id="slide-3-table-1")["rows"]
    assert rows == [["North", 2.5], ["South", 1], ["Total", 1.5]]


def test_merged_cells_shrink_or_refuse(deck: Path, call: Call) -> None:
    presentation = opened(deck)
    table = presentation.slides[2].shapes[1].table
    table.cell(1, 0).merge(table.cell(2, 1))
    presentation.save(str(deck))
    merged = {"row": 1, "column": 1, "rows": 2, "columns": 2}
    assert call("read_table", DECK, control_id="slide-3-table-1")["merged"] == [merged]
    with pytest.raises(ToolError, match="lies within a merged cell"):
        call("write_cell", DECK, control_id="slide-3-table-1", row=3, column=2, value="x")
    with pytest.raises(ToolError, match="begins merged cells of 2 rows and 2 columns"):
        call("delete_from_table", DECK, control_id="slide-3-table-1", columns=[1])
    call("delete_from_table", DECK, control_id="slide-3-table-1", columns=[2])
    assert call("read_table", DECK, control_id="slide-3-table-1")["merged"] == [{**merged, "columns": 1}]


def test_table_fills_an_empty_placeholder(deck: Path, call: Call) -> None:
    slide = call("add_slide", DECK, title="New")["control_id"]
    answer = call("insert_table", DECK, control_id=slide, header=["a", "b"], rows=[[1, 2.5], ["x", None]])
    assert answer == {"control_id": "slide-6-table-1", "control_name": "a | b"}
    shape = opened(deck).slides[5].shapes[1]
    assert (shape.is_placeholder, [cell.text for cell in shape.table.iter_cells()]) == (
        True, ["a", "b", "1", "2.5", "x", ""],
    )  # fmt: skip
    assert b"tableStyles" in slide_decks.parts_of(deck.read_bytes())["ppt/_rels/presentation.xml.rels"]
    with pytest.raises(ToolError, match="too large for a slide; write at most 75 rows"):
        call("insert_table", DECK, control_id="slide-2", header=["a"], rows=[[1]] * 75)


# Charts and pictures


@pytest.mark.parametrize("kind", ["bar", "stacked_bar", "horizontal_bar", "line", "pie", "doughnut", "area", "scatter"])
def test_chart_is_native_with_its_numbers(deck: Path, call: Call, kind: str) -> None:
    rows = [[1, 3], [2, 4.5]]
    answer = call("insert_chart", DECK, control_id="slide-3", type=kind, header=["x", "Sales"], rows=rows, title="T")
    assert answer["control_name"] == "T"
    chart = opened(deck).slides[2].shapes[2].chart
    assert (chart.chart_title.text_frame.text, list(chart.plots[0].series[0].values)) == ("T", [3, 4.5])
    told = call("read_part", DECK, form="chart", part="T")
    assert (told["kind"], told["series"], told["values"]) == (kind, ["Sales"], [[3, 4.5]])


def test_chart_that_cannot_be_drawn_is_refused(deck: Path, call: Call) -> None:
    def insert(kind: str, header: list[str], rows: list[list[Any]]) -> None:
        call("insert_chart", DECK, control_id="slide-3", type=kind, header=header, rows=rows)

    with pytest.raises(ToolError, match="column 2 of the row of 'a' holds 'many', which is not a number"):
        insert("bar", ["x", "y"], [["a", "many"]])
    with pytest.raises(ToolError, match="a pie shows one series; the header names 2"):
        insert("pie", ["x", "y", "z"], [["a", 1, 2]])
    with pytest.raises(ToolError, match="a pie can't show negative numbers"):
        insert("pie", ["x", "y"], [["a", -1]])
    with pytest.raises(ToolError, match="each series needs a name of its own"):
        insert("line", ["x", "y", "y"], [["a", 1, 2]])


def test_chart_draws_some_columns_and_no_totals(deck: Path, call: Call) -> None:
    table = {
        "header": ["Region", "Manager", "Sales"],
        "rows": [["North", "Kim", 3], ["South", "Lee", 4], ["Total", "", 7]],
    }
    arguments = {"control_id": "slide-3", "type": "bar", "columns": ["sales"], **table}
    assert call("insert_chart", DECK, **arguments)["totals_drawn"] == ["Total"]
    assert "totals_drawn" not in call("insert_chart", DECK, **arguments, without_totals=True, title="T")
    told = call("read_part", DECK, form="chart", part="T")
    assert (told["categories"], told["series"], told["values"]) == (["North", "South"], ["Sales"], [[3, 4]])
    with pytest.raises(ToolError, match="there is no column 'Sale'; there are: Manager, Sales; did you mean 'Sales'"):
        call("insert_chart", DECK, **{**arguments, "columns": ["Sale"]})


def test_new_data_keep_the_looks_of_a_chart(deck: Path, call: Call) -> None:
    presentation = opened(deck)
    series = presentation.slides[3].shapes[1].chart.plots[0].series[0]
    series.format.fill.solid()
    series.format.fill.fore_color.rgb = pptx.dml.color.RGBColor(0xFF, 0, 0)
    presentation.save(str(deck))
    rows = [["Q1", 1, 2], ["Q2", None, 3], ["Q3", 4, 5]]
    call("write_chart", DECK, control_id="slide-4-chart-1", header=["", "Sales", "Costs"], rows=rows)
    chart = opened(deck).slides[3].shapes[1].chart
    assert [list(series.values) for series in chart.plots[0].series] == [[1, None, 4], [2, 3, 5]]
    assert str(chart.plots[0].series[0].format.fill.fore_color.rgb) == "FF0000"
    assert chart.plots[0].series[1].format.fill.type is None  # a color of its own, by the theme
    book = openpyxl.load_workbook(io.BytesIO(chart.part.chart_workbook.xlsx_part.blob))
    assert [[cell.value for cell in row] for row in book.active] == [[None, "Sales", "Costs"], *rows]


def test_workbook_that_charts_share_stays_with_the_others(deck: Path, call: Call) -> None:
    call("duplicate_slide", DECK, control_id="slide-4")
    presentation = opened(deck)
    first, second = (presentation.slides[number].shapes[1].chart.part for number in (3, 4))
    second.rels["rId1"]._target = first.chart_workbook.xlsx_part
    presentation.save(str(deck))
    call("get_controls", DECK)
    call("write_chart", DECK, control_id="slide-5-chart-1", header=["", "Costs"], rows=[["Q1", 9]])
    books = [
        openpyxl.load_workbook(
            io.BytesIO(opened(deck).slides[number].shapes[1].chart.part.chart_workbook.xlsx_part.blob)
        )
        for number in (3, 4)
    ]
    assert [book.active["B1"].value for book in books] == ["Sales", "Costs"]


def test_the_same_edit_gives_the_same_bytes(deck: Path, call: Call, sample_deck: bytes) -> None:
    arguments = {"control_id": "slide-3", "type": "bar", "header": ["x", "y"], "rows": [["a", 1]]}
    call("insert_chart", DECK, **arguments)
    first = deck.read_bytes()
    deck.write_bytes(sample_deck)
    call("get_controls", DECK)
    call("insert_chart", DECK, **arguments)
    assert deck.read_bytes() == first


def test_picture_keeps_its_proportions_or_fills_a_placeholder(deck: Path, call: Call, workspace: Path) -> None:
    pytest.importorskip("PIL")
    (workspace / "logo.png").write_bytes(slide_decks.PNG)
    arguments = {"path": "logo.png", "alternative_text": "Our logo"}
    answer = call("insert_picture", DECK, control_id="slide-3", place=[10, 60, 20, 20], **arguments)
    assert answer == {"control_id": "slide-3-picture-1", "control_name": "Our logo"}
    picture = opened(deck).slides[2].shapes[2]
    assert (picture.width, picture.height) == (2 * picture.height, 914_400)
    slide = call("add_slide", DECK, title="x", layout="Picture with Caption")["control_id"]
    call("insert_picture", DECK, control_id=slide, **arguments)
    filled = next(shape for shape in opened(deck).slides[5].placeholders if shape.placeholder_format.idx == 1)
    assert filled.crop_left == filled.crop_right > 0
    assert len([name for name in opened(deck).part.package.iter_parts() if "media" in name.partname]) == 1


def test_picture_that_a_camera_turned_stands_upright(deck: Path, call: Call, workspace: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    exif = image.Exif()
    exif[0x0112] = 6
    image.new("RGB", (40, 20)).save(workspace / "photo.jpg", exif=exif)
    call("insert_picture", DECK, control_id="slide-3", path="photo.jpg", place=[0, 50, 50, 50])
    assert opened(deck).slides[2].shapes[2].image.size == (20, 40)


def test_picture_is_cropped_moved_and_described(deck: Path, call: Call) -> None:
    call("format_shape", DECK, control_id="slide-5-picture-1", crop=[10, 0, 5.5, 0], alternative_text="Two dots")
    call("format_shape", DECK, control_id="slide-5-picture-1", place=[50, 50, 25, 25])
    picture = opened(deck).slides[4].shapes[0]
    assert (picture.crop_left, picture.crop_right, picture.left) == (0.1, 0.055, 4_572_000)
    assert controls(call)["slide-5-picture-1"]["name"] == "Two dots"
    with pytest.raises(ToolError, match="the crop leaves nothing"):
        call("format_shape", DECK, control_id="slide-5-picture-1", crop=[50, 0, 50, 0])
    with pytest.raises(ToolError, match="only a picture can be cropped"):
        call("format_shape", DECK, control_id="slide-5-text-1", crop=[5, 0, 5, 0])


def test_other_files_are_no_pictures_of_slides(deck: Path, call: Call, workspace: Path) -> None:
    (workspace / "a.webp").write_bytes(b"RIFF")
    with pytest.raises(ToolError, match=r"'a.webp' can't stand on a slide; save it as .png first"):
        call("insert_picture", DECK, control_id="slide-3", path="a.webp")


# Files


def test_saved_copy_has_the_kind_of_its_name(deck: Path, call: Call, workspace: Path) -> None:
    call("save_as", DECK, path="copy.pptx")
    assert (workspace / "copy.pptx").read_bytes() == deck.read_bytes()
    with pytest.raises(ToolError, match=r"can only be saved as another \.pptx, \.pdf, \.png"):
        call("save_as", DECK, path="copy.docx")
    with pytest.raises(ToolError, match="pages, cells and width are for pictures"):
        call("save_as", DECK, path="copy.pdf", control_id="slide-1")


@pytest.mark.skipif(not has_libre_office(".pptx"), reason="LibreOffice can't read presentations here")
def test_libre_office_draws_slides_and_opens_what_was_edited(deck: Path, call: Call, surface: DocumentSurface) -> None:
    image = pytest.importorskip("PIL.Image")
    pdfplumber = pytest.importorskip("pdfplumber")
    presentation = opened(deck)
    box = presentation.slides[4].shapes.add_shape(1, 0, 0, presentation.slide_width, presentation.slide_height)
    box.fill.solid()
    box.fill.fore_color.rgb = pptx.dml.color.RGBColor(0, 0, 255)
    presentation.slides[4]._element.set("show", "0")
    presentation.save(str(deck))
    surface.open(None)
    try:
        guard = EffectGuard(Lease("here", 1))
        assert call("get_picture", DECK, guard, control_id="slide-5")["control_id"] == "slide-5"
        (rewritten,) = LIBRE_OFFICE.convert([deck.read_bytes()], ".pptx", "pptx")
        deck.write_bytes(rewritten)
        call("get_controls", DECK)
        call("duplicate_slide", DECK, control_id="slide-4")
        call("write_chart", DECK, control_id="slide-4-chart-1", header=["", "Costs"], rows=[["Q1", 9]])
        call("append_rows", DECK, control_id="slide-3-table-1", rows=[["South", 1, 2]])
        call("write_text", DECK, control_id="slide-2-text-1", lines=["Other words"])
        call("delete_control", DECK, control_id="slide-1")
        (pdf,) = LIBRE_OFFICE.convert([deck.read_bytes()], ".pptx", "pdf")
    finally:
        surface.close()
    picture = image.open(io.BytesIO(guard.pictures[0]))
    assert (picture.size, picture.getpixel((600, 450))) == ((1200, 900), (0, 0, 255))
    with pdfplumber.open(io.BytesIO(pdf)) as pages:
        page_texts = [page.extract_text() for page in pages.pages]
    assert [
        words for words, text in zip(["Other words", "South", "Q1", "Q2"], page_texts, strict=True) if words not in text
    ] == []


def test_new_deck_is_made_without_slides(workspace: Path, call: Call) -> None:
    call("create_document", path=DECK)
    presentation = opened(workspace / DECK)
    assert len(presentation.slides) == 0
    assert presentation.slide_width / presentation.slide_height == pytest.approx(16 / 9)
    call("add_slide", DECK, title="First", layout="Title Slide")
    assert controls(call)["slide-1"]["name"] == "First"
    assert call("start_application", name="powerpoint").id == "Presentation1.pptx"


def test_calls_that_replace_content_are_hazards(deck: Path, surface: DocumentSurface, call: Call) -> None:
    slide = call("add_slide", DECK, title="x")["control_id"]
    window = next(target for target in surface.targets() if target.id == DECK)

    def hazards(tool: str, **arguments: Any) -> set[Hazard]:
        return surface.hazards(window, tool, arguments, ())

    assert hazards("write_text", control_id="slide-2-title-1", lines=["x"]) == {Hazard.OVERWRITES}
    assert hazards("write_text", control_id="slide-2-title-1", lines=["x"], append=True) == set()
    assert hazards("write_text", control_id=f"{slide}-text-1", lines=["x"]) == set()
    assert hazards("write_text", control_id=slide, lines=["x"]) == set()
    assert hazards("write_notes", control_id="slide-1", text="x") == {Hazard.OVERWRITES}
    assert hazards("write_notes", control_id="slide-2", text="x") == set()
    assert hazards("write_chart", control_id="slide-4-chart-1") == {Hazard.OVERWRITES}
    assert hazards("add_slide") == set()
    assert hazards("move_slide", control_id="slide-2", hidden=True) == set()
    assert hazards("move_slide", control_id="slide-2", number=1) == {Hazard.OVERWRITES}


def test_checks_read_texts_tables_and_charts(deck: Path, call: Call) -> None:
    assert call("read_part", DECK, form="table", part="Figures") == [["North", 1.5, 2], ["Total", 1.5, 2]]
    assert call("read_part", DECK, form="table", part="Region") == call("read_part", DECK, form="table", part="slide 3")
    agenda = call("read_part", DECK, form="text", part="Agenda")
    assert agenda
    assert f"Agenda\n{agenda}\n\n" in call("read_part", DECK, form="text")
    assert "Welcome all." not in call("read_part", DECK, form="text", part="1")
    assert call("read_part", DECK, form="chart")["categories"] == ["Q1", "Q2"]
    assert call("read_part", DECK, form="file")["application"] == "PowerPoint"
    with pytest.raises(ToolError, match=r"there is no slide 'Costs'; there are: 1 \(Report 2026\), 2 \(Agenda\)"):
        call("read_part", DECK, form="text", part="Costs")


def test_protected_decks_are_only_read(deck: Path, call: Call) -> None:
    presentation = opened(deck)
    element = presentation.part._element
    element.append(element.makeelement(f"{{{element.nsmap['p']}}}modifyVerifier"))
    presentation.save(str(deck))
    assert call("get_window_info", DECK)["writable"] is False
    with pytest.raises(ToolError, match="it is protected against editing"):
        call("move_slide", DECK, control_id="slide-1", hidden=True)


def test_only_charts_and_new_decks_need_python_pptx(deck: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pptx", None)
    assert call("add_slide", DECK, title="x", notes="y")["slides"] == 6
    with pytest.raises(ToolError, match=r"python-pptx is not installed, .*: it comes with callboard\[powerpoint\]"):
        call("insert_chart", DECK, control_id="slide-6", type="bar", header=["x", "y"], rows=[["a", 1]])
    with pytest.raises(ToolError, match="python-pptx is not installed"):
        call("create_document", path="new.pptx")
