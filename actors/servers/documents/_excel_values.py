"""The values of cells as JSON, and as a workbook holds them."""

from __future__ import annotations

import datetime as dt
import math
import re
from typing import TYPE_CHECKING, Annotated, TypeAlias

from openpyxl.utils.datetime import from_excel, from_ISO8601, to_excel
from pydantic import BaseModel, ConfigDict, Field

from callboard.actors.servers._server import ToolError
from callboard.actors.servers.documents._tables import clean

if TYPE_CHECKING:
    from pydantic import JsonValue

NOT_COMPUTED = "(not computed)"
"""The value that is shown for a formula without a result."""
_MAX_TEXT = 32_767
_MAX_EXACT = 10**15
_EPOCH = dt.datetime(1900, 3, 1)  # noqa: DTZ001 - a workbook's dates have no time zone
_ESCAPED = re.compile(r"_x(?![Dd][89A-Fa-f])([0-9A-Fa-f]{4})_")  # but for halves of characters
_TO_ESCAPE = re.compile(r"_(?=x[0-9A-Fa-f]{4}_)")


class Date(BaseModel):
    """A date, with or without a time; a text stays a text."""

    model_config = ConfigDict(extra="forbid")

    date: Annotated[
        dt.date | dt.datetime,
        Field(description="As 2024-05-31 or 2024-05-31T09:30:00, from 1900-03-01, without a time zone."),
    ]


Value: TypeAlias = str | bool | int | float | Date | None
"""A value that a tool writes into a cell: a text beginning with ``=`` stays a text; None empties the cell."""


def number_of(text: str) -> int | float:
    """Parse a number as a workbook writes it.

    Raises:
        ValueError: If it is none.
    """
    return float(text) if set(text) & set(".eEnN") else int(text)


def to_date(number: float, epoch: dt.datetime, *, span: bool) -> dt.datetime | dt.date | dt.time | dt.timedelta | None:
    """Convert a number that is shown as a date, if possible."""
    try:
        found: dt.datetime | dt.time | dt.timedelta | None = from_excel(number, epoch, timedelta=span)
    except (OverflowError, ValueError):
        return None
    return found


def to_json(value: object, number_format: str = "General") -> JsonValue:
    """Convert a value to JSON.

    Dates are in ISO 8601, durations are hours:minutes:seconds.
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dt.datetime):
        whole = value.time() == dt.time.min and "h" not in number_format.lower()
        return value.date().isoformat() if whole else value.isoformat()
    if isinstance(value, (dt.date, dt.time)):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        minutes, seconds = divmod(round(value.total_seconds()), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    return str(value)


def parse_iso(text: str) -> object:
    """Parse a date in ISO 8601, else return the text."""
    try:
        found: object = from_ISO8601(text)  # type: ignore[no-untyped-call]
    except ValueError:
        return text
    return found


def check_text(text: str, where: str) -> str:
    """Check a text for a cell, and normalise its line breaks.

    Raises:
        ToolError: If it is too long, or has characters that no workbook can hold.
    """
    found = clean(text)
    if len(found) > _MAX_TEXT:
        msg = f"the text for {where} has {len(found)} characters; a cell holds {_MAX_TEXT}"
        raise ToolError(msg)
    return found


def check_number(value: float, where: str) -> str:
    """Write a number as a workbook holds it.

    Raises:
        ToolError: If a workbook can't hold it exactly.
    """
    if not math.isfinite(value) or (isinstance(value, int) and abs(value) > _MAX_EXACT):
        msg = f"{value} for {where} can't be held exactly by a workbook; write it as text"
        raise ToolError(msg)
    return repr(value)


def serial_of(value: dt.date, epoch: dt.datetime, where: str) -> float:
    """Convert a date to the number that a workbook holds.

    Raises:
        ToolError: If it lies before 1900-03-01, or has a time zone.
    """
    moment = value if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time.min)
    if moment.tzinfo is not None or moment < max(_EPOCH, epoch):
        msg = f"{value.isoformat()} for {where} can't be held: from 1900-03-01, without a time zone"
        raise ToolError(msg)
    found: float = to_excel(moment, epoch)  # type: ignore[no-untyped-call]
    return found


def escape(text: str) -> str:
    """Escape a text that looks like an escaped character, ``_x000D_``."""
    return _TO_ESCAPE.sub("_x005F_", text)


def unescape(text: str) -> str:
    """Read a text with escaped characters."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text) if "_x" in text else text
