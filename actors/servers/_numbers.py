"""Numbers in the text of tables: which texts are numbers beyond doubt, and what they are worth."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

Separator = Literal[".", ","]
"""What stands before the decimals."""

_MAX_DIGITS = 15
"""What a spreadsheet's number holds exactly."""
_MINUS = "\u2212"
_CURRENCY = "[€$£¥]|EUR|USD|GBP|CHF|JPY"
_SPACE = "[ \u00a0\u202f]"
_SHAPE = re.compile(
    rf"(?P<sign>[+\-{_MINUS}]?)(?:(?P<before>{_CURRENCY}){_SPACE}?)?(?P<inner>[\-{_MINUS}]?)"
    rf"(?P<digits>[0-9](?:[0-9.,'\u2019 \u00a0\u202f]*[0-9])?)(?:{_SPACE}?(?P<after>{_CURRENCY}|%))?",
)
_PLAIN = re.compile(r"[0-9]+")
_GROUPED = {
    ".": re.compile(r"(?P<whole>[1-9][0-9]{0,2}(?:,[0-9]{3})+)(?:\.(?P<decimals>[0-9]+))?"),
    ",": re.compile(r"(?P<whole>[1-9][0-9]{0,2}(?:\.[0-9]{3})+)(?:,(?P<decimals>[0-9]+))?"),
}
_DOTTED = re.compile(r"[0-9]+(?:\.[0-9]+){2,}")
_SWISS = re.compile(r"(?P<whole>[1-9][0-9]{0,2}(?:['\u2019][0-9]{3})+)(?:\.(?P<decimals>[0-9]+))?")
_SPACED = re.compile(
    r"(?P<whole>[1-9][0-9]{0,2}(?:[\u00a0\u202f][0-9]{3})+)(?:(?P<separator>[.,])(?P<decimals>[0-9]+))?"
)
_SIMPLE = re.compile(r"(?P<whole>0|[1-9][0-9]*)(?P<separator>[.,])(?P<decimals>[0-9]+)")


@dataclass(frozen=True)
class Number:
    """A text that is a number."""

    value: int | float
    unit: str = ""
    """``%`` or a currency, as it is written; a percentage's value is its hundredth, as in a spreadsheet."""


def parse_number(text: str, separator: Separator | None = None) -> Number | None:
    """Read a number, or None for all that is not one beyond doubt.

    Read are, with the digits 0 to 9 only: whole numbers (``1200``); decimals after a point or a comma (``12.75``,
    ``12,75``); groups of three between commas, points, apostrophes or no-break spaces (``1,234.50``, ``1.234,50``,
    ``1'234.50``, ``1 234,50``); before it a minus; before or after it one of ``€ $ £ ¥ EUR USD GBP CHF JPY``; after
    it ``%`` (``12 %`` is 0.12).

    Text stays what could be read in two ways while it is open what separates the decimals (``1,234``, ``1.234``),
    points between groups without decimals (``192.168.100.200``), leading zeros (``007``), more than 15 digits, a plus
    before a whole number (telephones), dates, times, ranges, parentheses, exponents.

    Args:
        text: A cell's text; space around it does not count.
        separator: What separates the decimals, where that is known.
    """
    shape = _SHAPE.fullmatch(text.strip())
    if shape is None or (shape["before"] and shape["after"]) or (shape["sign"] and shape["inner"]):
        return None
    if shape["inner"] and not shape["before"]:
        return None
    amount = _amount(shape["digits"], separator)
    if amount is None or len(amount.as_tuple().digits) > _MAX_DIGITS:
        return None
    unit = shape["before"] or shape["after"] or ""
    if shape["sign"] == "+" and not unit and amount == amount.to_integral_value():
        return None
    if shape["sign"] in {"-", _MINUS} or shape["inner"]:
        amount = -amount
    if unit == "%":
        amount = amount.scaleb(-2)
    whole = amount == amount.to_integral_value() and amount.as_tuple().exponent == 0
    return Number(int(amount) if whole else float(amount), unit)


def is_ambiguous(text: str) -> bool:
    """Tell whether a text is a number as soon as it is known what separates the decimals."""
    return parse_number(text) is None and any(parse_number(text, known) for known in (".", ","))


def separator_of(texts: Iterable[str]) -> Separator | None:
    """Learn from unmistakable numbers what separates the decimals; None without evidence, or with mixed."""
    found: set[Separator] = set()
    for text in filter(parse_number, texts):
        point, comma = parse_number(text, "."), parse_number(text, ",")
        if point is not None and comma is None:
            found.add(".")
        elif comma is not None and point is None:
            found.add(",")
    return found.pop() if len(found) == 1 else None


def _amount(digits: str, separator: Separator | None) -> Decimal | None:
    if _PLAIN.fullmatch(digits):
        return None if len(digits) > 1 and digits.startswith("0") else Decimal(digits)
    if match := _SWISS.fullmatch(digits):
        return None if separator == "," and match["decimals"] else _decimal(match["whole"], match["decimals"])
    if match := _SPACED.fullmatch(digits):
        wrong = separator and match["separator"] and separator != match["separator"]
        return None if wrong else _decimal(match["whole"], match["decimals"])
    return _pointed(digits, separator)


def _pointed(digits: str, separator: Separator | None) -> Decimal | None:
    """Read digits with points and commas, if there is only one way to."""
    if separator is None and _DOTTED.fullmatch(digits):
        return None
    marks: tuple[Separator, ...] = (separator,) if separator else (".", ",")
    matches = [_GROUPED[mark].fullmatch(digits) for mark in marks]
    simple = _SIMPLE.fullmatch(digits)
    if simple is not None and simple["separator"] in marks:
        matches.append(simple)
    ways = [_decimal(match["whole"], match["decimals"]) for match in matches if match is not None]
    return ways[0] if len(ways) == 1 else None


def _decimal(whole: str, decimals: str | None) -> Decimal:
    return Decimal("".join(filter(str.isdigit, whole)) + (f".{decimals}" if decimals else ""))
