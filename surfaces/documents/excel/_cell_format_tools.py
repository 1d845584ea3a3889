"""Excel tools for formats and merged cells."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from callboard.messages import Effect
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.documents._tables import (
    Answer,
    Color,
    ControlId,
    ControlName,
    Document,
    clean,
)
from callboard.surfaces.documents.excel._cell_formats import (
    Format,
    format_cells,
    merge_cells,
    unmerge_cells,
)
from callboard.surfaces.documents.excel._cell_ranges import (
    bounded,
    check_empty,
    filled_positions,
    writable,
)
from callboard.surfaces.documents.excel._conditional_formats import Conditional  # noqa: TC001 - schemas are made of it
from callboard.surfaces.documents.excel._conditional_rules import ConditionalRules
from callboard.surfaces.documents.excel._hidden_rows import row_spans
from callboard.surfaces.documents.excel._met_conditions import CellCondition, cells_meeting
from callboard.surfaces.documents.excel._sheet import where_of
from callboard.surfaces.documents.excel._sheet_controls import (
    SheetRange,
    find_ranges,
)
from callboard.surfaces.documents.excel._workbook_editor import (
    CELLS,
    EXCEL,
    NONE,
    ExcelEditor,
    Header,
    Ranges,
    SheetTitle,
)

if TYPE_CHECKING:
    from openpyxl.worksheet.cell_range import CellRange

    from callboard.surfaces.documents.excel._sheet import Sheet


class ExcelFormatTools(ExcelEditor):
    """The tools of formats in ``.xlsx`` files."""

    @tool(effect=Effect.IDEMPOTENT, roots=EXCEL, controls=CELLS)
    def format_cells(
        self,
        document: Document,
        *,
        cells: Ranges = "",
        where: Annotated[
            list[CellCondition], Field(description="Only cells that meet all of them get the format; empty for all.")
        ] = NONE,
        number_format: Annotated[
            str | None,
            Field(
                min_length=1,
                max_length=255,
                description="A code, like #,##0.00 or 0% or yyyy-mm-dd, or currency, percent, date or time.",
            ),
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
        merge: Annotated[
            bool | None, Field(description="True merges each range into one cell, false takes merged cells apart.")
        ] = None,
        conditional: Annotated[
            Conditional | None,
            Field(
                description="Add makes a conditional format of where, scale or bars, which follows later values, "
                "replace does so in place of those of the cells, and delete deletes those."
            ),
        ] = None,
        scale: Annotated[list[Color], Field(description="2 or 3 colors of a color scale, the lowest first.")] = NONE,
        bars: Annotated[Color | None, Field(description="The color of conditional bars.")] = None,
        sheet: SheetTitle = "",
        header: Header = True,
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Change the format of cells; arguments left out change nothing.

        ``where`` chooses rows by a column, or cells by their own value, once; conditional formats follow later values.
        """
        code = None if number_format is None else number_code(number_format)
        changes = Format(
            number_format=code, bold=bold, italic=italic, underline=underline, font=font, size=size,
            color=color, fill=fill, horizontal=horizontal, vertical=vertical, wrap=wrap, border=border, width=width,
        )  # fmt: skip
        with self._editing(document) as file:
            target_sheet, ranges = find_ranges(file, sheet, cells, control_id, control_name)
            writable(SheetRange(target_sheet, None))
            bounded(*ranges)
            answer: Answer = {"sheet": target_sheet.title, "cells": ",".join(area.coord for area in ranges)}
            if conditional or scale or bars:
                rules = ConditionalRules(where, scale, bars, changes, header)
                if merge is not None:
                    msg = "merge and conditional formats are two calls"
                    raise ToolError(msg)
                return file.answers(answer | rules.apply(target_sheet, ranges, conditional or "add"))
            positions = None
            if where:
                matches = (cells_meeting(file, target_sheet, area, where, header=header) for area in ranges)
                positions = [*dict.fromkeys(position for area_matches in matches for position in area_matches)]
                if not positions:
                    msg = f"no cell of {answer['cells']} meets the conditions"
                    raise ToolError(msg)
                answer |= {
                    "cells_formatted": len(positions),
                    "rows_formatted": row_spans({row for row, _ in positions}),
                }
            for area in ranges if merge else ():
                _merge(target_sheet, area)
            if merge is False:
                answer["taken_apart"] = [coord for area in ranges for coord in unmerge_cells(target_sheet, area)]
            if merge is None or changes != Format():
                format_cells(target_sheet, ranges, changes, positions)
            return file.answers(answer | changes.model_dump(exclude_none=True))


