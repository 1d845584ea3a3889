"""Validations set and deleted: the choices and limits of cells."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Literal, TypeAlias

from lxml import etree
from openpyxl.utils import absolute_coordinate

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._office import q
from callboard.surfaces.documents._package import local
from callboard.surfaces.documents._tables import clean
from callboard.surfaces.documents.excel._cell_elements import OPERATORS, area_of
from callboard.surfaces.documents.excel._cell_values import Date, serial_of
from callboard.surfaces.documents.excel._dynamic_arrays import spills
from callboard.surfaces.documents.excel._formulas import checked, resolved
from callboard.surfaces.documents.excel._rule_ranges import ranges_of, without
from callboard.surfaces.documents.excel._sheet import where_of
from callboard.surfaces.documents.excel._validations import rules_of

if TYPE_CHECKING:
    from openpyxl.worksheet.cell_range import CellRange

    from callboard.surfaces.documents._package import Element
    from callboard.surfaces.documents._tables import Answer
    from callboard.surfaces.documents.excel._sheet import Sheet

Kind: TypeAlias = Literal["list", "whole", "number", "date", "time", "length", "formula", "none"]
Limit: TypeAlias = int | float | Date
Sign: TypeAlias = Literal["=", "<>", "<", "<=", ">", ">=", "between", "not between"]

_TYPES = {"number": "decimal", "length": "textLength", "formula": "custom"}
_OPERATORS = OPERATORS | {"between": "between", "not between": "notBetween"}
_MAX_CHOICES = 255
"""The most characters of choices that Excel holds in a rule."""
_MAX_MESSAGE = 255
_MAX_LISTED = 100


def set_validation(sheet: Sheet, ranges: list[CellRange], rule: Element | None) -> Answer:
    """Give cells a validation, or none, in place of theirs.

    Returns how many were there, and the present values that break the new one.
    """
    count = sum(delete_validations(sheet, cells) for cells in ranges)
    answer: Answer = {"validations_deleted": count} if count else {}
    if rule is None:
        return answer
    rule.set("sqref", " ".join(cells.coord for cells in ranges))
    add_validation(sheet, rule)
    validation = next(entry for entry in rules_of(sheet) if entry.cells[0].coord == ranges[0].coord)
    broken = [
        where_of(row, column)
        for row, column in sheet.filled()
        if validation.covers(row, column) and validation.allows(row, column) is False
    ]
    return answer | ({"values_not_allowed": [*broken[:_MAX_LISTED]]} if broken else {})


def add_validation(sheet: Sheet, rule: Element) -> None:
    """Add a validation to those of a sheet."""
    holder = sheet.element("dataValidations")
    holder.append(rule)
    holder.set("count", str(len(holder)))


def list_rule(sheet: Sheet, cells: CellRange, choices: list[str | int | float], source: str) -> Element:
    """Make a rule that allows choices, or values of other cells.

    Raises:
        ToolError: If there are none, or a rule can't hold them.
    """
    if bool(choices) == bool(source):
        msg = "a list has choices, or a source like Lists!A1:A9"
        raise ToolError(msg)
    if source:
        return _rule("list", [reference_of(sheet, cells, source)])
    texts = [clean(str(choice)).strip() for choice in choices]
    if any("," in text or not text for text in texts) or len(",".join(texts)) > _MAX_CHOICES:
        msg = (
            f"choices hold no commas, are not empty, and have at most {_MAX_CHOICES} characters together; write them "
            "into cells and name these as the source"
        )
        raise ToolError(msg)
    joined = ",".join(texts).replace('"', '""')
    return _rule("list", [f'"{joined}"'])


def limit_rule(sheet: Sheet, kind: Kind, sign: Sign, limits: list[Limit]) -> Element:
    """Make a rule that limits numbers, dates, times or lengths.

    Raises:
        ToolError: If there are too few or too many limits, or one has the wrong type.
    """
    expected = 2 if "between" in sign else 1
    if len(limits) != expected:
        msg = f"{sign} takes {expected} limits, and not {len(limits)}"
        raise ToolError(msg)
    rule = _rule(_TYPES.get(kind, kind), [_limit(sheet, kind, limit) for limit in limits])
    rule.set("operator", _OPERATORS[sign])
    return rule


def formula_rule(sheet: Sheet, cells: CellRange, formula: str) -> Element:
    """Make a rule that allows values for which a formula is true.

    Raises:
        ToolError: If the formula is refused, see `checked`.
    """
    text = resolved(sheet.file, sheet, cells, checked(formula))[1:]
    if spills(text):
        msg = f"{formula!r} gives several values, and a validation needs one"
        raise ToolError(msg)
    return _rule("custom", [text])


def reference_of(sheet: Sheet, cells: CellRange, source: str) -> str:
    """Return an absolute reference to the cells of a list.

    Raises:
        ToolError: If there are no such cells, and no such name.
    """
    text = resolved(sheet.file, sheet, cells, checked(f"={source.removeprefix('=')}"))[1:]
    prefix, mark, area = text.rpartition("!")
    try:
        return f"{prefix}{mark}{absolute_coordinate(area_of(area).coord)}"
    except ValueError:  # a name
        return text


def add_messages(rule: Element, error: str, prompt: str, *, warns: bool) -> None:
    """Add the texts that Excel shows, and whether it only warns.

    Raises:
        ToolError: If one is too long.
    """
    for name, text in (("error", error), ("prompt", prompt)):
        if len(text) > _MAX_MESSAGE:
            msg = f"the {name} has {len(text)} characters, and a rule holds {_MAX_MESSAGE}"
            raise ToolError(msg)
        if text:
            rule.set(name, clean(text))
    if warns:
        rule.set("errorStyle", "warning")


def _rule(kind: str, formulas: list[str]) -> Element:
    rule = etree.Element(q("dataValidation"))
    for name, value in (("type", kind), ("allowBlank", "1"), ("showInputMessage", "1"), ("showErrorMessage", "1")):
        rule.set(name, value)
    for number, formula in enumerate(formulas, start=1):
        etree.SubElement(rule, q(f"formula{number}")).text = formula
    return rule


def _limit(sheet: Sheet, kind: Kind, limit: Limit) -> str:
    if isinstance(limit, Date) != (kind in {"date", "time"}):
        msg = f'{kind} is limited by {{"date": …}}' if kind in {"date", "time"} else f"{kind} is limited by numbers"
        raise ToolError(msg)
    if not isinstance(limit, Date):
        return f"{limit:.15g}"
    if isinstance(limit.date, dt.timedelta) != (kind == "time"):
        msg = 'a date is limited by {"date": "2024-05-31"}, a time by {"date": "09:30"}'
        raise ToolError(msg)
    return f"{serial_of(limit.date, sheet.file.epoch, 'the limit'):.15g}"


def delete_validations(sheet: Sheet, cells: CellRange) -> int:
    """Take the validations of cells away, and count them."""
    count = 0
    for element in [entry for entry in sheet.root.iter("{*}dataValidation") if isinstance(entry.tag, str)]:
        areas = [area_of(reference) for reference in ranges_of(element).split()]
        if all(area.isdisjoint(cells) for area in areas):
            continue
        count += 1
        without(sheet, element, cells)
        parent = element.getparent()
        if parent is not None and local(parent) == "dataValidations":
            parent.set("count", str(len(parent)))
    for holder in sheet.root.findall(q("dataValidations")):
        if len(holder) == 0:
            holder.getparent().remove(holder)
        else:
            holder.set("count", str(len(holder)))
    return count
