"""Validations: the choices and limits of cells, shown and kept."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from openpyxl.utils.datetime import from_excel

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._package import local
from callboard.surfaces.documents._tables import short
from callboard.surfaces.documents.excel._cell_elements import SIGNS, area_of
from callboard.surfaces.documents.excel._cell_references import areas, bounds_of
from callboard.surfaces.documents.excel._formula_text import translated
from callboard.surfaces.documents.excel._named_tables import tables_of
from callboard.surfaces.documents.excel._sheet import where_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openpyxl.worksheet.cell_range import CellRange

    from callboard.surfaces.documents._package import Element
    from callboard.surfaces.documents._tables import Answer
    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._workbook import ExcelFile

_MOST_RULES = 20
_MOST_CHOICES = 30
_MOST_CELLS = 5
_MOST_LISTED = 10_000
"""The most cells of a list that are read; a longer one is not checked."""
_TRUE = frozenset({"1", "true"})
_KINDS = {
    "whole": "a whole number", "decimal": "a number", "date": "a date", "time": "a time",
    "textLength": "a text with a length in characters",
}  # fmt: skip
_NUMBER = re.compile(r"[+-]?[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?")
_DATE = re.compile(r"DATE\(([0-9]{4}),([0-9]{1,2}),([0-9]{1,2})\)", re.IGNORECASE)
_INDIRECT = re.compile(r'INDIRECT\("((?:[^"]|"")*)"\)', re.IGNORECASE)
_TABLE_COLUMN = re.compile(r"(?P<table>[^\W\d][\w.]*)\[(?P<column>[^\[\]#@']+)\]")
_SPAN = ("between", "notBetween")


@dataclass
class Rule:
    """A validation of some cells."""

    sheet: Sheet
    cells: list[CellRange]
    kind: str
    """The type in the file: ``list``, ``whole``, ``decimal``, ``date``, ``time``, ``textLength`` or ``custom``."""
    operator: str
    formulas: list[str]
    style: str
    """``stop``, ``warning`` or ``information``; empty if Excel shows no error."""
    text: str
    """The error that its author wrote."""
    _choices: dict[str, list[object] | None] = field(default_factory=dict)

    def covers(self, row: int, column: int) -> bool:
        """Return whether it holds for a cell."""
        return any(
            area.min_row <= row <= area.max_row and area.min_col <= column <= area.max_col for area in self.cells
        )

    def description(self, row: int, column: int) -> str:
        """Describe the values that a cell takes."""
        if self.kind == "list":
            choices = self.choices(row, column)
            if choices is None:
                return f"one of {self.formulas[0]}"
            more = f", and {len(choices) - _MOST_CHOICES} more" if len(choices) > _MOST_CHOICES else ""
            return f"one of: {', '.join(short(str(choice), 40) for choice in choices[:_MOST_CHOICES])}{more}"
        if self.kind == "custom":
            return f"what fulfils ={self.formulas[0]}"
        limits = [self._limit_text(formula, row, column) for formula in self.formulas]
        if self.operator in _SPAN and len(limits) == 2:
            within = "between" if self.operator == "between" else "not between"
            return f"{_KINDS[self.kind]} {within} {limits[0]} and {limits[1]}"
        return f"{_KINDS[self.kind]} {SIGNS.get(self.operator, '=')} {limits[0]}"

    def allows(self, row: int, column: int) -> bool | None:
        """Return whether a cell's value fulfils it; None if unknown."""
        value = self.sheet.value(row, column)
        if value is None:
            return None if self.sheet.is_formula(row, column) else True
        if self.kind == "list":
            choices = self.choices(row, column)
            exact = self.formulas[0].startswith('"')
            return None if choices is None else any(_same(value, choice, exact=exact) for choice in choices)
        limits = [self._number(formula, row, column) for formula in self.formulas]
        if self.kind == "custom" or None in limits:
            return None
        number = len(str(value)) if self.kind == "textLength" else self.sheet.serial(row, column)
        if number is None or (self.kind == "whole" and number != int(number)):
            return False
        first, last = (float(limit or 0) for limit in (limits[0], limits[-1]))
        if self.operator in _SPAN:
            return (first <= number <= last) == (self.operator == "between")
        return {
            "=": number == first, "<>": number != first, "<": number < first, "<=": number <= first,
            ">": number > first, ">=": number >= first,
        }[SIGNS.get(self.operator, "=")]  # fmt: skip

    def choices(self, row: int, column: int) -> list[object] | None:
        """Return the values of a list; None if unknown."""
        formula = self._at(self.formulas[0], row, column)
        if formula not in self._choices:
            self._choices[formula] = _choices(self.sheet, formula)
        return self._choices[formula]

    def _at(self, formula: str, row: int, column: int) -> str:
        first = self.cells[0]
        return translated(formula, row - first.min_row, column - first.min_col)

    def _number(self, formula: str, row: int, column: int) -> float | None:
        text = formula.strip()
        if _NUMBER.fullmatch(text):
            return float(text)
        if match := _DATE.fullmatch(text):
            day = dt.datetime(*map(int, match.groups()))  # type: ignore[arg-type]  # noqa: DTZ001 - has no zone
            return (day - self.sheet.file.epoch) / dt.timedelta(days=1)
        cells = [*_cells_of(self.sheet, self._at(text, row, column))]
        return cells[0][0].serial(*cells[0][1:]) if len(cells) == 1 else None

    def _limit_text(self, formula: str, row: int, column: int) -> str:
        number = self._number(formula, row, column)
        if number is None:
            return f"={formula}"
        if self.kind in {"date", "time"}:
            moment = from_excel(number, self.sheet.file.epoch)
            return str(moment).removesuffix(" 00:00:00")
        return f"{number:.15g}"


