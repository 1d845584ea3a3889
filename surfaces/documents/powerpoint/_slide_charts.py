"""Charts of slides: native ones with a workbook of their data."""

from __future__ import annotations

import io
import re
import zipfile
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from lxml import etree

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._package import R_ID, Element, Package, local
from callboard.surfaces.documents.powerpoint._chart_numbers import ChartNumbers, chart_kinds
from callboard.surfaces.documents.powerpoint._deck import CHART, DRAWING, a, path
from callboard.surfaces.documents.powerpoint._graphic_frames import graphic_frame
from callboard.surfaces.documents.powerpoint._new_deck import templates

if TYPE_CHECKING:
    from callboard.surfaces.documents._tables import Cell
    from callboard.surfaces.documents.powerpoint._deck import Slide
    from callboard.surfaces.documents.powerpoint._shapes import Frame, SlideShape

SlideChartType: TypeAlias = Literal[
    "bar", "stacked_bar", "horizontal_bar", "line", "pie", "doughnut", "area", "scatter"
]
_KINDS: dict[SlideChartType, str] = {
    "bar": "COLUMN_CLUSTERED",
    "stacked_bar": "COLUMN_STACKED",
    "horizontal_bar": "BAR_CLUSTERED",
    "line": "LINE_MARKERS",
    "pie": "PIE",
    "doughnut": "DOUGHNUT",
    "area": "AREA",
    "scatter": "XY_SCATTER",
}
_CHART_TYPE = "application/vnd.openxmlformats-officedocument.drawingml.chart+xml"
_WORKBOOK_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_C = f"{{{CHART}}}"
_FONT_SIZE = "1200"
_ACCENTS = 6
"""The colors that a theme has for series."""
_SHEET = re.compile(r"xl/worksheets/[^/]+\.xml")
_DATE = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_FIXED_DATE = b"2000-01-01T00:00:00Z"


def add_chart(
    slide: Slide, kind: SlideChartType, numbers: ChartNumbers, frame: Frame, number: int, *, title: str
) -> Element:
    """Add the parts of a chart; return its frame for the slide.

    Args:
        slide: The slide.
        kind: The kind of chart.
        numbers: Its data.
        frame: Its place.
        number: The number of the shape.
        title: Its title; empty for none.
    """
    data = numbers.for_chart(scatter=kind == "scatter")
    from pptx.chart.xmlwriter import ChartXmlWriter
    from pptx.enum.chart import XL_CHART_TYPE

    xml = ChartXmlWriter(XL_CHART_TYPE[_KINDS[kind]], data).xml
    root = etree.fromstring(xml.encode())
    if kind == "scatter":
        _show_points(root)
    _style(root, kind, legend=len(numbers.series) > 1 or kind in {"pie", "doughnut"})
    set_chart_title(root, title)
    package = slide.file.package
    part = package.free_name("ppt/charts/chart{}.xml")
    package.add(part, root, _CHART_TYPE)
    _write_workbook(package, part, root, data)
    link = package.relate(slide.part, "chart", part)
    graphic = f'<a:graphicData uri="{CHART}"><c:chart xmlns:c="{CHART}" r:id="{link}"/></a:graphicData>'
    return graphic_frame(graphic, frame, number, f"Chart {number}")


def _show_points(root: Element) -> None:
    """Draw the points of a scatter chart in theme colors."""
    for number, series in enumerate(root.iter(f"{_C}ser")):
        color = f'<a:solidFill><a:schemeClr val="accent{number % _ACCENTS + 1}"/></a:solidFill>'
        marker = etree.fromstring(
            f'<c:marker xmlns:c="{CHART}" xmlns:a="{DRAWING}"><c:symbol val="circle"/><c:size val="8"/>'
            f"<c:spPr>{color}<a:ln>{color}</a:ln></c:spPr></c:marker>"
        )
        series.insert(sum(local(child) in {"idx", "order", "tx", "spPr"} for child in series), marker)


def _style(root: Element, kind: str, *, legend: bool) -> None:
    """Set small letters, a legend, and the percentages of a pie."""
    for size in root.iter(a("defRPr")):
        if size.get("sz"):
            size.set("sz", _FONT_SIZE)
    chart = root.find(f"{_C}chart")
    for old in chart.findall(f"{_C}legend"):
        chart.remove(old)
    if legend:
        side = "r" if kind == "pie" else "b"
        chart.find(f"{_C}plotArea").addnext(
            etree.fromstring(f'<c:legend xmlns:c="{CHART}"><c:legendPos val="{side}"/><c:overlay val="0"/></c:legend>')
        )
    if kind in {"pie", "doughnut"}:
        plot = next(child for child in chart.find(f"{_C}plotArea") if local(child).endswith("Chart"))
        for old in plot.findall(f"{_C}dLbls"):
            plot.remove(old)
        label_settings = "".join(
            f'<c:{name} val="{int(name == "showPercent")}"/>'
            for name in ("showLegendKey", "showVal", "showCatName", "showSerName", "showPercent", "showBubbleSize")
        )
        plot.findall(f"{_C}ser")[-1].addnext(etree.fromstring(f'<c:dLbls xmlns:c="{CHART}">{label_settings}</c:dLbls>'))


