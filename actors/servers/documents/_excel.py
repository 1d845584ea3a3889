"""Excel tools: cells, tables, rows and columns, formulas, formats, charts and sheets."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Annotated, Any, Literal

from openpyxl.utils import get_column_letter
from openpyxl.worksheet.cell_range import CellRange
from pydantic import Field, TypeAdapter

from callboard.actors.servers._server import ToolError, tool
from callboard.actors.servers.documents._excel_answers import Condition, matching, summarize
from callboard.actors.servers.documents._excel_append import append, copy_rows, replace
from callboard.actors.servers.documents._excel_calculate import settle
from callboard.actors.servers.documents._excel_cells import (
    bounded,
    check_arrays,
    check_empty,
    held,
    read_cells,
    spread,
    start_of,
    widen,
    writable,
    write_cells,
)
from callboard.actors.servers.documents._excel_charts import (
    ChartPlan,
    ChartType,
    add_chart,
    delete_chart,
    move_chart,
    redraw,
    retitle,
)
from callboard.actors.servers.documents._excel_controls import (
    SheetRange,
    chart_of,
    column_number,
    column_of,
    find_all,
    parse_cells,
    place,
    row_number,
    sheet_of,
    tree,
)
from callboard.actors.servers.documents._excel_file import ExcelFile
from callboard.actors.servers.documents._excel_format import (
    Color,
    Format,
    format_cells,
    make_bold,
    merge_cells,
    unmerge_cells,
)
from callboard.actors.servers.documents._excel_formulas import check_names, checked, fill
from callboard.actors.servers.documents._excel_move import SortKey, reorder, sort_rows
from callboard.actors.servers.documents._excel_sheets import (
    add_sheet,
    check_structure,
    check_title,
    delete_sheet,
    rename_sheet,
)
from callboard.actors.servers.documents._excel_shift import Shift, shift
from callboard.actors.servers.documents._excel_tables import follow_headers, make_table
from callboard.actors.servers.documents._excel_touch import canonical, resources
from callboard.actors.servers.documents._excel_values import Value
from callboard.actors.servers.documents._tables import Answer, ControlId, ControlName, Document, clean, width_of
from callboard.messages import ESSENTIAL, Control, Effect, Hazard

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import JsonValue

    from callboard.actors.servers.documents._excel_sheet import Sheet as Grid
    from callboard.actors.servers.documents._workspace import Snapshot, Workspace

EXCEL = ("excel",)
SHEET = ("sheet",)
FILLED = ("range", "table")
CELLS = (*SHEET, *FILLED)
CHART = ("chart",)

Sheet = Annotated[str, Field(description="The sheet's title; empty for the control's sheet, else the open one.")]
Cells = Annotated[
    str,
    Field(
        description="A range like A1:C10; empty for the control's cells, else all used ones.",
        json_schema_extra={ESSENTIAL: True},
    ),
]
Corner = Annotated[
    str,
    Field(
        description="The top left cell; empty for that of the control's cells, else A1.",
        json_schema_extra={ESSENTIAL: True},
    ),
]
Header = Annotated[bool, Field(description="Whether the first row is the header.")]
Rows = Annotated[list[list[Value]], Field(description='The rows. A date is written {"date": "2024-05-31"}.')]
Lines = Annotated[Literal["rows", "columns"], Field(description="Rows or columns.")]
Conditions = Annotated[list[Condition], Field(description="All of them must hold.")]

_ROWS: TypeAdapter[list[list[Value]]] = TypeAdapter(list[list[Value]])
_NONE: list[Any] = []  # never changed
_SHOWN = 3


class ExcelTools:
    """The tools of ``.xlsx`` files.

    Each call reads the file, and an edit replaces it; no file stays open.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def controls(self, snapshot: Snapshot) -> list[Control]:
        """List a workbook's controls: sheets, used ranges, tables and charts.

        Raises:
            ToolError: If it is damaged.
        """
        file = self._load(snapshot)
        try:
            return find_all(file)
        except ValueError as error:  # a number or a range in it is none
            raise file.package.damaged(error) from error

    def tree(self, snapshot: Snapshot) -> Answer:
        """Arrange a workbook's controls in a tree, by sheets."""
        file = self._load(snapshot)
        try:
            return tree(file, snapshot.path.name)
        except ValueError as error:  # as above
            raise file.package.damaged(error) from error

    def not_writable(self, snapshot: Snapshot) -> str:
        """Explain why a workbook must not be written; empty if it may."""
        return self._load(snapshot).not_writable()

    def empty(self) -> bytes:
        """Return the bytes of a new workbook."""
        return ExcelFile.new().to_bytes()

    def canonical(self, document: str, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Make the sheet's title and the cells explicit in the arguments."""
        return canonical(self._load(self._workspace.read(document)), arguments)

    def resources(self, document: str, tool_name: str, arguments: Mapping[str, Any]) -> Iterator[str]:
        """Name the sheets and ranges that a call touches."""
        return resources(self._load(self._workspace.read(document)), tool_name, arguments)

    def overwrites(self, document: str, tool_name: str, arguments: Mapping[str, Any]) -> str:
        """Describe the content that a call would replace; empty for none.

        A call that is refused replaces nothing.

        A call that would be refused replaces nothing. Neither does a call that writes the present content, such as
        the repetition of a call that completed right before a crash.
        """
        given = {key: arguments.get(key, "") for key in ("cell", "cells", "sheet", "control_id", "control_name")}
        named = (given["control_id"], given["control_name"])
        try:
            file = self._load(self._workspace.read(document))
            if tool_name == "write_range":
                values = arguments["values"]
                found = start_of(file, given["sheet"], given["cell"], *named)
                cells = spread(found, len(values), width_of(values))
                before = _contents(found.sheet, cells)
                write_cells(found.sheet, cells, _ROWS.validate_python(values))
            elif tool_name == "replace_text":
                found = writable(place(file, given["sheet"], given["cells"], *named))
                cells = found.need()
                before = _contents(found.sheet, cells)
                replace(found, *(arguments[key] for key in ("find", "replacement", "match_case", "whole_cell")))
            else:
                found = writable(place(file, given["sheet"], given["cells"], *named))
                cells = bounded(found.need())
                before = _contents(found.sheet, cells)
                fill(found.sheet, cells, check_names(file, found.sheet, checked(arguments["formula"])))
        except ToolError:
            return ""
        after = _contents(found.sheet, cells)
        gone = [where for where, old in before.items() if after.get(where) != old]
        if not gone:
            return ""
        shown = ", ".join(f"{where} {before[where][0]!r}" for where in gone[:_SHOWN])
        rest = f" and {len(gone) - _SHOWN} more" if len(gone) > _SHOWN else ""
        return f"{len(gone)} cells of {found.sheet.title!r} that hold something: {shown}{rest}"

    @tool(effect=Effect.READ, roots=EXCEL, controls=FILLED)
    def read_range(
        self,
        document: Document,
        *,
        cells: Cells = "",
        sheet: Sheet = "",
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Read cells by row.

        Numbers are numbers, dates are ISO texts (listed in ``dates``), and empty cells are null.

        A formula gives its result and stands in ``formulas``; without a result its value is ``(not computed)``, and it
        is listed in ``not_computed``. A merged cell's value stands at its top left corner.
        Long ranges are cut after whole rows; ``left_out`` says how many follow.
        """
        file = self._load(self._workspace.read(document))
        found = place(file, sheet, cells, control_id, control_name)
        if found.cells is None:
            return {"sheet": found.sheet.title, "cells": None, "values": [], "left_out": 0}
        return read_cells(file, found.sheet, found.cells)

    @tool(effect=Effect.READ, roots=EXCEL, controls=FILLED)
    def summarize(
        self,
        document: Document,
        *,
        columns: Annotated[list[str], Field(description="Headers or letters; empty for all with numbers.")] = _NONE,
        by: Annotated[str, Field(description="A column whose values make groups; empty for one total.")] = "",
        where: Conditions = _NONE,
        cells: Cells = "",
        sheet: Sheet = "",
        header: Header = True,
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Count, sum, mean, min and max of columns, without writing.

        The figures are of all rows, or of each group of rows.
        """
        file = self._load(self._workspace.read(document))
        found = place(file, sheet, cells, control_id, control_name)
        area = found.need()
        rows = matching(file, found.sheet, area, where, header=header)
        return summarize(file, found, rows, columns=columns, by=by, header=header)

    @tool(effect=Effect.IDEMPOTENT, roots=EXCEL, controls=CELLS)
    def write_range(
        self,
        document: Document,
        values: Rows,
        *,
        cell: Corner = "",
        sheet: Sheet = "",
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Write values into cells.

        Null empties a cell. A text that begins with ``=`` stays a text.
        """
        width = width_of(values)  # type: ignore[arg-type]
        with self._editing(document) as file:
            found = start_of(file, sheet, cell, control_id, control_name)
            cells = spread(found, len(values), width)
            write_cells(found.sheet, cells, values)
            return file.answers({"sheet": found.sheet.title, "cells": cells.coord})

    @tool(effect=Effect.ONCE, roots=EXCEL, controls=CELLS)
    def append_rows(
        self,
        document: Document,
        values: Rows,
        *,
        sheet: Sheet = "",
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Add rows below a sheet's or table's last one.

        A row of totals stays below them.

        Formats are those of the row above. Where a value is null or left out, the formula of the row above is filled
        down.
        """
        if not values or not any(values):
            msg = "there are no rows to append"
            raise ToolError(msg)
        with self._editing(document) as file:
            found = writable(place(file, sheet, "", control_id, control_name))
            return file.answers(append(file, found, values))

    @tool(effect=Effect.ONCE, roots=EXCEL, controls=CELLS)
    def insert_table(
        self,
        document: Document,
        header: Annotated[list[str], Field(min_length=1, description="The header's texts, all different.")],
        rows: Rows,
        *,
        cell: Corner = "",
        sheet: Sheet = "",
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
            found = start_of(file, sheet, cell, control_id, control_name)
            cells = spread(found, len(rows) + 1, width)
            check_empty(found.sheet, cells)
            write_cells(found.sheet, cells, [list(header), *rows])
            answer: Answer = {"sheet": found.sheet.title, "cells": cells.coord, "table": None}
            if table:
                answer["table"] = make_table(file, found.sheet, cells, header, name)
            else:
                make_bold(found.sheet, CellRange(None, cells.min_col, cells.min_row, cells.max_col, cells.min_row))
            widen(found.sheet, cells)
            return file.answers(answer)

    @tool(effect=Effect.ONCE, roots=EXCEL, controls=CELLS)
    def insert_rows_or_columns(
        self,
        document: Document,
        what: Lines,
        at: Annotated[str, Field(description="The row's number or column's letter before which they are inserted.")],
        *,
        count: Annotated[int, Field(ge=1, le=10_000, description="The number of rows or columns.")] = 1,
        sheet: Sheet = "",
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Insert empty rows or columns in a whole sheet.

        Formulas, charts, tables and formats follow.
        """
        return self._shifted(document, what, at, count, sheet, control_id, control_name)

    @tool(effect=Effect.ONCE, roots=EXCEL, hazards=[Hazard.DELETES], controls=CELLS)
    def delete_rows_or_columns(
        self,
        document: Document,
        what: Lines,
        at: Annotated[str, Field(description="The number of the first row, or the letter of the first column.")],
        *,
        count: Annotated[int, Field(ge=1, le=10_000, description="The number of rows or columns.")] = 1,
        sheet: Sheet = "",
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Delete rows or columns of a whole sheet, with their content.

        Formulas, charts, tables and formats follow.
        """
        return self._shifted(document, what, at, -count, sheet, control_id, control_name)

    @tool(effect=Effect.IDEMPOTENT, roots=EXCEL, controls=FILLED)
    def sort_range(
        self,
        document: Document,
        by: Annotated[list[SortKey], Field(min_length=1, description="The columns to sort by, the first one first.")],
        *,
        cells: Cells = "",
        sheet: Sheet = "",
        header: Header = True,
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Sort the rows of a range or table by columns."""
        with self._editing(document) as file:
            found = place(file, sheet, cells, control_id, control_name)
            count = sort_rows(file, writable(found), by, header=header)
            return file.answers({"sheet": found.sheet.title, "cells": found.need().coord, "rows_sorted": count})

    @tool(effect=Effect.ONCE, roots=EXCEL, controls=FILLED)
    def filter_rows(
        self,
        document: Document,
        where: Annotated[list[Condition], Field(min_length=1, description="All of them must hold.")],
        to: Annotated[str, Field(description="The corner of the copy, like G1 or New!A1; a missing sheet is added.")],
        *,
        cells: Cells = "",
        sheet: Sheet = "",
        header: Header = True,
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Copy the rows that meet conditions to an empty place.

        The header is copied too; the range stays as it is.

        Formulas are copied as their results.
        """
        with self._editing(document) as file:
            found = place(file, sheet, cells, control_id, control_name)
            rows = matching(file, found.sheet, found.need(), where, header=header)
            return file.answers(copy_rows(file, found, rows, to, header=header))

    @tool(effect=Effect.ONCE, roots=EXCEL, controls=FILLED)
    def reorder_columns(
        self,
        document: Document,
        order: Annotated[list[str], Field(min_length=1, description="Headers or letters, in the new order.")],
        *,
        cells: Cells = "",
        sheet: Sheet = "",
        header: Header = True,
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Reorder the columns of a range or table.

        Columns that are not named follow.
        """
        with self._editing(document) as file:
            found = place(file, sheet, cells, control_id, control_name)
            before = reorder(file, writable(found), order, header=header)
            return file.answers({"sheet": found.sheet.title, "cells": found.need().coord, "before": list(before)})

    @tool(effect=Effect.IDEMPOTENT, roots=EXCEL, controls=CELLS)
    def replace_text(
        self,
        document: Document,
        find: Annotated[str, Field(min_length=1, description="The text to look for.")],
        replacement: Annotated[str, Field(description="The text in its place.")],
        *,
        cells: Cells = "",
        sheet: Sheet = "",
        match_case: Annotated[bool, Field(description="Whether capitals count.")] = False,
        whole_cell: Annotated[bool, Field(description="Whether only cells that hold exactly this text count.")] = False,
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Replace a text in cells that hold texts.

        Numbers, dates and formulas stay.
        """
        with self._editing(document) as file:
            found = writable(place(file, sheet, cells, control_id, control_name))
            changed: list[JsonValue] = [
                *replace(found, find, clean(replacement), match_case=match_case, whole_cell=whole_cell)
            ]
            if not changed:
                msg = f"{find!r} is in no text of {found.sheet.title!r}!{found.need().coord}"
                raise ToolError(msg)
            return file.answers({"sheet": found.sheet.title, "changed": len(changed), "cells": changed[:100]})

    @tool(effect=Effect.IDEMPOTENT, roots=EXCEL, controls=CELLS)
    def set_formula(
        self,
        document: Document,
        formula: Annotated[str, Field(description="In English, like =SUM(B2:B10); arguments are separated by commas.")],
        cells: Annotated[str, Field(description="One cell, or a range to fill; relative references move along.")],
        *,
        sheet: Sheet = "",
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Write a formula into a cell, or fill a range."""
        text = checked(formula)
        with self._editing(document) as file:
            found = writable(place(file, sheet, cells, control_id, control_name))
            area = bounded(found.need())
            check_names(file, found.sheet, text)
            check_arrays(found.sheet, area)
            fill(found.sheet, area, text)
            return file.answers({"sheet": found.sheet.title, "cells": area.coord, "formula": text})

    @tool(effect=Effect.IDEMPOTENT, roots=EXCEL, controls=CELLS)
    def format_cells(
        self,
        document: Document,
        *,
        cells: Cells = "",
        number_format: Annotated[
            str | None, Field(min_length=1, max_length=255, description="A code, like #,##0.00 or 0% or yyyy-mm-dd.")
        ] = None,
        bold: Annotated[bool | None, Field(description="Whether the text is bold.")] = None,
        italic: Annotated[bool | None, Field(description="Whether the text is italic.")] = None,
        underline: Annotated[bool | None, Field(description="Whether the text is underlined.")] = None,
        font: Annotated[str | None, Field(min_length=1, max_length=31, description="The font's name.")] = None,
        size: Annotated[float | None, Field(ge=1, le=409, description="Of the text, in points.")] = None,
        color: Annotated[Color | None, Field(description="Of the text: #RRGGBB or a name like red.")] = None,
        fill: Annotated[Color | None, Field(description="Of the cell: #RRGGBB or a name like yellow; none.")] = None,
        horizontal: Annotated[
            Literal["left", "center", "right", "justify", "general"] | None, Field(description="The alignment.")
        ] = None,
        vertical: Annotated[
            Literal["top", "center", "bottom"] | None, Field(description="The vertical alignment.")
        ] = None,
        wrap: Annotated[bool | None, Field(description="Whether long texts are broken into lines.")] = None,
        border: Annotated[
            Literal["none", "thin", "medium", "thick"] | None, Field(description="The lines around each cell.")
        ] = None,
        width: Annotated[float | None, Field(ge=0, le=255, description="Of the columns, in characters.")] = None,
        sheet: Sheet = "",
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Change the format of cells; arguments left out change nothing."""
        wanted = Format(
            number_format=number_format, bold=bold, italic=italic, underline=underline, font=font, size=size,
            color=color, fill=fill, horizontal=horizontal, vertical=vertical, wrap=wrap, border=border, width=width,
        )  # fmt: skip
        with self._editing(document) as file:
            found = writable(place(file, sheet, cells, control_id, control_name))
            area = bounded(found.need())
            format_cells(found.sheet, area, wanted)
            changed: Answer = wanted.model_dump(exclude_none=True)
            return file.answers({"sheet": found.sheet.title, "cells": area.coord, **changed})

    @tool(effect=Effect.IDEMPOTENT, roots=EXCEL, controls=CELLS)
    def merge_cells(
        self,
        document: Document,
        cells: Annotated[str, Field(description="The range that becomes one cell, like A1:C1.")],
        *,
        merge: Annotated[bool, Field(description="False takes the merged cells in the range apart.")] = True,
        sheet: Sheet = "",
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Merge cells into one, or split merged cells.

        Only the top left cell may hold something.
        """
        with self._editing(document) as file:
            found = writable(place(file, sheet, cells, control_id, control_name))
            area = found.need()
            if not merge:
                apart: list[JsonValue] = [*unmerge_cells(found.sheet, area)]
                return file.answers({"sheet": found.sheet.title, "taken_apart": apart})
            if area.coord not in {each.coord for each in found.sheet.merged}:
                inner = [where for where in held(found.sheet, area) if where != (area.min_row, area.min_col)]
                if inner:
                    where = f"{get_column_letter(inner[0][1])}{inner[0][0]}"
                    msg = f"{where} holds something, and would not be seen in a merged cell; empty it first"
                    raise ToolError(msg)
                check_empty(
                    found.sheet,
                    CellRange(None, area.min_col, area.min_row, area.max_col, area.max_row),
                    "merged cells and tables can't be merged",
                    but=(area.min_row, area.min_col),
                )
                merge_cells(found.sheet, area)
            return file.answers({"sheet": found.sheet.title, "cells": area.coord})

    @tool(effect=Effect.ONCE, roots=EXCEL, controls=FILLED)
    def insert_chart(
        self,
        document: Document,
        type: Annotated[ChartType, Field(description="The kind of chart.")],  # noqa: A002 - the usual name
        *,
        cells: Cells = "",
        sheet: Sheet = "",
        title: Annotated[str, Field(description="The chart's title.", json_schema_extra={ESSENTIAL: True})] = "",
        x_title: Annotated[str, Field(description="The title of the axis of categories.")] = "",
        y_title: Annotated[str, Field(description="The title of the axis of values.")] = "",
        columns: Annotated[
            list[str], Field(description="Headers or letters to draw; empty for all but the categories.")
        ] = _NONE,
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
            found = writable(place(file, sheet, cells, control_id, control_name))
            plan = _plan(found, type, columns, categories, header=header)
            before = {control.id for control in find_all(file)}
            plan.title, plan.x_title, plan.y_title = clean(title), clean(x_title), clean(y_title)
            add_chart(plan, (corner.min_row, corner.min_col) if corner else None)
            made = [control for control in find_all(file) if control.kind == "chart"]
            new = next((chart for chart in made if chart.id not in before), made[-1])
            return file.answers(
                {"sheet": found.sheet.title, "cells": found.need().coord, "charts": len(made), "control_id": new.id}
            )

    @tool(effect=Effect.IDEMPOTENT, roots=EXCEL, controls=CHART)
    def edit_chart(
        self,
        document: Document,
        control_id: ControlId,
        *,
        title: Annotated[str | None, Field(description="The new title; empty for none.")] = None,
        x_title: Annotated[str | None, Field(description="The title of the axis of categories.")] = None,
        y_title: Annotated[str | None, Field(description="The title of the axis of values.")] = None,
        type: Annotated[ChartType | None, Field(description="Another kind of chart; needs cells.")] = None,  # noqa: A002 - as above
        cells: Annotated[str, Field(description="Other data, like A1:C10; empty if they stay.")] = "",
        columns: Annotated[list[str], Field(description="Headers or letters to draw of them.")] = _NONE,
        categories: Annotated[str, Field(description="Header or letter of the categories.")] = "",
        header: Header = True,
        anchor: Annotated[str, Field(description="The cell at its new top left corner; empty if it stays.")] = "",
        delete: Annotated[bool, Field(description="Whether the chart is deleted.")] = False,
        control_name: ControlName = "",
    ) -> Answer:
        """Change or delete a chart; arguments left out change nothing."""
        corner = parse_cells(anchor) if anchor else None
        changes = (title, x_title, y_title, type, cells, anchor)
        if delete == any(change not in {None, ""} or change == title == "" for change in changes):
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
            if type is not None or cells:
                if not cells:
                    msg = "name the cells that the chart draws, to change its type"
                    raise ToolError(msg)
                found = place(file, "" if "!" in cells else sheet.title, cells)
                redraw(chart, _plan(found, type or chart.known_type, columns, categories, header=header))
            for path, text in (("chart", title), ("x", x_title), ("y", y_title)):
                if text is not None:
                    retitle(chart, clean(text), path)
            if corner is not None:
                move_chart(chart, corner.min_row, corner.min_col)
            return file.answers({"sheet": sheet.title, "control_id": control_id, "type": chart.type, "at": chart.at})

    @tool(effect=Effect.ONCE, roots=EXCEL)
    def add_sheet(
        self,
        document: Document,
        title: Annotated[str, Field(description="The new sheet's title.")],
        *,
        position: Annotated[int | None, Field(ge=1, description="Its place from the left; null for the last.")] = None,
    ) -> Answer:
        """Add an empty sheet."""
        with self._editing(document) as file:
            check_title(file, title)
            check_structure(file)
            add_sheet(file, title, position)
            return file.answers({"sheet": title, "sheets": _titles(file)})

    @tool(effect=Effect.ONCE, roots=EXCEL, controls=SHEET)
    def rename_sheet(
        self,
        document: Document,
        sheet: Annotated[str, Field(description="The sheet's title now; empty with a control.")],
        title: Annotated[str, Field(description="The new title.")],
        *,
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Rename a sheet; formulas, names and charts that refer to it follow."""
        with self._editing(document) as file:
            found = sheet_of(file, sheet, control_id, control_name)
            check_title(file, title, found)
            check_structure(file)
            old = found.title
            rename_sheet(file, found, title)
            return file.answers({"sheet": title, "before": old})

    @tool(effect=Effect.ONCE, roots=EXCEL, hazards=[Hazard.DELETES], controls=SHEET)
    def delete_sheet(
        self,
        document: Document,
        *,
        sheet: Annotated[str, Field(description="The sheet's title; empty with a control.")] = "",
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Delete a sheet with its content.

        The last visible sheet, and one that others refer to, can't be deleted.
        """
        with self._editing(document) as file:
            found = sheet_of(file, sheet, control_id, control_name)
            check_structure(file)
            title = found.title
            delete_sheet(file, found)
            return file.answers({"deleted": title, "sheets": _titles(file)})

    def _shifted(self, document: str, what: str, at: str, count: int, *named: str) -> Answer:
        """Insert lines, or delete as many as `count` is negative."""
        first = column_number(at) if what == "columns" else row_number(at)
        with self._editing(document) as file:
            found = writable(place(file, named[0], "", *named[1:]))
            shift(file, Shift(found.sheet, "col" if what == "columns" else "row", first, count))
            used = found.sheet.used()
            done = "inserted" if count > 0 else "deleted"
            return file.answers({"sheet": found.sheet.title, done: abs(count), "used": used.coord if used else None})

    def _load(self, snapshot: Snapshot) -> ExcelFile:
        return ExcelFile.load(snapshot, self._workspace.max_bytes)

    @contextlib.contextmanager
    def _editing(self, document: str) -> Iterator[ExcelFile]:
        """Open a workbook for one edit; replace it unless the body raises."""
        snapshot = self._workspace.read_to_write(document)
        file = self._load(snapshot)
        if reason := file.not_writable():
            msg = f"{document!r} is not written: {reason}"
            raise ToolError(msg)
        yield file
        for sheet in file.worksheets:
            follow_headers(sheet)
        settle(file)
        self._workspace.replace(snapshot, file.to_bytes(), file.answer)


def _plan(found: SheetRange, kind: ChartType, columns: list[str], categories: str, *, header: bool) -> ChartPlan:
    """Plan a chart of a range.

    Raises:
        ToolError: If the range is too large, or a column is missing.
    """
    sheet, cells = found.sheet, bounded(found.need())
    named = [column_of(sheet, cells, name, header=header) for name in columns]
    first = column_of(sheet, cells, categories, header=header) if categories else cells.min_col
    return ChartPlan(kind, sheet, cells, named, header, first)


def _titles(file: ExcelFile) -> list[JsonValue]:
    return [sheet.title for sheet in file.sheets]


def _contents(sheet: Grid, cells: CellRange) -> dict[str, tuple[JsonValue, bool]]:
    """Read the filled cells of a range, for a comparison.

    Each entry is a formula or value, and whether it is a formula.
    """
    return {
        f"{get_column_letter(column)}{row}": (
            sheet.formula(row, column) or sheet.value(row, column),
            sheet.is_formula(row, column),
        )
        for row, column in held(sheet, cells)
    }