def rules_of(sheet: Sheet) -> list[Rule]:
    """List the validations of a sheet, also those of Excel's extensions."""
    rules = []
    lists = [child for child in sheet.root if local(child) in {"dataValidations", "extLst"}]
    for element in (validation for part in lists for validation in part.iter("{*}dataValidation")):
        ranges = element.get("sqref") or next((child.text or "" for child in element if local(child) == "sqref"), "")
        formulas = ["".join(child.itertext()).strip() for child in element if local(child) in {"formula1", "formula2"}]
        kind = element.get("type", "none")
        if not ranges.split() or not any(formulas) or (kind not in _KINDS and kind not in {"list", "custom"}):
            continue
        rules.append(_rule(sheet, element, ranges, formulas))
    return rules


def _rule(sheet: Sheet, element: Element, ranges: str, formulas: list[str]) -> Rule:
    shows_error = element.get("showErrorMessage") in _TRUE
    return Rule(
        sheet,
        [area_of(reference) for reference in ranges.split()],
        element.get("type"),
        element.get("operator", "between"),
        [formula.removeprefix("=") for formula in formulas if formula],
        element.get("errorStyle", "stop") if shows_error else "",
        element.get("error", ""),
    )


def validations_of(sheet: Sheet, within: CellRange | None = None) -> Answer:
    """Describe the choices and limits of cells, by their ranges."""
    rules = [
        rule for rule in rules_of(sheet) if within is None or any(not area.isdisjoint(within) for area in rule.cells)
    ]
    descriptions: Answer = {}
    for rule in rules[:_MOST_RULES]:
        ranges = " ".join(area.coord for area in rule.cells[:_MOST_RULES])
        descriptions[ranges] = rule.description(rule.cells[0].min_row, rule.cells[0].min_col)
    if not descriptions:
        return {}
    more: Answer = {"validations_left_out": len(rules) - _MOST_RULES} if len(rules) > _MOST_RULES else {}
    return {"validations": descriptions, **more}


