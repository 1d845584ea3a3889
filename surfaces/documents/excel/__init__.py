"""Excel workbooks."""

from callboard.surfaces.documents.excel._cell_references import quoted_title
from callboard.surfaces.documents.excel._excel_tools import ExcelTools
from callboard.surfaces.documents.excel._sheet_controls import find_all
from callboard.surfaces.documents.excel._touched_cells import TouchedCells, coverage
from callboard.surfaces.documents.excel._workbook import ExcelFile
from callboard.surfaces.documents.excel._workbook_parts import (
    describe,
    find_cells,
    find_chart,
    find_table,
    resources_of,
    rows_of,
    stored_values,
)

__all__ = [
    "ExcelFile",
    "ExcelTools",
    "TouchedCells",
    "coverage",
    "describe",
    "find_all",
    "find_cells",
    "find_chart",
    "find_table",
    "quoted_title",
    "resources_of",
    "rows_of",
    "stored_values",
]
