"""Find and rewrite references to cells, names and sheets."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from openpyxl.formula import Tokenizer
from openpyxl.formula.tokenizer import Token, TokenizerError
from openpyxl.utils import quote_sheetname

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._office import q
from callboard.surfaces.documents._package import R_ID, local, rels_of
from callboard.surfaces.documents.excel._cell_elements import area_of
from callboard.surfaces.documents.excel._charts import drawings_of
from callboard.surfaces.documents.excel._formula_text import LAST_COLUMN, LAST_ROW, REFERENCE, titles
from callboard.surfaces.documents.excel._named_tables import tables_of
from callboard.surfaces.documents.excel._pivot_tables import all_pivots
from callboard.surfaces.documents.excel._sheet import where_of
from callboard.surfaces.documents.excel._shift import column_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from openpyxl.worksheet.cell_range import CellRange

    from callboard.surfaces.documents._package import Element
    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._workbook import ExcelFile

_XM = "{http://schemas.microsoft.com/office/excel/2006/main}"
_SOURCES = tuple(q(name) for name in ("worksheetSource", "rangeSet", "dataRef"))
"""The ranges of pivot tables and consolidations."""
_RULES = frozenset({q(name) for name in ("formula", "formula1", "formula2")} | {f"{_XM}f"})


_PLAIN = re.compile(r"[^\W\d][\w.]*")
_CELL = re.compile(r"[A-Za-z]{1,3}[0-9]+|[Rr][0-9]*(?:[Cc][0-9]*)?|[Cc][0-9]*")


@dataclass(frozen=True)
class BookFormula:
    """A formula or reference, its position, and a setter."""

    where: str
    """A readable position: ``Sheet1!B2``, ``the name Total``, ``a chart on Sales``."""
    sheet: str
    """The sheet of references without a sheet's title."""
    formula: str
    """Without ``=``."""
    write: Callable[[str], None]
    cell: Element | None = None
    """The cell that it stands in, if it is a cell's formula."""


def all_formulas(file: ExcelFile) -> Iterator[BookFormula]:
    """Yield all formulas and references of a workbook."""
    for sheet in file.worksheets:
        yield from _of_cells(sheet)
        yield from _of_rules(sheet)
        yield from _of_links(sheet, sheet.part)
        yield from _of_tables(sheet)
    for name, local_to, element in file.names():
        title = local_to.title if local_to else ""
        yield BookFormula(f"the name {name}", title, element.text or "", _text_setter(file, file.part, element))
    for sheet in file.sheets:
        yield from _of_drawings(sheet)
        yield from _of_controls(sheet)
    yield from _of_pivots(file)


def _of_cells(sheet: Sheet) -> Iterator[BookFormula]:
    formula = q("f")
    for (row, column), cell in list(sheet.formula_cells()):
        formula_element = cell.find(formula)
        if formula_element.get("t") == "dataTable":
            continue
        text = formula_element.text or sheet.formula(row, column)[1:]
        where = f"{sheet.title}!{cell.get('r') or where_of(row, column)}"
        yield BookFormula(where, sheet.title, text, _cell_setter(sheet, row, column), cell)


def _of_rules(sheet: Sheet) -> Iterator[BookFormula]:
    title = sheet.title
    data = q("sheetData")
    for part in sheet.root:
        if part.tag == data or not isinstance(part.tag, str):
            continue
        for element in part.iter():
            if element.tag in _RULES and element.text:
                yield BookFormula(
                    _rule(element, title), title, element.text, _text_setter(sheet.file, sheet.part, element)
                )
            elif element.tag == q("cfvo") and any(True for _ in areas(element.get("val", ""))):
                write = _attribute_setter(sheet.file, sheet.part, element, "val")
                yield BookFormula(f"a conditional format on {title}", title, element.get("val"), write)
            elif element.tag == q("hyperlink") and element.get("location") and not element.get(R_ID):
                write = _attribute_setter(sheet.file, sheet.part, element, "location")
                yield BookFormula(f"a link on {title}", title, element.get("location"), write)


def _rule(element: Element, title: str) -> str:
    for parent in element.iterancestors():
        name = local(parent)
        if name == "dataValidation":
            return f"a validation on {title}"
        if name == "sparklineGroup":
            return f"a sparkline on {title}"
        if name == "conditionalFormatting":
            break
    return f"a conditional format on {title}"


def _of_tables(sheet: Sheet) -> Iterator[BookFormula]:
    for table in tables_of(sheet):
        for element in table.root.iter(q("calculatedColumnFormula"), q("totalsRowFormula")):
            write = _text_setter(sheet.file, table.part, element)
            yield BookFormula(f"the table {table.name}", sheet.title, element.text or "", write)


