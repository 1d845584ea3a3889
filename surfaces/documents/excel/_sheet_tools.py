"""Excel tools for sheets, and for their rows and columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from openpyxl.worksheet.cell_range import CellRange
from pydantic import Field

from callboard.messages import ESSENTIAL, Effect, Hazard
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.documents._tables import (  # noqa: TC001 - schemas are made of them
    Answer,
    ControlId,
    ControlName,
    Document,
)
from callboard.surfaces.documents.excel._cell_ranges import table_range, writable
from callboard.surfaces.documents.excel._delete_rows import delete_rows
from callboard.surfaces.documents.excel._formula_text import LAST_COLUMN, LAST_ROW
from callboard.surfaces.documents.excel._hidden_rows import column_spans, hidden_columns, hidden_rows, row_spans
from callboard.surfaces.documents.excel._insert_delete import shift
from callboard.surfaces.documents.excel._sheet_controls import (
    column_number,
    find_range,
    row_number,
    sheet_of,
)
from callboard.surfaces.documents.excel._sheets import (
    add_sheet,
    check_structure,
    check_title,
    delete_sheet,
    rename_sheet,
)
from callboard.surfaces.documents.excel._shift import Shift
from callboard.surfaces.documents.excel._summaries import Condition  # noqa: TC001 - schemas are made of it
from callboard.surfaces.documents.excel._workbook_editor import (
    CELLS,
    EXCEL,
    NONE,
    SHEET,
    Cells,
    ExcelEditor,
    Header,
    Lines,
    SheetTitle,
)

if TYPE_CHECKING:
    from pydantic import JsonValue

    from callboard.surfaces.documents.excel._sheet import Sheet
    from callboard.surfaces.documents.excel._workbook import ExcelFile

_MOST_LOST = 100


class ExcelSheetTools(ExcelEditor):
    """The tools of sheets in ``.xlsx`` files."""

    @tool(effect=Effect.ONCE, roots=EXCEL, controls=CELLS)
    def insert_rows_or_columns(
        self,
        document: Document,
        what: Lines,
        at: Annotated[str, Field(description="The row's number or column's letter before which they are inserted.")],
        *,
        count: Annotated[int, Field(ge=1, le=10_000, description="The number of rows or columns.")] = 1,
        sheet: SheetTitle = "",
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Insert empty rows or columns in a whole sheet.

        Formulas, charts, tables and formats follow.
        """
        return self._shift_lines(document, what, at, count, sheet, control_id, control_name)

    @tool(effect=Effect.ONCE, roots=EXCEL, hazards=[Hazard.DELETES], controls=CELLS)
    def delete_rows_or_columns(
        self,
        document: Document,
        what: Annotated[Literal["rows", "columns", "sheet"], Field(description="Rows, columns or the whole sheet.")],
        at: Annotated[
            str,
            Field(
                description="The number of the first row, or the letter of the first column; empty with where.",
                json_schema_extra={ESSENTIAL: True},
            ),
        ] = "",
        *,
        count: Annotated[int, Field(ge=1, le=10_000, description="The number of rows or columns.")] = 1,
        where: Annotated[list[Condition], Field(description="Deletes the rows that meet all of them.")] = NONE,
        duplicates_in: Annotated[
            list[str],
            Field(description="Columns, or * for all: deletes rows with the same values in them as one above."),
        ] = NONE,
        whole_rows: Annotated[
            bool, Field(description="False deletes the range's cells alone, and moves up those below.")
        ] = True,
        cells: Cells = "",
        sheet: SheetTitle = "",
        header: Header = True,
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Delete rows or columns of a sheet, or the whole sheet.

        Formulas, charts, tables and formats follow. Rows are named by number, by conditions, or as duplicates. The last
        visible sheet, and one that others refer to (also to its tables), can't be deleted.
        """
        if what == "sheet":
            if at or where or duplicates_in or cells:
                msg = "what is sheet, which deletes all of it; say rows or columns to delete some"
                raise ToolError(msg)
            return self._delete_sheet(document, sheet, control_id, control_name)
        if not (where or duplicates_in):
            if not at or cells or not whole_rows:
                msg = "say where: at for whole rows or columns, else where or duplicates_in for rows of a range"
                raise ToolError(msg)
            return self._shift_lines(document, what, at, -count, sheet, control_id, control_name)
        if at or count > 1 or what == "columns":
            msg = "where and duplicates_in choose rows themselves: what is rows then, and at and count are left out"
            raise ToolError(msg)
        with self._editing(document) as file:
            target = writable(table_range(file, sheet, cells, control_id, control_name, header=header))
            answer = delete_rows(file, target, where, duplicates_in, header=header, whole_rows=whole_rows)
            return file.answers(answer | _lost_references(file))

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
            return file.answers({"sheet": title, "sheets": [*file.titles]})

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
            target_sheet = sheet_of(file, sheet, control_id, control_name)
            check_title(file, title, target_sheet)
            check_structure(file)
            old = target_sheet.title
            answer: Answer = {"sheet": title, "before": old}
            if stale := rename_sheet(file, target_sheet, title):
                answer["title_in_texts_stays"] = [*stale[:_MOST_LOST]]
            return file.answers(answer)

    def _delete_sheet(self, document: str, sheet: str, control_id: str, control_name: str) -> Answer:
        """Delete a sheet to which no other refers."""
        with self._editing(document) as file:
            target_sheet = sheet_of(file, sheet, control_id, control_name)
            check_structure(file)
            title = target_sheet.title
            delete_sheet(file, target_sheet)
            return file.answers({"deleted": title, "sheets": [*file.titles]})

    def _shift_lines(self, document: str, what: str, at: str, count: int, *selector: str) -> Answer:
        """Insert lines, or delete as many as `count` is negative."""
        first = column_number(at) if what == "columns" else row_number(at)
        with self._editing(document) as file:
            target = writable(find_range(file, selector[0], "", *selector[1:]))
            hidden = _hidden_lines(target.sheet, what, first, -count)
            shift(file, Shift(target.sheet, "col" if what == "columns" else "row", first, count))
            used = target.sheet.used()
            key = "inserted" if count > 0 else "deleted"
            answer: Answer = {"sheet": target.sheet.title, key: abs(count), "used": used.coord if used else None}
            return file.answers(answer | hidden | _lost_references(file))


def _lost_references(file: ExcelFile) -> Answer:
    """Name the formulas, names and charts that read deleted cells."""
    where: list[JsonValue] = []
    for reference in file.lost_references:
        cell = reference.cell
        if cell is None:
            where.append(reference.where)
        elif cell.getparent() is not None and cell.getparent().getparent() is not None:  # not deleted itself
            where.append(f"{reference.sheet}!{cell.get('r')}")
    where = [*dict.fromkeys(where)]
    more: Answer = {"references_lost_left_out": len(where) - _MOST_LOST} if len(where) > _MOST_LOST else {}
    return {"references_lost": where[:_MOST_LOST], **more} if where else {}


def _hidden_lines(sheet: Sheet, what: str, first: int, count: int) -> Answer:
    """Name the hidden rows or columns among those that are deleted."""
    if count < 1:
        return {}
    if what == "columns":
        columns = hidden_columns(sheet, CellRange(None, first, 1, min(first + count - 1, LAST_COLUMN), 1))
        return {"hidden_columns_deleted": column_spans(columns)} if columns else {}
    rows = hidden_rows(sheet, CellRange(None, 1, first, 1, min(first + count - 1, LAST_ROW)))
    return {"hidden_rows_deleted": row_spans(rows)} if rows else {}
