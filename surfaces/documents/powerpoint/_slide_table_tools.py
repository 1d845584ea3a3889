"""PowerPoint tools for tables: read, insert, append, write and delete."""

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
from callboard.surfaces.documents.powerpoint import _slide_tables as tables
from callboard.surfaces.documents.powerpoint._deck_controls import find
from callboard.surfaces.documents.powerpoint._deck_editor import (
    POWERPOINT,
    TABLE,
    Place,
    PowerPointEditor,
    frame_for,
    shape_answer,
    target_of,
)
from callboard.surfaces.documents.powerpoint._graphic_frames import put_frame

if TYPE_CHECKING:
    from pydantic import JsonValue

    from callboard.surfaces.documents._package import Element
    from callboard.surfaces.documents.powerpoint._deck import DeckFile
    from callboard.surfaces.documents.powerpoint._shapes import SlideShape


class SlideTableTools(PowerPointEditor):
    """The tools of tables in ``.pptx`` files."""

    @tool(effect=Effect.READ, roots=POWERPOINT, controls=TABLE)
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
        header not counted); pass ``decimal`` to have it read. A merged cell's text is in its top left cell.
        """
        _, table = _table(self._load(self._workspace.read(document)), control_id, control_name)
        grid = tables.grid_of(table)
        return answer_of(grid, header=header, numbers=numbers, decimal=decimal, start=start, limit=limit)

    @tool(effect=Effect.ONCE, roots=POWERPOINT)
    def insert_table(
        self,
        document: Document,
        control_id: Annotated[
            str, Field(description="The id of a slide, such as slide-3, or of an empty placeholder.")
        ],
        header: Annotated[list[str], Field(description="The texts of the header row; empty for no header.")],
        rows: NewRows,
        *,
        place: Place = [],  # noqa: B006 - read only
        control_name: ControlName = "",
    ) -> Answer:
        """Insert a table into an empty placeholder, or at a free place."""
        width_of(rows, header or None)
        with self._editing(document) as file:
            slide, placeholder = target_of(file, control_id, control_name, "table")
            frame = frame_for(slide, place, placeholder)
            slide.edit()
            element = tables.make_table(slide, header, rows, frame)
            put_frame(slide, element, placeholder)
            return file.answers(shape_answer(slide, element))

    @tool(effect=Effect.ONCE, roots=POWERPOINT, controls=TABLE)
    def append_rows(
        self, document: Document, control_id: ControlId, rows: NewRows, *, control_name: ControlName = ""
    ) -> Answer:
        """Append rows to a table, formatted like its last row.

        They go above rows of totals, whose numbers stay: ``totals_not_updated`` names them.
        """
        width_of(rows)
        with self._editing(document) as file:
            shape, table = _table(file, control_id, control_name)
            shape.slide.edit()
            totals: list[JsonValue] = [*filter(None, tables.append_rows(shape.element, table, rows))]
            answer = shape_answer(shape.slide, shape.element) | {"rows_added": len(rows)}
            return file.answers({**answer, "totals_not_updated": totals} if totals else answer)

    @tool(effect=Effect.IDEMPOTENT, roots=POWERPOINT, controls=TABLE)
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
        """Write one cell of a table, in its present format."""
        with self._editing(document) as file:
            shape, table = _table(file, control_id, control_name)
            grid = tables.grid_of(table)
            mark = decimals_of(grid.texts, [column - 1])[column - 1]
            shape.slide.edit()
            tables.write_cell(grid, row - 1, column - 1, text_of_value(value, mark))
            return file.answers({**shape_answer(shape.slide, shape.element), "row": row, "column": column})

    @tool(effect=Effect.ONCE, roots=POWERPOINT, controls=TABLE, hazards=[Hazard.DELETES])
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
            shape, table = _table(file, control_id, control_name)
            shape.slide.edit()
            tables.delete_lines(shape.element, table, {row - 1 for row in rows}, {column - 1 for column in columns})
            rows_left, columns_left = tables.grid_of(table).size
            return file.answers({"control_id": control_id, "rows_left": rows_left, "columns_left": columns_left})


def _table(file: DeckFile, control_id: str, control_name: str) -> tuple[SlideShape, Element]:
    """Find a table.

    Raises:
        ToolError: If the control is none, or an empty placeholder.
    """
    shape = find(file, control_id, control_name).need("table")
    if (table := shape.table) is None:
        msg = f"{control_id!r} is an empty placeholder; insert_table fills it"
        raise ToolError(msg)
    return shape, table