def _merge(sheet: Sheet, cells: CellRange) -> None:
    """Merge cells; only the first may hold something."""
    if cells.coord in {merged_range.coord for merged_range in sheet.merged}:
        return
    corner = (cells.min_row, cells.min_col)
    inner = next((where for where in filled_positions(sheet, cells) if where != corner), None)
    if inner is not None:
        msg = f"{where_of(*inner)} holds something, and would not be seen in a merged cell; empty it first"
        raise ToolError(msg)
    check_empty(sheet, cells, "merged cells and tables can't be merged", but=corner)
    merge_cells(sheet, cells)


_WORDS = {
    "general": "General",
    "number": "#,##0.00",
    "currency": '"$"#,##0.00_);("$"#,##0.00)',  # built in: Excel shows it with the user's currency
    "percent": "0.00%",
    "date": "yyyy-mm-dd",
    "time": "h:mm:ss",
    "duration": "[h]:mm:ss",
    "text": "@",
}
_MAX_SECTIONS = 4
_TOKEN = re.compile(
    r"""(?P<literal>"[^"]*"|\\.|_.|\*.)
    |(?P<bracket>\[(?:\$[^\[\]]*|(?:[<>]=?|<>|=)-?[0-9.]+|color\ ?[0-9]{1,2}|dbnum[0-9]|natnum[0-9]{1,2}
     |black|blue|cyan|green|magenta|red|white|yellow)\])
    |(?P<word>general)
    |(?P<date>\[(?:h+|m+|s+)\](?:\.0+)?|y{1,4}|m{1,5}|d{1,4}|h{1,2}|s{1,2}(?:\.0+)?|am/pm|a/p|aaaa?|g{1,3}(?:e{1,2})?)
    |(?P<digit>[0\#?](?:[0\#?.,]*[0\#?])?(?:e[+-][0\#?]+)?)
    |(?P<end>;)
    |(?P<other>[^\W_A-Za-z]|[^\w"\\*\[\]])""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


def number_code(text: str) -> str:
    """Return the code of a number format or of its word.

    Raises:
        ToolError: If Excel would not accept it.
    """
    code = clean(text)
    if (word := code.strip().casefold()) in _WORDS:
        return _WORDS[word]
    position, sections = 0, [set[str]()]
    while position < len(code):
        token = _TOKEN.match(code, position)
        if token is None or (token.lastgroup == "other" and token[0].isalpha()):
            raise _refusal(text, f"{code[position:]!r} is no part of a code")
        if token.lastgroup == "end":
            sections.append(set())
        sections[-1].add(str(token.lastgroup))
        position = token.end()
    if any({"date", "digit"} <= section for section in sections):
        raise _refusal(text, "it mixes digits with the letters of dates")
    if len(sections) > _MAX_SECTIONS:
        raise _refusal(text, f"it has more than {_MAX_SECTIONS} parts")
    return code


def _refusal(text: str, why: str) -> ToolError:
    return ToolError(
        f"{text!r} is no number format: {why}; write a word ({', '.join(_WORDS)}) or a code, "
        'like #,##0.00, 0%, yyyy-mm-dd or 0.0 "kg" (other texts stand in quotes)'
    )
