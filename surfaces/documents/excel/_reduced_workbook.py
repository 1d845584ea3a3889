"""A workbook of values and formulas, for the programs that compute.

Everything else is left out: formats, links, macros, rules, charts and other parts. So nothing in the file but these
formulas reaches such a program.
"""

from __future__ import annotations

import copy
import io
import zipfile
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from lxml import etree
from openpyxl.utils import get_column_letter
from openpyxl.utils.datetime import MAC_EPOCH

from callboard.surfaces.documents._office import MAIN, q
from callboard.surfaces.documents._package import PACKAGE, RELATIONSHIPS, rels_of
from callboard.surfaces.documents.excel._cell_values import escape as escaped
from callboard.surfaces.documents.excel._functions import may_be_computed
from callboard.surfaces.documents.excel._named_tables import tables_of
from callboard.surfaces.documents.excel._structured_references import with_table_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from callboard.surfaces.documents._package import Element
    from callboard.surfaces.documents.excel._engines import Results
    from callboard.surfaces.documents.excel._outdated_results import CellPosition
    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._workbook import ExcelFile

_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
_SHEET_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_WORKBOOK, _STYLES = "xl/workbook.xml", "xl/styles.xml"
_NO_STYLES = (
    f'<styleSheet xmlns="{MAIN}"><fonts><font/></fonts><fills><fill/></fills><borders><border/></borders>'
    '<cellStyleXfs><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
    '<cellXfs><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/></cellXfs>'
    '<cellStyles><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
).encode()
FILTER_NAME = "_xlnm._FilterDatabase"
"""The name of a sheet's filtered range, without which LibreOffice reads no filter."""
_FORMULA_TEXTS = ("calculatedColumnFormula", "totalsRowFormula")


def reduced(
    file: ExcelFile,
    live: Mapping[CellPosition, Sequence[CellPosition]],
    results: Results,
    scratch: Sequence[Sequence[str]] = (),
) -> bytes:
    """Write a workbook with some formulas, and values for the others.

    Args:
        file: The workbook.
        live: The cells whose formulas stay, each with the other cells that it fills, which are left empty.
        results: Results of cells, in place of those that the workbook holds.
        scratch: Rows of formulas for an additional last sheet.
    """
    parts: dict[str, bytes] = {}
    links: list[tuple[str, str]] = []
    entries = []
    for number, sheet in enumerate(file.sheets, start=1):
        parts[f"xl/worksheets/sheet{number}.xml"] = _sheet(sheet, live, results, number, parts)
        links.append(("worksheet", f"worksheets/sheet{number}.xml"))
        entries.append(f'<sheet name={quoteattr(sheet.title)} sheetId="{number}" r:id="rId{number}"/>')
    if scratch:
        number = len(entries) + 1
        rows = (_row(row, [f"<f>{escape(text)}</f>" for text in line]) for row, line in enumerate(scratch, start=1))
        parts[f"xl/worksheets/sheet{number}.xml"] = _worksheet("".join(rows))
        links.append(("worksheet", f"worksheets/sheet{number}.xml"))
        entries.append(f'<sheet name="{_free_title(file)}" sheetId="{number}" r:id="rId{number}"/>')
    parts[_STYLES] = _NO_STYLES  # IronCalc needs the part
    links.append(("styles", "styles.xml"))
    parts[_WORKBOOK] = _workbook(file, entries)
    parts[rels_of(_WORKBOOK)] = _rels(links)
    parts["_rels/.rels"] = _rels([("officeDocument", _WORKBOOK)])
    parts["[Content_Types].xml"] = _content_types(parts)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()


def left_out_names(file: ExcelFile) -> set[str]:
    """List the names, in small letters, whose meaning no program may get."""
    return {name.casefold() for name, _, element in file.names() if not may_be_computed(element.text or "")}


def _workbook(file: ExcelFile, sheets: Iterable[str]) -> bytes:
    left_out = left_out_names(file)
    names = [
        f"<definedName name={quoteattr(name)}{_local(element)}>{escape(element.text or '')}</definedName>"
        for name, _, element in file.names()
        if name.casefold() not in left_out and (name == FILTER_NAME or not name.startswith("_xlnm."))
    ]
    setting = file.package.tree(file.part).find(q("calcPr"))
    attributes = ("iterate", "iterateCount", "iterateDelta")
    iterating = "".join(
        f" {key}={quoteattr(setting.get(key))}" for key in attributes if setting is not None and setting.get(key)
    )
    return (
        f'<workbook xmlns="{MAIN}" xmlns:r="{RELATIONSHIPS}">'
        f'<workbookPr date1904="{int(file.epoch == MAC_EPOCH)}"/>'
        f"<sheets>{''.join(sheets)}</sheets>"
        + (f"<definedNames>{''.join(names)}</definedNames>" if names else "")
        + f'<calcPr calcId="191029"{iterating} fullCalcOnLoad="1"/></workbook>'
    ).encode()


def _local(name: Element) -> str:
    index = name.get("localSheetId", "")
    return f' localSheetId="{index}"' if index.isdigit() else ""


def _free_title(file: ExcelFile) -> str:
    titles = {title.casefold() for title in file.titles}
    return next(name for number in range(len(titles) + 1) if (name := f"callboard{number}") not in titles)


