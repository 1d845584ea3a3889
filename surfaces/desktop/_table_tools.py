"""Tools for tables and sheets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from callboard.messages import Effect
from callboard.surfaces._surface import tool
from callboard.surfaces.desktop._cells import Value, read_table, select_cells, write_cells
from callboard.surfaces.desktop._window_actions import Answer, ControlId, Process  # noqa: TC001 - schemas are made of them

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.surfaces.desktop._window_actions import WindowActions

_CELL = r"[A-Za-z]{1,3}[1-9]\d{0,6}"
_TABLES = ("table", "tree table", "tree")


class TableTools:
    """Tools that read and write tables, including cells that are not visible.

    Args:
        actions: Returns the window actions, once the desktop is open.
    """

    def __init__(self, actions: Callable[[], WindowActions]) -> None:
        self._actions = actions

    @tool(effect=Effect.READ, controls=_TABLES)
    def read_table(
        self,
        process: Process,
        control_id: ControlId,
        *,
        first_row: Annotated[int, Field(ge=0, description="From 0.")] = 0,
        rows: Annotated[int, Field(ge=1, le=500)] = 100,
        columns: Annotated[int, Field(ge=1, le=50)] = 20,
        numbers: Annotated[bool, Field(description="Whether unambiguous texts become numbers.")] = True,
    ) -> Answer:
        """Read the cells of a table, including those that are not visible."""
        actions = self._actions()
        path = actions.desktop.node(process, control_id).path
        return read_table(actions.program(process), path, first_row, rows, columns, numbers=numbers)

    @tool(effect=Effect.IDEMPOTENT, controls=("table",))
    def write_cells(
        self,
        process: Process,
        control_id: ControlId,
        cell: Annotated[str, Field(pattern=f"^{_CELL}$", description="The first cell, such as B2.")],
        rows: list[list[Value]],
    ) -> Answer:
        """Write rows of values or formulas into a sheet; null keeps cells."""
        actions = self._actions()
        return write_cells(actions, process, actions.ready(process, control_id).path, cell, rows)

    @tool(effect=Effect.IDEMPOTENT, controls=("table",))
    def select_cells(
        self,
        process: Process,
        control_id: ControlId,
        cells: Annotated[str, Field(pattern=f"^{_CELL}(:{_CELL})?$", description="Such as A1:E5.")],
    ) -> Answer:
        """Select cells of a sheet."""
        actions = self._actions()
        return select_cells(actions, process, actions.ready(process, control_id).path, cells)
