"""Parser for numbers in the text of tables; ambiguous texts stay texts."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

Separator = Literal[".", ","]
"""The decimal separator."""

_MAX_DIGITS = 15
"""The most digits that a spreadsheet's number stores exactly."""
_MINUS = "\u2212"
_CURRENCY = (
    r"(?:R|CA|A|US)\$|[€$£¥₹₽₩₺₴₪฿₫₦₱]|EUR|USD|GBP|CHF|JPY|AUD|BGN|BRL|CAD|CNY|CZK|DKK|HKD|HUF|ILS|INR|KRW|MXN|NOK|NZD"
    "|PLN|RON|RUB|SEK|SGD|THB|TRY|UAH|ZAR|kr|Kč|zł|Ft"
)
_GAPS = "\u00a0\u2007\u2009\u202f"
"""Spaces that stand within a number rather than between two; the plain space may do either."""
_SPACE = f"[ {_GAPS}]"
_SHAPE = re.compile(
    rf"(?P<sign>[+\-{_MINUS}]?)(?:(?P<before>{_CURRENCY}){_SPACE}?)?(?P<inner>[\-{_MINUS}]?)"
    rf"(?P<digits>[0-9](?:[0-9.,'\u2019 {_GAPS}]*[0-9])?)(?:{_SPACE}?(?P<after>{_CURRENCY}|%))?",
)
_BRACKETS = re.compile(rf"\(([^()+\-{_MINUS}]*)\)({_SPACE}?%)?")
_MINUS_BEHIND = re.compile(rf"([^+\-{_MINUS}]*[0-9][^+\-{_MINUS}]*)[\-{_MINUS}]")
_EXPONENT = re.compile(rf"([+\-{_MINUS}]?)([0-9]+(?:[.,][0-9]+)?)[eE]([+\-]?[0-9]{{1,2}})")
_PLAIN_GROUPS = re.compile(r"(?<=[0-9]) (?=[0-9]{3}(?![0-9]))")
_NO_LETTERS = re.compile(rf"(?:{_CURRENCY}|[^\W\d]\.?(?!\w))?[\W\d_]*(?:{_CURRENCY})?[\W\d_]*")
_LAKHS = re.compile(r"([+-]?[1-9][0-9]?(?:,[0-9]{2})+,[0-9]{3}(?:\.[0-9]+)?)")
_POINT_FIRST = re.compile(r"([+-]?)([.,][0-9]+)")
_LOOSE_SIGNS = str.maketrans(dict.fromkeys("\u2012\u2013\u25b2\u25b3", "-"))
"""Dashes for a minus, and the triangles of Japanese accounts."""
_PLAIN = re.compile(r"[0-9]+")
_GROUPED = {
    ".": re.compile(r"(?P<integer>[1-9][0-9]{0,2}(?:,[0-9]{3})+)(?:\.(?P<decimals>[0-9]+))?"),
    ",": re.compile(r"(?P<integer>[1-9][0-9]{0,2}(?:\.[0-9]{3})+)(?:,(?P<decimals>[0-9]+))?"),
}
_DOTTED = re.compile(r"[0-9]+(?:\.[0-9]+){2,}")
_SWISS = re.compile(r"(?P<integer>[1-9][0-9]{0,2}(?:['\u2019][0-9]{3})+)(?:\.(?P<decimals>[0-9]+))?")
_SPACED = re.compile(
    rf"(?P<integer>[1-9][0-9]{{0,2}}(?:[{_GAPS}][0-9]{{3}})+)(?:(?P<separator>[.,])(?P<decimals>[0-9]+))?"
)
_SIMPLE = re.compile(r"(?P<integer>0|[1-9][0-9]*)(?P<separator>[.,])(?P<decimals>[0-9]+)")


@dataclass(frozen=True)
class Number:
    """A number that was read from a text."""

    value: int | float
    unit: str = ""
    """``%`` or a currency, as written in the text. A percentage's value is divided by 100, as in a spreadsheet."""


def parse_number(text: str, separator: Separator | None = None, *, loose: bool = False) -> Number | None:
    """Parse a number; None if the text is ambiguous or no number.

    These forms are parsed, with the digits 0 to 9 only: whole numbers (``1200``); decimals after a point or a comma
    (``12.75``, ``12,75``); groups of three between commas, points, apostrophes or no-break spaces (``1,234.50``,
    ``1.234,50``, ``1'234.50``, ``1 234,50``); a leading minus; a leading or trailing currency, as a sign or a common
    code; a trailing ``%`` (``12 %`` is 0.12).

    These forms are parsed only where `loose` says that the text stands among numbers: groups between plain spaces
    (``1 234,50``), brackets (``(1,200.00)``) and a minus behind (``300-``) for negative numbers, exponents (``1E5``),
    a point or comma before all digits (``.5``), Indian groups (``1,23,456``), digits of other scripts and wide ones,
    and dashes or triangles for a minus.

    These forms stay texts: those with two readings while the decimal separator is unknown (``1,234``, ``1.234``),
    points between groups without decimals (``192.168.100.200``), leading zeros (``007``), more than 15 digits, a plus
    before a whole number (telephones), dates, times, ranges.

    Args:
        text: A cell's text. Surrounding space is ignored.
        separator: The decimal separator, where it is known.
        loose: Whether the other texts of its column are numbers.
    """
    if loose and (number := _loose_number(text.strip(), separator)):
        return number
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
    is_integer = amount == amount.to_integral_value() and amount.as_tuple().exponent == 0
    return Number(int(amount) if is_integer else float(amount), unit)


