"""Charts are read with their numbers, places are free of drawn shapes, and footers need a place in the layout."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from callboard.surfaces import ToolError

pptx = pytest.importorskip("pptx")

from pptx.chart.data import CategoryChartData, XyChartData  # noqa: E402 - the extra may be missing
from pptx.enum.chart import XL_CHART_TYPE  # noqa: E402
from pptx.enum.shapes import MSO_SHAPE  # noqa: E402
from pptx.util import Inches  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call

TITLE_ONLY = 5
AREA = (Inches(1), Inches(2), Inches(6), Inches(4))


def deck_with(path: Path) -> Any:
    deck = pptx.Presentation()
    deck.slides.add_slide(deck.slide_layouts[TITLE_ONLY]).shapes.title.text = "One"
    deck.save(path)
    return deck


def test_numbers_of_a_chart_are_read_with_their_slide_and_alone(workspace: Path, call: Call) -> None:
    deck = deck_with(workspace / "a.pptx")
    data = CategoryChartData()
    data.categories = ["North", "South"]
    data.add_series("Sales", (10, None))
    data.add_series("Sales", (math.pi, 1e9))
    frame = deck.slides[0].shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *AREA, data)
    deck.save(workspace / "a.pptx")
    rows = "\tSales\tSales (2)\nNorth\t10\t3.14159265358979\nSouth\t\t1000000000"
    assert call("read_text", "a.pptx", control_id="slide-1-chart-1")["text"] == f"(bar chart: bar chart)\n{rows}"
    assert rows in call("read_text", "a.pptx")["text"]
    for value in frame.chart._chartSpace.iter("{*}v"):
        value.text = "#N/A" if value.text == "10" else value.text
    deck.save(workspace / "b.pptx")
    assert "North\t\t3.14" in call("read_text", "b.pptx")["text"], "an error is a gap"


def test_points_of_a_scatter_chart_are_read(workspace: Path, call: Call) -> None:
    deck = deck_with(workspace / "a.pptx")
    data = XyChartData()
    series = data.add_series("Speed")
    for point in ((1, 2), (2, 4.5)):
        series.add_data_point(*point)
    deck.slides[0].shapes.add_chart(XL_CHART_TYPE.XY_SCATTER, *AREA, data)
    deck.save(workspace / "a.pptx")
    text = call("read_text", "a.pptx", control_id="slide-1-chart-1")["text"]
    assert text.splitlines()[1:] == ["\tSpeed", "1\t2", "2\t4.5"]


def test_free_place_is_beside_shapes_without_text_and_in_groups(workspace: Path, call: Call) -> None:
    deck = deck_with(workspace / "a.pptx")
    group = deck.slides[0].shapes.add_group_shape()
    group.shapes.add_shape(MSO_SHAPE.OVAL, Inches(1), Inches(2), Inches(2), Inches(2))
    group.shapes.add_textbox(Inches(4), Inches(2), Inches(2), Inches(1)).text_frame.text = "Text"
    group.width, group.height = group.width // 2, group.height // 2
    deck.save(workspace / "a.pptx")
    answer = call("insert_table", "a.pptx", control_id="slide-1", header=["A"], rows=[["1"]])
    assert "covers" not in answer
    table = pptx.Presentation(workspace / "a.pptx").slides[0].shapes[-1]
    assert group.top + group.height < table.top < Inches(4), "below the group as it is drawn, not as it was"
    answer = call("write_text", "a.pptx", control_id="slide-1", lines=["x"], place=[10, 26, 10, 10])
    assert answer["covers"] == ["slide-1-text-1"], "the circle"


def test_shapes_behind_everything_are_not_covered(workspace: Path, call: Call) -> None:
    deck = deck_with(workspace / "a.pptx")
    deck.slides[0].shapes.add_shape(MSO_SHAPE.RECTANGLE, 0, 0, deck.slide_width, deck.slide_height)
    deck.save(workspace / "a.pptx")
    assert "covers" not in call("insert_table", "a.pptx", control_id="slide-1", header=["A"], rows=[["1"]])


def test_numbers_are_set_where_the_layout_has_no_footer(workspace: Path, call: Call) -> None:
    deck = deck_with(workspace / "a.pptx")
    layout = deck.slides[0].slide_layout
    for shape in [*layout.placeholders]:
        if shape.placeholder_format.type == pptx.enum.shapes.PP_PLACEHOLDER.FOOTER:
            shape._element.getparent().remove(shape._element)
    deck.save(workspace / "a.pptx")
    answer = call("set_footer", "a.pptx", text="Draft", numbers=True)
    assert answer == {"slides": 1, "layout_has_no_place_for": {"footer": [1]}}
    assert call("get_controls", "a.pptx")["controls"][0]["detail"]["numbered"] is True
    before = (workspace / "a.pptx").read_bytes()
    with pytest.raises(ToolError, match="no layout has a place for the footer; write_text on a slide adds"):
        call("set_footer", "a.pptx", text="Draft")
    assert (workspace / "a.pptx").read_bytes() == before
