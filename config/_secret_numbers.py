"""Secrets made of digits, in the forms of numbers and dates.

A spreadsheet holds a PIN as the number 48151623.0, shows it as 48,151,623 or 4.8151623E+07, and takes it for a date in
a cell with the format of dates.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

LONG = 6
"""The number of digits from which a secret is also found within other digits, and with separators anywhere."""
_SHORT = 4
_SIGNS = r" .,'_\u00a0\u2009\u202f-"
_DIGITS = re.compile(rf"[0-9](?:[{_SIGNS}]?[0-9])*")
_DECIMAL = re.compile(r"[0-9]{1,15}[.,][0-9]{1,15}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_EPOCHS = (dt.date(1899, 12, 30), dt.date(1904, 1, 1))
"""The days zero of spreadsheets' dates."""
_LAST = 2_958_465
"""The number of the last date, in the year 9999."""
_MOST_DIGITS = 300
_ZEROS = (0xFF10, 0x660, 0x6F0, 0x966, 0x9E6, 0xE50)
"""The zeros of wide, Arabic, Persian, Devanagari, Bengali and Thai digits; those from one to nine follow each."""


def digits_of(secret: str) -> str:
    """Return the digits of a secret that is made of them.

    Separators and leading zeros are left out. Empty for another secret, and for fewer than four digits.
    """
    if len(secret) > _MOST_DIGITS or not _DIGITS.fullmatch(secret):
        return ""
    digits = re.sub(r"[^0-9]", "", secret).lstrip("0")
    return digits if len(digits) >= _SHORT else ""


def numbers_of(secret: str) -> Iterator[int | float]:
    """Yield the numbers that stand for a secret.

    They equal those of other types.
    """
    if digits := digits_of(secret):
        yield from (int(digits), -int(digits))
    if _DECIMAL.fullmatch(secret):
        number = float(secret.replace(",", "."))
        yield from (number, -number)
    if _DATE.fullmatch(secret):
        try:
            day = dt.date.fromisoformat(secret)
        except ValueError:
            return
        yield from ((day - epoch).days for epoch in _EPOCHS if day > epoch)


def number_of(secret: str) -> int | float | None:
    """Return the number that a secret stands for; None for a text."""
    return next(numbers_of(secret), None)


def _any_script(digit: str) -> str:
    """Return an expression for a digit in the scripts that documents use."""
    return f"[{digit}{''.join(chr(zero + int(digit)) for zero in _ZEROS)}]"


def patterns_of(secret: str) -> Iterator[str]:
    """Yield expressions for the texts of a secret's number.

    They have no groups that capture.
    """
    digits = digits_of(secret)
    if not digits:
        return
    fraction = digits[1:].rstrip("0")
    exponent = rf"0*{len(digits) - 1}(?![0-9])"
    if len(digits) >= LONG:
        yield f"[{_SIGNS}]?".join(map(_any_script, digits))
        exponent = "[0-9]+" if fraction else exponent  # a single digit says too little
    else:
        first, last = ("".join(map(_any_script, part)) for part in (digits[:-3], digits[-3:]))  # four or five
        yield rf"(?<!\d){first}[{_SIGNS}]?{last}(?!\d)"
    decimals = f"[.,]{fraction}[0-9]*" if fraction else "(?:[.,]0+)?"
    yield rf"(?<![0-9]){digits[0]}{decimals}[eE][+-]?{exponent}"
    if int(digits) <= _LAST:
        for epoch in _EPOCHS:
            if int(digits) <= (dt.date.max - epoch).days:
                yield rf"(?<![0-9]){epoch + dt.timedelta(int(digits))}(?![0-9])"
