"""Excel tools: ranges, tables, sorting, formulas, formats, charts and sheets."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Annotated, Any

from openpyxl.styles import Font
from pydantic import Field, TypeAdapter

from callboard.actors.servers._server import ToolError, tool
from callboard.actors.servers.documents._excel_cells import (
    bounded,
    check_empty,
    make_table,
    read_cells,
    spread,
    start_of,
    widen,
    writable,
    write_cells,
)
from callboard.actors.servers.documents._excel_charts import ChartPlan, ChartType, add_chart
from callboard.actors.servers.documents._excel_controls import find_all, parse_cells, place, sheet_of, tree
from callboard.actors.servers.documents._excel_file import (
    ExcelFile,
    Value,
    is_formula,
    read_value,
)
from callboard.actors.servers.documents._excel_formulas import checked, fill
from callboard.actors.servers.documents._excel_move import SortKey, reorder, sort_rows
from callboard.actors.servers.documents._excel_references import all_formulas, mentions, renamed
from callboard.actors.servers.documents._excel_touch import canonical, resources
from callboard.actors.servers.documents._office import damaged
from callboard.actors.servers.documents._tables import Answer, ControlId, ControlName, Document, clean, width_of
from callboard.messages import ESSENTIAL, Control, Effect, Hazard

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from openpyxl.worksheet.cell_range import CellRange
    from openpyxl.worksheet.worksheet import Worksheet
    from pydantic import JsonValue

    from callboard.actors.servers.documents._workspace import Snapshot, Workspace

EXCEL = ("excel",)
SHEET = ("sheet",)
FILLED = ("range", "table")
CELLS = (*SHEET, *FILLED)

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

_ROWS: TypeAdapter[list[list[Value]]] = TypeAdapter(list[list[Value]])
_BAD_TITLE = re.compile(r"[\\*?:/\[\]]|^'|'$")
_MAX_TITLE = 31


class ExcelTools:
    """The tools of ``.xlsx`` files.

    Each call reads the file, and an edit replaces it; no file stays open.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def controls(self, snapshot: Snapshot) -> list[Control]:
        """List a workbook's controls: sheets, used ranges, tables and charts.

        Raises:
            ToolError: If the workbook is damaged: openpyxl also loads cells beyond a sheet's last row.
        """
        file = self._load(snapshot)
        try:
            return find_all(file)
        except ValueError as error:
            raise damaged(snapshot.document, error) from error

    def tree(self, snapshot: Snapshot) -> Answer:
        """Arrange a workbook's controls in a tree, by sheets."""
        return tree(self._load(snapshot), snapshot.path.name)

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

    def overwrites(self, document: str, tool_name: str, arguments: Mapping[str, Any]) -> bool:
        """Return whether a call that writes cells would replace other content.

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
            else:
                found = writable(place(file, given["sheet"], given["cells"], *named))
                cells = bounded(found.need())
                before = _contents(found.sheet, cells)
                fill(found.sheet, cells, checked(arguments["formula"]))
        except ToolError:
            return False
        after = _contents(found.sheet, cells)
        return any(old is not None and old != new for old, new in zip(before, after, strict=True))

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

        A formula has the value that a spreadsheet program computed last. It is listed in ``formulas``, and in
        ``not_computed`` if it was never computed. A merged cell's value is in its top left cell. Long ranges are cut
        after whole rows; ``left_out`` is the number of rows that follow.
        """
        file = self._load(self._workspace.read(document))
        found = place(file, sheet, cells, control_id, control_name)
        if found.cells is None:
            return {"sheet": found.sheet.title, "cells": None, "values": [], "left_out": 0}
        return read_cells(file, found.sheet, found.cells)

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
                for column in range(cells.min_col, cells.max_col + 1):
                    found.sheet.cell(cells.min_row, column).font = Font(bold=True)
            widen(found.sheet, cells)
            return file.answers(answer)

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
        """Write a formula into a cell, or fill a range.

        A spreadsheet program computes it when it opens the file.
        """
        text = checked(formula)
        with self._editing(document) as file:
            found = writable(place(file, sheet, cells, control_id, control_name))
            area = bounded(found.need())
            fill(found.sheet, area, text)
            return file.answers({"sheet": found.sheet.title, "cells": area.coord, "formula": text})

    @tool(effect=Effect.IDEMPOTENT, roots=EXCEL, controls=CELLS)
    def set_number_format(
        self,
        document: Document,
        number_format: Annotated[
            str, Field(min_length=1, max_length=255, description="A code, like #,##0.00 or 0% or yyyy-mm-dd.")
        ],
        *,
        cells: Cells = "",
        sheet: Sheet = "",
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Set the number format of cells; their values stay."""
        code = clean(number_format)
        with self._editing(document) as file:
            found = writable(place(file, sheet, cells, control_id, control_name))
            area = bounded(found.need())
            for row in range(area.min_row, area.max_row + 1):
                for column in range(area.min_col, area.max_col + 1):
                    found.sheet.cell(row, column).number_format = code
            return file.answers({"sheet": found.sheet.title, "cells": area.coord, "number_format": code})

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
        ] = [],  # noqa: B006 - never changed
        categories: Annotated[
            str, Field(description="Header or letter of the categories; empty for the first column.")
        ] = "",
        header: Header = True,
        anchor: Annotated[str, Field(description="The cell at its top left corner; empty for a free place.")] = "",
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Insert a bar, line or pie chart of a range or table.

        Each column of numbers becomes a series.
        """
        corner = parse_cells(anchor).coord.partition(":")[0] if anchor else ""
        with self._editing(document) as file:
            found = writable(place(file, sheet, cells, control_id, control_name))
            bounded(found.need())
            plan = ChartPlan(
                type, found, columns, header, categories, clean(title), clean(x_title), clean(y_title), corner
            )
            before = {control.id for control in find_all(file)}
            add_chart(plan)
            made = [control for control in find_all(file) if control.kind == "chart"]
            new = next((chart for chart in made if chart.id not in before), made[-1])
            return file.answers(
                {"sheet": found.sheet.title, "cells": found.need().coord, "charts": len(made), "control_id": new.id}
            )

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
            _check_title(file, title)
            _check_structure(file)
            file.book.create_sheet(title, None if position is None else position - 1)
            return file.answers({"sheet": title, "sheets": list(file.book.sheetnames)})

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
            _check_title(file, title, found)
            _check_structure(file)
            old = found.title
            for reference in list(all_formulas(file)):
                changed = renamed(reference.formula, old, title)
                if changed != reference.formula:
                    reference.write(changed)
            found.title = title
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
            _check_structure(file)
            if sum(other.sheet_state == "visible" for other in file.book.worksheets if other is not found) == 0:
                msg = f"{found.title!r} is the last visible sheet; a workbook needs one"
                raise ToolError(msg)
            for reference in all_formulas(file):
                if reference.sheet != found.title and mentions(reference.formula, found.title):
                    msg = f"{reference.where} refers to the sheet {found.title!r}; change it first"
                    raise ToolError(msg)
            file.book.remove(found)
            return file.answers({"deleted": found.title, "sheets": list(file.book.sheetnames)})

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
        self._workspace.replace(snapshot, file.to_bytes(), file.answer)


def _contents(sheet: Worksheet, cells: CellRange) -> list[tuple[JsonValue, bool] | None]:
    """Read cells for a comparison; None for an empty one.

    Each entry is a value and whether it is a formula.
    """
    rows = sheet.iter_rows(cells.min_row, cells.max_row, cells.min_col, cells.max_col)
    return [None if cell.value is None else (read_value(cell), is_formula(cell)) for row in rows for cell in row]


def _check_title(file: ExcelFile, title: str, renaming: Worksheet | None = None) -> None:
    taken = {sheet.title.casefold() for sheet in file.book._sheets if sheet is not renaming}  # type: ignore[attr-defined]  # with chart sheets
    if not clean(title).strip() or len(title) > _MAX_TITLE or _BAD_TITLE.search(title) or title.casefold() == "history":
        msg = f"{title!r} can't be a sheet's title: 1 to {_MAX_TITLE} characters, none of \\ * ? : / [ ]"
        raise ToolError(msg)
    if title.casefold() in taken:
        msg = f"there is already a sheet {title!r}"
        raise ToolError(msg)


def _check_structure(file: ExcelFile) -> None:
    if file.book.security is not None and file.book.security.lockStructure:
        msg = "the workbook's structure is protected; unprotect it in Excel first"
        raise ToolError(msg)
