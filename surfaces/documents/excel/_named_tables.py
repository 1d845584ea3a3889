"""Excel tables: ranges with a header and a part of their own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lxml import etree
from openpyxl.worksheet.cell_range import CellRange

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._office import q
from callboard.surfaces.documents._package import R_ID, Element
from callboard.surfaces.documents.excel._cell_values import escape, unescape

if TYPE_CHECKING:
    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._workbook import ExcelFile

_TABLE_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.table+xml"
_TABLE_STYLE = "TableStyleMedium9"
_TABLE_NAME = re.compile(r"[^\W\d][\w.]{0,254}")
_CELL_NAME = re.compile(r"[A-Z]{1,3}[0-9]+|R[0-9]*C[0-9]*|[RC]", re.IGNORECASE)


class Table:
    """An Excel table."""

    def __init__(self, sheet: Sheet, part: str) -> None:
        self.sheet = sheet
        self.part = part

    @property
    def root(self) -> Element:
        """The table's XML, for reading."""
        return self.sheet.file.package.tree(self.part)

    def edit(self) -> Element:
        """Return the table's XML, which is about to change."""
        return self.sheet.file.package.edit(self.part)

    @property
    def name(self) -> str:
        """The name by which formulas know it."""
        return str(self.root.get("displayName") or self.root.get("name", ""))

    @property
    def cells(self) -> CellRange:
        """All its cells, with the header and the rows of totals."""
        try:
            return CellRange(self.root.get("ref"))
        except (ValueError, TypeError) as error:
            msg = f"the table {self.name!r} has no cells"
            raise self.sheet.file.package.damaged(msg) from error

    @property
    def columns(self) -> list[str]:
        """The names of its columns."""
        return [unescape(element.get("name", "")) for element in self.column_elements()]

    def column_elements(self) -> list[Element]:
        """Return the elements of its columns, from left to right."""
        return list(self.root.iterfind(f"{q('tableColumns')}/{q('tableColumn')}"))

    @property
    def has_header(self) -> bool:
        """Return whether the first row is the header."""
        return str(self.root.get("headerRowCount", "1")) != "0"

    @property
    def totals(self) -> int:
        """The number of rows of totals at the end."""
        text = self.root.get("totalsRowCount", "0")
        return int(text) if text.isdigit() else 0

    def resize(self, cells: CellRange) -> None:
        """Let it cover other rows."""
        root = self.edit()
        root.set("ref", cells.coord)
        auto_filter = root.find(q("autoFilter"))
        if auto_filter is not None:
            last = cells.max_row - self.totals
            auto_filter.set("ref", CellRange(None, cells.min_col, cells.min_row, cells.max_col, last).coord)


def tables_of(sheet: Sheet) -> list[Table]:
    """List a sheet's tables."""
    if not sheet.is_grid:
        return []
    package = sheet.file.package
    links = sheet.root.iterfind(f"{q('tableParts')}/{q('tablePart')}")
    parts = [package.target(sheet.part, link.get(R_ID)) for link in links]
    return [Table(sheet, part) for part in parts if part is not None]


def header_of(sheet: Sheet, cells: CellRange) -> list[str]:
    """Return the texts of a range's first row."""
    row = (sheet.value(cells.min_row, column) for column in range(cells.min_col, cells.max_col + 1))
    return ["" if value is None else str(value) for value in row]


def blocks_of(sheet: Sheet) -> list[CellRange]:
    """List the blocks that empty rows and columns of a sheet separate.

    A table is never split.
    """
    if (single := _single_block(sheet)) is not None:
        return [single]
    filled_positions = list(sheet.filled())
    for cells in (table.cells for table in tables_of(sheet)):
        filled_positions += [(row, cells.min_col) for row in range(cells.min_row, cells.max_row + 1)]
        filled_positions += [(cells.min_row, column) for column in range(cells.min_col, cells.max_col + 1)]
    blocks: list[CellRange] = []
    pending_groups = [filled_positions] if filled_positions else []
    while pending_groups:
        positions = pending_groups.pop()
        parts = next((groups for axis in (0, 1) if len(groups := _split(positions, axis)) > 1), None)
        if parts is not None:
            pending_groups += parts
            continue
        rows, columns = zip(*positions, strict=True)
        blocks.append(CellRange(min_row=min(rows), max_row=max(rows), min_col=min(columns), max_col=max(columns)))
    return sorted(blocks, key=lambda block: (block.min_row, block.min_col))


