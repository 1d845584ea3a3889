"""Sheets: added, renamed and deleted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lxml import etree

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._office import MAIN, q
from callboard.surfaces.documents._package import R_ID
from callboard.surfaces.documents._tables import clean
from callboard.surfaces.documents.excel._cell_references import all_formulas, mentions, renamed, words
from callboard.surfaces.documents.excel._named_tables import tables_of
from callboard.surfaces.documents.excel._pivot_parts import drop_unused_cache
from callboard.surfaces.documents.excel._pivot_tables import pivots_of
from callboard.surfaces.documents.excel._sheet import Sheet

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.surfaces.documents.excel._workbook import ExcelFile

_SHEET_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"
_BAD_TITLE = re.compile(r"[\\*?:/\[\]]|^'|'$")
_MAX_TITLE = 31
_TEXT = re.compile(r'"(?:[^"]|"")*"')


def check_title(file: ExcelFile, title: str, renaming: Sheet | None = None) -> None:
    """Refuse a title that no sheet can have, or another one has.

    Raises:
        ToolError: If it is refused.
    """
    titles = {sheet.title.casefold() for sheet in file.sheets if sheet is not renaming}
    if not clean(title).strip() or len(title) > _MAX_TITLE or _BAD_TITLE.search(title) or title.casefold() == "history":
        msg = f"{title!r} can't be a sheet's title: 1 to {_MAX_TITLE} characters, none of \\ * ? : / [ ]"
        raise ToolError(msg)
    if title.casefold() in titles:
        msg = f"there is already a sheet {title!r}"
        raise ToolError(msg)


def check_structure(file: ExcelFile) -> None:
    """Refuse to change the list of sheets where it is protected.

    Raises:
        ToolError: If it is.
    """
    if file.structure_locked:
        msg = "the workbook's structure is protected; unprotect it in Excel first"
        raise ToolError(msg)


def add_sheet(file: ExcelFile, title: str, position: int | None) -> Sheet:
    """Add an empty sheet, at a position or as the last one.

    Positions count from 1.
    """
    package = file.package
    part = package.free_name("xl/worksheets/sheet{}.xml")
    root = etree.Element(q("worksheet"), nsmap={None: MAIN})
    etree.SubElement(root, q("sheetData"))
    package.add(part, root, _SHEET_TYPE)
    entries = package.edit(file.part).find(q("sheets"))
    entry = etree.Element(q("sheet"))
    entry.set("name", title)
    entry.set("sheetId", str(max(int(element.get("sheetId", "0")) for element in entries) + 1))
    entry.set(R_ID, package.relate(file.part, "worksheet", part))
    index = len(file.sheets) if position is None else min(position - 1, len(file.sheets))
    if index == len(file.sheets):
        entries.append(entry)
    else:
        file.sheets[index].entry.addprevious(entry)
    new_sheet = Sheet(file, entry, part, "sheet")
    file.sheets.insert(index, new_sheet)
    _move_indices(file, lambda number: number + (number >= index))
    return new_sheet


def rename_sheet(file: ExcelFile, sheet: Sheet, title: str) -> list[str]:
    """Give a sheet another title; all that refers to it follows.

    Returns:
        The formulas with the old title in a text, like ``INDIRECT("Old!A1")``, which stays.
    """
    old = sheet.title
    title_pattern = re.compile(rf"(?<!\w){re.escape(old)}'?!", re.IGNORECASE)
    stale: dict[str, None] = {}
    for reference in list(all_formulas(file)):
        new_formula = renamed(reference.formula, old, title)
        if new_formula != reference.formula:
            reference.write(new_formula)
        if any(title_pattern.search(text) for text in _TEXT.findall(reference.formula)):
            stale[reference.where] = None
        if reference.cell is not None and "INDIRECT" in map(str.upper, words(reference.formula)):
            file.outdated.append(reference.cell)  # a title in a text does not follow
    file.package.edit(file.part)
    sheet.entry.set("name", title)
    new = f"{title}!"
    return [new + where.removeprefix(f"{old}!") if where.startswith(f"{old}!") else where for where in stale]


def delete_sheet(file: ExcelFile, sheet: Sheet) -> None:
    """Delete a sheet, with all that is on it.

    Raises:
        ToolError: If it is the last one that can be seen, or something refers to it or its tables.
    """
    if not any(worksheet.state == "visible" for worksheet in file.worksheets if worksheet is not sheet):
        msg = f"{sheet.title!r} is the last visible sheet; a workbook needs one"
        raise ToolError(msg)
    names = file.package.edit(file.part).find(q("definedNames"))
    local_names = [element for _, local, element in file.names() if local is sheet]
    tables = {table.name.casefold(): table.name for table in tables_of(sheet)}
    for reference in all_formulas(file):
        if reference.sheet == sheet.title:
            continue
        if mentions(reference.formula, sheet.title):
            msg = f"{reference.where} refers to the sheet {sheet.title!r}; change it first"
            raise ToolError(msg)
        table_name = next(
            (tables[word.casefold()] for word in words(reference.formula) if word.casefold() in tables), None
        )
        if table_name is not None:
            msg = f"{reference.where} refers to the table {table_name!r} on the sheet {sheet.title!r}; change it first"
            raise ToolError(msg)
    for element in local_names:
        names.remove(element)
    if names is not None and len(names) == 0:
        names.getparent().remove(names)
    index = file.sheets.index(sheet)
    package = file.package
    package.unrelate(file.part, sheet.entry.get(R_ID))
    sheet.entry.getparent().remove(sheet.entry)
    file.sheets.remove(sheet)
    caches = [part for pivot in pivots_of(sheet) for part in package.related(pivot.part, "pivotCacheDefinition")]
    package.remove(sheet.part)
    for cache in dict.fromkeys(caches):
        drop_unused_cache(file, cache)
    _move_indices(file, lambda number: number - (number > index))
    file.formulas_moved = True


def _move_indices(file: ExcelFile, index: Callable[[int], int]) -> None:
    """Update the sheets' numbers in the workbook."""
    root = file.package.edit(file.part)
    for view in root.iterfind(f"{q('bookViews')}/{q('workbookView')}"):
        for name in ("activeTab", "firstSheet"):
            number = view.get(name, "0")
            if number.isdigit():
                view.set(name, str(min(index(int(number)), len(file.sheets) - 1)))
    for element in root.iterfind(f"{q('definedNames')}/{q('definedName')}"):
        number = element.get("localSheetId", "")
        if number.isdigit():
            element.set("localSheetId", str(index(int(number))))
