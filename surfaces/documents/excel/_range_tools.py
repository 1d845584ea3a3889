"""Excel tools for ranges and tables: append, insert, sort, filter and summarize."""

from __future__ import annotations

from typing import Annotated

from openpyxl.worksheet.cell_range import CellRange
from pydantic import Field

from callboard.messages import Effect
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.documents._tables import Answer, ControlId, ControlName, Document, width_of
from callboard.surfaces.documents.excel._append import append, append_target, copy_rows
from callboard.surfaces.documents.excel._cell_formats import (
    make_bold,
)
from callboard.surfaces.documents.excel._cell_ranges import (
    check_empty,
    spread,
    start_of,
    table_range,
    widen,
    writable,
    write_cells,
)
from callboard.surfaces.documents.excel._named_tables import make_table
from callboard.surfaces.documents.excel._set_filter import set_filter
from callboard.surfaces.documents.excel._sheet_controls import find_range
from callboard.surfaces.documents.excel._sort_reorder import SortKey, check_size, reorder, sort_rows
from callboard.surfaces.documents.excel._summaries import Condition, matching, summarize, texts_compared
from callboard.surfaces.documents.excel._total_rows import data_rows
from callboard.surfaces.documents.excel._workbook_editor import (
    CELLS,
    EXCEL,
    FILLED,
    NONE,
    Cells,
    Conditions,
    Corner,
    ExcelEditor,
    Header,
    Rows,
    SheetTitle,
)


