"""The Excel tool that copies cells and splits texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from callboard.messages import Effect
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.documents._tables import (  # noqa: TC001 - schemas are made of them
    Answer,
    ControlId,
    ControlName,
    Document,
)
from callboard.surfaces.documents.excel._cell_ranges import write_cells
from callboard.surfaces.documents.excel._copy_cells import Content, copy_cells, sized, target_of
from callboard.surfaces.documents.excel._sheet_controls import SheetRange, find_range
from callboard.surfaces.documents.excel._split_texts import MOST_PARTS, Split, split_texts
from callboard.surfaces.documents.excel._workbook_editor import (
    EXCEL,
    FILLED,
    NONE,
    Cells,
    ExcelEditor,
    SheetTitle,
)

if TYPE_CHECKING:
    from callboard.surfaces.documents.excel._workbook import ExcelFile

_MOST_LISTED = 100


class ExcelCopyTools(ExcelEditor):
    """The tool that copies cells in ``.xlsx`` files."""

    @tool(effect=Effect.ONCE, roots=EXCEL, controls=FILLED)
    def copy_range(
        self,
        document: Document,
        to: Annotated[str, Field(description="The corner of the copy, like G1 or New!A1; a missing sheet is added.")],
        *,
        cells: Cells = "",
        content: Annotated[Content, Field(description="Values are results of formulas.")] = "all",
        transpose: Annotated[bool, Field(description="Whether rows become columns.")] = False,
        delimiter: Annotated[str, Field(description="Splits the texts of one column at it, into columns.")] = "",
        parts: Annotated[int, Field(ge=0, le=MOST_PARTS, description="The most parts of a split; 0 for all.")] = 0,
        widths: Annotated[
            list[Annotated[int, Field(ge=1)]], Field(description="Splits texts into parts of so many characters.")
        ] = NONE,
        pattern: Annotated[
            str, Field(description=r"Takes from texts the groups of a regular expression, like (\d+)-(\w+).")
        ] = "",
        sheet: SheetTitle = "",
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Copy cells to another place, or split texts into columns.

        Cells that are there are replaced. Relative references of formulas move along.
        """
        split = Split(delimiter, tuple(widths), pattern, parts)
        with self._editing(document) as file:
            source = find_range(file, sheet, cells, control_id, control_name)
            return file.answers(copied(file, source, to, split, content=content, transpose=transpose))


def copied(file: ExcelFile, source: SheetRange, to: str, split: Split, *, content: Content, transpose: bool) -> Answer:
    """Copy cells, or the parts of their texts, and return the answer.

    Raises:
        ToolError: If they can't be copied so.
    """
    if not split.is_given:
        return copy_cells(file, source, target_of(file, source, to), content, transpose=transpose)
    if transpose or content != "all":
        msg = "parts of texts are values in columns; leave content and transpose out"
        raise ToolError(msg)
    rows, unmatched = split_texts(file, source, split)
    target = target_of(file, source, to)
    area = sized(target, len(rows), len(rows[0]), repeats=False)
    write_cells(target.sheet, area, rows)
    answer: Answer = {"sheet": target.sheet.title, "cells": area.coord, "rows_split": len(rows) - len(unmatched)}
    return answer | ({"not_matched": [*unmatched[:_MOST_LISTED]]} if unmatched else {})