def _of_drawings(sheet: Sheet) -> Iterator[BookFormula]:
    package = sheet.file.package
    for drawing in drawings_of(sheet):
        for element in package.tree(drawing).iter():
            if isinstance(element.tag, str) and element.get("textlink", "").startswith("="):
                text = element.get("textlink")[1:]
                write = _attribute_setter(sheet.file, drawing, element, "textlink", "=")
                yield BookFormula(f"a text box on {sheet.title}", sheet.title, text, write)
        yield from _of_links(sheet, drawing)
        for kind in ("chart", "chartEx"):
            for part in package.related(drawing, kind):
                for element in package.tree(part).iter():
                    if local(element) in {"f", "sqref"} and element.text:
                        write = _text_setter(sheet.file, part, element)
                        yield BookFormula(f"a chart on {sheet.title}", sheet.title, element.text, write)


def _of_links(sheet: Sheet, part: str) -> Iterator[BookFormula]:
    """Yield the links of a part to cells of the workbook.

    Those are of pictures and shapes, and those that openpyxl gives to cells.
    """
    package, links = sheet.file.package, rels_of(part)
    for link in package.tree(links) if links in package else ():
        if isinstance(link.tag, str) and link.get("Target", "").startswith("#"):
            write = _attribute_setter(sheet.file, links, link, "Target", "#")
            yield BookFormula(f"a link on {sheet.title}", sheet.title, link.get("Target")[1:], write)


def _of_controls(sheet: Sheet) -> Iterator[BookFormula]:
    package = sheet.file.package
    for part in package.related(sheet.part, "ctrlProp"):
        for name in ("fmlaLink", "fmlaRange"):
            root = package.tree(part)
            if root.get(name):
                write = _attribute_setter(sheet.file, part, root, name)
                yield BookFormula(f"a form control on {sheet.title}", sheet.title, root.get(name), write)


def _of_pivots(file: ExcelFile) -> Iterator[BookFormula]:
    package = file.package
    readers: dict[str, set[str]] = {part: set() for part in package.related(file.part, "pivotCacheDefinition")}
    for pivot in all_pivots(file):
        for part in package.related(pivot.part, "pivotCacheDefinition"):
            readers.setdefault(part, set()).add(pivot.sheet.title)
    parts = [(part, "a pivot table", titles.pop() if len(titles) == 1 else "") for part, titles in readers.items()]
    parts += [(sheet.part, f"a consolidation on {sheet.title}", "") for sheet in file.worksheets]
    for part, where, holder in parts:
        for source in package.tree(part).iter(*_SOURCES):
            if not (source.get("ref") and source.get("sheet")) or source.get(R_ID):  # of another workbook
                continue

            def write(text: str, part: str = part, source: Element = source, where: str = where) -> None:
                if text.endswith("#REF!"):
                    msg = f"{where} reads the cells that would be deleted; change or delete it first"
                    raise ToolError(msg)
                package.edit(part)
                sheet, _, cells = text.rpartition("!")
                source.set("sheet", _unquoted(sheet))
                source.set("ref", cells)

            yield BookFormula(where, holder, f"{quote_sheetname(source.get('sheet'))}!{source.get('ref')}", write)


def ranges(formula: str) -> Iterator[tuple[Token, str, str]]:
    """Yield the references of a formula.

    Each is a token, the sheet's title (empty for the formula's own sheet), and the cells or the name.
    """
    try:
        tokens = Tokenizer(f"={formula}").items
    except (TokenizerError, IndexError):
        return
    for token in tokens:
        if token.type == Token.OPERAND and token.subtype == Token.RANGE:
            sheet, _, cells = token.value.rpartition("!")
            yield token, _unquoted(sheet), cells


def rewritten(formula: str, change: Callable[[str, str], str | None]) -> str:
    """Rewrite the references to cells in a formula.

    Args:
        formula: The formula, without ``=``.
        change: Gets the sheet of a reference (empty for its own) and its cells, and returns the cells that replace
            them, with ``!`` for the whole reference, or None if it stays. References to other workbooks always stay.
    """

    def replace(match: re.Match[str]) -> str:
        cells, sheet = match["cells"], match["sheet"] or ""
        if cells is None or "[" in sheet:
            return match[0]
        changed = change(_unquoted(sheet.removesuffix("!")), cells)
        if changed is None:
            return match[0]
        return changed if "!" in changed else sheet + changed

    return REFERENCE.sub(replace, formula)


