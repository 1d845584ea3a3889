"""The Excel tool for the choices and limits of cells."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from callboard.messages import Effect
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.documents._tables import (  # noqa: TC001 - schemas are made of them
    Answer,
    ControlId,
    ControlName,
    Document,
)
from callboard.surfaces.documents.excel._cell_ranges import writable
from callboard.surfaces.documents.excel._set_validation import (
    Kind,
    Limit,
    Sign,
    add_messages,
    formula_rule,
    limit_rule,
    list_rule,
    set_validation,
)
from callboard.surfaces.documents.excel._sheet_controls import SheetRange, find_ranges
from callboard.surfaces.documents.excel._workbook_editor import CELLS, EXCEL, NONE, ExcelEditor, Ranges, SheetTitle


class ExcelValidationTools(ExcelEditor):
    """The tool of validations in ``.xlsx`` files."""

    @tool(effect=Effect.IDEMPOTENT, roots=EXCEL, controls=CELLS)
    def set_validation(
        self,
        document: Document,
        kind: Annotated[Kind, Field(description="The values that the cells take; none deletes their validations.")],
        *,
        cells: Ranges = "",
        choices: Annotated[list[str | int | float], Field(description="Of a list: its entries.")] = NONE,
        source: Annotated[str, Field(description="Of a list: the cells with its entries, like Lists!A1:A9.")] = "",
        operator: Annotated[Sign, Field(description="How values compare with the limits.")] = "between",
        limits: Annotated[
            list[Limit], Field(description='One or two limits, a date or time like {"date": "2024-05-31"}.')
        ] = NONE,
        formula: Annotated[str, Field(description="True for allowed values, like =B2>A2, for the first cell.")] = "",
        warns: Annotated[bool, Field(description="Whether Excel takes other values after a warning.")] = False,
        error: Annotated[str, Field(description="The text that Excel shows for other values.")] = "",
        prompt: Annotated[str, Field(description="The text that Excel shows at the cell.")] = "",
        sheet: SheetTitle = "",
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Set the choices or limits of cells, in place of former ones."""
        with self._editing(document) as file:
            target, ranges = find_ranges(file, sheet, cells, control_id, control_name)
            writable(SheetRange(target, None))
            _check_arguments(kind, choices=choices, source=source, limits=limits, formula=formula)
            if kind == "list":
                rule = list_rule(target, ranges[0], choices, source)
            elif kind == "formula":
                rule = formula_rule(target, ranges[0], formula)
            else:
                rule = limit_rule(target, kind, operator, limits) if kind != "none" else None
            if rule is not None:
                add_messages(rule, error, prompt, warns=warns)
            answer: Answer = {"sheet": target.title, "cells": ",".join(area.coord for area in ranges)}
            return file.answers(answer | set_validation(target, ranges, rule))


def _check_arguments(kind: Kind, **arguments: object) -> None:
    """Refuse arguments that do not belong to a kind of validation.

    Raises:
        ToolError: If there are some.
    """
    uses = {"list": ("choices", "source"), "formula": ("formula",), "none": ()}.get(kind, ("limits",))
    if unused_names := [name for name, value in arguments.items() if value and name not in uses]:
        msg = f"{kind} takes {' or '.join(uses) or 'no arguments'}, and not {' and '.join(unused_names)}"
        raise ToolError(msg)
