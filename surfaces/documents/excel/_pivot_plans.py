"""Read the plan of a stored pivot table, to compute it again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from lxml import etree
from openpyxl.utils import get_column_letter

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._office import q
from callboard.surfaces.documents._package import R_ID, local
from callboard.surfaces.documents._tables import nearest
from callboard.surfaces.documents.excel._cell_values import unescape
from callboard.surfaces.documents.excel._named_tables import header_of, tables_of
from callboard.surfaces.documents.excel._pivot_results import PivotFilter, PivotFunction, PivotPlan, PivotValue
from callboard.surfaces.documents.excel._pivot_tables import all_pivots
from callboard.surfaces.documents.excel._sheet_controls import drawn_cells

if TYPE_CHECKING:
    from collections.abc import Iterator

    from callboard.surfaces.documents._package import Element
    from callboard.surfaces.documents.excel._pivot_source import PivotSource
    from callboard.surfaces.documents.excel._pivot_tables import PivotTable
    from callboard.surfaces.documents.excel._sheet_controls import SheetRange

_KEPT = frozenset({
    "location", "pivotFields", "rowFields", "rowItems", "colFields", "colItems", "pageFields", "dataFields",
    "pivotTableStyleInfo", "extLst",
})  # fmt: skip
_FALSE = frozenset({"0", "false"})
_TRUE = frozenset({"1", "true"})
_OWN_LOOKS = {
    "mergeItem": "its labels are merged",
    "grandTotalCaption": "it has words of its own for totals",
    "missingCaption": "it has words of its own for empty cells",
    "errorCaption": "it has words of its own for errors",
    "pageWrap": "its filters stand in several columns",
    "pageOverThenDown": "its filters stand side by side",
}
_SUBTOTALS = frozenset(f"{name}Subtotal" for name in (
    "sum", "countA", "avg", "max", "min", "product", "count", "stdDev", "stdDevP", "var", "varP"
))  # fmt: skip


def source_of(pivot: PivotTable, cells: str) -> SheetRange:
    """Find the cells that a pivot table reads, or others for it.

    Raises:
        ToolError: If it reads something else than cells of this workbook.
    """
    cache = pivot.cache
    stored = cache.find(f"{q('cacheSource')}/{q('worksheetSource')}") if cache is not None else None
    if stored is None or stored.get(R_ID):
        msg = f"the pivot table {pivot.name!r} reads {pivot.source}, which is no range of this workbook"
        raise ToolError(msg)
    file = pivot.sheet.file
    titles = {sheet.title.casefold(): sheet for sheet in file.worksheets}
    sheet = titles.get(stored.get("sheet", "").casefold(), pivot.sheet)
    return drawn_cells(sheet, cells or stored.get("ref") or pivot.source)


def named_source(pivot: PivotTable) -> str:
    """Name the defined name that a pivot table reads; empty for none."""
    cache = pivot.cache
    stored = cache.find(f"{q('cacheSource')}/{q('worksheetSource')}") if cache is not None else None
    name = "" if stored is None or stored.get("ref") or stored.get(R_ID) else unescape(stored.get("name", ""))
    tables = {table.name.casefold() for sheet in pivot.sheet.file.worksheets for table in tables_of(sheet)}
    return f"it reads the defined name {name!r}" if name and name.casefold() not in tables else ""


def plan_of(pivot: PivotTable) -> PivotPlan:
    """Read the plan of a pivot table that `insert_pivot` could have made.

    Raises:
        ToolError: If it has something that would be lost.
    """
    if reason := foreign(pivot):
        msg = f"the pivot table {pivot.name!r} can only be changed in Excel: {reason}"
        raise ToolError(msg)
    names, root = pivot.fields, pivot.root
    values = [PivotValue.model_validate({"column": names[n], "function": f, "name": t}) for n, f, t in pivot.data()]
    totals = root.get("rowGrandTotals", "1") not in _FALSE
    return PivotPlan(
        [names[number] for number in pivot.axis("row")],
        [names[number] for number in pivot.axis("col") if number >= 0],
        values,
        [PivotFilter(column=names[field], values=texts) for field, texts in pivot.filters()],
        totals,
    )


@dataclass(frozen=True)
class PivotChanges:
    """Changes to a plan; None changes nothing."""

    rows: list[str] | None
    columns: list[str] | None
    values: list[PivotValue] | None
    filters: list[PivotFilter] | None
    totals: bool | None


def changed(plan: PivotPlan, changes: PivotChanges, source: PivotSource) -> PivotPlan:
    """Change a stored plan, and find its columns in a source.

    Raises:
        ToolError: If the source lacks a column that stays.
    """

    def values() -> Iterator[PivotValue]:
        for entry in plan.values:
            yield entry.model_copy(update={"column": _column(source, entry.column)})

    def filters() -> Iterator[PivotFilter]:
        for entry in plan.filters:
            yield entry.model_copy(update={"column": _column(source, entry.column)})

    return PivotPlan(
        [_column(source, name) for name in plan.rows] if changes.rows is None else changes.rows,
        [_column(source, name) for name in plan.columns] if changes.columns is None else changes.columns,
        [*values()] if changes.values is None else changes.values,
        [*filters()] if changes.filters is None else changes.filters,
        plan.totals if changes.totals is None else changes.totals,
    )


def _column(source: PivotSource, name: str) -> str:
    """Return the header or letter of a field."""
    if name not in source.names:
        msg = f"the pivot table uses the column {name!r}, and {source.cells.coord} has none; say what it uses instead"
        raise ToolError(msg + nearest(name, source.names))
    number, headers = source.names.index(name), header_of(source.sheet, source.cells)
    is_unique = [text for text in headers if text.casefold() == name.casefold()] == [headers[number]]
    return name if is_unique and headers[number] == name else get_column_letter(source.cells.min_col + number)


def dependent(pivot: PivotTable) -> str:
    """Name a slicer or chart of a pivot table; empty for none."""
    package = pivot.sheet.file.package
    if any(name.startswith(("xl/slicerCaches/", "xl/timelineCaches/")) for name in package):
        return "the workbook has slicers or timelines of pivot tables"
    charts = [name for name in package if name.startswith("xl/charts/chart") and name.endswith(".xml")]
    sources = (element for name in charts for element in package.tree(name).iter("{*}pivotSource"))
    names = {"".join(source.itertext()).strip().rpartition("!")[2] for source in sources}
    return "a pivot chart shows it" if pivot.name in names else ""


def foreign(pivot: PivotTable) -> str:
    """Name a feature that a computation here would lose; empty for none."""
    return next(_foreign(pivot), "")


def refresh_on_load(pivot: PivotTable, source: PivotSource | None) -> list[str]:
    """Let the program that opens the workbook compute a pivot table.

    Args:
        pivot: The pivot table.
        source: Other cells for it to read; None if they stay.

    Returns:
        The names of other pivot tables with the same source.

    Raises:
        ToolError: If the other cells lack a column of the present ones.
    """
    package = pivot.sheet.file.package
    part = package.related(pivot.part, "pivotCacheDefinition")[0]
    root = package.edit(part)
    root.set("refreshOnLoad", "1")
    if source is not None:
        for field in root.iter(q("cacheField")):
            name = unescape(field.get("name", ""))
            if field.get("databaseField") not in _FALSE and name not in source.names:
                msg = f"{source.cells.coord} lacks the column {name!r} of the pivot table's present source"
                raise ToolError(msg + nearest(name, source.names))
        stored = root.find(f"{q('cacheSource')}/{q('worksheetSource')}")
        stored.attrib.clear()
        stored.attrib.update(source.attributes)
    pivots = [other for other in all_pivots(pivot.sheet.file) if other.part != pivot.part]
    return [other.name for other in pivots if part in package.related(other.part, "pivotCacheDefinition")]


def _foreign(pivot: PivotTable) -> Iterator[str]:
    root, cache = pivot.root, pivot.cache
    if reason := dependent(pivot):
        yield reason
    yield from (f"it has {local(child)}" for child in root.iterchildren(tag=etree.Element) if local(child) not in _KEPT)
    if -2 in pivot.axis("row"):
        yield "its values stand below each other"
    if not pivot.axis("row"):
        yield "it has no fields for its rows"
    for field in cache.iter(q("cacheField")) if cache is not None else ():
        if field.get("formula") or field.find(q("fieldGroup")) is not None:
            yield f"the field {field.get('name')!r} is computed or grouped"
    yield from (reason for name, reason in _OWN_LOOKS.items() if root.get(name, "0") not in _FALSE)
    yield from (f"it shows the {name}" for _, name, _ in pivot.data() if name not in get_args(PivotFunction))
    for data in root.iter(q("dataField")):
        if data.get("showDataAs", "normal") != "normal":
            yield f"{data.get('name')!r} is shown as {data.get('showDataAs')}"
    yield from _foreign_fields(pivot)


def _foreign_fields(pivot: PivotTable) -> Iterator[str]:
    root = pivot.root
    totals = {root.get(name, "1") not in _FALSE for name in ("rowGrandTotals", "colGrandTotals")}
    for number, field in enumerate(root.iterfind(f"{q('pivotFields')}/{q('pivotField')}")):
        if field.get("axis") and (_SUBTOTALS & {*field.attrib}):
            yield "it has subtotals of its own"
        if field.get("axis") in {"axisRow", "axisCol"}:
            totals.add(field.get("defaultSubtotal", "1") not in _FALSE)
            yield from _foreign_axis(pivot, number, field)
    if len(totals) > 1:
        yield "only some of its totals are shown"


def _foreign_axis(pivot: PivotTable, number: int, field: Element) -> Iterator[str]:
    items = [*field.iter(q("item"))]
    if any(field.get(name, "1") not in _FALSE for name in ("compact", "outline")):
        yield "its layout is Excel's compact or outline form, not the tabular one"
    if any(item.get("h") in _TRUE or item.get("sd") in _FALSE for item in items):
        yield "some of its items are hidden or collapsed"
    if field.get("name") or any(item.get("n") for item in items):
        yield "it has names of its own for fields or items"
    if field.get("showAll", "1") not in _FALSE or field.get("insertBlankRow") in _TRUE:
        yield "it shows items without data, or blank rows"
    is_ascending = pivot.is_ascending(number, [item for item in items if not item.get("t")])
    if [local(child) for child in field] != ["items"] or not is_ascending:
        yield "its items have an order or a form of their own"
