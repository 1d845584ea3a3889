"""The pivot tables of a workbook, as they are stored."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lxml import etree
from openpyxl.worksheet.cell_range import CellRange

from callboard.surfaces.documents._collation import calendar_key, order_of
from callboard.surfaces.documents._office import q
from callboard.surfaces.documents._package import R_ID, Element, local
from callboard.surfaces.documents.excel._cell_elements import area_of, parse_number
from callboard.surfaces.documents.excel._cell_values import unescape
from callboard.surfaces.documents.excel._pivot_results import BLANK, VALUES, moment_text, number_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic import JsonValue

    from callboard.surfaces.documents._tables import Answer
    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._workbook import ExcelFile

FUNCTIONS = {
    "sum": "sum", "count": "count", "average": "average", "max": "max", "min": "min", "product": "product",
    "count_numbers": "countNums",
}  # fmt: skip
"""The functions by the names that a pivot table's part gives them."""
_BY_STORED_NAME = {stored: name for name, stored in FUNCTIONS.items()}
_VALUES_FIELD = -2
_ITEM_ORDER = {"n": 0, "d": 0, "s": 1, "b": 2, "e": 3, "m": 4}
"""The kinds of items in ascending order: numbers and dates, texts, truth values, errors, nothing."""
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")
_MOST_LISTED = 20
_MOST_ITEMS = 10


