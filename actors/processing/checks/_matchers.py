"""Compare the value of a reading with an expectation."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from typing import TYPE_CHECKING, Any

from callboard.actors.commands import validator_of
from callboard.messages import CallboardError, expression_size, found_in, largest_pattern
from callboard.surfaces import Number, parse_number

if TYPE_CHECKING:
    from pydantic import JsonValue

    from callboard.messages import Check

EXACT = 1e-9
"""The share by which two equal numbers may differ, unless both are whole: sums of the same numbers in another order do.
"""
_NUMBER = re.compile(r"-?[0-9]{1,9}")
_MOST_EFFORT = 300_000_000
"""The most characters of a value, times the size of the pattern that they are compared with: about two seconds."""
_ZERO = 1e-12
"""The difference from zero that such a sum may have."""
_ERRORS = frozenset({"#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A"})
"""The texts of errors in workbooks."""
NEAR = 1e-6
"""The share for `approx`."""


class UnreadableError(CallboardError):
    """A reading fails, so that its check does not hold."""


class Missing:
    """The value at a path that leads nowhere."""

    def __repr__(self) -> str:
        """Return its name."""
        return "nothing"


MISSING = Missing()


def value_at(value: JsonValue, path: str) -> JsonValue | Missing:
    """Follow a JSON pointer; it may lead nowhere.

    Negative numbers count from the end of a list.
    """
    found: Any = value
    for step in path.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and name in found:
            found = found[name]
        elif isinstance(found, list) and _NUMBER.fullmatch(name) and -len(found) <= int(name) < len(found):
            found = found[int(name)]
        else:
            return MISSING
    result: JsonValue | Missing = found
    return result


def holds(check: Check, found: JsonValue | Missing, other: JsonValue | Missing = None) -> bool:
    """Return whether a value is as expected.

    Args:
        check: The check, with its matcher.
        found: The value of its reading.
        other: The value of the reading of `same_as`.
    """
    name = check.matcher or "exists"
    if name == "exists":
        there = not isinstance(found, Missing) and not is_empty(found) and not has_error(found)
        return there == (check.exists is not False)
    if isinstance(found, Missing):
        return False
    return _holds(check, name, found, other)


def _holds(check: Check, name: str, found: JsonValue, other: JsonValue | Missing) -> bool:
    match name:
        case "same_as":
            says_something = not is_empty(found) and not has_error(found)
            return says_something and not isinstance(other, Missing) and same(found, other, check.tolerance)
        case "equals":
            return same(found, check.equals, check.tolerance)
        case "approx":
            number, wanted = number_in(found), check.approx or 0
            near = max(NEAR * abs(wanted), _ZERO) if check.tolerance is None else check.tolerance
            return number is not None and abs(number - wanted) <= near
        case "contains":
            return includes(found, check.contains)
        case "matches":
            text = found if isinstance(found, str) else str(plain(found))
            _check_effort(expression_size(check.matches or ""), len(text))
            return not isinstance(plain(found), list | dict | None) and found_in(check.matches or "", text)
        case "between":
            number, (least, largest) = number_in(found), check.between or (0, 0)
            return number is not None and least <= number <= largest
        case "one_of":
            return any(same(found, each) for each in check.one_of or ())
        case "count":
            return isinstance(found, list | dict | str) and len(found) == check.count
        case "is_empty":
            return is_empty(found) == check.is_empty
        case _:
            schema = check.json_schema or {}
            _check_effort(max(largest_pattern(schema), 1), len(json.dumps(found)))
            return next(validator_of(schema).iter_errors(found), None) is None


def _check_effort(states: int, length: int) -> None:
    """Refuse a comparison that would hold up the program.

    Raises:
        UnreadableError: If the pattern is too large for the length of the value.
    """
    if states * length > _MOST_EFFORT:
        msg = f"the value is too long for this pattern: {length:,} characters; read a part of it"
        raise UnreadableError(msg)


def same(one: Any, other: Any, tolerance: float | None = None) -> bool:
    """Return whether two values say the same.

    Texts are compared without regard to spaces and forms of Unicode, numbers within the tolerance, and whole numbers
    exactly. A text that is a number equals that number: tables of documents hold texts. A row, a column and a cell
    equal a list and a value.
    """
    one, other = plain(one), plain(other)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(*pair, tolerance) for pair in zip(one, other, strict=True))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name], tolerance) for name in one)
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, str) and isinstance(other, str) and _words(one) == _words(other):
        return True
    if is_empty(one) and is_empty(other):
        return True
    first, second = _number(one), _number(other)
    if first is None or second is None or (first.unit and second.unit and first.unit != second.unit):
        return False
    if tolerance is not None:
        return abs(first.value - second.value) <= tolerance
    if float(first.value).is_integer() and float(second.value).is_integer():
        return first.value == second.value  # numbers of accounts, phones and invoices differ in their last digits
    return math.isclose(first.value, second.value, rel_tol=EXACT, abs_tol=_ZERO)


def includes(found: Any, wanted: Any) -> bool:
    """Return whether a value contains another.

    A text contains a part of it, a list an item or several ones, a list of rows also a cell, and an object members.
    """
    if isinstance(found, dict):
        members = isinstance(wanted, dict) and wanted.keys() <= found.keys()
        return members and all(_part(found[name], each) for name, each in wanted.items())
    if isinstance(found, list):
        items = [*found, *(cell for row in found if isinstance(row, list) for cell in row)]
        wishes = wanted if isinstance(wanted, list) and not any(same(item, wanted) for item in items) else [wanted]
        return all(any(same(item, wish) for item in items) for wish in wishes)
    return _is_in_text(found, wanted) or same(found, wanted)


def _part(found: Any, wanted: Any) -> bool:
    return includes(found, wanted) if isinstance(wanted, list | dict) else same(found, wanted)


def _is_in_text(found: Any, wanted: Any) -> bool:
    return isinstance(found, str) and isinstance(wanted, str) and _words(wanted) in _words(found)


def is_empty(value: Any) -> bool:
    """Return whether there is nothing in a value."""
    if isinstance(value, list):
        return all(is_empty(each) for each in value)
    return value is None or (isinstance(value, str) and not value.strip()) or value == {}


def has_error(value: Any) -> bool:
    """Return whether a value or cell is an error of a workbook."""
    if isinstance(value, list):
        return any(has_error(each) for each in value)
    return isinstance(value, str) and value in _ERRORS


def number_in(value: Any) -> float | None:
    """Return a value as a number, even if written as a text."""
    number = _number(plain(value))
    return None if number is None else number.value


def _number(value: Any) -> Number | None:
    if isinstance(value, str):
        return parse_number(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return Number(value) if is_number and math.isfinite(value) else None


def plain(value: Any) -> Any:
    """Reduce one row or column to a list, one cell further."""
    if not isinstance(value, list) or not value or not all(isinstance(row, list) for row in value):
        return value
    if len(value) == 1:
        return value[0][0] if len(value[0]) == 1 else value[0]
    return [row[0] for row in value] if all(len(row) == 1 for row in value) else value


def difference(one: Any, other: Any, tolerance: float | None = None, path: str = "") -> str:
    """Return a JSON pointer to the first part that differs.

    Empty for the whole value.
    """
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = list(enumerate(zip(one, other, strict=True)))
    elif isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        pairs = [(name, (one[name], other[name])) for name in one]
    else:
        return path
    for name, pair in pairs:
        if not same(*pair, tolerance):
            step = str(name).replace("~", "~0").replace("/", "~1")
            return difference(*pair, tolerance, f"{path}/{step}")
    return path


def _words(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())
