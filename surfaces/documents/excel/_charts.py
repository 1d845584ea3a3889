"""Find, insert, change and delete the charts of a workbook."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from lxml import etree
from openpyxl.chart import AreaChart, BarChart, LineChart, PieChart, Reference, ScatterChart
from openpyxl.chart.data_source import AxDataSource, NumRef, StrRef
from openpyxl.chart.label import DataLabelList
from openpyxl.chart.series_factory import SeriesFactory
from openpyxl.utils import get_column_letter
from openpyxl.xml.functions import tostring

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._office import q
from callboard.surfaces.documents._package import R_ID, RELATIONSHIPS, Element, local
from callboard.surfaces.documents._tables import short
from callboard.surfaces.documents.excel._formula_text import LAST_COLUMN, LAST_ROW
from callboard.surfaces.documents.excel._named_tables import header_of

if TYPE_CHECKING:
    from openpyxl.worksheet.cell_range import CellRange

    from callboard.surfaces.documents.excel._sheet import Sheet

ChartType: TypeAlias = Literal["bar", "horizontal_bar", "line", "pie", "area", "scatter"]
_C = "http://schemas.openxmlformats.org/drawingml/2006/chart"
_A = "http://schemas.openxmlformats.org/drawingml/2006/main"
_XDR = "http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing"
_CHART_TYPE = "application/vnd.openxmlformats-officedocument.drawingml.chart+xml"
_DRAWING_TYPE = "application/vnd.openxmlformats-officedocument.drawing+xml"
_ROW_EMU = 190_500  # of the usual height
_MOST_NAMED = 20
"""Maximum number of columns in an error."""
_WIDTH, _HEIGHT = 5_760_000, 3_240_000  # 16 by 9 cm in EMU
_ANCHOR = """<xdr:oneCellAnchor xmlns:xdr="{xdr}" xmlns:a="{a}" xmlns:r="{r}" xmlns:c="{c}">
<xdr:from><xdr:col>{column}</xdr:col><xdr:colOff>0</xdr:colOff><xdr:row>{row}</xdr:row><xdr:rowOff>0</xdr:rowOff></xdr:from>
<xdr:ext cx="{width}" cy="{height}"/><xdr:graphicFrame macro=""><xdr:nvGraphicFramePr><xdr:cNvPr id="{number}"
 name="Chart {number}"/><xdr:cNvGraphicFramePr/></xdr:nvGraphicFramePr><xdr:xfrm><a:off x="0" y="0"/><a:ext cx="0"
 cy="0"/></xdr:xfrm><a:graphic><a:graphicData uri="{c}"><c:chart r:id="{link}"/></a:graphicData></a:graphic>
