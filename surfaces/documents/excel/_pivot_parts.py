"""Write the parts of a pivot table and of its source.

openpyxl reads and rewrites such parts, but "it is not intended that client code should be able to create pivot tables"
with it; it knows neither the displayed cells nor their order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lxml import etree

from callboard.surfaces.documents._office import MAIN, q
from callboard.surfaces.documents._package import R_ID, RELATIONSHIPS
from callboard.surfaces.documents.excel._cell_values import escape
from callboard.surfaces.documents.excel._pivot_results import VALUES, iso_moment
from callboard.surfaces.documents.excel._pivot_tables import FUNCTIONS

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping, Sequence

    from openpyxl.worksheet.cell_range import CellRange

    from callboard.surfaces.documents._package import Element
    from callboard.surfaces.documents.excel._pivot_results import (
        Line,
        PivotField,
        PivotGrid,
        PivotShape,
        SourceValue,
    )
    from callboard.surfaces.documents.excel._pivot_source import PivotSource
    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._workbook import ExcelFile

_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.{}+xml"
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_VERSIONS = {"createdVersion": 6, "minRefreshableVersion": 3}
"""Those of Excel 2016; every Excel since 2007 refreshes such a pivot table."""
_LONGEST_ITEM = 255
_VALUES_FIELD = -2
"""The axis of several values, among the fields of columns."""
_TAGS = {"number": "n", "date": "d", "text": "s", "truth": "b", "error": "e", "empty": "m"}
_CACHES_BEFORE = ("smartTagPr", "smartTagTypes", "webPublishing", "fileRecoveryPr", "webPublishObjects", "extLst")
_ATTRIBUTES = {
    "applyNumberFormats": 0, "applyBorderFormats": 0, "applyFontFormats": 0, "applyPatternFormats": 0,
    "applyAlignmentFormats": 0, "applyWidthHeightFormats": 1, "dataCaption": VALUES, "updatedVersion": 6,
    "useAutoFormatting": 1, "itemPrintTitles": 1, "indent": 0, "compact": 0, "compactData": 0,
    "multipleFieldFilters": 0,
}  # fmt: skip
_STYLE = {
    "name": "PivotStyleLight16", "showRowHeaders": 1, "showColHeaders": 1, "showRowStripes": 0, "showColStripes": 0,
    "showLastColumn": 1,
}  # fmt: skip


@dataclass(frozen=True)
class PivotParts:
    """A pivot table that is to be stored."""

    sheet: Sheet
    """The sheet that shows it."""
    name: str
    cells: CellRange
    """Its cells without the filters."""
    source: PivotSource
    fields: Sequence[PivotField]
    """The columns of the source."""
    shape: PivotShape
    grid: PivotGrid

    def add(self) -> str:
        """Add the parts to the workbook; return that of the definition."""
        package = self.sheet.file.package
        part = package.free_name("xl/pivotTables/pivotTable{}.xml")
        self._write(part)
        package.relate(self.sheet.part, "pivotTable", part)
        return part

    def replace(self, part: str) -> str:
        """Put other content into the part of a pivot table; return it."""
        package = self.sheet.file.package
        links = [link for link in package.relationships(part) if link.type == "pivotCacheDefinition"]
        for link in links:
            package.unrelate(part, link.id)
        style = package.tree(part).find(q("pivotTableStyleInfo"))
        style = None if style is None else dict(style.attrib)
        self._write(part, style)
        for link in links:
            drop_unused_cache(self.sheet.file, link.target)
        return part

    def _write(self, part: str, style: dict[str, str] | None = None) -> None:
        file, package = self.sheet.file, self.sheet.file.package
        cache = package.free_name("xl/pivotCache/pivotCacheDefinition{}.xml")
        package.add(cache, _cache(file, self.source, self.fields), _TYPE.format("pivotCacheDefinition"))
        records = package.free_name("xl/pivotCache/pivotCacheRecords{}.xml")
        package.add(records, _records(self.fields, self.source.count), _TYPE.format("pivotCacheRecords"))
        package.edit(cache).set(R_ID, package.relate(cache, "pivotCacheRecords", records))
        number = _enlist(file, package.relate(file.part, "pivotCacheDefinition", cache))
        package.add(part, self._definition(number, style or _STYLE), _TYPE.format("pivotTable"))
        package.relate(part, "pivotCacheDefinition", cache)

    def _definition(self, cache_id: int, style: Mapping[str, object]) -> Element:
        root = etree.Element(q("pivotTableDefinition"), nsmap={None: MAIN})
        _set(root, name=_text(self.name), cacheId=cache_id, **_ATTRIBUTES, **_VERSIONS)
        if not self.shape.totals:
            _set(root, rowGrandTotals=0, colGrandTotals=0)
        location = _add(root, "location", ref=self.cells.coord, firstHeaderRow=1)
        _set(location, firstDataRow=self.grid.header_rows, firstDataCol=len(self.shape.rows))
        if self.shape.filters:
            _set(location, rowPageCount=len(self.shape.filters), colPageCount=1)
        columns = _add(root, "pivotFields", count=len(self.fields))
        for number, field in enumerate(self.fields):
            element = _add(columns, "pivotField")
            _add_field(element, number, field, self.shape)
            if field.items and field.code != "General":
                element.set("numFmtId", str(self._format(field.code)))
        self._add_axes(root)
        self._add_data(root)
        _add(root, "pivotTableStyleInfo", **style)
        return root

    def _add_axes(self, root: Element) -> None:
        """List the fields of rows and columns, and their lines."""
        several = len(self.shape.data) > 1
        for name, axis, lines in (
            ("row", self.shape.rows, self.grid.row_lines),
            ("col", [*self.shape.columns, *[_VALUES_FIELD] * several], self.grid.column_lines),
        ):
            if axis:
                fields = _add(root, f"{name}Fields", count=len(axis))
                for number in axis:
                    _add(fields, "field", x=number)
            _add_lines(_add(root, f"{name}Items", count=len(lines)), lines, several=several and name == "col")

    def _add_data(self, root: Element) -> None:
        """List the filters and the summed columns."""
        if self.shape.filters:
            pages = _add(root, "pageFields", count=len(self.shape.filters))
            for entry in self.shape.filters:
                page = _add(pages, "pageField", fld=entry.field)
                if len(entry.items) == 1:
                    _set(page, item=min(entry.items))
                _set(page, hier=-1)
        columns = _add(root, "dataFields", count=len(self.shape.data))
        for data in self.shape.data:
            element = _add(columns, "dataField", name=_text(data.name), fld=data.field)
            if data.function != "sum":
                _set(element, subtotal=FUNCTIONS[data.function])
            _set(element, baseField=0, baseItem=0)
            code = data.code(self.fields)
            if code != "General":
                _set(element, numFmtId=self._format(code))

    def _format(self, code: str) -> int:
        return self.sheet.file.styles.number_of_format(code)


def remove_parts(sheet: Sheet, part: str) -> None:
    """Remove a pivot table, and the source that only it reads."""
    package = sheet.file.package
    caches = package.related(part, "pivotCacheDefinition")
    for link in package.relationships(sheet.part):
        if link.target == part and not link.external:
            package.unrelate(sheet.part, link.id)
    package.remove(part)
    for cache in caches:
        drop_unused_cache(sheet.file, cache)


def drop_unused_cache(file: ExcelFile, cache: str) -> None:
    """Remove the source of pivot tables if none reads it any more."""
    package = file.package
    sources = list(package.sources_of(cache))
    if any(source != file.part for source, _ in sources):
        return
    caches = package.edit(file.part).find(q("pivotCaches"))
    for _, link in sources:
        package.unrelate(file.part, link)
        for element in [] if caches is None else caches.findall(q("pivotCache")):
            if element.get(R_ID) == link:
                caches.remove(element)
    if caches is not None and len(caches) == 0:
        caches.getparent().remove(caches)
    package.remove(cache)


def _enlist(file: ExcelFile, link: str) -> int:
    """List a source in the workbook; return its number there."""
    root = file.package.edit(file.part)
    caches = root.find(q("pivotCaches"))
    if caches is None:
        caches = etree.Element(q("pivotCaches"))
        later = {q(name) for name in _CACHES_BEFORE}
        root.insert(next((n for n, child in enumerate(root) if child.tag in later), len(root)), caches)
    numbers = [int(element.get("cacheId", "0")) for element in caches.iterfind(q("pivotCache"))]
    number = max([0, *numbers]) + 1
    _add(caches, "pivotCache", cacheId=number).set(R_ID, link)
    return number


def _cache(file: ExcelFile, source: PivotSource, fields: Sequence[PivotField]) -> Element:
    root = etree.Element(q("pivotCacheDefinition"), nsmap={None: MAIN, "r": RELATIONSHIPS})
    # A program that opens the file reads the source again: it may have changed since, here or elsewhere.
    _set(root, refreshOnLoad=1, refreshedVersion=6, recordCount=source.count, **_VERSIONS)
    origin = _add(root, "cacheSource", type="worksheet")
    _add(origin, "worksheetSource", **source.attributes)
    columns = _add(root, "cacheFields", count=len(fields))
    for field in fields:
        has_format = field.code != "General"
        code = file.styles.number_of_format(field.code) if has_format else 0
        _add_items(_add(columns, "cacheField", name=_text(field.name), numFmtId=code), field, file)
    return root


def _add_items(column: Element, field: PivotField, file: ExcelFile) -> None:
    """Describe the values of a column, and list its items."""
    values = {*field.values}
    shared = _add(column, "sharedItems")
    _set(shared, **_kinds_of({value.kind for value in values}))
    numbers = [float(value.value) for value in values if value.kind == "number"]
    dates = [iso_moment(float(value.value), file.epoch) for value in values if value.kind == "date"]
    if numbers:
        if all(number.is_integer() for number in numbers):
            _set(shared, containsInteger=1)
        _set(shared, minValue=_number(min(numbers)), maxValue=_number(max(numbers)))
    if dates:
        _set(shared, minDate=min(dates), maxDate=max(dates))
    if field.items:
        _set(shared, count=len(field.items))
    if any(isinstance(value.value, str) and len(value.value) > _LONGEST_ITEM for value in values):
        _set(shared, longText=1)
    for item in field.items:
        element = _add(shared, _TAGS[item.kind])
        if item.kind != "empty":
            element.set("v", _stored(item, file.epoch))


def _kinds_of(kinds: set[str]) -> dict[str, int]:
    """Return the attributes for kinds of values, without defaults."""
    attributes: dict[str, int] = {}
    if not kinds & {"text", "error", "truth", "empty"}:
        attributes["containsSemiMixedTypes"] = 0
    if kinds <= {"date", "empty"}:
        attributes["containsNonDate"] = 0
    if "date" in kinds:
        attributes["containsDate"] = 1
    if not kinds & {"text", "error"}:
        attributes["containsString"] = 0
    if "empty" in kinds:
        attributes["containsBlank"] = 1
    if len(kinds - {"empty"}) > 1:
        attributes["containsMixedTypes"] = 1
    if "number" in kinds:
        attributes["containsNumber"] = 1
    return attributes


def _stored(item: SourceValue, epoch: dt.datetime) -> str:
    match item.kind:
        case "date":
            return iso_moment(float(item.value), epoch)
        case "number":
            return _number(float(item.value))
        case "truth":
            return str(int(bool(item.value)))
        case _:
            return _text(str(item.value))


def _number(number: float) -> str:
    return str(int(number)) if number.is_integer() and abs(number) < 10**15 else repr(number)


def _text(text: str) -> str:
    """Escape what a part's text can't hold."""
    return _CONTROL.sub(lambda match: f"_x{ord(match.group()):04X}_", escape(text))


def _records(fields: Sequence[PivotField], count: int) -> bytes:
    """Write the rows of a source.

    A tree of them would take several times the memory.
    """
    columns = []
    for field in fields:
        if field.items:
            columns.append([f'<x v="{number}"/>' for number in field.numbers])
        else:
            columns.append([
                "<m/>" if value.kind == "empty" else f'<n v="{_number(float(value.value))}"/>' for value in field.values
            ])  # fmt: skip
    head = (
        f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n<pivotCacheRecords xmlns="{MAIN}" count="{count}">'
    )
    rows = (f"<r>{''.join(cells)}</r>" for cells in zip(*columns, strict=True))
    return "".join([head, *rows, "</pivotCacheRecords>"]).encode()


def _add_field(element: Element, number: int, field: PivotField, shape: PivotShape) -> None:
    page = next((entry for entry in shape.filters if entry.field == number), None)
    axis = "axisRow" if number in shape.rows else "axisCol" if number in shape.columns else "axisPage" if page else ""
    if axis:
        element.set("axis", axis)
    if any(data.field == number for data in shape.data):
        element.set("dataField", "1")
    _set(element, compact=0, outline=0, showAll=0)
    if not axis:
        return
    chosen = page.items if page is not None else frozenset()
    if len(chosen) > 1:
        element.set("multipleItemSelectionAllowed", "1")
    if page is None and not field.is_calendar:  # a program that sorts again would sort the names as other texts
        element.set("sortType", "ascending")
    if not shape.totals:
        element.set("defaultSubtotal", "0")
    items = _add(element, "items", count=len(field.items) + shape.totals)
    for item in range(len(field.items)):
        entry = _add(items, "item")
        if len(chosen) > 1 and item not in chosen:
            entry.set("h", "1")
        entry.set("x", str(item))
    if shape.totals:
        _add(items, "item", t="default")


def _add_lines(parent: Element, lines: Sequence[Line], *, several: bool) -> None:
    """List the rows or columns of results.

    Each names only the items that differ from those of the one before.
    """
    before: tuple[int, ...] = ()
    for line in lines:
        element = _add(parent, "i")
        if line.is_total:
            element.set("t", "default" if line.key else "grand")
            repeated = max(len(line.key) - 1, 0)
            numbers = [*line.key[-1:]] or [0]
        else:
            repeated = 0
            while repeated < min(len(line.key), len(before)) and line.key[repeated] == before[repeated]:
                repeated += 1
            repeated = (
                min(repeated, len(line.key)) if several and line.data else min(repeated, max(len(line.key) - 1, 0))
            )
            numbers = [*line.key[repeated:]]
            numbers += [line.data] if several else []
        if repeated:
            element.set("r", str(repeated))
        if line.data:
            element.set("i", str(line.data))
        for number in numbers:
            entry = _add(element, "x")
            if number:
                entry.set("v", str(number))
        before = line.key


def _add(parent: Element, tag: str, **attributes: Any) -> Element:
    return _set(etree.SubElement(parent, q(tag)), **attributes)


def _set(element: Element, **attributes: Any) -> Element:
    for name, value in attributes.items():
        element.set(name, str(value))
    return element
