"""A sheet of a workbook, as its XML.

An edit changes only the elements of the cells that it writes.
"""

from __future__ import annotations

import bisect
import datetime as dt
import functools
import re
from typing import TYPE_CHECKING, Any, Literal

from lxml import etree
from openpyxl.utils import column_index_from_string, get_column_letter
from openpyxl.worksheet.cell_range import CellRange

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._office import q
from callboard.surfaces.documents.excel._cell_elements import (
    CELL,
    FORMULA,
    INLINE,
    ROW,
    VALUE,
    area_of,
    drop_placeholders,
    holds,
    index_rows,
    is_within,
    parse_number,
)
from callboard.surfaces.documents.excel._cell_values import (
    DATE_CODE,
    Date,
    Value,
    check_number,
    check_text,
    code_of,
    escape,
    number_of,
    parse_iso,
    parse_span,
    serial_of,
    to_date,
    to_json,
    unescape,
)
from callboard.surfaces.documents.excel._formula_text import translated
from callboard.surfaces.documents.excel._plain_cells import PlainCell

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping

    from pydantic import JsonValue

    from callboard.surfaces.documents._package import Element
    from callboard.surfaces.documents.excel._row_blocks import RowBlocks
    from callboard.surfaces.documents.excel._workbook import ExcelFile

Kind = Literal["empty", "number", "text", "truth", "error", "date"]
_CELL = re.compile(r"\$?([A-Za-z]{1,3})\$?([0-9]{1,7})")
_T = q("t")
_EXACT = 10**15
_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2})?)?")
SPACE = "{http://www.w3.org/XML/1998/namespace}space"
_ORDER = [
    "sheetPr",
    "dimension",
    "sheetViews",
    "sheetFormatPr",
    "cols",
    "sheetData",
    "sheetCalcPr",
    "sheetProtection",
    "protectedRanges",
    "scenarios",
    "autoFilter",
    "sortState",
    "dataConsolidate",
    "customSheetViews",
    "mergeCells",
    "phoneticPr",
    "conditionalFormatting",
    "dataValidations",
    "hyperlinks",
    "printOptions",
    "pageMargins",
    "pageSetup",
    "headerFooter",
    "rowBreaks",
    "colBreaks",
    "customProperties",
    "cellWatches",
    "ignoredErrors",
    "smartTags",
    "drawing",
    "legacyDrawing",
    "legacyDrawingHF",
    "drawingHF",
    "picture",
    "oleObjects",
    "controls",
    "webPublishItems",
    "tableParts",
    "extLst",
]
"""The order in which a sheet's elements must stand."""


