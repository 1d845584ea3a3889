"""An Excel workbook in memory, and its values as JSON."""

from __future__ import annotations

import datetime as dt
import io
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeAlias

import openpyxl
from openpyxl.cell.cell import Cell, MergedCell
from openpyxl.workbook.properties import CalcProperties
from openpyxl.worksheet.formula import ArrayFormula, DataTableFormula
from pydantic import BaseModel, ConfigDict, Field

from callboard.actors.servers._server import ToolError
from callboard.actors.servers.documents import _office
from callboard.actors.servers.documents._losses import lost_by_openpyxl
from callboard.actors.servers.documents._tables import clean

if TYPE_CHECKING:
    from openpyxl.workbook.workbook import Workbook
    from openpyxl.worksheet.worksheet import Worksheet
    from pydantic import JsonValue

    from callboard.actors.servers.documents._workspace import Snapshot

LAST_ROW, LAST_COLUMN = 1_048_576, 16_384
"""The limits of a sheet. Excel refuses a file with a cell beyond them, but openpyxl writes columns up to ``ZZZ``."""
_MAX_TEXT = 32_767
_MAX_EXACT = 10**15
_EPOCH = dt.datetime(1900, 3, 1)  # noqa: DTZ001 - a workbook's dates have no time zone


class Date(BaseModel):
    """A date, with or without a time; a text stays a text."""

    model_config = ConfigDict(extra="forbid")

    date: Annotated[
        dt.date | dt.datetime,
        Field(description="As 2024-05-31 or 2024-05-31T09:30:00, from 1900-03-01, without a time zone."),
    ]


Value: TypeAlias = str | bool | int | float | Date | None
"""A value for a cell. A text beginning with ``=`` stays a text; None and the empty text empty the cell."""


@dataclass
class ExcelFile(_office.Edited):
    """A parsed workbook, with no open file."""

    book: Workbook
    lost: list[str]
    """Content that writing the workbook would lose, as readable phrases."""
    _snapshot: Snapshot | None = None
    _results: Workbook | None = None

    @classmethod
    def load(cls, snapshot: Snapshot, max_bytes: int) -> ExcelFile:
        """Parse a workbook.

        Raises:
            ToolError: If the workbook is damaged, protected with a password, or does not match its suffix.
        """
        parts = _office.parts(snapshot, max_bytes)
        book = _parse(snapshot)
        if not book.sheetnames:
            raise _office.damaged(snapshot.document, "it has no sheets")
        try:
            lost = lost_by_openpyxl(parts)
        except Exception as error:
            raise _office.damaged(snapshot.document, error) from error
        return cls(book, lost, snapshot)

    @classmethod
    def new(cls) -> ExcelFile:
        """Make a workbook with one empty sheet, ``Sheet1``."""
        book = openpyxl.Workbook()
        book.worksheets[0].title = "Sheet1"
        return cls(book, [])

    def to_bytes(self) -> bytes:
        """Return the workbook as the bytes of a file.

        The next program that opens it recomputes its formulas.
        """
        if self.book.calculation is None:
            self.book.calculation = CalcProperties()
        self.book.calculation.fullCalcOnLoad = True
        out = io.BytesIO()
        self.book.save(out)
        return out.getvalue()

    def not_writable(self) -> str:
        """Explain why the workbook must not be written; empty if it may."""
        return f"writing it would lose {', '.join(self.lost)}" if self.lost else ""

    def sheet(self, title: str) -> Worksheet:
        """Find a sheet with cells by its title, case-insensitively.

        Raises:
            ToolError: If there is no such sheet.
        """
        for sheet in self.book.worksheets:
            if sheet.title.casefold() == title.casefold():
                return sheet
        known = ", ".join(repr(sheet.title) for sheet in self.book.worksheets)
        msg = f"there is no sheet {title!r}; there are: {known}"
        raise ToolError(msg)

    def result(self, sheet: Worksheet, row: int, column: int) -> JsonValue:
        """Return a formula's last computed value; None if there is none."""
        if self._snapshot is None:
            return None
        if self._results is None:
            self._results = _parse(self._snapshot, data_only=True)
        return read_value(self._results[sheet.title].cell(row, column))