</xdr:graphicFrame><xdr:clientData/></xdr:oneCellAnchor>"""


@dataclass(frozen=True)
class Series:
    """The references of a series; empty for values of its own."""

    values: str
    categories: str
    name_reference: str = ""
    name: str = ""
    """As the chart holds it."""


@dataclass(frozen=True)
class Chart:
    """A chart on a sheet."""

    sheet: Sheet
    drawing: str
    """The part of its drawing."""
    anchor: Element
    part: str
    link: str
    """The id of the link from the drawing to the chart."""

    @property
    def root(self) -> Element:
        """The chart's XML, for reading."""
        return self.sheet.file.package.tree(self.part)

    @property
    def type(self) -> str:
        """The kind of chart, such as ``bar``."""
        return next(iter(self.types), "chart")

    @property
    def types(self) -> list[str]:
        """The kinds of its plots: several if it combines some."""
        kinds: dict[str, None] = {}
        for element in self.root.iter(etree.Element):
            name = local(element)
            if name.endswith("Chart") and len(name) > len("Chart"):
                lying = name.startswith("bar") and self._value(element, "barDir") == "bar"
                kinds["horizontal_bar" if lying else name.removesuffix("Chart").removesuffix("3D")] = None
            if name == "series" and element.get("layoutId"):
                kinds[str(element.get("layoutId"))] = None
        return [*kinds]

    @property
    def series(self) -> list[Series]:
        """The series, in their order."""
        c, root = f"{{{_C}}}", self.root
        series = [
            Series(
                _first(series_element, f"{c}val//{c}f", f"{c}yVal//{c}f"),
                _first(series_element, f"{c}cat//{c}f", f"{c}xVal//{c}f"),
                _first(series_element, f"{c}tx//{c}f"),
                _first(series_element, f"{c}tx//{c}v"),
            )
            for series_element in root.iter(f"{c}ser")
        ]
        if series:
            return series
        # charts since Excel 2016, such as a waterfall
        data = [
            element
            for element in root.iter(etree.Element)
            if local(element) == "data" and element.get("id") is not None
        ]
        dimensions = [
            {local(dim): _first(dim, "{*}f") for dim in element.iterchildren(tag=etree.Element)} for element in data
        ]
        return [Series(references.get("numDim", ""), references.get("strDim", "")) for references in dimensions]

    @property
    def insertable_type(self) -> ChartType:
        """The kind of chart if it can be inserted, else ``bar``."""
        return next((kind for kind in get_args(ChartType) if kind == self.type), "bar")

    @property
    def title(self) -> str:
        """The title; empty if there is none of its own."""
        rich_text = self.root.find(f"{{{_C}}}chart/{{{_C}}}title/{{{_C}}}tx/{{{_C}}}rich")
        if rich_text is None:
            return ""
        paragraphs = rich_text.iterfind(f"{{{_A}}}p")
        return "\n".join("".join(text.text or "" for text in paragraph.iter(f"{{{_A}}}t")) for paragraph in paragraphs)

    @property
    def title_reference(self) -> str:
        """The cell that holds the title; empty if none does."""
        return _first(self.root, f"{{{_C}}}chart/{{{_C}}}title/{{{_C}}}tx/{{{_C}}}strRef/{{{_C}}}f")

    @property
    def draws_hidden(self) -> bool:
        """True for a chart that draws hidden rows and columns, too."""
        setting = self.root.find(f"{{{_C}}}chart/{{{_C}}}plotVisOnly")
        return setting is not None and setting.get("val") in {"0", "false"}

    @property
    def references(self) -> list[str]:
        """The ranges that it draws, and the cells of its titles."""
        return [element.text for element in self.root.iter() if local(element) == "f" and element.text]

    @property
    def corner(self) -> tuple[int, int] | None:
        """Row and column of the top left corner, if any."""
        start = self.anchor.find(f"{{{_XDR}}}from")
        if start is None:
            return None
        row, column = (start.findtext(f"{{{_XDR}}}{name}", "0") for name in ("row", "col"))
        return int(row) + 1, int(column) + 1

    @property
    def at(self) -> str:
        """The cell at the top left corner; empty on a chart sheet."""
        corner = self.corner
        return f"{get_column_letter(corner[1])}{corner[0]}" if corner else ""

    @property
    def bottom(self) -> int:
        """The last row that it covers, estimated if not stated."""
        end = self.anchor.findtext(f"{{{_XDR}}}to/{{{_XDR}}}row")
        if end is not None:
            return int(end) + 1
        extent = self.anchor.find(f"{{{_XDR}}}ext")
        corner = self.corner
        height = int(extent.get("cy", "0")) if extent is not None else _HEIGHT
        return (corner[0] if corner else 1) + height // _ROW_EMU

    @staticmethod
    def _value(element: Element, name: str) -> str:
        child = element.find(f"{{{_C}}}{name}")
        return str(child.get("val", "")) if child is not None else ""


def _first(element: Element, *paths: str) -> str:
    """Return the text of the first element at one of some paths."""
    return next((text for path in paths for text in [element.findtext(path)] if text), "")


