"""Excel tools for charts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from callboard.messages import ESSENTIAL, Effect
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.documents._package import local
from callboard.surfaces.documents._tables import Answer, ControlId, ControlName, Document, clean
from callboard.surfaces.documents.excel._cell_ranges import (
    bounded,
    table_range,
    writable,
)
from callboard.surfaces.documents.excel._charts import (
    ChartPlan,
    ChartType,
    add_chart,
    delete_chart,
    move_chart,
    redraw,
    retitle,
)
from callboard.surfaces.documents.excel._hidden_rows import hidden_in, row_spans
from callboard.surfaces.documents.excel._sheet_controls import (
    SheetRange,
    all_charts,
    chart_of,
    column_of,
    drawn_cells,
    parse_cells,
)
from callboard.surfaces.documents.excel._total_rows import data_rows, totals_of, without_totals
from callboard.surfaces.documents.excel._workbook_editor import (
    CHART,
    EXCEL,
    FILLED,
    NONE,
    Cells,
    ExcelEditor,
    Header,
    SheetTitle,
)

if TYPE_CHECKING:
    from callboard.surfaces.documents.excel._charts import Chart


class ExcelChartTools(ExcelEditor):
    """The tools of charts in ``.xlsx`` files."""

    @tool(effect=Effect.ONCE, roots=EXCEL, controls=FILLED)
    def insert_chart(
        self,
        document: Document,
        type: Annotated[ChartType, Field(description="The kind of chart.")],  # noqa: A002 - the usual name
        *,
        cells: Cells = "",
        sheet: SheetTitle = "",
        title: Annotated[str, Field(description="The chart's title.", json_schema_extra={ESSENTIAL: True})] = "",
        x_title: Annotated[str, Field(description="The title of the axis of categories.")] = "",
        y_title: Annotated[str, Field(description="The title of the axis of values.")] = "",
        columns: Annotated[
            list[str], Field(description="Headers or letters to draw; empty for all but the categories.")
        ] = NONE,
        categories: Annotated[
            str, Field(description="Header or letter of the categories; empty for the first column.")
        ] = "",
        header: Header = True,
        anchor: Annotated[str, Field(description="The cell at its top left corner; empty for a free place.")] = "",
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Insert a chart of a range or table.

        Each column of numbers becomes a series.
        """
        corner = parse_cells(anchor) if anchor else None
        with self._editing(document) as file:
            target = writable(table_range(file, sheet, cells, control_id, control_name, header=header))
            totals = _totals_in(target, header=header, cells=cells)
            if not cells:
                target = SheetRange(target.sheet, without_totals(target.sheet, target.need()))
            plan = _plan(target, type, columns, categories, header=header)
            plan.title, plan.x_title, plan.y_title = clean(title), clean(x_title), clean(y_title)
            part = add_chart(plan, (corner.min_row, corner.min_col) if corner else None)
            parts = [chart.part for chart in all_charts(file)]
            new_id = f"chart-{parts.index(part) + 1}"
            answer: Answer = {"sheet": target.sheet.title, "cells": target.need().coord}
            answer |= {"charts": len(parts), "control_id": new_id}
            return file.answers(answer | totals | _hidden_in(all_charts(file)[parts.index(part)], target))

    @tool(effect=Effect.IDEMPOTENT, roots=EXCEL, controls=CHART)
    def edit_chart(
        self,
        document: Document,
        control_id: ControlId,
        *,
        title: Annotated[str | None, Field(description="The new title; empty for none.")] = None,
        x_title: Annotated[str | None, Field(description="That of the axis of categories; empty for none.")] = None,
        y_title: Annotated[str | None, Field(description="That of the axis of values; empty for none.")] = None,
        type: Annotated[ChartType | None, Field(description="Another kind of chart; needs cells.")] = None,  # noqa: A002 - as above
        cells: Annotated[str, Field(description="Other data, like A1:C10; empty if they stay.")] = "",
        columns: Annotated[list[str], Field(description="Headers or letters to draw of them.")] = NONE,
        categories: Annotated[str, Field(description="Header or letter of the categories.")] = "",
        header: Header = True,
        anchor: Annotated[str, Field(description="The cell at its new top left corner; empty if it stays.")] = "",
        delete: Annotated[bool, Field(description="Whether the chart is deleted.")] = False,
        control_name: ControlName = "",
    ) -> Answer:
        """Change or delete a chart; arguments left out change nothing."""
        corner = parse_cells(anchor) if anchor else None
        changes = any(argument is not None for argument in (title, x_title, y_title, type)) or bool(cells or anchor)
        if delete == changes:
            msg = "say what changes in the chart: a title, type and cells, anchor; or delete it"
            raise ToolError(msg)
        with self._editing(document) as file:
            chart = chart_of(file, control_id, control_name)
            sheet = chart.sheet
            if sheet.is_grid:
                writable(SheetRange(sheet, None))
            if delete:
                delete_chart(chart)
                return file.answers({"sheet": sheet.title, "deleted": control_id})
            hidden: Answer = {}
            if type is not None or cells:
                if not cells:
                    drawn = dict.fromkeys(
                        element.text for element in chart.root.iter() if local(element) == "f" and element.text
                    )
                    msg = f"name the cells that the chart draws, to change its type; now: {', '.join(drawn)}"
                    raise ToolError(msg)
                target = drawn_cells(sheet, cells)
                redraw(chart, _plan(target, type or chart.insertable_type, columns, categories, header=header))
                hidden = _hidden_in(chart, target) | _totals_in(target, header=header, cells=cells)
            for path, text in (("chart", title), ("x", x_title), ("y", y_title)):
                if text is not None:
                    retitle(chart, clean(text), path)
            if corner is not None:
                move_chart(chart, corner.min_row, corner.min_col)
            answer: Answer = {"sheet": sheet.title, "control_id": control_id, "type": chart.type, "at": chart.at}
            return file.answers(answer | hidden)


def _totals_in(target: SheetRange, *, header: bool, cells: str) -> Answer:
    """Name the rows of totals that a chart draws.

    Raises:
        ToolError: If there are some between the rows, and the caller did not name the cells.
    """
    area = target.need()
    between = data_rows(target.sheet, area, header=header).totals
    if between and not cells:
        msg = (
            f"{area.coord} has totals between its rows (row {row_spans(between)}), which the chart would draw beside "
            "what they total: copy the other rows with filter_rows, or name the cells to draw all of them"
        )
        raise ToolError(msg)
    last = area.max_row - totals_of(target.sheet, area)
    drawn = [*between, *range(last + 1, area.max_row + 1)] if cells else []
    return {"totals_drawn": row_spans(drawn)} if drawn else {}


def _hidden_in(chart: Chart, target: SheetRange) -> Answer:
    """Name hidden lines of a range, and if a chart draws them."""
    hidden = hidden_in(target.sheet, target.need())
    return hidden | {f"{name}_drawn": chart.draws_hidden for name in hidden}


def _plan(target: SheetRange, kind: ChartType, columns: list[str], categories: str, *, header: bool) -> ChartPlan:
    """Plan a chart of a range.

    Raises:
        ToolError: If the range is too large, or a column is missing.
    """
    sheet, cells = target.sheet, bounded(target.need())
    named = [column_of(sheet, cells, name, header=header) for name in columns]
    first = column_of(sheet, cells, categories, header=header) if categories else cells.min_col
    return ChartPlan(kind, sheet, cells, named, header, first)
