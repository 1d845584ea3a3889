"""CSV tools: read a table, append rows, write a cell."""

from __future__ import annotations

import codecs
import csv
import io
import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from callboard.messages import Effect
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.documents import _formats as formats
from callboard.surfaces.documents._csv_dialect import LONGEST_CELL, check_cells, delimiter_of, naming_line
from callboard.surfaces.documents._csv_index import CsvIndex, index_of
from callboard.surfaces.documents._encodings import Encoding  # noqa: TC001 - schemas are made of it
from callboard.surfaces.documents._grids import TablePart, answer_of, decimals_of, describe, padded, plain_grid
from callboard.surfaces.documents._large_file import LargeFile
from callboard.surfaces.documents._tables import Answer, Cell, Document, clean, width_of
from callboard.surfaces.documents._text_tools import Decoded, decoded, most_frequent
from callboard.surfaces.documents._total_words import totals_at_end

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from callboard.surfaces._numbers import Separator
    from callboard.surfaces.documents._workspace import Snapshot

CSV = ("csv",)
_PREVIEW_ROWS = 6
_SAMPLE_ROWS = 1000
"""The first rows of a large file, by which the decimal separators of its columns are inferred."""
_FORMULA = re.compile(r"[=@\t\r]|[+-](?![0-9 .,()/-]*%?$)")
"""The beginning of a text that a spreadsheet would take for a formula; signed numbers and telephones are none."""

Delimiter = Annotated[
    Literal["auto", ",", ";", "\t", "|"], Field(description="The delimiter; auto infers it from the file.")
]


@dataclass(frozen=True)
class CsvTable:
    """The rows of a file, with the lines of each."""

    rows: list[list[str]]
    lines: list[str]
    """As in the file, with their line breaks; a row may span several."""
    spans: list[tuple[int, int]]
    """The first line and the line after the last one of each row."""
    delimiter: str
    coding: Decoded

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return len(self.rows)

    @property
    def width(self) -> int:
        """The number of cells in the longest row."""
        return max(map(len, self.rows), default=0)

    @property
    def unclosed(self) -> bool:
        """True if the last cell lacks its closing quotation mark.

        Lines after it would belong to it.
        """
        last = self.lines[self.spans[-1][0] :] if self.spans else []
        return len(list(csv.reader([*last, "next"], delimiter=self.delimiter))) == 1 and bool(last)

    @property
    def line_break(self) -> str:
        """The line break of most rows, without those within cells."""
        return most_frequent(filter(None, (self.end(stop) for _, stop in self.spans)))

    def end(self, line: int) -> str:
        """Return the line break of a line, counted from 1."""
        text = self.lines[line - 1]
        return text[len(text.rstrip("\r\n")) :]

    def line(self, row: list[str], end: str) -> str:
        """Write a row as lines of the file, ended by `end`."""
        buffer = io.StringIO()
        csv.writer(buffer, delimiter=self.delimiter, lineterminator="\r\n").writerow(row)
        # Python before 3.13 quotes a cell for the characters of its own line terminator only.
        return buffer.getvalue().removesuffix("\r\n") + end


