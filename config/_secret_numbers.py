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


def patterns_of(secret: str) -> Iterator[str]:
    """Yield expressions for the texts of a secret's number.

    They have no groups that capture.
    """
    digits = digits_of(secret)
    if not digits:
        return
    rest = digits[1:].rstrip("0")
    exponent = rf"0*{len(digits) - 1}(?![0-9])"
    if len(digits) >= LONG:
        yield f"[{_SIGNS}]?".join(digits)
        exponent = "[0-9]+" if rest else exponent  # a single digit says too little
    else:
        yield rf"(?<![0-9]){digits[:-3]}[{_SIGNS}]?{digits[-3:]}(?![0-9])"  # four or five
    decimals = f"[.,]{rest}[0-9]*" if rest else "(?:[.,]0+)?"
    yield rf"(?<![0-9]){digits[0]}{decimals}[eE][+-]?{exponent}"
    if int(digits) <= _LAST:
        for epoch in _EPOCHS:
            if int(digits) <= (dt.date.max - epoch).days:
                yield rf"(?<![0-9]){epoch + dt.timedelta(int(digits))}(?![0-9])"