class ExcelTableTools(ExcelEditor):
    """The tools of tables in ``.xlsx`` files."""

    def _refuse_large(self, document: str, sheet: str, cells: str, control_id: str, control_name: str) -> None:
        """Refuse to move too many cells, before the sheet is read whole.

        Raises:
            ToolError: If the range is too large.
        """
        file = self._load(self._workspace.read(document))
        if file.is_streamed:
            check_size(find_range(file, sheet, cells, control_id, control_name).need())

    @tool(effect=Effect.ONCE, roots=EXCEL, controls=CELLS)
    def append_rows(
        self,
        document: Document,
        values: Rows,
        *,
        sheet: SheetTitle = "",
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Add rows below a sheet's or table's last one.

        A row of totals stays below them.

        Formats are those of the row above. Where a value is null or left out, the formula of the row above is filled
        down.
        """
        empty = next((number for number, row in enumerate(values, 1) if all(value is None for value in row)), None)
        if not values or empty is not None:
            msg = f"row {empty} of the values holds nothing; leave it out" if empty else "there are no rows to append"
            raise ToolError(msg)
        with self._editing(document) as file:
            target = writable(append_target(file, sheet, control_id, control_name))
            return file.answers(append(file, target, values))

    @tool(effect=Effect.ONCE, roots=EXCEL, controls=CELLS)
    def insert_table(
        self,
        document: Document,
        header: Annotated[list[str], Field(min_length=1, description="The header's texts, all different.")],
        rows: Rows,
        *,
        cell: Corner = "",
        sheet: SheetTitle = "",
        name: Annotated[str, Field(description="The table's name; empty for Table1, Table2 …")] = "",
        table: Annotated[bool, Field(description="Whether it becomes an Excel table, or just cells.")] = True,
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Insert a header and rows into empty cells.

        They become an Excel table with banded rows and filters.
        """
        width = width_of(rows, header)  # type: ignore[arg-type]
        with self._editing(document) as file:
            target = start_of(file, sheet, cell, control_id, control_name)
            cells = spread(target, len(rows) + 1, width)
            writable(target)
            check_empty(target.sheet, cells)
            write_cells(target.sheet, cells, [list(header), *rows])
            answer: Answer = {"sheet": target.sheet.title, "cells": cells.coord, "table": None}
            if table:
                answer["table"] = make_table(file, target.sheet, cells, header, name)
            else:
                make_bold(target.sheet, CellRange(None, cells.min_col, cells.min_row, cells.max_col, cells.min_row))
            widen(target.sheet, cells)
            return file.answers(answer)

    @tool(effect=Effect.IDEMPOTENT, roots=EXCEL, controls=FILLED)
    def sort_range(
        self,
        document: Document,
        by: Annotated[list[SortKey], Field(min_length=1, description="The columns to sort by, the first one first.")],
        *,
        cells: Cells = "",
        sheet: SheetTitle = "",
        header: Header = True,
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Sort the rows of a range or table by columns.

        Hidden rows stay where they are, as in Excel. Notes, links, pictures, heights and validations follow their rows.
        ``order`` names the order of texts beyond ASCII.
        """
        self._refuse_large(document, sheet, cells, control_id, control_name)
        with self._editing(document) as file:
            target = table_range(file, sheet, cells, control_id, control_name, header=header)
            return file.answers(sort_rows(file, writable(target), by, header=header))

    @tool(effect=Effect.ONCE, roots=EXCEL, controls=FILLED)
    def filter_rows(
        self,
        document: Document,
        where: Annotated[list[Condition], Field(description="All of them must hold; empty clears a filter.")],
        to: Annotated[
            str,
            Field(
                description="The corner of the copy, like G1 or New!A1; a missing sheet is added. Empty for a filter "
                "that hides the other rows."
            ),
        ] = "",
        *,
        cells: Cells = "",
        sheet: SheetTitle = "",
        header: Header = True,
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Copy the rows that meet conditions, or hide the others.

        A copy has the header, too, and the results of formulas. Without a place for a copy, Excel's filter is set.
        """
        if not to:
            return self._filter(document, where, sheet, cells, control_id, control_name, header=header)
        if not where:
            msg = "say which rows are copied, in where"
            raise ToolError(msg)
        with self._editing(document, streamed=True) as file:
            target = table_range(file, sheet, cells, control_id, control_name, header=header)
            data = data_rows(target.sheet, target.need(), header=header)
            rows = matching(file, target, data.rows, where, header=header)
            answer = copy_rows(file, target, rows, to, header=header)
            answer |= data.named(target.sheet, target.need()) | texts_compared(target, data.rows, where, header=header)
            return file.answers(answer)

    def _filter(self, document: str, where: list[Condition], *selector: str, header: bool) -> Answer:
        """Set or clear a filter that hides rows."""
        if not header:
            msg = "a filter needs a header; give a place for a copy, or the cells with their header"
            raise ToolError(msg)
        with self._editing(document) as file:
            target = writable(table_range(file, *selector, header=True))
            return file.answers(set_filter(file, target, where))

    @tool(effect=Effect.ONCE, roots=EXCEL, controls=FILLED)
    def reorder_columns(
        self,
        document: Document,
        order: Annotated[list[str], Field(min_length=1, description="Headers or letters, in the new order.")],
        *,
        cells: Cells = "",
        sheet: SheetTitle = "",
        header: Header = True,
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Reorder the columns of a range or table.

        Columns that are not named follow.
        """
        self._refuse_large(document, sheet, cells, control_id, control_name)
        with self._editing(document) as file:
            target = table_range(file, sheet, cells, control_id, control_name, header=header)
            letters = reorder(file, writable(target), order, header=header)
            return file.answers({"sheet": target.sheet.title, "cells": target.need().coord, "before": list(letters)})

    @tool(effect=Effect.READ, roots=EXCEL, controls=FILLED)
    def summarize(
        self,
        document: Document,
        *,
        columns: Annotated[list[str], Field(description="Headers or letters; empty for all with numbers.")] = NONE,
        by: Annotated[str, Field(description="A column whose values make groups; empty for one total.")] = "",
        where: Conditions = NONE,
        cells: Cells = "",
        sheet: SheetTitle = "",
        header: Header = True,
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Count, sum, mean, min and max of columns, without writing.

        The figures are of all rows, or of each group of rows.
        """
        file = self._load(self._workspace.read(document))
        target = table_range(file, sheet, cells, control_id, control_name, header=header)
        area = target.need()
        data = data_rows(target.sheet, area, header=header)
        rows = matching(file, target, data.rows, where, header=header)
        answer = summarize(file, target, rows, columns=columns, by=by, header=header)
        return answer | data.named(target.sheet, area) | texts_compared(target, data.rows, where, header=header)
