"""Dynamic arrays: formulas whose results spill into the cells beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lxml import etree

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._office import MAIN, q
from callboard.surfaces.documents.excel._cell_references import functions
from callboard.surfaces.documents.excel._formulas import fill_array
from callboard.surfaces.documents.excel._functions import SPILLING
from callboard.surfaces.documents.excel._named_tables import tables_of

if TYPE_CHECKING:
    from openpyxl.worksheet.cell_range import CellRange

    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._workbook import ExcelFile

_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheetMetadata+xml"
_NAME = "XLDAPR"
_FLAGS = (
    "copy", "pasteAll", "pasteValues", "merge", "splitFirst", "rowColShift", "clearFormats", "clearComments", "assign",
    "coerce", "cellMeta",
)  # fmt: skip
_METADATA = f"""<metadata xmlns="{MAIN}"
xmlns:xda="http://schemas.microsoft.com/office/spreadsheetml/2017/dynamicarray"><metadataTypes count="1"><metadataType
name="{_NAME}" minSupportedVersion="120000" {" ".join(f'{flag}="1"' for flag in _FLAGS)}/></metadataTypes>
<futureMetadata name="{_NAME}" count="1"><bk><extLst><ext uri="{{bdbb8cdc-fa1e-496e-a857-3c3f30c029c3}}">
<xda:dynamicArrayProperties fDynamic="1" fCollapsed="0"/></ext></extLst></bk></futureMetadata>
<cellMetadata count="1"><bk><rc t="1" v="0"/></bk></cellMetadata></metadata>"""
"""The part by which Excel knows such formulas; XlsxWriter and Excel write the same."""


def spills(formula: str) -> bool:
    """Return whether the results of a formula spill into other cells."""
    return bool(SPILLING & {*functions(formula)})


def fill_spill(sheet: Sheet, cells: CellRange, formula: str) -> None:
    """Write a formula as a dynamic array.

    Raises:
        ToolError: If several cells are named, the cell is in a table, or the workbook has other metadata.
    """
    if cells.size != {"rows": 1, "columns": 1}:
        msg = f"the formula fills as many cells as it needs: name its first cell, and not {cells.coord}"
        raise ToolError(msg)
    if any(not table.cells.isdisjoint(cells) for table in tables_of(sheet)):
        msg = f"{cells.coord} is in a table, where a formula can't fill other cells; choose a cell outside"
        raise ToolError(msg)
    fill_array(sheet, cells, formula)
    sheet.make(cells.min_row, cells.min_col).set("cm", _metadata(sheet.file))


def _metadata(file: ExcelFile) -> str:
    """Return the number of the metadata of dynamic arrays, added if missing."""
    package = file.package
    part = next(iter(package.related(file.part, "sheetMetadata")), None)
    if part is None:
        name = "xl/metadata.xml" if "xl/metadata.xml" not in package else package.free_name("xl/metadata{}.xml")
        parser = etree.XMLParser(remove_blank_text=True, resolve_entities=False)
        package.add(name, etree.fromstring(_METADATA, parser), _TYPE)
        package.relate(file.part, "sheetMetadata", name)
        return "1"
    root = package.tree(part)
    kinds = [entry.get("name") for entry in root.iterfind(f"{q('metadataTypes')}/{q('metadataType')}")]
    for number, entry in enumerate(root.iterfind(f"{q('cellMetadata')}/{q('bk')}"), start=1):
        record = entry.find(q("rc"))
        if record is not None and _NAME in kinds and record.get("t") == str(kinds.index(_NAME) + 1):
            return str(number)
    msg = "the workbook has metadata of another kind; write this formula in Excel"
    raise ToolError(msg)
