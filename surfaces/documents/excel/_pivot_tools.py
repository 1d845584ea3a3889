"""Excel tools for pivot tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from callboard.messages import ESSENTIAL, Effect
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.documents._tables import (  # noqa: TC001 - schemas are made of them
    Answer,
    ControlId,
    ControlName,
    Document,
)
from callboard.surfaces.documents.excel._cell_ranges import table_range, writable
from callboard.surfaces.documents.excel._hidden_rows import hidden_in
from callboard.surfaces.documents.excel._pivot_plans import (
    PivotChanges,
    changed,
    dependent,
    foreign,
    named_source,
    plan_of,
    refresh_on_load,
    source_of,
)
from callboard.surfaces.documents.excel._pivot_results import PivotFilter, PivotPlan, PivotValue
from callboard.surfaces.documents.excel._pivot_source import pivot_source
from callboard.surfaces.documents.excel._pivot_tables import all_pivots
from callboard.surfaces.documents.excel._pivots import change, check_name, delete_pivot, insert, place_of
from callboard.surfaces.documents.excel._sheet_controls import SheetRange, pivot_of
from callboard.surfaces.documents.excel._workbook_editor import (
    EXCEL,
    FILLED,
    NONE,
    PIVOT,
    Cells,
    ExcelEditor,
    SheetTitle,
)
from callboard.surfaces.documents.excel._written_types import numbers_as_text

if TYPE_CHECKING:
    from callboard.surfaces.documents.excel._pivot_source import PivotSource
    from callboard.surfaces.documents.excel._pivot_tables import PivotTable

_ROWS = "Headers or letters of the source whose values make the rows, the outer one first."
_COLUMNS = "Headers or letters whose values stand side by side as columns."
_NO_CHANGES = PivotChanges(None, None, None, None, None)
_FILTERS = "Filters above it."


class ExcelPivotTools(ExcelEditor):
    """The tools of pivot tables in ``.xlsx`` files."""

    @tool(effect=Effect.ONCE, roots=EXCEL, controls=FILLED)
    def insert_pivot(
        self,
        document: Document,
        rows: Annotated[list[str], Field(min_length=1, description=_ROWS)],
        values: Annotated[list[PivotValue], Field(min_length=1, description="The columns to sum, count and so on.")],
        *,
        columns: Annotated[list[str], Field(description=_COLUMNS, json_schema_extra={ESSENTIAL: True})] = NONE,
        filters: Annotated[list[PivotFilter], Field(description=_FILTERS)] = NONE,
        to: Annotated[
            str, Field(description="Its corner, like G1 or Pivot!A1; a missing sheet is added. Empty for a new sheet.")
        ] = "",
        cells: Cells = "",
        sheet: SheetTitle = "",
        name: Annotated[str, Field(description="Its name; empty for PivotTable1, PivotTable2 …")] = "",
        totals: Annotated[bool, Field(description="Whether it has subtotals and grand totals.")] = True,
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Insert a pivot table of a range or table.

        It groups rows by the values of columns, and sums, counts or averages others.
        """
        plan = PivotPlan(rows, columns, values, filters, totals)
        with self._editing(document, streamed=True) as file:
            target = table_range(file, sheet, cells, control_id, control_name, header=True)
            source, notes = pivot_source(target, named=bool(cells))
            pivot = insert(source, plan, check_name(file, name), place_of(source, to))
            return file.answers(_answer(pivot, source) | notes)

    @tool(effect=Effect.IDEMPOTENT, roots=EXCEL, controls=PIVOT)
    def edit_pivot(
        self,
        document: Document,
        control_id: ControlId,
        *,
        rows: Annotated[list[str] | None, Field(min_length=1, description=_ROWS)] = None,
        columns: Annotated[list[str] | None, Field(description=_COLUMNS)] = None,
        values: Annotated[
            list[PivotValue] | None, Field(min_length=1, description="The columns to sum, count …")
        ] = None,
        filters: Annotated[list[PivotFilter] | None, Field(description=_FILTERS)] = None,
        cells: Annotated[str, Field(description="Another source, like Data!A1:D90 or a table's name.")] = "",
        totals: Annotated[bool | None, Field(description="Whether it has subtotals and grand totals.")] = None,
        delete: Annotated[bool, Field(description="Whether the pivot table is deleted.")] = False,
        control_name: ControlName = "",
    ) -> Answer:
        """Refresh, change or delete a pivot table.

        Its source is read again. Arguments left out change nothing else.
        """
        changes = PivotChanges(rows, columns, values, filters, totals)
        if delete and (cells or changes != _NO_CHANGES):
            msg = "either delete the pivot table, or change it"
            raise ToolError(msg)
        with self._editing(document, streamed=True) as file:
            pivot = pivot_of(file, control_id, control_name)
            writable(SheetRange(pivot.sheet, None))
            if delete:
                return file.answers(_deleted(pivot, control_id))
            if changes == _NO_CHANGES and (reason := foreign(pivot) or ("" if cells else named_source(pivot))):
                return file.answers(_left_to_excel(pivot, control_id, cells, reason))
            stored = plan_of(pivot)
            source, notes = pivot_source(source_of(pivot, cells), named=True)
            new = change(pivot, source, changed(stored, changes, source))
            return file.answers(_answer(new, source) | notes)


def _deleted(pivot: PivotTable, control_id: str) -> Answer:
    """Delete a pivot table; return the answer.

    Raises:
        ToolError: If a chart or slicer is made of it.
    """
    if reason := dependent(pivot):
        msg = f"the pivot table {pivot.name!r} can't be deleted: {reason}; delete that in Excel first"
        raise ToolError(msg)
    answer: Answer = {"sheet": pivot.sheet.title, "deleted": control_id, "emptied": pivot.block.coord}
    delete_pivot(pivot)
    return answer


def _left_to_excel(pivot: PivotTable, control_id: str, cells: str, reason: str) -> Answer:
    """Let Excel compute a pivot table; return the answer."""
    source = pivot_source(source_of(pivot, cells), named=True)[0] if cells else None
    others = refresh_on_load(pivot, source)
    answer: Answer = {"sheet": pivot.sheet.title, "control_id": control_id, "name": pivot.name, "source": pivot.source}
    answer["not_computed"] = f"its cells stay as they are until Excel opens the file, since {reason}"
    return answer | ({"same_source": [*others]} if others else {})


def _answer(pivot: PivotTable, source: PivotSource) -> Answer:
    """Describe a pivot table that was written."""
    number = [other.part for other in all_pivots(pivot.sheet.file)].index(pivot.part) + 1
    answer: Answer = {"sheet": pivot.sheet.title, "cells": pivot.block.coord, "control_id": f"pivot-{number}"}
    answer |= {"name": pivot.name, "source": pivot.source, "source_rows": source.count}
    columns = {source.cells.min_col + field for field, function, _ in pivot.data() if function != "count"}
    if texts := numbers_as_text(source.sheet, source.rows, sorted(columns)):
        answer["texts_not_counted"] = texts
    if hidden := hidden_in(source.sheet, source.cells):
        answer |= {f"source_{name}": rows for name, rows in hidden.items()}
    return answer