def charts_of(sheet: Sheet) -> list[Chart]:
    """List a sheet's charts, in the order of its drawing."""
    package = sheet.file.package
    charts = []
    for drawing in drawings_of(sheet):
        for anchor in package.tree(drawing).iterchildren(tag=etree.Element):
            links = [element.get(R_ID) for element in anchor.iter() if local(element) == "chart" and element.get(R_ID)]
            for link in links[:1]:
                part = package.target(drawing, link)
                if part is not None:
                    charts.append(Chart(sheet, drawing, anchor, part, link))
    return charts


def drawings_of(sheet: Sheet) -> list[str]:
    """List the parts of a sheet's drawings."""
    links = sheet.root.iterchildren(q("drawing"))
    parts = [sheet.file.package.target(sheet.part, link.get(R_ID)) for link in links]
    return [part for part in parts if part is not None]


@dataclass
class ChartPlan:
    """The data and texts of a chart."""

    type: ChartType
    sheet: Sheet
    cells: CellRange
    columns: list[int]
    """The columns to draw, by their numbers on the sheet; empty for all but the categories."""
    header: bool
    categories: int
    """The column of the categories."""
    title: str = ""
    x_title: str = ""
    y_title: str = ""


def add_chart(plan: ChartPlan, anchor: tuple[int, int] | None) -> str:
    """Add a chart of a range; return its part.

    Each column is a series, named by its header.

    Args:
        plan: The chart.
        anchor: Row and column of its top left corner; None for a free place.

    Raises:
        ToolError: If the range has too few columns or rows, a column has values that are not numbers, or a pie
            would have several series or negative numbers.
    """
    sheet, package = plan.sheet, plan.sheet.file.package
    content = _draw(plan)
    row, column = anchor or _free_corner(plan)
    drawings = drawings_of(sheet)
    if not drawings:
        drawing = package.free_name("xl/drawings/drawing{}.xml")
        package.add(drawing, etree.Element(f"{{{_XDR}}}wsDr", nsmap={"xdr": _XDR, "a": _A}), _DRAWING_TYPE)
        sheet.element("drawing").set(R_ID, package.relate(sheet.part, "drawing", drawing))
        drawings = [drawing]
    part = package.free_name("xl/charts/chart{}.xml")
    package.add(part, content, _CHART_TYPE)
    link = package.relate(drawings[0], "chart", part)
    root = package.edit(drawings[0])
    ids = [int(element.get("id", "0")) for element in root.iter(f"{{{_XDR}}}cNvPr") if element.get("id", "").isdigit()]
    anchor_xml = _ANCHOR.format(
        xdr=_XDR, a=_A, r=RELATIONSHIPS, c=_C, row=row - 1, column=column - 1, width=_WIDTH, height=_HEIGHT,
        number=max([0, *ids]) + 1, link=link,
    )  # fmt: skip
    root.append(etree.fromstring(anchor_xml))
    return part


def redraw(chart: Chart, plan: ChartPlan) -> None:
    """Draw other data, or another kind of chart, in a chart's place."""
    package = chart.sheet.file.package
    new = etree.fromstring(_draw(plan))
    root = package.edit(chart.part)
    if local(root) != "chartSpace" or root.find(f"{{{_C}}}chart") is None:
        msg = f"the chart at {chart.at} is of a kind that can't be changed; delete it and insert a new one"
        raise ToolError(msg)
    old, drawn = (chart_root.find(f"{{{_C}}}chart/{{{_C}}}plotArea") for chart_root in (root, new))
    for path in ("x", "y"):
        old_axis, new_axis = _axis(old, path), _axis(drawn, path)
        title = old_axis.find(f"{{{_C}}}title") if old_axis is not None else None
        if title is not None and new_axis is not None:
            _insert_title(new_axis, title)
    old.getparent().replace(old, drawn)


