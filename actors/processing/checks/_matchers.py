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
    part: Any = value
    for step in path.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(part, dict) and name in part:
            part = part[name]
        elif isinstance(part, list) and _NUMBER.fullmatch(name) and -len(part) <= int(name) < len(part):
            part = part[int(name)]
        else:
            return MISSING
    result: JsonValue | Missing = part
    return result


def holds(check: Check, value: JsonValue | Missing, second: JsonValue | Missing = None) -> bool:
    """Return whether a value is as expected.

    Args:
        check: The check, with its matcher.
        value: The value of its reading.
        second: The value of the reading of `same_as`.
    """
    name = check.matcher or "exists"
    if name == "exists":
        there = not isinstance(value, Missing) and not is_empty(value) and not has_error(value)
        return there == (check.exists is not False)
    if isinstance(value, Missing):
        return False
    return _holds(check, name, value, second)


def _holds(check: Check, name: str, value: JsonValue, second: JsonValue | Missing) -> bool:
    match name:
        case "same_as":
            says_something = not is_empty(value) and not has_error(value)
            return says_something and not isinstance(second, Missing) and same(value, second, check.tolerance)
        case "equals":
            return same(value, check.equals, check.tolerance)
        case "approx":
            number, wanted_number = number_in(value), check.approx or 0
            near = max(NEAR * abs(wanted_number), _ZERO) if check.tolerance is None else check.tolerance
            return number is not None and abs(number - wanted_number) <= near
        case "contains":
            return includes(value, check.contains)
        case "matches":
            text = value if isinstance(value, str) else str(plain(value))
            _check_effort(expression_size(check.matches or ""), len(text))
            return not isinstance(plain(value), list | dict | None) and found_in(check.matches or "", text)
        case "between":
            number, (least, largest) = number_in(value), check.between or (0, 0)
            return number is not None and least <= number <= largest
        case "one_of":
            return any(same(value, choice) for choice in check.one_of or ())
        case "count":
            return isinstance(value, list | dict | str) and len(value) == check.count
        case "is_empty":
            return is_empty(value) == check.is_empty
        case _:
            schema = check.json_schema or {}
            _check_effort(max(largest_pattern(schema), 1), len(json.dumps(value)))
            return next(validator_of(schema).iter_errors(value), None) is None


def _check_effort(states: int, length: int) -> None:
    """Refuse a comparison that would hold up the program.

    Raises:
        UnreadableError: If the pattern is too large for the length of the value.
    """
    if states * length > _MOST_EFFORT:
        msg = f"the value is too long for this pattern: {length:,} characters; read a part of it"
        raise UnreadableError(msg)


def same(value: Any, expected: Any, tolerance: float | None = None) -> bool:
    """Return whether two values say the same.

    Texts are compared without regard to spaces and forms of Unicode, numbers within the tolerance, and whole numbers
    exactly. A text that is a number equals that number: tables of documents hold texts. A row, a column and a cell
    equal a list and a value.
    """
    value, expected = plain(value), plain(expected)
    if isinstance(value, list) and isinstance(expected, list):
        return len(value) == len(expected) and all(same(*pair, tolerance) for pair in zip(value, expected, strict=True))
    if isinstance(value, dict) and isinstance(expected, dict):
        return value.keys() == expected.keys() and all(same(value[name], expected[name], tolerance) for name in value)
    if isinstance(value, bool) or isinstance(expected, bool):
        return value is expected
    if isinstance(value, str) and isinstance(expected, str) and _words(value) == _words(expected):
        return True
    if is_empty(value) and is_empty(expected):
        return True
    first, second = _number(value), _number(expected)
    if first is None or second is None or (first.unit and second.unit and first.unit != second.unit):
        return False
    if tolerance is not None:
        return abs(first.value - second.value) <= tolerance
    if float(first.value).is_integer() and float(second.value).is_integer():
        return first.value == second.value  # numbers of accounts, phones and invoices differ in their last digits
    return math.isclose(first.value, second.value, rel_tol=EXACT, abs_tol=_ZERO)


def includes(value: Any, expected: Any) -> bool:
    """Return whether a value contains another.

    A text contains a part of it, a list an item or several ones, a list of rows also a cell, and an object members.
    """
    if isinstance(value, dict):
        members = isinstance(expected, dict) and expected.keys() <= value.keys()
        return members and all(_part(value[name], member) for name, member in expected.items())
    if isinstance(value, list):
        items = [*value, *(cell for row in value if isinstance(row, list) for cell in row)]
        wishes = (
            expected if isinstance(expected, list) and not any(same(item, expected) for item in items) else [expected]
        )
        return all(any(same(item, wish) for item in items) for wish in wishes)
    return _is_in_text(value, expected) or same(value, expected)


def _part(value: Any, expected: Any) -> bool:
    return includes(value, expected) if isinstance(expected, list | dict) else same(value, expected)


def _is_in_text(value: Any, expected: Any) -> bool:
    return isinstance(value, str) and isinstance(expected, str) and _words(expected) in _words(value)


def is_empty(value: Any) -> bool:
    """Return whether there is nothing in a value."""
    if isinstance(value, list):
        return all(is_empty(cell) for cell in value)
    return value is None or (isinstance(value, str) and not value.strip()) or value == {}


def has_error(value: Any) -> bool:
    """Return whether a value or cell is an error of a workbook."""
    if isinstance(value, list):
        return any(has_error(cell) for cell in value)
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


def difference(value: Any, expected: Any, tolerance: float | None = None, path: str = "") -> str:
    """Return a JSON pointer to the first part that differs.

    Empty for the whole value.
    """
    if isinstance(value, list) and isinstance(expected, list) and len(value) == len(expected):
        pairs = list(enumerate(zip(value, expected, strict=True)))
    elif isinstance(value, dict) and isinstance(expected, dict) and value.keys() == expected.keys():
        pairs = [(name, (value[name], expected[name])) for name in value]
    else:
        return path
    for name, pair in pairs:
        if not same(*pair, tolerance):
            step = str(name).replace("~", "~0").replace("/", "~1")
            return difference(*pair, tolerance, f"{path}/{step}")
    return path


def _words(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())
