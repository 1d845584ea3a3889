"""Tables of slides: cells, rows and new tables."""

from __future__ import annotations

import copy
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING

from lxml import etree

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._grids import Grid, decimals_of, padded, row_to_continue
from callboard.surfaces.documents._package import Element, local
from callboard.surfaces.documents._tables import text_of_value
from callboard.surfaces.documents.powerpoint._deck import DRAWING, a, p, parse_xml, path
from callboard.surfaces.documents.powerpoint._graphic_frames import graphic_frame
from callboard.surfaces.documents.powerpoint._shapes import next_shape_id
from callboard.surfaces.documents.powerpoint._slide_texts import paragraph_text, set_text

if TYPE_CHECKING:
    from callboard.surfaces.documents._tables import Cell
    from callboard.surfaces.documents.powerpoint._deck import DeckFile, Slide
    from callboard.surfaces.documents.powerpoint._shapes import Frame

MOST_ROWS = 75
MOST_COLUMNS = 40
"""The largest new table; more is unreadable on a slide, and PowerPoint itself allows 75 x 75."""
_STYLE = "{5C22544A-7EE6-4342-B048-85BDC9FD1C3A}"
"""Medium Style 2 - Accent 1, which PowerPoint and LibreOffice know."""
_STYLES_TYPE = "application/vnd.openxmlformats-officedocument.presentationml.tableStyles+xml"
_ROW_HEIGHT = 370_840
"""Of a row of 18-point text, in EMU."""
_CELL = "<a:tc><a:txBody><a:bodyPr/><a:lstStyle/><a:p/></a:txBody><a:tcPr/></a:tc>"
_URI = "http://schemas.openxmlformats.org/drawingml/2006/table"


def grid_of(table: Element) -> Grid:
    """Lay a table out on a grid, padding short rows."""
    grid = Grid([], {}, [])
    for row, element in enumerate(table.iterfind(a("tr"))):
        texts = []
        for column, cell in enumerate(element.iterfind(a("tc"))):
            if cell.get("hMerge") in {"1", "true"} or cell.get("vMerge") in {"1", "true"}:
                texts.append("")
                continue
            grid.cells[row, column] = cell
            texts.append(cell_text(cell))
            extent = _number(cell, "rowSpan"), _number(cell, "gridSpan")
            if extent != (1, 1):
                grid.merged.append((row, column, *extent))
        grid.texts.append(texts)
    grid.texts = padded(grid.texts)
    return grid


def cell_text(cell: Element) -> str:
    """Return a cell's text."""
    return "\n".join(map(paragraph_text, cell.iterfind(f"{a('txBody')}/{a('p')}"))).strip()


def write_cell(grid: Grid, row: int, column: int, text: str) -> None:
    """Write a cell's text, in the format of its present text.

    Rows and columns count from 0.

    Raises:
        ToolError: If the cell does not exist, lies within a merged one, or holds more than text.
    """
    cell = grid.cell(row, column)
    body = cell.find(a("txBody"))
    if body is None:
        body = parse_xml("<a:txBody><a:bodyPr/><a:lstStyle/><a:p/></a:txBody>")
        cell.insert(0, body)
    set_text(body, text)


def append_rows(frame: Element, table: Element, rows: list[list[Cell]]) -> list[str]:
    """Add rows formatted like the table's last one, above its totals.

    Returns:
        The labels of the totals, whose numbers stay.

    Raises:
        ToolError: If the table is empty, its last row has merged cells, or a row's length is not the table's width.
    """
    grid = grid_of(table)
    last, totals = row_to_continue(grid, rows)
    model = table.findall(a("tr"))[last]
    height = int(model.get("h", "0")) * len(rows)
    for number in range(len(rows), 0, -1):
        model.addnext(_copy_row(model, number))
    new_grid, marks = grid_of(table), decimals_of(grid.texts, range(len(grid.texts[0])))
    for offset, row in enumerate(rows, start=last + 1):
        for column, value in enumerate(row):
            write_cell(new_grid, offset, column, text_of_value(value, marks[column]))
    _grow(frame, 0, height)
    return totals


def _copy_row(row: Element, number: int) -> Element:
    """Copy a row, with an id of its own."""
    row_copy = copy.deepcopy(row)
    for mark in row_copy.iter(etree.Element):
        if local(mark) == "rowId":
            mark.set("val", str(zlib.crc32(f"{mark.get('val')} {number}".encode())))
    return row_copy