def _write_workbook(package: Package, part: str, root: Element, data: Any) -> bool:
    """Put data into a chart's workbook; return if other sheets were lost."""
    content = _with_fixed_date(data._workbook_writer.xlsx_blob)
    link = root.find(f"{_C}externalData")
    target = package.target(part, link.get(R_ID)) if link is not None else None
    is_shared = target is not None and len([*package.sources_of(target)]) > 1
    if target is not None and target.casefold().endswith(".xlsx") and not is_shared:
        has_lost_sheets = _sheet_count(package.bytes_of(target)) > 1
        package.replace(target, content)
        return has_lost_sheets
    if link is None:
        link = etree.Element(f"{_C}externalData")
        etree.SubElement(link, f"{_C}autoUpdate").set("val", "0")
        following = {"printSettings", "userShapes", "extLst"}
        root.insert(sum(local(child) not in following for child in root), link)
    else:
        package.unrelate(part, link.get(R_ID))
        if target is not None and not is_shared:
            package.remove(target)
    package.ensure_default("xlsx", _WORKBOOK_TYPE)
    workbook = package.free_name("ppt/embeddings/Microsoft_Excel_Sheet{}.xlsx")
    package.add(workbook, content, _WORKBOOK_TYPE)
    link.set(R_ID, package.relate(part, "package", workbook))
    return False


def _with_fixed_date(workbook: bytes) -> bytes:
    """Fix a workbook's time: the same edit gives the same bytes."""
    with zipfile.ZipFile(io.BytesIO(workbook)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["docProps/core.xml"] = _DATE.sub(_FIXED_DATE, parts["docProps/core.xml"])
    return Package("", parts).to_bytes()


def _sheet_count(workbook: bytes) -> int:
    try:
        with zipfile.ZipFile(io.BytesIO(workbook)) as archive:
            return sum(map(bool, map(_SHEET.fullmatch, archive.namelist())))
    except (zipfile.BadZipFile, OSError):
        return 0


def write_numbers(shape: SlideShape, header: list[str], rows: list[list[Cell]]) -> bool:
    """Replace the data of a chart; its looks stay.

    Returns:
        Whether its workbook had other sheets, which are gone.

    Raises:
        ToolError: If the data don't fit its kind, or the kind can't be written.
    """
    package, part = shape.file.package, shape.chart_part
    templates()
    from pptx.chart.chart import Chart
    from pptx.chart.xmlwriter import SeriesXmlRewriterFactory
    from pptx.exc import InvalidXmlError
    from pptx.oxml import parse_xml

    kind = chart_kinds(package.tree(part))[0]
    numbers = ChartNumbers.of_rows(header, rows, kind)
    data = numbers.for_chart(scatter=kind == "scatter")
    root = parse_xml(package.bytes_of(part))
    try:
        SeriesXmlRewriterFactory(Chart(root, None).chart_type, data).replace_series_data(root)
    except (NotImplementedError, AttributeError, LookupError, InvalidXmlError) as error:
        msg = f"the data of a {kind} chart can't be changed here; change it in PowerPoint, or insert a new chart"
        raise ToolError(msg) from error
    plain = etree.fromstring(etree.tostring(root))
    _plain_new_series(package.tree(part), plain)
    has_lost_sheets = _write_workbook(package, part, plain, data)
    package.replace(part, etree.tostring(plain, xml_declaration=True, encoding="UTF-8", standalone=True))
    return has_lost_sheets


def _plain_new_series(old: Element, root: Element) -> None:
    """Give copied series ids and colors of their own."""
    count = sum(1 for _ in old.iter(f"{_C}ser"))
    series = list(root.iter(f"{_C}ser"))
    for copied in series[count:] if count else ():
        for child in [child for child in copied if local(child) in {"spPr", "marker", "dPt"}]:
            copied.remove(child)
    if count > 1 == len(series) and root.find(path("c:chart", "c:title")) is None:
        set_chart_title(root, "")  # PowerPoint would show the name of a single series
    ids: set[str] = set()
    for mark in [element for element in root.iter(etree.Element) if local(element) == "uniqueId"]:
        if mark.get("val", "") in ids:
            extension = mark.getparent()
            extension.getparent().remove(extension)
        ids.add(mark.get("val", ""))
    for empty in [element for element in root.iter(f"{_C}extLst") if not len(element)]:
        empty.getparent().remove(empty)


def set_chart_title(root: Element, title: str) -> None:
    """Set or remove a chart's title; its format stays."""
    chart = root.find(f"{_C}chart")
    old = chart.find(f"{_C}title")
    texts = list(old.iterfind(f"{path('c:tx', 'c:rich')}//{a('t')}")) if old is not None else []
    if title and texts:
        texts[0].text = title
        for text in texts[1:]:
            text.text = ""
        return
    if old is not None:
        chart.remove(old)
    if title:
        new = etree.fromstring(
            f'<c:title xmlns:c="{CHART}" xmlns:a="{DRAWING}"><c:tx><c:rich><a:bodyPr/><a:p><a:r><a:t/></a:r></a:p>'
            '</c:rich></c:tx><c:overlay val="0"/></c:title>'
        )
        next(new.iter(a("t"))).text = title
        chart.insert(0, new)
    deleted = chart.find(f"{_C}autoTitleDeleted")
    if deleted is None:
        deleted = etree.Element(f"{_C}autoTitleDeleted")
        chart.insert(int(bool(title)), deleted)
    deleted.set("val", str(int(not title)))