class CsvTools(formats.FormatTools):
    """The tools of ``.csv`` and ``.tsv`` files."""

    @tool(effect=Effect.READ, roots=CSV)
    def read_table(
        self,
        document: Document,
        *,
        numbers: formats.Numbers = True,
        decimal: formats.Decimal = "auto",
        header: formats.Header = True,
        delimiter: Delimiter = "auto",
        encoding: Encoding = "auto",
        start: formats.Start = 0,
        limit: formats.Rows = 1000,
    ) -> Answer:
        """Read the table: its header, its rows and the columns' units.

        Numbers are read as in a Word table. A large file is read in parts.
        """
        snapshot = self._workspace.read(document)
        if isinstance(snapshot.source, LargeFile):
            index = index_of(snapshot, snapshot.source, delimiter, encoding)
            return self._read_part(index, start, limit, header=header, numbers=numbers, decimal=decimal)
        table = self._table(snapshot, delimiter, encoding)
        answer = answer_of(
            plain_grid(table.rows), header=header, numbers=numbers, decimal=decimal, start=start, limit=limit
        )
        return {**answer, **table.coding.notes}

    @tool(effect=Effect.ONCE, roots=CSV)
    def append_rows(
        self,
        document: Document,
        rows: Annotated[list[list[Cell]], Field(description="The rows, each as long as the header.")],
        *,
        delimiter: Delimiter = "auto",
        encoding: Encoding = "auto",
    ) -> Answer:
        """Append rows at the end; an empty file gets the header first.

        They go above rows of totals, whose numbers stay: ``totals_not_updated`` names them.
        """
        width = width_of(rows)
        with self._replacing(document) as file:
            table = self._table(file.snapshot, delimiter, encoding)
            if table.rows and width != table.width:
                msg = f"the rows must have {table.width} cells, as the table has; they have {width}"
                raise ToolError(msg)
            if table.unclosed:
                first, stop = table.spans[-1]
                advice = "write its last cell again with write_cell"
                if stop - first > 1:  # that would delete lines that belong to other rows
                    advice = (
                        f"its last cell holds all lines from {first + 1} to {stop}; a person has to repair the file"
                    )
                msg = f"row {len(table.rows)} lacks a closing quotation mark: {advice}"
                raise ToolError(msg)
            totals = totals_at_end(table.rows)
            insert_line = table.spans[-len(totals)][0] if totals else len(table.lines)
            end = table.line_break
            separator = end if table.lines and not table.end(len(table.lines)) else ""
            fractions = {n for row in rows for n, cell in enumerate(row) if isinstance(cell, float)}
            decimals = decimals_of(table.rows, fractions)
            added = (table.line([_text_of(cell, decimals.get(n)) for n, cell in enumerate(row)], end) for row in rows)
            separator = "" if totals else separator
            file.data = table.coding.encoded(
                "".join([*table.lines[:insert_line], separator, *added, *table.lines[insert_line:]])
            )
            answer: Answer = {"rows_added": len(rows), "rows": len(table.rows) + len(rows), **table.coding.notes}
            return file.answers({**answer, "totals_not_updated": [*filter(None, totals)]} if totals else answer)

    @tool(effect=Effect.IDEMPOTENT, roots=CSV)
    def write_cell(
        self,
        document: Document,
        row: Annotated[int, Field(ge=1, description="The row, from 1; the header counts.")],
        column: Annotated[int, Field(ge=1, description="The column, from 1.")],
        value: Annotated[Cell, Field(description="The new text or number; null empties the cell.")],
        *,
        delimiter: Delimiter = "auto",
        encoding: Encoding = "auto",
    ) -> Answer:
        """Write one cell; all other rows stay as they are."""
        with self._replacing(document) as file:
            table = self._table(file.snapshot, delimiter, encoding)
            if row > len(table.rows) or column > table.width:
                msg = f"the table has {len(table.rows)} rows and {table.width} columns"
                raise ToolError(msg)
            cells = table.rows[row - 1]
            cells = [*cells, *[""] * (column - len(cells))]
            decimals = decimals_of(table.rows, {column - 1} if isinstance(value, float) else set())
            cells[column - 1] = _text_of(value, decimals.get(column - 1))
            first, stop = table.spans[row - 1]
            line = table.line(cells, table.end(stop))
            file.data = table.coding.encoded("".join([*table.lines[:first], line, *table.lines[stop:]]))
            return file.answers({"row": row, "column": column, **table.coding.notes})

    def not_writable(self, snapshot: Snapshot) -> str:
        """Explain that a file is too large to write; else empty."""
        if snapshot.size_bytes > self._workspace.max_bytes:
            return f"it is only read: it has more than {self._workspace.max_bytes} bytes (documents.max_bytes)"
        index = snapshot.once(_index)
        if index is not None and index.cell_count > self._workspace.max_csv_cells:
            return f"it is only read: it has more than {self._workspace.max_csv_cells} cells (documents.max_csv_cells)"
        return ""

    def preview(self, snapshot: Snapshot) -> str:
        """Return the first rows."""
        index = snapshot.once(_index)
        rows = (
            snapshot.once(self._table).rows[:_PREVIEW_ROWS]
            if index is None
            else index.read(0, _PREVIEW_ROWS, self._workspace.max_csv_cells)
        )
        return "\n".join(" | ".join(cell[:80] for cell in row[:30]) for row in rows)

    def facts(self, snapshot: Snapshot) -> dict[str, JsonValue]:
        """Return the number of rows and columns, the delimiter and the encoding."""
        table: CsvTable | CsvIndex = snapshot.once(_index) or snapshot.once(self._table)
        coding = table.coding.label
        return {"rows": table.row_count, "columns": table.width, "delimiter": table.delimiter, "encoding": coding}

    def overwrites(self, document: str, tool: str, arguments: Mapping[str, JsonValue]) -> bool:
        """Return whether the cell holds another text."""
        delimiter, encoding = (str(arguments.get(name, "auto")) for name in ("delimiter", "encoding"))
        rows = self._table(self._workspace.read(document, whole=True), delimiter, encoding).rows
        row, column = int(str(arguments["row"])) - 1, int(str(arguments["column"])) - 1
        return row < len(rows) and column < len(rows[row]) and bool(rows[row][column])

    def empty(self) -> bytes:
        """Return a file without rows, marked as UTF-8.

        Excel and LibreOffice recognize the encoding by the mark.
        """
        return codecs.BOM_UTF8

    def _read_part(
        self,
        index: CsvIndex,
        start: int,
        limit: int,
        *,
        header: bool,
        numbers: bool,
        decimal: Separator | Literal["auto"],
    ) -> Answer:
        """Read some rows of a large file.

        The decimal separators are inferred from these and from the first rows.
        """
        header_rows = 1 if header and index.row_count else 0
        rows = max(0, min(limit, index.row_count - header_rows - start))
        most_cells = self._workspace.max_csv_cells
        if rows * index.width > most_cells:
            msg = (
                f"{index.file.document!r} is too large for this: {rows} rows of {index.width} cells are more than "
                f"{most_cells} cells (documents.max_csv_cells); read fewer rows at once"
            )
            raise ToolError(msg)
        sample_rows = min(_SAMPLE_ROWS, most_cells // max(index.width, 1))
        samples = index.read(header_rows, sample_rows, most_cells)
        part = TablePart(
            header=padded(index.read(0, header_rows, most_cells), index.width),
            rows=padded(index.read(header_rows + start, rows, most_cells), index.width),
            samples=padded(samples, index.width),
            start=start,
            row_count=index.row_count - header_rows,
            column_count=index.width,
        )
        return {**describe(part, numbers=numbers, decimal=decimal), **index.coding.notes}

    def _table(self, snapshot: Snapshot, delimiter: str = "auto", encoding: str = "auto") -> CsvTable:
        """Parse a file.

        Raises:
            ToolError: If it is no text, or has too many or too long cells.
        """
        coding = decoded(snapshot, encoding)
        separator = delimiter_of(coding.text, snapshot.path.suffix) if delimiter == "auto" else delimiter
        check_cells(snapshot.document, coding.text, separator, self._workspace.max_csv_cells)
        lines = list(io.StringIO(coding.text, newline=""))
        row_start = first_line = 1 if naming_line(coding.text) else 0
        rows: list[list[str]] = []
        spans: list[tuple[int, int]] = []
        reader = csv.reader(lines[first_line:], delimiter=separator)
        csv.field_size_limit(LONGEST_CELL)
        try:
            for row in reader:
                if row:  # an empty line is no row
                    rows.append(row)
                    spans.append((row_start, first_line + reader.line_num))
                row_start = first_line + reader.line_num
        except csv.Error as error:
            msg = f"{snapshot.document!r} can't be read as a table: line {first_line + reader.line_num}: {error}"
            raise ToolError(msg) from error
        return CsvTable(rows, lines, spans, separator, coding)


def _index(snapshot: Snapshot) -> CsvIndex | None:
    """Count the rows of a file in parts; None for another."""
    return index_of(snapshot, snapshot.source) if isinstance(snapshot.source, LargeFile) else None


def _plain_beginning(text: str) -> str:
    """Return a text as some spreadsheets read its beginning.

    They skip invisible characters, such as the mark of an encoding, and take wide signs for plain ones.
    """
    start = next((index for index, sign in enumerate(text) if unicodedata.category(sign) != "Cf"), len(text))
    return unicodedata.normalize("NFKC", text[start : start + 1]) + text[start + 1 :]


def _text_of(value: Cell, decimal: str | None) -> str:
    """Return a cell's text; a fraction has a decimal separator.

    Raises:
        ToolError: If a spreadsheet would take a text for a formula, which could run programs.
    """
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return repr(value).replace(".", decimal or ".")
    if not isinstance(value, str):
        return "" if value is None else repr(value)
    if _FORMULA.match(_plain_beginning(value)):
        msg = (
            f"{value[:40]!r} begins as a formula, which a spreadsheet would run; put a space or an apostrophe before it"
        )
        raise ToolError(msg)
    return clean(value)
