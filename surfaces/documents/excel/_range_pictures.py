"""Pictures of cells, through a print area in a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lxml import etree
from openpyxl.utils.cell import absolute_coordinate

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._office import q
from callboard.surfaces.documents._page_pictures import draw_pages, pdf_of_office
from callboard.surfaces.documents.excel._cell_elements import is_within
from callboard.surfaces.documents.excel._cell_references import quoted_title

if TYPE_CHECKING:
    from openpyxl.worksheet.cell_range import CellRange

    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._touched_cells import TouchedCells
    from callboard.surfaces.documents.excel._workbook import ExcelFile

PRINT_AREA = "_xlnm.Print_Area"
_PRINT_NAMES = frozenset({PRINT_AREA, "_xlnm.Print_Titles"})
_PRINT_PARTS = ("printOptions", "headerFooter", "rowBreaks", "colBreaks", "pageSetup", "pageMargins")
_LARGEST_PAPER = "8"  # A3
_NO_MARGINS = dict.fromkeys(("left", "right", "top", "bottom", "header", "footer"), "0")


def pdf_of_cells(document: str, file: ExcelFile, drawn: TouchedCells) -> bytes:
    """Make a PDF of a range, on one page, or a sheet.

    Args:
        document: The path of the workbook, for errors.
        file: The workbook, read for this alone: it is changed in memory.
        drawn: The sheet, and the cells or None for all of them.

    Raises:
        ToolError: If LibreOffice can't draw it, or the cells do not fit on a page.
    """
    _show_only(file, drawn.sheet)
    if drawn.cells is not None:
        _keep_formatted_cells(drawn.sheet, drawn.cells)
        _set_print_area(file, drawn.sheet, drawn.cells.coord)
        _fit_on_page(drawn.sheet)
    pdf = pdf_of_office(document, file.package.to_bytes(), ".xlsx")
    if drawn.cells is not None and draw_pages(document, pdf, (1, 1), width=16)[1] > 1:
        msg = f"{drawn.cells.coord} is too large for one picture; name fewer cells"
        raise ToolError(msg)
    return pdf


def _show_only(file: ExcelFile, sheet: Sheet) -> None:
    """Hide all other sheets."""
    root = file.package.edit(file.part)
    for entry in root.iterfind(f"{q('sheets')}/{q('sheet')}"):
        entry.set("state", "hidden")
    sheet.entry.set("state", "visible")
    for view in root.iterfind(f"{q('bookViews')}/{q('workbookView')}"):
        view.set("activeTab", str(file.sheets.index(sheet)))
        view.attrib.pop("firstSheet", None)


def _keep_formatted_cells(sheet: Sheet, cells: CellRange) -> None:
    """Write a space into the last formatted cell, if it is empty.

    LibreOffice prints as far as there are values.
    """
    positions = [position for position in sheet.cells if is_within(cells, *position)]
    if not positions:
        return
    corner = max(row for row, _ in positions), max(column for _, column in positions)
    if not sheet.holds(*corner) and not sheet.is_within_merged(*corner) and not sheet.is_within_array(*corner):
        sheet.write(*corner, " ")


def _set_print_area(file: ExcelFile, sheet: Sheet, coord: str) -> None:
    root = file.package.edit(file.part)
    names = root.find(q("definedNames"))
    for element in [element for name, scope, element in file.names() if name in _PRINT_NAMES and scope is sheet]:
        element.getparent().remove(element)
    if names is None:
        names = etree.Element(q("definedNames"))
        links = root.find(q("externalReferences"))
        (root.find(q("sheets")) if links is None else links).addnext(names)
    entry = etree.SubElement(names, q("definedName"), name=PRINT_AREA, localSheetId=str(file.sheets.index(sheet)))
    entry.text = f"{quoted_title(sheet.title)}!{absolute_coordinate(coord)}"


def _fit_on_page(sheet: Sheet) -> None:
    """Print on one large page without margins, headers and breaks."""
    root = sheet.edit()
    for name in _PRINT_PARTS:
        for element in root.findall(q(name)):
            root.remove(element)
    properties = sheet.element("sheetPr")
    fitting = properties.find(q("pageSetUpPr"))
    if fitting is None:
        fitting = etree.SubElement(properties, q("pageSetUpPr"))
    fitting.set("fitToPage", "1")
    for key, value in _NO_MARGINS.items():
        sheet.element("pageMargins").set(key, value)
    setup = {"paperSize": _LARGEST_PAPER, "orientation": "landscape", "fitToWidth": "1", "fitToHeight": "1"}
    for key, value in setup.items():
        sheet.element("pageSetup").set(key, value)
