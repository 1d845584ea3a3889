"""The values of cells as JSON, and as a workbook holds them."""

from __future__ import annotations

import datetime as dt
import math
import re
from typing import TYPE_CHECKING, Annotated, TypeAlias

from openpyxl.utils.datetime import from_excel, from_ISO8601, to_excel
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema, field_validator

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._tables import clean

if TYPE_CHECKING:
    from pydantic import JsonValue

NOT_COMPUTED = "(not computed)"
"""The value that is shown for a formula without a result."""
DATE_CODE, TIME_CODE, SPAN_CODE = "yyyy-mm-dd", "hh:mm:ss", "[h]:mm:ss"
"""The number formats of dates, times of the day and durations in cells that had none."""
_MAX_TEXT = 32_767
_MAX_EXACT = 10**15
_EPOCH = dt.datetime(1900, 3, 1)  # noqa: DTZ001 - a workbook's dates have no time zone
_DAY = dt.timedelta(days=1)
_SPAN = re.compile(r"^(-?)([0-9]{1,6}):([0-5][0-9])(?::([0-5][0-9](?:\.[0-9]{1,6})?))?$")
_SPAN_SCHEMA: dict[str, JsonValue] = {"type": "string", "pattern": _SPAN.pattern}
_ESCAPED = re.compile(r"_x(?![Dd][89A-Fa-f])([0-9A-Fa-f]{4})_")  # but for halves of characters
_TO_ESCAPE = re.compile(r"_(?=x[0-9A-Fa-f]{4}_)")


def _span_of(value: object) -> object:
    if isinstance(value, dt.timedelta):
        return value
    if (span := parse_span(str(value))) is None:
        msg = "a time or duration is written like 09:30 or 36:00:00"
        raise ValueError(msg)
    return span


def _span_text(value: dt.timedelta) -> str:
    size = abs(value)
    fraction = f".{size.microseconds:06}" if size.microseconds else ""
    seconds_text = to_json(size - dt.timedelta(microseconds=size.microseconds))
    return f"{'-' if value < dt.timedelta() else ''}{seconds_text}{fraction}"


class Date(BaseModel):
    """A date, a time or a duration; a text stays a text."""

    model_config = ConfigDict(extra="forbid")

    date: Annotated[
        dt.date
        | dt.datetime
        | Annotated[dt.timedelta, BeforeValidator(_span_of), PlainSerializer(_span_text), WithJsonSchema(_SPAN_SCHEMA)],
        Field(description="As 2024-05-31 or 2024-05-31T09:30:00, from 1900-03-01; a time or duration as 36:00:00."),
    ]

    @field_validator("date", mode="before")
    @classmethod
    def _is_written_out(cls, value: object) -> object:
        """Refuse numbers, which pydantic takes for seconds since 1970."""
        if isinstance(value, (dt.date, dt.timedelta)) or (isinstance(value, str) and {"-", ":"} & {*value}):
            return value
        msg = "a date is written like 2024-05-31, a time or duration like 09:30 or 36:00:00"
        raise ValueError(msg)


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
        moment: dt.datetime | dt.time | dt.timedelta | None = from_excel(number, epoch, timedelta=span)
    except (OverflowError, ValueError):
        return None
    return moment


def to_json(value: object, number_format: str = "General") -> JsonValue:
    """Convert a value to JSON.

    Dates are in ISO 8601, durations are hours:minutes:seconds.
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dt.datetime):
        is_date_only = value.time() == dt.time.min and "h" not in number_format.lower()
        return value.date().isoformat() if is_date_only else value.isoformat()
    if isinstance(value, (dt.date, dt.time)):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        minutes, seconds = divmod(round(abs(value).total_seconds()), 60)
        sign = "-" if value < dt.timedelta() else ""
        return f"{sign}{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    return str(value)


def code_of(value: dt.date | dt.timedelta) -> str:
    """Return the number format of a date, time or duration."""
    if isinstance(value, dt.timedelta):
        return TIME_CODE if dt.timedelta() <= value < _DAY else SPAN_CODE
    return f"{DATE_CODE} {TIME_CODE}" if isinstance(value, dt.datetime) else DATE_CODE


def parse_span(text: str) -> dt.timedelta | None:
    """Parse a time or duration such as ``9:30``, ``36:00:00`` or ``-1:30``."""
    match = _SPAN.fullmatch(text.strip())
    if match is None:
        return None
    span = dt.timedelta(hours=int(match[2]), minutes=int(match[3]), seconds=float(match[4] or 0))
    return -span if match[1] else span


def parse_iso(text: str) -> object:
    """Parse a date in ISO 8601, else return the text."""
    try:
        moment: object = from_ISO8601(text)  # type: ignore[no-untyped-call]
    except ValueError:
        return text
    return moment


def check_text(text: str, where: str) -> str:
    """Check a text for a cell, and normalise its line breaks.

    Raises:
        ToolError: If it is too long, or has characters that no workbook can hold.
    """
    cell_text = clean(text)
    if len(cell_text) > _MAX_TEXT:
        msg = f"the text for {where} has {len(cell_text)} characters; a cell holds {_MAX_TEXT}"
        raise ToolError(msg)
    return cell_text


def check_number(value: float, where: str) -> str:
    """Write a number as a workbook holds it.

    Raises:
        ToolError: If a workbook can't hold it exactly.
    """
    if not math.isfinite(value) or (isinstance(value, int) and abs(value) > _MAX_EXACT):
        msg = f"{value} for {where} can't be held exactly by a workbook; write it as text"
        raise ToolError(msg)
    return repr(value)


def serial_of(value: dt.date | dt.timedelta, epoch: dt.datetime, where: str) -> float:
    """Convert a date or duration to the number that a workbook holds.

    Raises:
        ToolError: If it lies before 1900-03-01, or has a time zone.
    """
    if isinstance(value, dt.timedelta):
        return value / _DAY
    moment = value if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time.min)
    if moment.tzinfo is not None or moment < max(_EPOCH, epoch):
        msg = f"{value.isoformat()} for {where} can't be held: from 1900-03-01, without a time zone"
        raise ToolError(msg)
    serial: float = to_excel(moment, epoch)  # type: ignore[no-untyped-call]
    return serial


def escape(text: str) -> str:
    """Escape a text that looks like an escaped character, ``_x000D_``."""
    return _TO_ESCAPE.sub("_x005F_", text)


def unescape(text: str) -> str:
    """Read a text with escaped characters."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text) if "_x" in text else text
