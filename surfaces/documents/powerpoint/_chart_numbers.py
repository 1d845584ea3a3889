"""The data of charts on slides, from tables and from charts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lxml import etree

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._package import Element, local
from callboard.surfaces.documents._tables import clean, short
from callboard.surfaces.documents.powerpoint._deck import CHART, a, path
from callboard.surfaces.documents.powerpoint._new_deck import templates

if TYPE_CHECKING:
    from pydantic import JsonValue

    from callboard.surfaces.documents._tables import Cell
    from callboard.surfaces.documents.powerpoint._shapes import SlideShape

MOST_POINTS = 5_000
"""The most numbers of a chart on a slide."""
_C = f"{{{CHART}}}"


@dataclass
class ChartNumbers:
    """The data of a chart: its categories, and its series by name."""

    categories: list[str]
    series: dict[str, list[float | None]]

    @classmethod
    def of_rows(cls, header: list[str], rows: list[list[Cell]], kind: str) -> ChartNumbers:
        """Read the data of a chart from a table.

        Args:
            header: The title of the categories, and the names of the series.
            rows: A category and its numbers each.
            kind: The kind of the chart.

        Raises:
            ToolError: If a cell is no number, or the kind can't show the data.
        """
        names = [clean(name) for name in header[1:]]
        if not names or not rows:
            msg = "a chart needs categories, a series and a row: write a header such as Quarter, Sales, and its rows"
            raise ToolError(msg)
        if len(set(names)) < len(names) or not all(names):
            msg = f"each series needs a name of its own; the header names {', '.join(map(repr, names))}"
            raise ToolError(msg)
        if len(names) * len(rows) > MOST_POINTS:
            msg = f"{len(names) * len(rows)} numbers are too many for a chart on a slide; give at most {MOST_POINTS}"
            raise ToolError(msg)
        if kind in {"pie", "doughnut"} and len(names) != 1:
            msg = f"a {kind} shows one series; the header names {len(names)}"
            raise ToolError(msg)
        series = {name: [_number(row[n], n, row) for row in rows] for n, name in enumerate(names, start=1)}
        if kind == "pie" and any(number is not None and number < 0 for number in next(iter(series.values()))):
            msg = "a pie can't show negative numbers"
            raise ToolError(msg)
        if kind == "scatter":
            for row in rows:
                if _number(row[0], 0, row) is None:
                    msg = "a scatter chart needs a number in the first cell of each row"
                    raise ToolError(msg)
        return cls(["" if row[0] is None else clean(str(row[0])) for row in rows], series)

    def for_chart(self, *, scatter: bool) -> Any:
        """Return the data in python-pptx's form."""
        templates()
        from pptx.chart.data import CategoryChartData, XyChartData

        if scatter:
            points = XyChartData()
            for name, values in self.series.items():
                series = points.add_series(name)
                for category, value in zip(self.categories, values, strict=True):
                    if value is not None:
                        series.add_data_point(float(category), value)
            return points
        data = CategoryChartData()
        data.categories = self.categories
        for name, values in self.series.items():
            data.add_series(name, values)
        return data


def _number(value: Cell, column: int, row: list[Cell]) -> float | None:
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        at = f"column {column + 1} of the row of {short(str(row[0]), 40)!r}"
        msg = f"{at} holds {short(str(value), 40)!r}, which is not a number; a chart needs numbers"
        raise ToolError(msg)
    return value


def chart_kinds(root: Element) -> list[str]:
    """Return the kinds of a chart's plots: several if it combines some."""
    kinds: dict[str, None] = {}
    for element in root.iter(etree.Element):
        name = local(element)
        if name.endswith("Chart") and len(name) > len("Chart"):
            direction, grouping = element.find(f"{_C}barDir"), element.find(f"{_C}grouping")
            kind = name.removesuffix("Chart").removesuffix("3D")
            if kind == "bar" and direction is not None and direction.get("val") == "bar":
                kind = "horizontal_bar"
            elif kind == "bar" and grouping is not None and grouping.get("val") == "stacked":
                kind = "stacked_bar"
            kinds[kind] = None
    return [*kinds] or ["chart"]


def chart_title(root: Element) -> str:
    """Return a chart's own title; empty if there is none."""
    paragraphs = root.iterfind(f"{path('c:chart', 'c:title', 'c:tx', 'c:rich')}/{a('p')}")
    return "\n".join("".join(text.text or "" for text in paragraph.iter(a("t"))) for paragraph in paragraphs)


def numbers_of(root: Element) -> ChartNumbers:
    """Read a chart's data, as it is stored in the chart."""
    categories: list[str] = []
    series: dict[str, list[float | None]] = {}
    for element in root.iter(f"{_C}ser"):
        points = [_points(element, names) for names in (("cat", "xVal"), ("val", "yVal"))]
        categories = categories or [text or "" for text in points[0]]
        name = "".join(element.xpath("c:tx//c:v/text()", namespaces={"c": CHART})) or f"Series {len(series) + 1}"
        name = f"{name} ({len(series) + 1})" if name in series else name
        series[name] = [_stored_number(text or "") for text in points[1]]
    return ChartNumbers(categories, series)


def _stored_number(text: str) -> float | None:
    """Return a number of a chart.

    None for a gap, and for an error such as ``#N/A``.
    """
    try:
        return float(text)
    except ValueError:
        return None


def _points(series: Element, names: tuple[str, ...]) -> list[str | None]:
    """Return the values of a series' dimension, with None for gaps."""
    dimension = next((child for child in series if local(child) in names), None)
    if dimension is None:
        return []
    level = next((element for element in dimension.iter(etree.Element) if local(element) == "lvl"), dimension)
    values = {int(point.get("idx", "0")): point.findtext(f"{_C}v") for point in level.iter(f"{_C}pt")}
    counts = [int(count.get("val", "0")) for count in dimension.iter(f"{_C}ptCount")]
    length = min(max([0, *counts, *(index + 1 for index in values)]), MOST_POINTS)
    return [values.get(index) for index in range(length)]


def describe_chart(shape: SlideShape) -> dict[str, JsonValue]:
    """Describe a chart for a check: kind, title, categories and series."""
    root = shape.file.package.tree(shape.chart_part)
    numbers = numbers_of(root)
    return {
        "kind": "+".join(chart_kinds(root)),
        "title": chart_title(root),
        "slide": shape.slide.number,
        "categories": [*numbers.categories],
        "series": [*numbers.series],
        "values": [[*values] for values in numbers.series.values()],
    }
