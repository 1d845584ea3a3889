"""Tables of a Word document: cells, rows and new tables."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from docx.oxml.table import CT_Tbl
from docx.shared import Twips

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._grids import Grid, decimals_of, padded, row_to_continue
from callboard.surfaces.documents._tables import text_of_value
from callboard.surfaces.documents.word._document import paragraph_of, visible_text
from callboard.surfaces.documents.word._paragraph_edits import keep_range_halves, set_text
from callboard.surfaces.documents.word._text_sources import repeated_item, with_emptied_controls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docx.oxml.xmlchemy import BaseOxmlElement
    from docx.table import Table

    from callboard.surfaces.documents._tables import Cell
    from callboard.surfaces.documents.word._document import WordFile

_STYLE = "Table Grid"
_WIDTH = 9026
"""Of the text on a page of A4 with usual margins, in twentieths of a point."""
_MOST_COLUMNS = 63
"""The most columns of a table that Word opens."""
_HEADER_LOOKS = tuple(
    qn(f"w:{name}") for name in ("tblHeader", "cnfStyle", "b", "bCs", "caps", "smallCaps", "color", "shd", "highlight")
)
_BORDERS = ("top", "left", "bottom", "right", "insideH", "insideV")


def grid_of(table: Table) -> Grid:
    """Lay a table out on a grid, padding short rows."""
    grid = Grid([], {}, [])
    extents: dict[tuple[int, int], tuple[int, int]] = {}
    corners: dict[int, tuple[int, int]] = {}
    for row, element in enumerate(rows_of(table)):  # python-docx has no public names for merged cells
        texts: list[str] = []
        column = _number(element.find(f"{qn('w:trPr')}/{qn('w:gridBefore')}"), 0)
        texts.extend([""] * column)
        for cell in cells_of(element):
            span = max(1, _number(cell.find(f"{qn('w:tcPr')}/{qn('w:gridSpan')}"), 1))
            merge = cell.find(f"{qn('w:tcPr')}/{qn('w:vMerge')}")
            continues = merge is not None and (merge.get(qn("w:val")) or "continue") == "continue"
            if continues and column in corners:
                corner = corners[column]
                extents[corner] = (row - corner[0] + 1, extents[corner][1])
                texts.append("")
            else:
                corners[column] = (row, column)
                extents[row, column] = (1, span)
                grid.cells[row, column] = cell
                texts.append(cell_text(cell))
            texts.extend([""] * (span - 1))
            column += span
        grid.texts.append(texts)
    grid.texts = padded(grid.texts)
    grid.merged = [(*corner, *extent) for corner, extent in extents.items() if extent != (1, 1)]
    return grid


def cell_text(cell: BaseOxmlElement) -> str:
    """Return a cell's text, with nested tables and without text boxes."""
    paragraphs = (p for p in cell.iter(qn("w:p")) if next(p.iterancestors(qn("w:txbxContent")), None) is None)
    return "\n".join(map(visible_text, paragraphs)).strip()


def cells_of(row: BaseOxmlElement) -> Iterator[BaseOxmlElement]:
    """Yield a row's cells, with those in content controls."""
    return _iter_children(row, qn("w:tc"))


def write_cell(grid: Grid, row: int, column: int, text: str) -> None:
    """Write a cell's text, in the font of its present text.

    Rows and columns count from 0.

    Raises:
        ToolError: If the cell does not exist, lies within a merged one, or holds more than text.
    """
    cell = grid.cell(row, column)
    paragraphs = [paragraph_of(element) for element in _iter_children(cell, qn("w:p"))]
    if cell.find(qn("w:tbl")) is not None or not paragraphs:
        msg = f"row {row + 1}, column {column + 1} holds another table; its text can't be set"
        raise ToolError(msg)
    set_text(paragraphs[0], text)
    for paragraph in paragraphs[1:]:
        set_text(paragraph, "")
        element = paragraph._p  # python-docx can't remove a paragraph
        element.getparent().remove(element)