class Sheet:
    """A sheet. Rows and columns count from 1."""

    def __init__(self, file: ExcelFile, entry: Element, part: str, kind: str) -> None:
        self.file = file
        self.entry = entry
        """The sheet's element in the workbook."""
        self.part = part
        self.kind = kind
        """``sheet``, ``chart_sheet`` or ``other_sheet``."""
        self.is_grid = kind == "sheet"
        self.changed: set[tuple[int, int]] = set()
        """The cells whose values an edit changed."""
        self.written: dict[tuple[int, int], tuple[Any, Kind]] = {}
        """The values and kinds that written cells had before an edit."""
        self.dated: set[tuple[int, int]] = set()
        """The written cells whose value the caller gave as a date or time."""
        self.reshaped = False
        """Whether an edit moved cells about."""
        self._has_placeholders = file.has_placeholders and self.is_grid

    @property
    def title(self) -> str:
        """The title on its tab."""
        return str(self.entry.get("name", ""))

    @property
    def state(self) -> str:
        """``visible``, ``hidden`` or ``veryHidden``."""
        return str(self.entry.get("state", "visible"))

    @property
    def root(self) -> Element:
        """The sheet's XML, for reading."""
        return self.file.package.tree(self.part)

    @property
    def protected(self) -> bool:
        """Return whether the sheet is protected."""
        protection = self.root.find(q("sheetProtection"))
        return protection is not None and protection.get("sheet") in {"1", "true"}

    def edit(self) -> Element:
        """Return the sheet's XML, which is about to change."""
        return self.file.package.edit(self.part)

    def element(self, name: str) -> Element:
        """Return one of the sheet's elements, made if missing, for a change."""
        root = self.edit()
        child = root.find(q(name))
        if child is None:
            child = etree.Element(q(name))
            self.insert(child, name)
        return child

    def insert(self, element: Element, name: str) -> None:
        """Put an element into the sheet, in the required order."""
        tags = {q(tag) for tag in _ORDER[: _ORDER.index(name) + 1]}
        root = self.edit()
        indices = [number for number, child in enumerate(root) if child.tag in tags]
        root.insert(indices[-1] + 1 if indices else 0, element)

    # Cells

    @functools.cached_property
    def cells(self) -> MutableMapping[tuple[int, int], Element]:
        """The elements of the stored cells, by row and column."""
        return self._index[1] if self.blocks is None else self.blocks.cells

    @functools.cached_property
    def rows(self) -> MutableMapping[int, Element]:
        """The elements of the rows that the file has."""
        return self._index[0] if self.blocks is None else self.blocks.rows

    @functools.cached_property
    def blocks(self) -> RowBlocks | None:
        """The rows of a large sheet, which its tree lacks; else None."""
        blocks = self.file.rows_of(self.part) if self.is_grid else None
        if blocks is not None:
            blocks.read = self._read
        return blocks

    @functools.cached_property
    def _index(self) -> tuple[dict[int, Element], dict[tuple[int, int], Element]]:
        data = self.root.find(q("sheetData"))
        rows, cells = index_rows(data.iterchildren(ROW) if data is not None else (), 0, self._damaged)
        if self._has_placeholders:
            self._has_placeholders = False
            drop_placeholders(cells)
        return rows, cells

    @functools.cached_property
    def _order(self) -> list[int]:
        return sorted(self.rows)

    def forget(self) -> None:
        """Drop the index of cells after they moved."""
        for name in ("cells", "rows", "_index", "_order", "_shared", "arrays", "merged", "_merges"):
            self.__dict__.pop(name, None)

    def filled(self) -> Iterator[tuple[int, int]]:
        """Yield the cells that hold something, by row."""
        if self.blocks is not None:
            return self.blocks.filled_positions()
        return (position for position, cell in self.cells.items() if len(cell) and holds(cell))

    def filled_count(self) -> int:
        """Count the cells that hold something."""
        return sum(1 for _ in self.filled()) if self.blocks is None else self.blocks.filled()

    def holds(self, row: int, column: int) -> bool:
        """Return whether a cell holds something; a format alone is nothing."""
        if self.blocks is not None:
            return self.blocks.values(row).holds(row, column)
        cell = self.cells.get((row, column))
        return cell is not None and holds(cell)

    def used(self) -> CellRange | None:
        """Measure the part of the sheet that holds something."""
        if self.blocks is not None:
            return self.blocks.used()
        positions = list(self.filled())
        if not positions:
            return None
        rows, columns = [row for row, _ in positions], [column for _, column in positions]
        return CellRange(min_row=min(rows), max_row=max(rows), min_col=min(columns), max_col=max(columns))

    def value(self, row: int, column: int) -> JsonValue:
        """Read a cell as JSON.

        A formula gives its stored result; None if it has none.
        """
        value, kind = self.raw(row, column)
        return to_json(value, self.number_format(row, column) if kind == "date" else "")

    def raw(self, row: int, column: int) -> tuple[Any, Kind]:
        """Read a cell's value as Python has it, and its kind."""
        if self.blocks is not None:
            value: tuple[Any, Kind] = self.blocks.values(row).get(row, column)
            return value
        return self._read(self.cells.get((row, column)))

    def _read(self, cell: Element | None) -> tuple[Any, Kind]:
        if cell is None:
            return None, "empty"
        kind = cell.get("t", "n")
        if kind == "inlineStr" and isinstance(cell, PlainCell):
            return (None, "empty") if cell.inline is None else (unescape(cell.inline), "text")
        if kind == "inlineStr":
            inline_text = cell.find(INLINE)
            texts = (
                [part.text or "" for part in inline_text.iter(_T) if part.getparent().tag != q("rPh")]
                if len(cell)
                else ()
            )
            return (unescape("".join(texts)), "text") if inline_text is not None else (None, "empty")
        text = cell.findtext(VALUE)
        if text is None or (not text and kind != "str"):
            return None, "empty"
        return self._parse(text, kind, cell)

    def serial(self, row: int, column: int) -> float | None:
        """Return the number in a cell, shown as a date or not."""
        cell = self.cells.get((row, column))
        if cell is None or cell.get("t", "n") != "n":
            return None
        try:
            return float(cell.findtext(VALUE, ""))
        except ValueError:
            return None

    def is_text(self, row: int, column: int) -> bool:
        """Return whether a cell is formatted as text."""
        return self.number_format(row, column) == "@"

    def formula(self, row: int, column: int) -> str:
        """Read a formula with its ``=``; empty for a value.

        An array formula is in braces, like in Excel.
        """
        formula_element = self._formula_of(row, column)
        if formula_element is None:
            return ""
        if formula_element.get("t") == "dataTable":
            return "{=TABLE()}"
        text = formula_element.text
        if formula_element.get("t") == "shared" and not text:
            origin, text = self._shared.get(formula_element.get("si", ""), ("", ""))
            first = position_of(origin) if origin else (row, column)
            text = translated(text, row - first[0], column - first[1])
        return f"{{={text}}}" if formula_element.get("t") == "array" else f"={text or ''}"

    def is_formula(self, row: int, column: int) -> bool:
        """Return whether a cell holds a formula."""
        return self._formula_of(row, column) is not None

    def formula_cells(self) -> Iterator[tuple[tuple[int, int], Element]]:
        """Yield the cells that hold a formula, by row and column."""
        if self.blocks is not None:
            return self.blocks.formula_cells()
        return ((position, cell) for position, cell in self.cells.items() if cell.find(FORMULA) is not None)

    def formulas_in(self, cells: CellRange) -> list[tuple[int, int]]:
        """List the cells of a range that hold a formula, by row."""
        if self.blocks is not None:
            return self.blocks.formulas_in(cells)
        rows, columns = range(cells.min_row, cells.max_row + 1), range(cells.min_col, cells.max_col + 1)
        return [position for position, _ in self.formula_cells() if position[0] in rows and position[1] in columns]

    def is_data_table(self, row: int, column: int) -> bool:
        """Return whether a cell begins a data table (what-if analysis)."""
        formula = self._formula_of(row, column)
        return formula is not None and formula.get("t") == "dataTable"

    def stored(self, row: int, column: int) -> tuple[float | str | bool, bool] | None:
        """Return a cell's unformatted value, and whether it is an error.

        None if it is empty.
        """
        cell = self.cells.get((row, column))
        value, kind = self.raw(row, column)
        if cell is None or kind == "empty":
            return None
        if kind == "date" and cell.get("t", "n") == "n":
            return number_of(str(cell.findtext(VALUE)).strip()), False
        return value, kind == "error"

    def style(self, row: int, column: int) -> int:
        """Return a cell's style, else its row's or column's."""
        cell = self.cells.get((row, column))
        if cell is not None:
            return self._number(cell.get("s"), 0)
        line = self.rows.get(row)
        if line is not None and line.get("customFormat") in {"1", "true"}:
            return self._number(line.get("s"), 0)
        for columns in self.root.iterfind(f"{q('cols')}/{q('col')}"):
            if self._number(columns.get("min"), 1) <= column <= self._number(columns.get("max"), 0):
                return self._number(columns.get("style"), 0)
        return 0

    def number_format(self, row: int, column: int) -> str:
        """Return a cell's number format."""
        return self.file.styles.number_format(self.style(row, column))

    def set_style(self, row: int, column: int, style: int) -> None:
        """Give a cell a style."""
        self.make(row, column).set("s", str(style))

    def show_date(self, row: int, column: int, code: str = DATE_CODE) -> None:
        """Show a cell with the format General as a date or time."""
        if self.number_format(row, column) == "General":
            self.set_style(row, column, self.file.styles.with_number_format(self.style(row, column), code))

    @functools.cached_property
    def arrays(self) -> list[CellRange]:
        """The ranges of array formulas and data tables."""
        if self.blocks is not None:
            return self.blocks.arrays()
        kinds = {"array", "dataTable"}
        formulas = [formula for formula in self._formulas() if formula.get("t") in kinds and formula.get("ref")]
        return [area_of(formula.get("ref")) for formula in formulas]

    def is_within_array(self, row: int, column: int) -> bool:
        """Return whether an array formula or a data table fills a cell."""
        return any(is_within(area, row, column) for area in self.arrays)

    def is_array(self, row: int, column: int) -> bool:
        """Return whether a cell holds an array formula."""
        formula = self._formula_of(row, column)
        return formula is not None and formula.get("t") == "array"

    def is_spill(self, row: int, column: int) -> bool:
        """Return whether a cell's array formula grows and shrinks with its result."""
        return self.is_array(row, column) and self.cells[row, column].get("cm") is not None

    def array_at(self, row: int, column: int) -> CellRange:
        """Return the cells that the array formula of a cell fills."""
        formula = self._formula_of(row, column)
        where = f"{get_column_letter(column)}{row}"
        return area_of(where if formula is None else formula.get("ref") or where)

    def resize_array(self, row: int, column: int, rows: int, columns: int) -> None:
        """Let an array formula fill other cells, and empty the former."""
        self.edit()
        old = self.array_at(row, column)
        new = CellRange(None, column, row, column + columns - 1, row + rows - 1)
        self.make(row, column).find(FORMULA).set("ref", new.coord)
        for position in [
            position for position in self.cells if is_within(old, *position) and not is_within(new, *position)
        ]:
            self._empty_cell(*position)
        self.__dict__.pop("arrays", None)

    @functools.cached_property
    def merged(self) -> list[CellRange]:
        """The merged cells."""
        return [area_of(element.get("ref")) for element in self.root.iterfind(f"{q('mergeCells')}/{q('mergeCell')}")]

    def is_within_merged(self, row: int, column: int) -> bool:
        """Return whether a cell is the inside of a merged one."""
        areas = self._merges.get(row)
        if areas is None:
            areas = self._merges[row] = [area for area in self.merged if area.min_row <= row <= area.max_row]
        return any(
            area.min_col <= column <= area.max_col and (row, column) != (area.min_row, area.min_col) for area in areas
        )

    @functools.cached_property
    def _merges(self) -> dict[int, list[CellRange]]:
        return {}

    def write(self, row: int, column: int, value: Value) -> None:
        """Write a value with its type.

        A text never becomes a formula or an error; it becomes a date or time only in a cell that shows such values.

        Raises:
            ToolError: If a workbook can't hold the value, or the cell lies within a merged one.
        """
        if value is None and not self.holds(row, column):
            return
        where = f"{get_column_letter(column)}{row}"
        if self.is_within_merged(row, column):
            msg = f"{where} lies within a merged cell; write to that cell's top left corner"
            raise ToolError(msg)
        if isinstance(value, str):
            value = self._as_date(row, column, value)
        if isinstance(value, str):
            self._write_text(row, column, check_text(value, where))
        elif isinstance(value, Date):
            serial = serial_of(value.date, self.file.epoch, where)
            self.dated.add((row, column))
            cell = self._empty_cell(row, column)
            etree.SubElement(cell, VALUE).text = repr(serial)
            self.show_date(row, column, code_of(value.date))
        elif isinstance(value, bool):
            cell = self._empty_cell(row, column)
            cell.set("t", "b")
            etree.SubElement(cell, VALUE).text = str(int(value))
        elif value is not None:
            text = check_number(value, where)
            etree.SubElement(self._empty_cell(row, column), VALUE).text = text
        else:
            self._empty_cell(row, column)

    def _as_date(self, row: int, column: int, text: str) -> str | Date:
        """Read a text in the form of the cell's dates as one."""
        style, styles = self.style(row, column), self.file.styles
        if not styles.is_date(style):
            return text
        if styles.is_time(style) or styles.is_span(style):
            span = parse_span(text)
            return text if span is None else Date(date=span)
        date = parse_iso(text) if _ISO.fullmatch(text.strip()) else None
        return Date(date=date) if isinstance(date, dt.date) else text

    def write_formula(self, row: int, column: int, text: str) -> None:
        """Write a formula, given with its ``=``; it has no result yet."""
        cell = self._empty_cell(row, column)
        etree.SubElement(cell, FORMULA).text = text[1:]
        self.file.formulas_moved = True

    def write_array(self, cells: CellRange, text: str) -> None:
        """Write one array formula, given with its ``=``, into a range."""
        for row in range(cells.min_row, cells.max_row + 1):
            for column in range(cells.min_col, cells.max_col + 1):
                self._empty_cell(row, column)
        formula = etree.SubElement(self.make(cells.min_row, cells.min_col), FORMULA)
        formula.set("t", "array")
        formula.set("ref", cells.coord)
        formula.text = text[1:]
        self.__dict__.pop("arrays", None)
        self.file.formulas_moved = True

    def set_result(self, row: int, column: int, value: float | str | bool | None, *, error: bool = False) -> None:  # noqa: FBT001 - a value
        """Write the result of a formula; None takes it away."""
        cell = self.make(row, column)
        for old in cell.findall(VALUE):
            cell.remove(old)
        cell.attrib.pop("t", None)
        if value is None:
            return
        if isinstance(value, str):
            cell.set("t", "e" if error else "str")
        elif isinstance(value, bool):
            cell.set("t", "b")
        if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
            value = int(value)
        text = str(int(value)) if isinstance(value, bool) else value if isinstance(value, str) else repr(value)
        etree.SubElement(cell, VALUE).text = escape(text) if isinstance(value, str) and not error else text

    def make(self, row: int, column: int) -> Element:
        """Return a cell's element, made if missing, for a change."""
        self.edit()
        cell = self.cells.get((row, column))
        if cell is not None and self.blocks is not None:
            cell = self.blocks.change(row).cells[row, column]
        if cell is None:
            style = self.style(row, column)
            cell = etree.Element(CELL)
            cell.set("r", f"{get_column_letter(column)}{row}")
            if style:
                cell.set("s", str(style))
            self.put(row, column, cell)
        return cell

    def put(self, row: int, column: int, cell: Element) -> None:
        """Put a cell's element into its row."""
        line = self.make_row(row)
        index = len(line)
        while index and line[index - 1].tag == CELL and position_of(line[index - 1].get("r"))[1] > column:
            index -= 1
        line.insert(index, cell)
        line.attrib.pop("spans", None)
        self.cells[row, column] = cell

    def make_row(self, row: int) -> Element:
        """Return a row's element, made if missing, for a change."""
        self.edit()
        if self.blocks is not None:
            return self.blocks.make_row(row)
        line = self.rows.get(row)
        if line is None:
            line = etree.Element(ROW)
            line.set("r", str(row))
            data = self.element("sheetData")
            at = bisect.bisect(self._order, row)
            if at == len(self._order):
                data.append(line)
            else:
                self.rows[self._order[at]].addprevious(line)
            self._order.insert(at, row)
            self.rows[row] = line
        return line

    def unshare(self) -> None:
        """Give each cell that shares a formula its own."""
        if not self._shared:
            return
        self.edit()
        if self.blocks is not None:
            self.blocks.change_all()
        for (row, column), cell in self.formula_cells():
            formula = cell.find(FORMULA)
            if formula.get("t") == "shared":
                formula.text = self.formula(row, column)[1:]
        for formula in self._formulas():
            if formula.get("t") == "shared":
                for name in ("t", "si", "ref"):
                    formula.attrib.pop(name, None)
        self.__dict__.pop("_shared", None)

    def finish(self) -> None:
        """Update the sheet's stored dimensions after an edit."""
        if not (self.changed or self.reshaped):
            return
        dimension = self.root.find(q("dimension"))
        used = self.used()
        if dimension is not None and used is not None:
            dimension.set("ref", used.coord)

    def _parse(self, text: str, kind: str, cell: Element) -> tuple[Any, Kind]:
        match kind:
            case "s":
                index, strings = self._number(text, -1), self.file.strings
                return (strings[index] if 0 <= index < len(strings) else ""), "text"
            case "str":
                return unescape(text), "text"
            case "b":
                return text.strip() in {"1", "true"}, "truth"
            case "e":
                return text, "error"
            case "d":
                return parse_iso(text), "date"
            case _:
                return self._parse_number(text, cell)

    def _parse_number(self, text: str, cell: Element) -> tuple[Any, Kind]:
        try:
            number = number_of(text.strip())
        except ValueError:
            return text, "text"
        style = self._number(cell.get("s"), 0)
        if style and self.file.styles.is_date(style):
            styles = self.file.styles
            span = styles.is_span(style) or (styles.is_time(style) and not 0 <= number < 1)
            date = to_date(number, self.file.epoch, span=span)
            return (number, "number") if date is None else (date, "date")
        return number, "number"

    def _write_text(self, row: int, column: int, text: str) -> None:
        cell = self._empty_cell(row, column)
        cell.set("t", "inlineStr")
        part = etree.SubElement(etree.SubElement(cell, INLINE), _T)
        part.text = escape(text)
        if text != text.strip() or "\n" in text or "  " in text:
            part.set(SPACE, "preserve")
        if text.startswith("="):
            style = self._number(cell.get("s"), 0)
            cell.set("s", str(self.file.styles.derive(style, "quoted", lambda entry: entry.set("quotePrefix", "1"))))

    def _empty_cell(self, row: int, column: int) -> Element:
        """Remove the content of a cell, and return its element."""
        self.written.setdefault((row, column), self.raw(row, column))
        cell = self.make(row, column)
        formula = cell.find(FORMULA)
        if formula is not None:
            if formula.get("t") == "shared":
                self.unshare()
            self.file.formulas_moved = True
        for child in list(cell):
            cell.remove(child)
        for name in ("t", "cm", "vm"):
            cell.attrib.pop(name, None)
        self.changed.add((row, column))
        return cell

    def _formula_of(self, row: int, column: int) -> Element | None:
        if self.blocks is not None:
            return self.blocks.values(row).formula(row, column)
        cell = self.cells.get((row, column))
        return cell.find(FORMULA) if cell is not None else None

    def _formulas(self) -> Iterator[Element]:
        if self.blocks is not None:
            yield from (cell.find(FORMULA) for _, cell in self.blocks.formula_cells())
            return
        data = self.root.find(q("sheetData"))
        yield from data.iter(FORMULA) if data is not None else ()

    @functools.cached_property
    def _shared(self) -> dict[str, tuple[str, str]]:
        if self.blocks is not None:
            return self.blocks.shared()
        shared_formulas = {}
        for formula in self._formulas():
            if formula.get("t") == "shared" and formula.text:
                shared_formulas[formula.get("si", "")] = (formula.getparent().get("r"), formula.text)
        return shared_formulas

    def _number(self, text: str | None, default: int) -> int:
        return parse_number(text, default, self._damaged)

    def _damaged(self, why: str) -> ToolError:
        return self.file.package.damaged(f"on the sheet {self.title!r}: {why}")


def where_of(row: int, column: int) -> str:
    """Return a cell's name, such as ``B7``."""
    return f"{get_column_letter(column)}{row}"


def position_of(reference: str) -> tuple[int, int]:
    """Read a cell's name, such as ``B7``, as its row and column.

    Raises:
        ValueError: If it is none.
    """
    match = _CELL.fullmatch(reference)
    if match is None:
        msg = f"{reference!r} is no cell"
        raise ValueError(msg)
    return int(match[2]), column_index_from_string(match[1].upper())
