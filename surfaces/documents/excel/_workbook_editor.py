"""The base of the Excel tools: editing a file, and common parameters."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from callboard.messages import ESSENTIAL
from callboard.surfaces.documents._office import replacing
from callboard.surfaces.documents.excel._cell_values import Value
from callboard.surfaces.documents.excel._pivot_followers import check_pivots, say_pivots
from callboard.surfaces.documents.excel._protection import check_locks
from callboard.surfaces.documents.excel._settle_results import settle
from callboard.surfaces.documents.excel._structured_references import follow_headers
from callboard.surfaces.documents.excel._summaries import Condition
from callboard.surfaces.documents.excel._validations import check_validations
from callboard.surfaces.documents.excel._workbook import ExcelFile
from callboard.surfaces.documents.excel._written_types import say_types

if TYPE_CHECKING:
    from collections.abc import Iterator

    from callboard.surfaces.documents._workspace import Snapshot, Workspace

EXCEL = ("excel",)
SHEET = ("sheet",)
FILLED = ("range", "table")
CELLS = (*SHEET, *FILLED)
CHART = ("chart",)
PIVOT = ("pivot",)

SheetTitle = Annotated[str, Field(description="The sheet's title; empty for the control's sheet, else the open one.")]
Cells = Annotated[
    str,
    Field(
        description="A range like A1:C10; empty for the control's cells, else all used ones.",
        json_schema_extra={ESSENTIAL: True},
    ),
]
Ranges = Annotated[
    str,
    Field(
        description="A range like A1:C10, or several, like B3:C3,B7:C7; empty for the control's cells, else all used.",
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

NONE: list[Any] = []  # never changed


class ExcelEditor:
    """Reads and replaces ``.xlsx`` files; no file stays open."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def _load(self, snapshot: Snapshot) -> ExcelFile:
        """Read a workbook, to read or write single cells."""
        file = ExcelFile.load(snapshot, self._workspace.max_bytes, streamed=True)
        file.compute_cells = self._workspace.compute_cells
        return file

    def _load_to_edit(self, snapshot: Snapshot) -> ExcelFile:
        """Read a workbook, to write cells; whole where formulas are computed."""
        file = self._load(snapshot)
        computes = file.is_streamed and file.has_formulas and file.used_cells <= file.compute_cells
        return self._load_whole(snapshot) if computes else file

    def _load_whole(self, snapshot: Snapshot) -> ExcelFile:
        """Read a workbook, to edit it in any way."""
        file = ExcelFile.load(snapshot, self._workspace.max_bytes)
        file.compute_cells = self._workspace.compute_cells
        return file

    @contextlib.contextmanager
    def _editing(self, document: str, *, streamed: bool = False) -> Iterator[ExcelFile]:
        """Open a workbook for one edit; replace it unless the body raises.

        Args:
            document: The path within the workspace.
            streamed: Whether the edit changes cells through their sheet alone, so that blocks of a large sheet do.
        """
        with replacing(self._workspace, document, self._load_to_edit if streamed else self._load_whole) as file:
            yield file
            check_locks(file)
            check_pivots(file)
            follow_headers(file)
            settle(file)
            check_validations(file)
            say_types(file)
            say_pivots(file)