class PivotTable:
    """A pivot table on a sheet."""

    def __init__(self, sheet: Sheet, part: str) -> None:
        self.sheet = sheet
        self.part = part

    @property
    def root(self) -> Element:
        """Its XML, for reading."""
        return self.sheet.file.package.tree(self.part)

    @property
    def name(self) -> str:
        """The name that Excel shows."""
        return unescape(self.root.get("name", ""))

    @property
    def cells(self) -> CellRange:
        """Its cells without the filters above them."""
        location = self.root.find(q("location"))
        try:
            return area_of(location.get("ref"))
        except (AttributeError, ValueError, TypeError) as error:
            msg = f"the pivot table {self.name!r} has no cells"
            raise self.sheet.file.package.damaged(msg) from error

    @property
    def areas(self) -> list[CellRange]:
        """Its cells, and those of its filters."""
        cells, location = self.cells, self.root.find(q("location"))
        rows, columns = (self._number(location.get(f"{axis}PageCount"), 0) for axis in ("row", "col"))
        top, right = cells.min_row - 1 - rows, cells.min_col + max(3 * columns - 2, 1)
        if not rows or top < 1:
            return [cells]
        return [CellRange(None, cells.min_col, top, right, cells.min_row - 2), cells]

    @property
    def block(self) -> CellRange:
        """The smallest range with its cells and its filters."""
        areas = self.areas
        return CellRange(
            None, areas[0].min_col, areas[0].min_row, max(area.max_col for area in areas), areas[-1].max_row
        )

    @property
    def cache(self) -> Element | None:
        """The XML of its source and its items, if any."""
        parts = self.sheet.file.package.related(self.part, "pivotCacheDefinition")
        return self.sheet.file.package.tree(parts[0]) if parts else None

    @property
    def fields(self) -> list[str]:
        """The names of the source's columns."""
        cache = self.cache
        found = cache.iterfind(f"{q('cacheFields')}/{q('cacheField')}") if cache is not None else ()
        return [unescape(element.get("name", "")) for element in found]

    @property
    def source(self) -> str:
        """The cells or the table that it reads, in words."""
        cache = self.cache
        origin = cache.find(q("cacheSource")) if cache is not None else None
        if origin is None:
            return "unknown"
        ranges = origin.find(q("worksheetSource"))
        if ranges is None:
            kind = str(origin.get("type", "unknown"))
            return {"consolidation": "several ranges", "external": "a data connection"}.get(kind, kind)
        sheet, cells = ranges.get("sheet", ""), ranges.get("ref", "") or unescape(ranges.get("name", ""))
        text = f"{sheet}!{cells}" if sheet and ranges.get("ref") else cells
        return f"{text} of another workbook" if ranges.get(R_ID) else str(text)

    def axis(self, name: str) -> list[int]:
        """Return the numbers of the fields on an axis: ``row`` or ``col``."""
        fields = self.root.iterfind(f"{q(f'{name}Fields')}/{q('field')}")
        return [self._number(field.get("x"), 0) for field in fields]

    def data(self) -> Iterator[tuple[int, str, str]]:
        """Yield the summed columns: field, function, heading."""
        for element in self.root.iterfind(f"{q('dataFields')}/{q('dataField')}"):
            stored = element.get("subtotal", "sum")
            function = _BY_STORED_NAME.get(stored, stored)
            yield self._number(element.get("fld"), 0), function, unescape(element.get("name", ""))

    def codes(self) -> dict[tuple[int, str], str]:
        """Return the number formats of values, by field and function."""
        styles = self.sheet.file.styles
        elements = self.root.iterfind(f"{q('dataFields')}/{q('dataField')}")
        numbers = [element.get("numFmtId", "") for element in elements]
        keys = [(field, function) for field, function, _ in self.data()]
        return {key: styles.code_of(number) for key, number in zip(keys, numbers, strict=True) if number}

    def filters(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the filters: field, and the values that count, none for all."""
        pivot_fields = self.root.findall(f"{q('pivotFields')}/{q('pivotField')}")
        for element in self.root.iterfind(f"{q('pageFields')}/{q('pageField')}"):
            field = self._number(element.get("fld"), 0)
            texts = self._items(field)
            entries = pivot_fields[field].findall(f"{q('items')}/{q('item')}") if 0 <= field < len(pivot_fields) else []
            chosen = element.get("item")
            if chosen is not None:
                number = self._number(chosen, 0)
                kept_entries = entries[number : number + 1]
            else:
                value_entries = [entry for entry in entries if not entry.get("t")]
                kept_entries = [entry for entry in value_entries if entry.get("h") not in {"1", "true"}]
                if len(kept_entries) == len(value_entries):
                    kept_entries = []
            numbers = [self._number(entry.get("x"), -1) for entry in kept_entries]
            yield field, [texts[number] for number in numbers if 0 <= number < len(texts)]

    @property
    def facts(self) -> dict[str, JsonValue]:
        """The facts that an observation shows."""
        names = self.fields
        facts: Answer = {"source": self.source}
        for axis, key in (("row", "rows"), ("col", "columns")):
            facts[key] = [_named(names, number) for number in self.axis(axis)[:_MOST_LISTED] if number != _VALUES_FIELD]
        data = [*self.data()]
        facts["values"] = {heading: f"{function} of {_named(names, number)}" for number, function, heading in data}
        facts["filters"] = {
            _named(names, number): list(texts[:_MOST_ITEMS]) or "all" for number, texts in self.filters()
        }
        return facts

    def is_ascending(self, field: int, items: Sequence[Element]) -> bool:
        """Return whether items stand in ascending order.

        It is that of numbers and dates, of texts in dictionaries, by codes or in the calendar.
        """
        shared = self._shared_items(field)
        numbers = [self._number(item.get("x"), -1) for item in items]
        stored = [shared[number] for number in numbers if 0 <= number < len(shared)]
        ranks = [_ITEM_ORDER.get(local(item), len(_ITEM_ORDER)) for item in stored]
        texts = [unescape(item.get("v", "")) for item in stored if local(item) == "s"]
        moments = [item.get("v", "") for item in stored if local(item) == "d"]
        figures = [item.get("v", "") for item in stored if local(item) == "n"]
        amounts = [float(text) for text in figures if _NUMBER.fullmatch(text)]
        keys = [order_of(texts)[0], str.casefold, calendar_key(texts)]
        return (
            len(stored) == len(items)
            and ranks == sorted(ranks)
            and moments == sorted(moments)
            and amounts == sorted(amounts)
            and any(texts == sorted(texts, key=key) for key in keys if key is not None)
        )

    def _items(self, field: int) -> list[str]:
        """Return the texts of a field's items."""
        return [_item_text(item) for item in self._shared_items(field)]

    def _shared_items(self, field: int) -> list[Element]:
        cache = self.cache
        fields = cache.findall(f"{q('cacheFields')}/{q('cacheField')}") if cache is not None else []
        shared = fields[field].find(q("sharedItems")) if 0 <= field < len(fields) else None
        return [*shared.iterchildren(tag=etree.Element)] if shared is not None else []

    def _number(self, text: str | None, default: int) -> int:
        return parse_number(text, default, self.sheet.file.package.damaged)


def _named(names: list[str], number: int) -> str:
    return VALUES if number == _VALUES_FIELD else names[number] if 0 <= number < len(names) else f"field {number}"


def _item_text(item: Element) -> str:
    """Return the text of a stored item, as filters show it."""
    text = unescape(item.get("v", ""))
    match local(item):
        case "m":
            return BLANK
        case "b":
            return "TRUE" if text in {"1", "true"} else "FALSE"
        case "d":
            return moment_text(text)
        case "n" if _NUMBER.fullmatch(text):
            return number_text(float(text))
        case _:
            return text


def pivots_of(sheet: Sheet) -> list[PivotTable]:
    """List a sheet's pivot tables."""
    if not sheet.is_grid:
        return []
    return [PivotTable(sheet, part) for part in sheet.file.package.related(sheet.part, "pivotTable")]


def all_pivots(file: ExcelFile) -> list[PivotTable]:
    """List a workbook's pivot tables, in the order of their ids."""
    return [pivot for sheet in file.sheets for pivot in pivots_of(sheet)]
