"""The tools of tables and sheets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from callboard.actors.servers._server import tool
from callboard.actors.servers.desktop._cells import Value, read_table, select_cells, write_cells
from callboard.actors.servers.desktop._hands import Answer, ControlId, Process  # noqa: TC001 - schemas are made of them
from callboard.messages import Effect

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.actors.servers.desktop._hands import Hands

_CELL = r"[A-Za-z]{1,3}[1-9]\d{0,6}"
_TABLES = ("table", "tree table", "tree")


class TableTools:
    """Read and write tables, whether or not their cells are in sight.

    Args:
        hands: Gives what does it, once the desktop is open.
    """

    def __init__(self, hands: Callable[[], Hands]) -> None:
        self._hands = hands

    @tool(effect=Effect.READ, controls=_TABLES)
    def read_table(
        self,
        process: Process,
        control_id: ControlId,
        *,
        first_row: Annotated[int, Field(ge=0, description="From 0.")] = 0,
        rows: Annotated[int, Field(ge=1, le=500)] = 100,
        columns: Annotated[int, Field(ge=1, le=50)] = 20,
        numbers: Annotated[
            bool, Field(description="Whether texts that are numbers beyond doubt become numbers.")
        ] = True,
    ) -> Answer:
        """Read the cells of a table, also those that are not in sight."""
        hands = self._hands()
        path = hands.desk.node(process, control_id).path
        return read_table(hands.program(process), path, first_row, rows, columns, numbers=numbers)

    @tool(effect=Effect.IDEMPOTENT, controls=("table",))
    def write_cells(
        self,
        process: Process,
        control_id: ControlId,
        cell: Annotated[str, Field(pattern=f"^{_CELL}$", description="The first cell, such as B2.")],
        rows: list[list[Value]],
    ) -> Answer:
        """Write rows of numbers, texts and formulas into the cells of a sheet; null leaves a cell as it is."""
        hands = self._hands()
        return write_cells(hands, process, hands.ready(process, control_id).path, cell, rows)

    @tool(effect=Effect.IDEMPOTENT, controls=("table",))
    def select_cells(
        self,
        process: Process,
        control_id: ControlId,
        cells: Annotated[str, Field(pattern=f"^{_CELL}(:{_CELL})?$", description="Such as A1:E5.")],
    ) -> Answer:
        """Select cells of a sheet."""
        hands = self._hands()
        return select_cells(hands, process, hands.ready(process, control_id).path, cells)
