"""Find references in formulas, names and charts, and rename their sheets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openpyxl.formula import Tokenizer
from openpyxl.formula.tokenizer import Token
from openpyxl.utils import quote_sheetname, range_boundaries
from openpyxl.worksheet.cell_range import CellRange
from openpyxl.worksheet.formula import ArrayFormula

from callboard.actors.servers.documents._excel_file import LAST_COLUMN, LAST_ROW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from openpyxl.worksheet.worksheet import Worksheet

    from callboard.actors.servers.documents._excel_file import ExcelFile


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


def all_formulas(file: ExcelFile) -> Iterator[BookFormula]:
    """Yield all formulas and references of a workbook."""
    for sheet in file.book.worksheets:
        yield from _of_cells(sheet)
        yield from _of_rules(sheet)
        for name, defined in sheet.defined_names.items():
            yield BookFormula(f"the name {name}", sheet.title, defined.attr_text or "", _setter(defined, "attr_text"))
    for name, defined in file.book.defined_names.items():
        yield BookFormula(f"the name {name}", "", defined.attr_text or "", _setter(defined, "attr_text"))
    yield from _of_charts(file)


def _of_cells(sheet: Worksheet) -> Iterator[BookFormula]:
    for cell in list(sheet._cells.values()):  # the public way would create cells
        where = f"{sheet.title}!{cell.coordinate}"
        if cell.data_type == "f" and isinstance(cell.value, ArrayFormula):
            yield BookFormula(where, sheet.title, (cell.value.text or "=")[1:], _setter(cell.value, "text", "="))
        elif cell.data_type == "f" and isinstance(cell.value, str):
            yield BookFormula(where, sheet.title, cell.value[1:], _setter(cell, "value", "="))


def _of_rules(sheet: Worksheet) -> Iterator[BookFormula]:
    title = sheet.title
    for validation in sheet.data_validations.dataValidation:
        for side in ("formula1", "formula2"):
            if getattr(validation, side):
                where = f"a validation on {title}"
                yield BookFormula(where, title, str(getattr(validation, side)), _setter(validation, side))
    for formats in sheet.conditional_formatting:
        for rule in formats.rules:
            for index, formula in enumerate(rule.formula):
                yield BookFormula(f"a conditional format on {title}", title, formula, _item_setter(rule.formula, index))


def _of_charts(file: ExcelFile) -> Iterator[BookFormula]:
    for sheet in file.book._sheets:  # type: ignore[attr-defined]  # with chart sheets
        for chart in sheet._charts:
            for part in chart._charts:
                for series in part.series:
                    for reference in _of_series(series):
                        where = f"a chart on {sheet.title}"
                        yield BookFormula(where, sheet.title, reference.f, _setter(reference, "f"))


def _of_series(series: object) -> Iterator[Any]:
    for side in ("tx", "cat", "val", "xVal", "yVal", "bubbleSize"):
        source = getattr(series, side, None)
        for kind in ("strRef", "numRef", "multiLvlStrRef"):
            reference = getattr(source, kind, None)
            if reference is not None and reference.f:
                yield reference


def ranges(formula: str) -> Iterator[tuple[Token, str, str]]:
    """Yield the references of a formula.

    Each is a token, the sheet's title (empty for the formula's own sheet), and the cells or the name.
    """
    tokenizer = Tokenizer(f"={formula}")
    for token in tokenizer.items:
        if token.type == Token.OPERAND and token.subtype == Token.RANGE:
            sheet, _, cells = token.value.rpartition("!")
            yield token, sheet.strip("'").replace("''", "'"), cells


def renamed(formula: str, old: str, new: str) -> str:
    """Replace a sheet's title in a formula."""
    tokenizer: Any = Tokenizer(f"={formula}")
    for token in tokenizer.items:
        if token.type == Token.OPERAND and token.subtype == Token.RANGE:
            sheet, mark, cells = token.value.rpartition("!")
            if mark and sheet.strip("'").replace("''", "'").casefold() == old.casefold():
                token.value = f"{quote_sheetname(new)}!{cells}"
    return str(tokenizer.render())[1:]


def mentions(formula: str, title: str) -> bool:
    """Return whether a formula refers to a sheet.

    The ends of a span of sheets count, those between do not.
    """
    titles = title.casefold()
    return any(titles in sheet.casefold().split(":") for _, sheet, _ in ranges(formula) if sheet)


def overlapping(reference: BookFormula, title: str, cells: CellRange) -> Iterator[str]:
    """Yield the references of a formula that overlap a range."""
    for _, sheet, text in ranges(reference.formula):
        if (sheet or reference.sheet).casefold() != title.casefold():
            continue
        try:
            left, top, right, bottom = range_boundaries(text.replace("$", ""))
        except (ValueError, TypeError):
            continue
        other = CellRange(min_col=left or 1, min_row=top or 1, max_col=right or LAST_COLUMN, max_row=bottom or LAST_ROW)
        if not cells.isdisjoint(other):
            yield text


def _setter(owner: object, name: str, prefix: str = "") -> Callable[[str], None]:
    return lambda text: setattr(owner, name, prefix + text)


def _item_setter(owner: list[str], index: int) -> Callable[[str], None]:
    return lambda text: owner.__setitem__(index, text)