def retitle(chart: Chart, title: str, path: str = "chart") -> None:
    """Set the title of a chart or an axis; empty removes it.

    Args:
        chart: The chart.
        title: The new title.
        path: ``chart``, or the axis: ``x`` for the categories, ``y`` for the values.

    Raises:
        ToolError: If the chart has no such axis.
    """
    root = chart.sheet.file.package.edit(chart.part)
    owner = root.find(f"{{{_C}}}chart")
    if path != "chart" and owner is not None:
        owner = _axis(owner.find(f"{{{_C}}}plotArea"), path)
    if owner is None:
        msg = f"the chart at {chart.at} has no such title; delete it and insert a new one"
        raise ToolError(msg)
    old = owner.find(f"{{{_C}}}title")
    if not title:
        if old is not None:
            owner.remove(old)
        if path == "chart":
            _set_value(owner, "autoTitleDeleted", "1", preceding_names=("title",))
        return
    texts = list(old.iterfind(f"{{{_C}}}tx/{{{_C}}}rich//{{{_A}}}t")) if old is not None else []
    if texts:  # its font stays
        texts[0].text = title
        for text_element in texts[1:]:
            text_element.text = ""
        return
    title_element = etree.fromstring(
        f'<c:title xmlns:c="{_C}" xmlns:a="{_A}"><c:tx><c:rich><a:bodyPr/><a:p><a:r><a:t/></a:r></a:p></c:rich></c:tx>'
        '<c:overlay val="0"/></c:title>'
    )
    next(title_element.iter(f"{{{_A}}}t")).text = title
    if old is not None:
        owner.replace(old, title_element)
        return
    _insert_title(owner, title_element)
    if path == "chart":
        _set_value(owner, "autoTitleDeleted", "0", preceding_names=("title",))


def _axis(plot: Element, path: str) -> Element | None:
    """Find the first axis of categories, ``x``, or values, ``y``."""
    values = [axis for axis in plot if local(axis) == "valAx"]
    categories = [axis for axis in plot if local(axis) in {"catAx", "dateAx"}] or values[:1]  # of two values x is first
    axes = categories if path == "x" else [axis for axis in values if axis is not categories[0]]
    return axes[0] if axes else None


def _insert_title(owner: Element, title: Element) -> None:
    """Insert the title of a chart or an axis that has none."""
    preceding_names = {"axId", "scaling", "delete", "axPos", "majorGridlines", "minorGridlines"}
    owner.insert(sum(1 for child in owner if local(child) in preceding_names), title)


def move_chart(chart: Chart, row: int, column: int) -> None:
    """Put a chart's top left corner on another cell; its size stays."""
    corner = chart.corner
    if corner is None:
        msg = f"the chart on {chart.sheet.title!r} fills its sheet and can't be moved"
        raise ToolError(msg)
    chart.sheet.file.package.edit(chart.drawing)
    for name in ("from", "to"):
        for kind, by in (("row", row - corner[0]), ("col", column - corner[1])):
            coordinate = chart.anchor.find(f"{{{_XDR}}}{name}/{{{_XDR}}}{kind}")
            if coordinate is not None:
                coordinate.text = str(int(coordinate.text) + by)


def delete_chart(chart: Chart) -> None:
    """Delete a chart, and the parts that only it uses."""
    package = chart.sheet.file.package
    package.edit(chart.drawing).remove(chart.anchor)
    package.unrelate(chart.drawing, chart.link)
    package.remove(chart.part)


def _draw(plan: ChartPlan) -> bytes:
    sheet, cells = plan.sheet, plan.cells
    first = cells.min_row + plan.header
    if first > cells.max_row or cells.min_col == cells.max_col:
        msg = f"{cells.coord} is too small for a chart: it needs categories, numbers and a row of data"
        raise ToolError(msg)
    chart = _make(plan)
    for column in _series(plan, first):
        values = Reference(_titled(sheet), min_col=column, max_col=column, min_row=cells.min_row, max_row=cells.max_row)
        if plan.type == "scatter":
            across = Reference(_titled(sheet), min_col=plan.categories, min_row=first, max_row=cells.max_row)
            drawn = SeriesFactory(values, across, title_from_data=plan.header)
        else:
            drawn = SeriesFactory(values, title_from_data=plan.header)
            drawn.cat = _categories(sheet, plan.categories, first, cells.max_row)
        if plan.type == "line":
            drawn.smooth = False
        chart.series.append(drawn)
    written: bytes = tostring(chart._write())
    return written


