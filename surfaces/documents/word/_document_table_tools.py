"""Word tools for tables: read, insert, append, write and delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from callboard.messages import Effect, Hazard
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.documents import _formats as formats  # noqa: TC001 - tools' types are read at run time
from callboard.surfaces.documents._grids import answer_of, decimals_of
from callboard.surfaces.documents._tables import (
    Answer,
    Cell,
    ControlId,
    ControlName,
    Document,
    LineNumbers,
    NewRows,
    text_of_value,
    width_of,
)
from callboard.surfaces.documents.word import _document_tables as tables
from callboard.surfaces.documents.word import _paragraph_edits as edit
from callboard.surfaces.documents.word._document_editor import (
    TABLE,
    WORD,
    Position,
    Style,
    WordEditor,
    block_of,
    control_answer,
)
from callboard.surfaces.documents.word._outline import find
from callboard.surfaces.documents.word._text_sources import check_own_text, check_removable, check_takes_rows

if TYPE_CHECKING:
    from pydantic import JsonValue


class WordTableTools(WordEditor):
    """The tools of tables in ``.docx`` files."""

    @tool(effect=Effect.READ, roots=WORD, controls=TABLE)
    def read_table(
        self,
        document: Document,
        control_id: ControlId,
        *,
        control_name: ControlName = "",
        numbers: formats.Numbers = True,
        decimal: formats.Decimal = "auto",
        header: formats.Header = True,
        start: formats.Start = 0,
        limit: formats.Rows = 1000,
    ) -> Answer:
        """Read a table: its header, its rows and the columns' units.

        With ``numbers``, an empty cell is null, and a percentage is divided by 100 (its column's unit is then ``%``).
        An ambiguous number (``1,234``) stays text and is listed in ``kept_as_text`` (rows and columns from 1, the
        header not counted); pass ``decimal`` to have it read. Without it, the decimal separator is inferred from the
        other cells of the column. A merged cell's text is in its top left cell.
        """
        file = self._load(self._workspace.read(document))
        grid = tables.grid_of(find(file, control_id, control_name).table)
        return answer_of(grid, header=header, numbers=numbers, decimal=decimal, start=start, limit=limit)

    @tool(effect=Effect.ONCE, roots=WORD)
    def insert_table(
        self,
        document: Document,
        header: Annotated[list[str], Field(description="The texts of the header row; empty for no header.")],
        rows: NewRows,
        *,
        control_id: ControlId = "",
        control_name: ControlName = "",
        position: Position = "after",
        style: Style = "",
    ) -> Answer:
        """Insert a table before or after a control.

        Without a control it is inserted at the end of the document.
        """
        width_of(rows, header or None)
        with self._editing(document) as file:
            neighbor = block_of(file, control_id, control_name)
            table = tables.make_table(file, header, rows, style)
            edit.put(file, table, neighbor, is_before=position == "before")
            edit.separate(table)
            return file.answers(control_answer(file, table))

    @tool(effect=Effect.ONCE, roots=WORD, controls=TABLE)
    def append_rows(
        self, document: Document, control_id: ControlId, rows: NewRows, *, control_name: ControlName = ""
    ) -> Answer:
        """Append rows to a table, formatted like its last row.

        They go above rows of totals, whose numbers stay: ``totals_not_updated`` names them.
        """
        width_of(rows)
        with self._editing(document) as file:
            word_control = find(file, control_id, control_name)
            check_takes_rows(tables.rows_of(word_control.table)[-1:])
            totals: list[JsonValue] = [*filter(None, tables.append_rows(word_control.table, rows))]
            answer: Answer = {"control_id": control_id, "rows_added": len(rows)}
            return file.answers({**answer, "totals_not_updated": totals} if totals else answer)

    @tool(effect=Effect.IDEMPOTENT, roots=WORD, controls=TABLE)
    def write_cell(
        self,
        document: Document,
        control_id: ControlId,
        row: Annotated[int, Field(ge=1, description="The row, from 1; the header counts.")],
        column: Annotated[int, Field(ge=1, description="The column, from 1.")],
        value: Annotated[Cell, Field(description="The new text or number; null empties the cell.")],
        *,
        control_name: ControlName = "",
    ) -> Answer:
        """Write one cell of a table, in its present font."""
        with self._editing(document) as file:
            grid = tables.grid_of(find(file, control_id, control_name).table)
            if (cell := grid.cells.get((row - 1, column - 1))) is not None:
                check_own_text(cell, file.package.tree(file.package.main))
            mark = decimals_of(grid.texts, [column - 1])[column - 1]
            tables.write_cell(grid, row - 1, column - 1, text_of_value(value, mark))
            return file.answers({"control_id": control_id, "row": row, "column": column})

    @tool(effect=Effect.ONCE, roots=WORD, controls=TABLE, hazards=[Hazard.DELETES])
    def delete_from_table(
        self,
        document: Document,
        control_id: ControlId,
        *,
        control_name: ControlName = "",
        rows: Annotated[LineNumbers, Field(description="The rows to delete, from 1; the header counts.")] = (),
        columns: Annotated[LineNumbers, Field(description="The columns to delete, from 1.")] = (),
    ) -> Answer:
        """Delete rows or columns of a table; the rest stays."""
        if not rows and not columns:
            msg = "nothing to delete: pass rows or columns; delete_control deletes the whole table"
            raise ToolError(msg)
        with self._editing(document) as file:
            table = find(file, control_id, control_name).table
            for element in tables.lines_of(table, {row - 1 for row in rows}, {column - 1 for column in columns}):
                check_removable(element, file.package.tree(file.package.main))
            tables.delete_lines(table, {row - 1 for row in rows}, {column - 1 for column in columns})
            rows_left, columns_left = tables.grid_of(table).size
            return file.answers({"control_id": control_id, "rows_left": rows_left, "columns_left": columns_left})