def delete_lines(frame: Element, table: Element, rows: set[int], columns: set[int]) -> None:
    """Delete rows and columns, counted from 0.

    Merged cells that reach across them become smaller.

    Raises:
        ToolError: If there is no such row or column, if nothing would be left, or if one begins merged cells that
            reach into a line that stays.
    """
    grid = grid_of(table)
    grid.check_deletion(rows, columns)
    for row, column, row_count, column_count in grid.merged:
        spans = (rows, range(row, row + row_count)), (columns, range(column, column + column_count))
        is_whole = any(numbers.issuperset(span) for numbers, span in spans)
        if not is_whole and any(span[0] in numbers for numbers, span in spans):
            msg = (
                f"row {row + 1}, column {column + 1} begins merged cells of {row_count} rows and {column_count} "
                "columns; delete all of them, or leave it"
            )
            raise ToolError(msg)
        for name, (numbers, span) in zip(("rowSpan", "gridSpan"), spans, strict=True):
            if not is_whole and (new_count := len(span) - len(numbers.intersection(span))) != len(span):
                grid.cells[row, column].set(name, str(new_count))
    _remove_lines(frame, table, rows, columns)


def _remove_lines(frame: Element, table: Element, rows: set[int], columns: set[int]) -> None:
    height = width = 0
    for number, row in enumerate(table.findall(a("tr"))):
        if number in rows:
            height += int(row.get("h", "0"))
            table.remove(row)
            continue
        for column, cell in enumerate(row.findall(a("tc"))):
            if column in columns:
                row.remove(cell)
    lines = table.findall(path("a:tblGrid", "a:gridCol"))
    for line in (lines[column] for column in columns if column < len(lines)):
        width += int(line.get("w", "0"))
        line.getparent().remove(line)
    _grow(frame, -width, -height)


def _grow(frame: Element, width: int, height: int) -> None:
    """Change the size of a table's frame."""
    extent = frame.find(f"{p('xfrm')}/{a('ext')}")
    for name, by in (("cx", width), ("cy", height)):
        if extent is not None and extent.get(name, "").isdigit():
            extent.set(name, str(max(0, int(extent.get(name)) + by)))


def make_table(slide: Slide, header: list[str], rows: list[list[Cell]], frame: Frame) -> Element:
    """Make the frame of a table in the deck's colors.

    Args:
        slide: The slide that it is for.
        header: The texts of its first row; empty for none.
        rows: The other rows.
        frame: Its place; rows become higher where their text needs it.

    Raises:
        ToolError: If it is too large for a slide.
    """
    lines: list[list[Cell]] = [[*header], *rows] if header else rows
    if len(lines) > MOST_ROWS or len(lines[0]) > MOST_COLUMNS:
        msg = (
            f"a table of {len(lines)} rows and {len(lines[0])} columns is too large for a slide; write at most "
            f"{MOST_ROWS} rows and {MOST_COLUMNS} columns, and the others on further slides"
        )
        raise ToolError(msg)
    number = next_shape_id(slide)
    row_height = min(_ROW_HEIGHT, max(1, frame.height // len(lines)))
    shape = graphic_frame(
        f'<a:graphicData uri="{_URI}"><a:tbl><a:tblPr bandRow="1"/><a:tblGrid/></a:tbl></a:graphicData>',
        replace(frame, height=row_height * len(lines)),
        number,
        f"Table {number}",
    )
    table = next(shape.iter(a("tbl")))
    if header:
        table.find(a("tblPr")).set("firstRow", "1")
    etree.SubElement(table.find(a("tblPr")), a("tableStyleId")).text = _style(slide.file)
    column_width = frame.width // len(lines[0])
    for _ in lines[0]:
        etree.SubElement(table.find(a("tblGrid")), a("gridCol")).set("w", str(column_width))
    for line in lines:
        row = etree.SubElement(table, a("tr"))
        row.set("h", str(row_height))
        for value in line:
            cell = parse_xml(_CELL)
            set_text(cell.find(a("txBody")), text_of_value(value))
            row.append(cell)
    return shape


def _style(file: DeckFile) -> str:
    """Return the id of the deck's usual style of tables."""
    package = file.package
    for part in package.related(file.main, "tableStyles"):
        return str(package.tree(part).get("def", _STYLE))
    part = package.free_name("ppt/tableStyles{}.xml")
    package.add(part, f'<a:tblStyleLst xmlns:a="{DRAWING}" def="{_STYLE}"/>'.encode(), _STYLES_TYPE)
    package.relate(file.main, "tableStyles", part)
    return _STYLE


def _number(cell: Element, name: str) -> int:
    text = cell.get(name, "1")
    return max(1, int(text)) if text.isdigit() else 1