def _series(plan: ChartPlan, first: int) -> list[int]:
    """Return the columns to draw.

    Raises:
        ToolError: If one of them can't be drawn; the error names columns that can be.
    """
    every = range(plan.cells.min_col, plan.cells.max_col + 1)
    named = plan.columns or list(every)
    series = [column for column in named if column != plan.categories] or named  # all columns were named
    wrong = next(filter(None, (_fault(plan, column, first) for column in series)), "")
    if not wrong and plan.type == "pie" and len(series) != 1:
        wrong = "a pie shows one column"
    if wrong:
        candidates = [column for column in every if column != plan.categories]
        fit = [_heading(plan, column) for column in candidates if not _fault(plan, column, first)]
        more = ", …" if len(fit) > _MOST_NAMED else ""
        msg = f"{wrong}; name one of these in columns: {', '.join(fit[:_MOST_NAMED])}{more}" if fit else wrong
        raise ToolError(msg)
    return series


def _heading(plan: ChartPlan, column: int) -> str:
    """Return the name of a column, quoted: its header, or its letter."""
    headers = header_of(plan.sheet, plan.cells) if plan.header else []
    header = headers[column - plan.cells.min_col] if headers else ""
    usable = header and header == short(header, 40) and headers.count(header) == 1
    return repr(header if usable else get_column_letter(column))


def _make(plan: ChartPlan) -> Any:
    kinds = {"line": LineChart, "pie": PieChart, "area": AreaChart, "scatter": ScatterChart}
    chart: Any = kinds.get(plan.type, BarChart)()
    if plan.type == "horizontal_bar":
        chart.barDir = "bar"
    if plan.type == "scatter":
        chart.style = 13
        chart.scatterStyle = "lineMarker"
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


def _categories(sheet: Sheet, column: int, first: int, last: int) -> AxDataSource:
    text = str(Reference(_titled(sheet), min_col=column, max_col=column, min_row=first, max_row=last))
    kinds = {sheet.raw(row, column)[1] for row in range(first, last + 1)}
    if kinds <= {"number", "date"}:
        return AxDataSource(numRef=NumRef(f=text))
    return AxDataSource(strRef=StrRef(f=text))


def _fault(plan: ChartPlan, column: int, first: int) -> str:
    """Return why a column can't be drawn, or nothing.

    A formula counts as a number, and an empty cell leaves a gap.
    """
    sheet, letter, number_count = plan.sheet, get_column_letter(column), 0
    for row in range(first, plan.cells.max_row + 1):
        value, kind = sheet.raw(row, column)
        is_number = sheet.is_formula(row, column) or kind == "number" or isinstance(value, (dt.time, dt.timedelta))
        if kind != "empty" and not is_number:
            return f"{letter}{row} holds {short(str(value), 40)!r}, which is not a number; a chart needs numbers"
        if plan.type == "pie" and kind == "number" and value < 0:
            return f"{letter}{row} is negative; a pie can't show it"
        number_count += is_number
    return "" if number_count else f"column {letter} has no numbers from row {first} to {plan.cells.max_row}"


def _titled(sheet: Sheet) -> Any:
    """Pass a sheet to openpyxl's references, which only read its title."""
    return sheet


def _free_corner(plan: ChartPlan) -> tuple[int, int]:
    """Find a position right of all values, and below the other charts."""
    used = plan.sheet.used()
    column = max(plan.cells.max_col, used.max_col if used else 0) + 2
    row = max([1, *(chart.bottom + 2 for chart in charts_of(plan.sheet))])
    return min(row, LAST_ROW), min(column, LAST_COLUMN)


def _set_value(owner: Element, name: str, value: str, preceding_names: tuple[str, ...]) -> None:
    element = owner.find(f"{{{_C}}}{name}")
    if element is None:
        element = etree.Element(f"{{{_C}}}{name}")
        owner.insert(sum(1 for child in owner if local(child) in preceding_names), element)
    element.set("val", value)