def _sheet(
    sheet: Sheet,
    live: Mapping[CellPosition, Sequence[CellPosition]],
    results: Results,
    number: int,
    parts: dict[str, bytes],
) -> bytes:
    if not sheet.is_grid:
        return _worksheet("")
    tables = tables_of(sheet)
    links = []
    for index, table in enumerate(tables, start=1):
        root = copy.deepcopy(table.root)
        for element in list(root.iter(*map(q, _FORMULA_TEXTS))):
            element.getparent().remove(element)
        parts[f"xl/tables/table{number}_{index}.xml"] = etree.tostring(root)
        links.append(("table", f"../tables/table{number}_{index}.xml"))
    if links:
        parts[rels_of(f"xl/worksheets/sheet{number}.xml")] = _rels(links)
    entries = "".join(f'<tablePart r:id="rId{index}"/>' for index in range(1, len(tables) + 1))
    table_parts = f'<tableParts count="{len(tables)}">{entries}</tableParts>' if tables else ""
    auto_filter = sheet.root.find(q("autoFilter"))  # SUBTOTAL leaves out the rows that it hides
    filters = "" if auto_filter is None else etree.tostring(auto_filter, encoding="unicode", with_tail=False)
    return _worksheet("".join(_rows(sheet, live, results)), filters + table_parts)


def _rows(sheet: Sheet, live: Mapping[CellPosition, Sequence[CellPosition]], results: Results) -> Iterator[str]:
    title = sheet.title.casefold()
    lines: dict[int, list[tuple[int, str]]] = {}
    spilled_cells = {cell for spill in live.values() for cell in spill}
    for (row, column), cell_element in sheet.cells.items():
        cell = (title, row, column)
        if len(cell_element) and cell not in spilled_cells and cell not in results:
            lines.setdefault(row, []).append((column, _cell(sheet, row, column, cell_element, live=cell in live)))
    for (sheet_title, row, column), result in results.items():
        if sheet_title == title:
            lines.setdefault(row, []).append((column, _result_cell(f"{get_column_letter(column)}{row}", *result)))
    hidden = {row for row, element in sheet.rows.items() if element.get("hidden") in {"1", "true"}}
    for row in sorted(lines.keys() | hidden):
        state = ' hidden="1"' if row in hidden else ""
        yield f'<row r="{row}"{state}>{"".join(text for _, text in sorted(lines.get(row, [])))}</row>'


def _cell(sheet: Sheet, row: int, column: int, cell: Element, *, live: bool) -> str:
    where = cell.get("r")
    if live:
        formula = cell.find(q("f"))
        text = sheet.formula(row, column)
        is_array = formula.get("t") == "array"
        text = with_table_names(sheet, row, column, text[2:-1] if is_array else text[1:])
        array = f' t="array" ref={quoteattr(formula.get("ref") or where)}' if is_array else ""
        dynamic = ' cm="1"' if cell.get("cm") else ""
        return f'<c r="{where}"{dynamic}><f{array}>{escape(text)}</f></c>'
    value, kind = cell.find(q("v")), cell.get("t", "n")
    if kind in {"inlineStr", "s", "str"}:
        text = sheet.raw(row, column)[0]
        return "" if text is None else _text(where, str(text))
    if value is None or value.text is None:
        return ""
    return f'<c r="{where}" t="{kind}"><v>{escape(value.text)}</v></c>'


def _result_cell(where: str, value: float | str | bool, error: bool) -> str:  # noqa: FBT001 - a result
    if isinstance(value, bool):
        return f'<c r="{where}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, str):
        return f'<c r="{where}" t="e"><v>{escape(value)}</v></c>' if error else _text(where, value)
    return f'<c r="{where}"><v>{value!r}</v></c>'


def _text(where: str, text: str) -> str:
    """Write a text cell in the form that LibreOffice does not strip."""
    escaped_text = escape(escaped(text), {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})
    return f'<c r="{where}" t="inlineStr"><is><t xml:space="preserve">{escaped_text}</t></is></c>'


def _row(row: int, contents: Sequence[str]) -> str:
    cells = (f'<c r="{get_column_letter(column)}{row}">{text}</c>' for column, text in enumerate(contents, 1))
    return f'<row r="{row}">{"".join(cells)}</row>'


def _worksheet(rows: str, elements: str = "") -> bytes:
    return (
        f'<worksheet xmlns="{MAIN}" xmlns:r="{RELATIONSHIPS}"><sheetData>{rows}</sheetData>{elements}</worksheet>'
    ).encode()


def _rels(links: Iterable[tuple[str, str]]) -> bytes:
    entries = "".join(
        f'<Relationship Id="rId{number}" Type="{RELATIONSHIPS}/{kind}" Target={quoteattr(target)}/>'
        for number, (kind, target) in enumerate(links, start=1)
    )
    return f'<Relationships xmlns="{PACKAGE}">{entries}</Relationships>'.encode()


def _content_types(parts: Iterable[str]) -> bytes:
    kinds = {
        "xl/worksheets/sheet": "worksheet",
        "xl/tables/": "table",
        _STYLES: "styles",
        _WORKBOOK: "sheet.main",
    }
    entries = "".join(
        f'<Override PartName="/{name}" ContentType="{_SHEET_TYPE}.{kind}+xml"/>'
        for name in parts
        for start, kind in kinds.items()
        if name.startswith(start)
    )
    rels = '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    return f'<Types xmlns="{_TYPES}">{rels}{entries}</Types>'.encode()