def append_rows(table: Table, rows: list[list[Cell]]) -> list[str]:
    """Add rows formatted like the table's last one, above its totals.

    Returns:
        The labels of the totals, whose numbers stay.

    Raises:
        ToolError: If the table is empty, its last row has merged cells, or a row's length is not the table's width.
    """
    grid = grid_of(table)
    last, totals = row_to_continue(grid, rows)
    model = rows_of(table)[last]
    is_header = last == 0 or model.find(f"{qn('w:trPr')}/{qn('w:tblHeader')}") is not None
    item = repeated_item(model)
    for _ in rows:
        item.addnext(_without_header_format(_copy_row(item)) if is_header else _copy_row(item))
    new_grid, marks = grid_of(table), decimals_of(grid.texts, range(len(grid.texts[0])))
    for offset, row in enumerate(rows, start=last + 1):
        for column, value in enumerate(row):
            write_cell(new_grid, offset, column, text_of_value(value, marks[column]))
    return totals


def delete_lines(table: Table, rows: set[int], columns: set[int]) -> None:
    """Delete rows and columns, counted from 0.

    Merged cells that reach across them become smaller.

    Raises:
        ToolError: If there is no such row or column, if nothing would be left, or if a row begins merged cells that
            reach into a row that stays.
    """
    grid = grid_of(table)
    grid.check_deletion(rows, columns)
    for row, column, row_count, column_count in grid.merged:
        stays = not columns.issuperset(range(column, column + column_count))
        if row in rows and stays and not rows.issuperset(range(row, row + row_count)):
            msg = (
                f"row {row + 1}, column {column + 1} is merged with the rows down to {row + row_count}; "
                f"delete these rows too, or leave row {row + 1}"
            )
            raise ToolError(msg)
    elements = rows_of(table)
    for row in rows:
        keep_range_halves(elements[row])
        element = with_emptied_controls(elements[row])
        element.getparent().remove(element)
    for element in rows_of(table):
        _delete_cells(element, columns)
        if not any(True for _ in _iter_children(element, qn("w:tc"))):
            element.getparent().remove(element)  # it had cells in the deleted columns alone
    lines = list(table._tbl.iterfind(f"{qn('w:tblGrid')}/{qn('w:gridCol')}"))
    for line in (lines[column] for column in columns if column < len(lines)):
        line.getparent().remove(line)


def make_table(file: WordFile, header: list[str], rows: list[list[Cell]], style: str) -> CT_Tbl:
    """Make a table.

    The header row is bold and repeated on each page.

    Raises:
        ToolError: If the document has no such table style, or the table has more columns than Word takes.
    """
    if len(header or rows[0]) > _MOST_COLUMNS:
        msg = f"a table of Word has at most {_MOST_COLUMNS} columns, and this one has {len(header or rows[0])}"
        raise ToolError(msg)
    style_id = file.styles.find("table", style) if style else file.styles.has("table", _STYLE)
    lines: list[list[Cell]] = [[*header], *rows] if header else rows
    table = CT_Tbl.new_tbl(len(lines), len(lines[0]), Twips(_text_width(file)))
    if style_id:
        table.tblStyle_val = style_id
    else:
        _draw_borders(table)
    for number, (row, line) in enumerate(zip(table.tr_lst, lines, strict=True)):
        for cell, value in zip(row.tc_lst, line, strict=True):
            run = paragraph_of(cell.p_lst[0]).add_run(text_of_value(value))
            if header and not number:
                run.bold = True
    if header:
        table.tr_lst[0].get_or_add_trPr().append(OxmlElement("w:tblHeader"))  # python-docx has no name for it
    return table


def rows_of(table: Table) -> list[BaseOxmlElement]:
    """List a table's rows, with those in content controls."""
    return list(_iter_children(table._tbl, qn("w:tr")))