def _parse(snapshot: Snapshot, *, data_only: bool = False) -> Workbook:
    """Parse a workbook; openpyxl's warnings pass through the host program's filters.

    Python can silence a warning only for the whole process, which belongs to the host program, and then only one
    thread at a time could parse. `lost_by_openpyxl` detects the losses that the warnings are about.
    """
    try:
        return openpyxl.load_workbook(io.BytesIO(snapshot.data), data_only=data_only, rich_text=True)
    except Warning as warning:  # a filter of the host program turned it into an error
        msg = f"{snapshot.document!r} can't be opened: this program treats warnings as errors: {warning}"
        raise ToolError(msg) from warning
    except Exception as error:
        raise _office.damaged(snapshot.document, error) from error


def is_formula(cell: Cell | MergedCell) -> bool:
    """Return whether a cell holds a formula."""
    return cell.data_type == "f"


def formula_text(cell: Cell | MergedCell) -> str:
    """Return a formula with its ``=``; array formulas in braces, like Excel."""
    value = cell.value
    if isinstance(value, ArrayFormula):
        return f"{{{value.text}}}"
    if isinstance(value, DataTableFormula):
        return "{=TABLE()}"
    return str(value)


def read_value(cell: Cell | MergedCell) -> JsonValue:
    """Return a cell's value as JSON; None for an empty cell.

    Dates are in ISO 8601, durations are hours:minutes:seconds.
    """
    value = cell.value
    if value is None or isinstance(value, (bool, int, str)):
        return value if not isinstance(value, str) else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dt.datetime):
        whole = value.time() == dt.time.min and "h" not in cell.number_format.lower()
        return value.date().isoformat() if whole else value.isoformat()
    if isinstance(value, (dt.date, dt.time)):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        minutes, seconds = divmod(round(value.total_seconds()), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    return str(value)


def is_date(cell: Cell | MergedCell) -> bool:
    """Return whether a cell holds a date, a time or a duration."""
    return isinstance(cell.value, (dt.date, dt.time, dt.timedelta))


def write_value(cell: Cell | MergedCell, value: Value) -> None:
    """Write a value with its type.

    A text never becomes a formula, an error or a date.

    Raises:
        ToolError: If a workbook can't hold the value, or the cell lies within a merged one.
    """
    if isinstance(cell, MergedCell):
        if value is None or value == "":
            return
        msg = f"{cell.coordinate} lies within a merged cell; write to that cell's top left corner"
        raise ToolError(msg)
    if isinstance(value, str):
        _write_text(cell, clean(value))
    elif isinstance(value, Date):
        _write_date(cell, value.date)
    elif isinstance(value, (bool, int, float)):
        if not math.isfinite(value) or (isinstance(value, int) and abs(value) > _MAX_EXACT):
            msg = f"{value} for {cell.coordinate} can't be held exactly by a workbook; write it as text"
            raise ToolError(msg)
        cell.value = value
    else:
        cell.value = None


def _write_text(cell: Cell, text: str) -> None:
    if len(text) > _MAX_TEXT:
        msg = f"the text for {cell.coordinate} has {len(text)} characters; a cell holds {_MAX_TEXT}"
        raise ToolError(msg)
    if not text:
        cell.value = None
        return
    cell.value = text
    cell.data_type = "s"
    if text.startswith("="):
        cell.quotePrefix = True


def _write_date(cell: Cell, value: dt.date) -> None:
    moment = value if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time.min)
    if moment.tzinfo is not None or moment < _EPOCH:
        msg = f"{value.isoformat()} for {cell.coordinate} can't be held: from 1900-03-01, without a time zone"
        raise ToolError(msg)
    shown = cell.number_format
    cell.value = value
    if shown == "General":
        cell.number_format = "yyyy-mm-dd hh:mm:ss" if isinstance(value, dt.datetime) else "yyyy-mm-dd"
