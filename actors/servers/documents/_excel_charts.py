"""Bar, line and pie charts of a range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from openpyxl.chart import BarChart, LineChart, PieChart, Reference
from openpyxl.chart.data_source import AxDataSource, NumRef, StrRef
from openpyxl.chart.label import DataLabelList
from openpyxl.chart.series_factory import SeriesFactory
from openpyxl.utils import get_column_letter

from callboard.actors.servers._server import ToolError
from callboard.actors.servers.documents._excel_controls import SheetRange, column_of, used_range
from callboard.actors.servers.documents._excel_file import LAST_COLUMN, LAST_ROW, is_date, is_formula
from callboard.actors.servers.documents._tables import short

if TYPE_CHECKING:
    from openpyxl.worksheet.cell_range import CellRange
    from openpyxl.worksheet.worksheet import Worksheet

ChartType: TypeAlias = Literal["bar", "line", "pie"]
_WIDTH, _HEIGHT = 16.0, 9.0


@dataclass(frozen=True)
class ChartPlan:
    """The data, titles and position of a chart."""

    type: ChartType
    place: SheetRange
    columns: list[str]
    """The columns to draw, by header or letter; empty for all but the categories."""
    header: bool
    categories: str
    """The column of the categories, by header or letter; empty for the first one."""
    title: str
    x_title: str
    y_title: str
    anchor: str
    """The cell at the chart's top left corner; empty for two columns right of all values."""


def add_chart(plan: ChartPlan) -> None:
    """Add a chart of a range.

    Each column is a series, named by its header.

    Raises:
        ToolError: If the range has too few columns or rows, a column has values that are not numbers, or a pie
            would have several series or negative numbers.
    """
    sheet, cells = plan.place.sheet, plan.place.need()
    first = cells.min_row + plan.header
    if first > cells.max_row or cells.min_col == cells.max_col:
        msg = f"{cells.coord} is too small for a chart: it needs categories, numbers and a row of data"
        raise ToolError(msg)
    categories = column_of(sheet, cells, plan.categories, header=plan.header) if plan.categories else cells.min_col
    series = [column_of(sheet, cells, name, header=plan.header) for name in plan.columns]
    series = series or list(range(cells.min_col, cells.max_col + 1))
    series = [column for column in series if column != categories] or series  # all columns were named
    for column in series:
        _check_numbers(sheet, column, first, cells.max_row, positive=plan.type == "pie")
    if plan.type == "pie" and len(series) != 1:
        msg = "a pie shows one column; name it in columns"
        raise ToolError(msg)
    chart = _make(plan)
    for column in series:
        values = Reference(sheet, min_col=column, max_col=column, min_row=cells.min_row, max_row=cells.max_row)
        drawn = SeriesFactory(values, title_from_data=plan.header)
        drawn.cat = _categories(sheet, categories, first, cells.max_row)
        if plan.type == "line":
            drawn.smooth = False
        chart.series.append(drawn)
    sheet.add_chart(chart, plan.anchor or _free_corner(sheet, cells))


def _make(plan: ChartPlan) -> Any:
    chart: Any = {"bar": BarChart, "line": LineChart, "pie": PieChart}[plan.type]()
    chart.width, chart.height = _WIDTH, _HEIGHT
    if plan.title:
        chart.title = plan.title
        chart.title.overlay = False
    if isinstance(chart, PieChart):
        chart.dataLabels = DataLabelList()
        chart.dataLabels.showPercent = True
        for side in ("showVal", "showSerName", "showCatName", "showLegendKey", "showLeaderLines"):
            setattr(chart.dataLabels, side, False)
        return chart
    for axis, title in ((chart.x_axis, plan.x_title), (chart.y_axis, plan.y_title)):
        axis.delete = False
        if title:
            axis.title = title
            axis.title.overlay = False
    return chart


def _categories(sheet: Worksheet, column: int, first: int, last: int) -> AxDataSource:
    text = str(Reference(sheet, min_col=column, max_col=column, min_row=first, max_row=last))
    found = [sheet.cell(row, column) for row in range(first, last + 1)]
    if all(isinstance(cell.value, (int, float)) or is_date(cell) for cell in found):
        return AxDataSource(numRef=NumRef(f=text))
    return AxDataSource(strRef=StrRef(f=text))


def _check_numbers(sheet: Worksheet, column: int, first: int, last: int, *, positive: bool) -> None:
    """Refuse a column without numbers.

    A formula counts as a number, and an empty cell leaves a gap.
    """
    found = 0
    for row in range(first, last + 1):
        cell = sheet.cell(row, column)
        value = cell.value
        number = is_formula(cell) or (isinstance(value, (int, float)) and not isinstance(value, bool))
        if value is not None and not number:
            msg = f"{cell.coordinate} holds {short(str(value), 40)!r}, which is not a number; a chart needs numbers"
            raise ToolError(msg)
        if positive and isinstance(value, (int, float)) and value < 0:
            msg = f"{cell.coordinate} is negative; a pie can't show it"
            raise ToolError(msg)
        found += number
    if not found:
        msg = f"column {get_column_letter(column)} has no numbers from row {first} to {last}"
        raise ToolError(msg)


def _free_corner(sheet: Worksheet, cells: CellRange) -> str:
    """Find a position right of all values, and below the other charts."""
    used = used_range(sheet)
    column = max(cells.max_col, used.max_col if used else 0) + 2
    charts = sheet._charts  # type: ignore[attr-defined]
    row = max([1, *(_bottom(chart) + 2 for chart in charts)])
    return f"{get_column_letter(min(column, LAST_COLUMN))}{min(row, LAST_ROW)}"


def _bottom(chart: object) -> int:
    """Estimate a chart's last row, for rows of 0.5 cm."""
    anchor = getattr(chart, "anchor", None)
    if isinstance(anchor, str):
        return int("".join(filter(str.isdigit, anchor))) + round(_HEIGHT * 2)
    end = getattr(anchor, "to", None)
    if end is not None:
        return int(end.row) + 1
    start = getattr(anchor, "_from", None)
    return (int(start.row) if start is not None else 0) + 1 + round(_HEIGHT * 2)