def areas(formula: str) -> Iterator[tuple[str, str]]:
    """Yield the references to cells in a formula.

    Each is a sheet's title (empty for the formula's own sheet), and the cells.
    """
    for match in REFERENCE.finditer(formula):
        sheet = match["sheet"] or ""
        if match["cells"] is not None and "[" not in sheet:
            yield _unquoted(sheet.removesuffix("!")), match["cells"]


def words(formula: str) -> Iterator[str]:
    """Yield the functions, names and tables of a formula.

    Those of another workbook are left out.
    """
    elsewhere = -1
    for match in REFERENCE.finditer(formula):
        if match["behind"] and not titles(match["behind"]):
            elsewhere = match.end()
        elif match["word"] and match.start() != elsewhere:
            yield match["word"]


def functions(formula: str) -> Iterator[str]:
    """Yield a formula's functions, in capitals and without prefixes."""
    for match in REFERENCE.finditer(formula):
        if match["word"] and formula[match.end() : match.end() + 1] == "(":
            yield match["word"].upper().removeprefix("_XLFN.").removeprefix("_XLWS.")


def operators(formula: str) -> Iterator[str]:
    """Yield the operators of a formula."""
    kinds = {Token.OP_IN, Token.OP_PRE, Token.OP_POST}
    try:
        yield from (token.value for token in Tokenizer(f"={formula}").items if token.type in kinds)
    except (TokenizerError, IndexError):
        return


def renamed(formula: str, old: str, new: str) -> str:
    """Replace a sheet's title in a formula."""

    def replace(match: re.Match[str]) -> str:
        prefix = match["sheet"] or match["behind"] or ""
        ends = titles(prefix)
        if old.casefold() not in map(str.casefold, ends):
            return match[0]
        changed = [new if end.casefold() == old.casefold() else end for end in ends]
        # LibreOffice 7.4 reads a span of sheets only without quotes
        plain = len(ends) > 1 and all(_PLAIN.fullmatch(end) and not _CELL.fullmatch(end) for end in changed)
        title = ":".join(changed)
        return f"{title if plain else quote_sheetname(title)}!{match[0][len(prefix) :]}"

    return REFERENCE.sub(replace, formula)


def quoted_title(title: str) -> str:
    """Quote a sheet's title where a reference needs it."""
    plain = _PLAIN.fullmatch(title) and not _CELL.fullmatch(title)
    return title if plain else quote_sheetname(title)


def mentions(formula: str, title: str) -> bool:
    """Return whether a formula refers to a sheet.

    The ends of a span of sheets count, those between do not.
    """
    matches = REFERENCE.finditer(formula)
    named = (end for match in matches for end in titles(match["sheet"] or match["behind"]))
    return any(title.casefold() == end.casefold() for end in named)


def overlapping(holder: BookFormula, title: str, cells: CellRange) -> Iterator[str]:
    """Yield the references of a formula that overlap a range.

    A span of sheets counts as one that has the sheet.
    """
    for sheet, text in areas(holder.formula):
        here = ":" in sheet or (sheet or holder.sheet).casefold() == title.casefold()
        if here and not cells.isdisjoint(area_of(text)):
            yield text


def bounds_of(text: str) -> tuple[int, int, int, int]:
    """Return the first and last rows and columns of a reference.

    This is many times faster than `area_of`.
    """
    first, _, last = text.replace("$", "").partition(":")
    top, left = _end_position(first)
    bottom, right = _end_position(last or first)
    if not (top and bottom):
        top, bottom = 1, LAST_ROW
    if not (left and right):
        left, right = 1, LAST_COLUMN
    return min(top, bottom), min(left, right), max(top, bottom), max(left, right)


def _end_position(end: str) -> tuple[int, int]:
    letters = end.rstrip("0123456789")
    return int(end[len(letters) :] or 0), column_number(letters)


def _unquoted(sheet: str) -> str:
    return sheet[1:-1].replace("''", "'") if sheet.startswith("'") else sheet


def _cell_setter(sheet: Sheet, row: int, column: int) -> Callable[[str], None]:
    def write(text: str) -> None:
        sheet.edit()
        sheet.unshare()
        sheet.cells[row, column].find(q("f")).text = text

    return write


def _text_setter(file: ExcelFile, part: str, element: Element) -> Callable[[str], None]:
    def write(text: str) -> None:
        file.package.edit(part)
        element.text = text

    return write


def _attribute_setter(
    file: ExcelFile, part: str, element: Element, name: str, prefix: str = ""
) -> Callable[[str], None]:
    def write(text: str) -> None:
        file.package.edit(part)
        element.set(name, prefix + text)

    return write