def is_ambiguous(text: str) -> bool:
    """Return whether only its column makes a text a number."""
    return parse_number(text) is None and any(parse_number(text, separator, loose=True) for separator in (".", ","))


def is_numeric(text: str) -> bool:
    """Return whether a text has digits, signs and a currency alone."""
    return any(map(str.isdigit, text)) and _NO_LETTERS.fullmatch(text.strip()) is not None


def are_numbers(texts: Iterable[str], separator: Separator | None) -> bool:
    """Return whether a column holds numbers alone, one beyond doubt."""
    cells = [text for text in texts if text.strip()]
    certain = any(parse_number(text, separator) for text in cells)
    return certain and all(parse_number(text, separator, loose=True) for text in cells)


def separator_of(texts: Iterable[str]) -> Separator | None:
    """Infer the decimal separator from unambiguous numbers; None without clear evidence."""
    separators: set[Separator] = set()
    for text in filter(parse_number, texts):
        point, comma = parse_number(text, "."), parse_number(text, ",")
        if point is not None and comma is None:
            separators.add(".")
        elif comma is not None and point is None:
            separators.add(",")
    return separators.pop() if len(separators) == 1 else None


def _loose_number(text: str, separator: Separator | None) -> Number | None:
    if (plain := _plain(text)) != text:
        return parse_number(plain, separator, loose=True)
    if separator != "," and _LAKHS.fullmatch(text):
        return parse_number(text.replace(",", ""), ".")
    if match := _POINT_FIRST.fullmatch(text):
        return parse_number(f"{match[1]}0{match[2]}", separator)
    if match := _BRACKETS.fullmatch(text) or _MINUS_BEHIND.fullmatch(text):
        number = parse_number("".join(filter(None, match.groups())), separator, loose=True)
        return None if number is None else Number(-number.value, number.unit)
    if match := _EXPONENT.fullmatch(text):
        sign, digits, exponent = match.groups()
        value = float(f"{'-' if sign in {'-', _MINUS} else ''}{digits.replace(',', '.')}e{exponent}")
        fits = separator is None or {",", "."}.isdisjoint(digits) or separator in digits
        return Number(int(value) if value.is_integer() and abs(value) < 10**_MAX_DIGITS else value) if fits else None
    if _PLAIN_GROUPS.search(text):
        return parse_number(_PLAIN_GROUPS.sub("\u00a0", text), separator)
    return None


def _plain(text: str) -> str:
    """Return a text with plain digits and signs, without invisible ones."""
    letters = (letter for letter in text if unicodedata.category(letter) != "Cf")
    digits = (str(unicodedata.decimal(letter)) if letter.isdecimal() else letter for letter in letters)
    wide = (unicodedata.normalize("NFKC", sign) if "\uff00" < sign < "\uff5f" else sign for sign in digits)
    return "".join(wide).translate(_LOOSE_SIGNS)


def _amount(digits: str, separator: Separator | None) -> Decimal | None:
    if _PLAIN.fullmatch(digits):
        return None if len(digits) > 1 and digits.startswith("0") else Decimal(digits)
    if match := _SWISS.fullmatch(digits):
        return None if separator == "," and match["decimals"] else _decimal(match["integer"], match["decimals"])
    if match := _SPACED.fullmatch(digits):
        wrong = separator and match["separator"] and separator != match["separator"]
        return None if wrong else _decimal(match["integer"], match["decimals"])
    return _parse_separated(digits, separator)


def _parse_separated(digits: str, separator: Separator | None) -> Decimal | None:
    """Parse digits with points and commas, if there is only one reading."""
    if separator is None and _DOTTED.fullmatch(digits):
        return None
    marks: tuple[Separator, ...] = (separator,) if separator else (".", ",")
    matches = [_GROUPED[mark].fullmatch(digits) for mark in marks]
    simple = _SIMPLE.fullmatch(digits)
    if simple is not None and simple["separator"] in marks:
        matches.append(simple)
    ways = [_decimal(match["integer"], match["decimals"]) for match in matches if match is not None]
    return ways[0] if len(ways) == 1 else None


def _decimal(integer: str, decimals: str | None) -> Decimal:
    return Decimal("".join(filter(str.isdigit, integer)) + (f".{decimals}" if decimals else ""))