def _single_block(sheet: Sheet) -> CellRange | None:
    """Return the only block of a large sheet, if it has one."""
    used = sheet.used() if sheet.blocks is not None else None
    if used is None or not all(table.cells.issubset(used) for table in tables_of(sheet)):
        return None
    rows, columns = set[int](), set[int]()
    for row, column in sheet.filled():
        rows.add(row)
        columns.add(column)
    size = used.size
    return used if (len(rows), len(columns)) == (size["rows"], size["columns"]) else None


def _split(positions: list[tuple[int, int]], axis: int) -> list[list[tuple[int, int]]]:
    """Split cells at empty rows (axis 0) or columns (axis 1)."""
    parts: list[list[tuple[int, int]]] = []
    part_of: dict[int, list[tuple[int, int]]] = {}
    for line in sorted({position[axis] for position in positions}):
        if line - 1 not in part_of:
            parts.append([])
        part_of[line] = parts[-1]
    for position in positions:
        part_of[position[axis]].append(position)
    return parts


def make_table(file: ExcelFile, sheet: Sheet, cells: CellRange, header: list[str], name: str) -> str:
    """Make an Excel table of a range, and return its name.

    Raises:
        ToolError: If the name or a header is not valid for a table, or there are no rows.
    """
    tables = [table for worksheet in file.worksheets for table in tables_of(worksheet)]
    names = {table.name.casefold() for table in tables} | {
        defined_name.casefold() for defined_name, _, _ in file.names()
    }
    if not name:
        name = next(f"Table{n}" for n in range(1, len(names) + 2) if f"table{n}" not in names)
    name = "_".join(name.split())  # names have no spaces; the answer has the name in use
    if not _TABLE_NAME.fullmatch(name) or _CELL_NAME.fullmatch(name) or name.casefold() in names:
        msg = f"{name!r} can't name a table: letters, digits, _ and . only, not like a cell, and not taken yet"
        raise ToolError(msg)
    check_header(header)
    if cells.size["rows"] == 1:
        msg = "a table needs at least one row"
        raise ToolError(msg)
    root = etree.Element(q("table"), nsmap={None: q("")[1:-1]})
    number = max([0, *(int(table.root.get("id", "0")) for table in tables)]) + 1
    for key, value in (("id", number), ("name", name), ("displayName", name), ("ref", cells.coord)):
        root.set(key, str(value))
    etree.SubElement(root, q("autoFilter")).set("ref", cells.coord)
    columns = etree.SubElement(root, q("tableColumns"))
    columns.set("count", str(len(header)))
    for index, text in enumerate(header, start=1):
        column = etree.SubElement(columns, q("tableColumn"))
        column.set("id", str(index))
        column.set("name", escape(text))
    style = etree.SubElement(root, q("tableStyleInfo"))
    for key, value in (("name", _TABLE_STYLE), ("showFirstColumn", 0), ("showLastColumn", 0), ("showRowStripes", 1)):
        style.set(key, str(value))
    style.set("showColumnStripes", "0")
    package = file.package
    part = package.free_name("xl/tables/table{}.xml")
    package.add(part, root, _TABLE_TYPE)
    links = sheet.element("tableParts")
    etree.SubElement(links, q("tablePart")).set(R_ID, package.relate(sheet.part, "table", part))
    links.set("count", str(len(links)))
    return name


def check_header(header: list[str]) -> None:
    """Refuse headers that a table can't have.

    Raises:
        ToolError: If one is empty, or twice in the table.
    """
    if any(not text.strip() for text in header) or len({text.casefold() for text in header}) < len(header):
        msg = "the headers of a table must be unique and not empty"
        raise ToolError(msg)