def lines_of(table: Table, rows: set[int], columns: set[int]) -> list[BaseOxmlElement]:
    """List rows, and the cells that begin in columns, counted from 0."""
    elements = [element for number, element in enumerate(rows_of(table)) if number in rows]
    cells = grid_of(table).cells.items() if columns else ()
    return [*elements, *(cell for (row, column), cell in cells if column in columns and row not in rows)]


def _copy_row(row: BaseOxmlElement) -> BaseOxmlElement:
    """Copy a row without what must be unique in a document."""
    row_copy = copy.deepcopy(row)
    for element in list(row_copy.iter()):
        for key in [key for key in element.attrib if key.endswith(("}paraId", "}textId"))]:
            del element.attrib[key]
        is_id = element.tag == qn("w:id") and element.getparent().tag == qn("w:sdtPr")
        if is_id or element.tag in {qn("w:bookmarkStart"), qn("w:bookmarkEnd")}:
            element.getparent().remove(element)
    return row_copy


def _without_header_format(row: BaseOxmlElement) -> BaseOxmlElement:
    """Remove the marks of a header row from its copy."""
    for element in list(row.iter(*_HEADER_LOOKS)):
        element.getparent().remove(element)
    for style in list(row.iter(qn("w:pStyle"))):
        if "head" in (style.get(qn("w:val")) or "").casefold():
            style.getparent().remove(style)
    return row


def _delete_cells(row: BaseOxmlElement, columns: set[int]) -> None:
    """Delete a row's cells in some columns, and narrow wider cells."""
    column = 0
    spans: list[tuple[BaseOxmlElement | None, BaseOxmlElement | None]]
    for tag in ("w:gridBefore", "w:tc", "w:gridAfter"):
        if tag == "w:tc":
            spans = [
                (cell, cell.find(f"{qn('w:tcPr')}/{qn('w:gridSpan')}")) for cell in _iter_children(row, qn("w:tc"))
            ]
        else:
            spans = [(None, row.find(f"{qn('w:trPr')}/{qn(tag)}"))]
        for cell, span in spans:
            size = max(1, _number(span, 1)) if cell is not None else _number(span, 0)
            new_size = size - len(columns.intersection(range(column, column + size)))
            column += size
            if cell is not None and not new_size:
                keep_range_halves(cell)
                removed = with_emptied_controls(cell)
                removed.getparent().remove(removed)
            elif span is not None and new_size != size:
                span.set(qn("w:val"), str(new_size))


def _text_width(file: WordFile) -> int:
    """Measure the width between the page's margins, in twentieths of a point."""
    section = file.body.find(qn("w:sectPr"))
    if section is None:
        return _WIDTH
    size, margins = section.find(qn("w:pgSz")), section.find(qn("w:pgMar"))
    if size is None or margins is None:
        return _WIDTH
    texts = (size.get(qn("w:w"), ""), margins.get(qn("w:left"), ""), margins.get(qn("w:right"), ""))
    if not all(text.isdigit() for text in texts):
        return _WIDTH
    page, left, right = map(int, texts)
    return page - left - right if page > left + right else _WIDTH


def _iter_children(parent: BaseOxmlElement, tag: str) -> Iterator[BaseOxmlElement]:
    """Yield the children with a tag, with those in content controls."""
    for child in parent.iterchildren():
        if child.tag == tag:
            yield child
        elif child.tag in {qn("w:sdt"), qn("w:sdtContent"), qn("w:customXml"), qn("w:ins")}:
            yield from _iter_children(child, tag)


def _number(element: BaseOxmlElement | None, default: int) -> int:
    value = element.get(qn("w:val")) if element is not None else None
    return min(int(value), 1000) if value is not None and value.isdigit() else default


def _draw_borders(table: CT_Tbl) -> None:
    borders = OxmlElement("w:tblBorders")
    for side in _BORDERS:
        line = OxmlElement(f"w:{side}")
        for key, value in (("val", "single"), ("sz", "4"), ("space", "0"), ("color", "auto")):
            line.set(qn(f"w:{key}"), value)
        borders.append(line)
    table.tblPr.find(qn("w:tblLook")).addprevious(borders)  # python-docx has no name for it