def check_validations(file: ExcelFile) -> None:
    """Check the cells that an edit wrote.

    The answer names broken rules that only warn, and those that are unknown here.

    Raises:
        ToolError: If a value breaks a rule with the error style *stop*.
    """
    refusals: list[str] = []
    notes: dict[str, str] = {}
    for sheet in file.worksheets:
        rules = rules_of(sheet) if sheet.written else []
        for row, column in sheet.written if rules else ():
            if sheet.raw(row, column) == sheet.written[row, column] and not sheet.is_formula(row, column):
                continue
            for rule in rules:
                if rule.covers(row, column):
                    _check(rule, row, column, refusals, notes)
    if refusals:
        more = f" and {len(refusals) - _MOST_CELLS} more" if len(refusals) > _MOST_CELLS else ""
        msg = f"nothing was written: {'; '.join(refusals[:_MOST_CELLS])}{more}"
        raise ToolError(msg)
    if notes and file.answer is not None:
        file.answer["validations"] = {**dict(list(notes.items())[:_MOST_RULES])}


def _check(rule: Rule, row: int, column: int, refusals: list[str], notes: dict[str, str]) -> None:
    is_allowed = rule.allows(row, column)
    if is_allowed:
        return
    where, value = where_of(row, column), short(str(rule.sheet.value(row, column)), 40)
    description = rule.description(row, column)
    if is_allowed is None:
        notes[where] = f"not checked: the cell takes {description}"
    elif rule.style == "stop":
        refusals.append(f"{where} takes {description}, and not {value!r}" + (f" ({rule.text})" if rule.text else ""))
    else:
        notes[where] = f"written, although the cell takes {description}" + (f" ({rule.text})" if rule.text else "")


def _choices(sheet: Sheet, formula: str) -> list[object] | None:
    text = formula.strip()
    if text.startswith('"') and text.endswith('"'):
        return [choice.strip() for choice in text[1:-1].replace('""', '"').split(",")]
    cells = [*_cells_of(sheet, text)]
    if not cells:
        return None
    values = [cell_sheet.value(row, column) for cell_sheet, row, column in cells]
    return [value for value in values if value is not None]


def _cells_of(sheet: Sheet, reference: str, depth: int = 5) -> Iterator[tuple[Sheet, int, int]]:
    """Yield the cells of one reference or defined name.

    Other formulas have none.
    """
    if match := _INDIRECT.fullmatch(reference):
        yield from _cells_of(sheet, match[1].replace('""', '"'), depth)
        return
    if match := _TABLE_COLUMN.fullmatch(reference):
        yield from _column_of_table(sheet.file, match["table"], match["column"])
        return
    definitions = {name.casefold(): element.text or "" for name, _, element in sheet.file.names()}
    if reference.casefold() in definitions and depth:
        yield from _cells_of(sheet, definitions[reference.casefold()], depth - 1)
        return
    references = [*areas(reference)]
    if len(references) != 1 or not reference.endswith(references[0][1]) or "(" in reference:
        return
    title, cells = references[0]
    target_sheet = next(
        (worksheet for worksheet in sheet.file.worksheets if worksheet.title.casefold() == title.casefold()), None
    )
    if title and target_sheet is None:
        return
    top, left, bottom, right = bounds_of(cells)
    used = (target_sheet or sheet).used()
    bottom, right = min(bottom, used.max_row if used else top), min(right, used.max_col if used else left)
    if (bottom - top + 1) * (right - left + 1) <= _MOST_LISTED:
        for row in range(top, bottom + 1):
            for column in range(left, right + 1):
                yield target_sheet or sheet, row, column


def _column_of_table(file: ExcelFile, name: str, column: str) -> Iterator[tuple[Sheet, int, int]]:
    for sheet in file.worksheets:
        for table in tables_of(sheet):
            titles = [title.casefold() for title in table.columns]
            if table.name.casefold() == name.casefold() and column.casefold() in titles:
                number = table.cells.min_col + titles.index(column.casefold())
                last = min(table.cells.max_row - table.totals, table.cells.min_row + _MOST_LISTED)
                for row in range(table.cells.min_row + table.has_header, last + 1):
                    yield sheet, row, number


def _same(value: object, choice: object, *, exact: bool) -> bool:
    """Compare a value with a choice, as Excel does.

    A list that is typed into the rule is case-sensitive.
    """
    texts = [f"{operand:.15g}" if isinstance(operand, float) else str(operand) for operand in (value, choice)]
    if isinstance(value, bool):
        return texts[0].casefold() == texts[1].casefold()
    return texts[0] == texts[1] if exact else texts[0].casefold() == texts[1].casefold()
