"""Conditional formats as a call describes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from openpyxl.worksheet.cell_range import CellRange

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents.excel._cell_formats import Format
from callboard.surfaces.documents.excel._condition_formulas import formula_of
from callboard.surfaces.documents.excel._conditional_formats import (
    Conditional,
    add_rule,
    bar_rule,
    delete_rules,
    formula_rule,
    scale_rule,
)
from callboard.surfaces.documents.excel._met_conditions import table_around

if TYPE_CHECKING:
    from callboard.surfaces.documents._tables import Answer
    from callboard.surfaces.documents.excel._met_conditions import CellCondition
    from callboard.surfaces.documents.excel._sheet import Sheet


@dataclass(frozen=True)
class ConditionalRules:
    """A conditional format: conditions and a format, a scale, or bars."""

    where: list[CellCondition]
    scale: list[str]
    bars: str | None
    changes: Format
    header: bool

    def apply(self, sheet: Sheet, ranges: list[CellRange], mode: Conditional) -> Answer:
        """Add, replace or delete conditional formats of ranges.

        Raises:
            ToolError: If the arguments do not describe one format, or a condition can't be written as a formula.
        """
        kinds = [name for name, is_given in self._kinds().items() if is_given]
        if mode == "delete":
            if kinds or self.changes != Format():
                msg = "delete takes the conditional formats of cells away: leave out where, scale, bars and formats"
                raise ToolError(msg)
            return {"rules_deleted": sum(delete_rules(sheet, cells) for cells in ranges)}
        if len(kinds) != 1 or (kinds != ["where"] and self.changes != Format()):
            msg = "a conditional format is where with a format, or a scale, or bars"
            raise ToolError(msg)
        answer: Answer = {}
        if mode == "replace":
            answer["rules_deleted"] = sum(delete_rules(sheet, cells) for cells in ranges)
        formulas = [self._add(sheet, cells) for cells in ranges]
        return answer | ({"formula": formulas[0]} if self.where else {})

    def _kinds(self) -> dict[str, bool]:
        return {"where": bool(self.where), "scale": bool(self.scale), "bars": self.bars is not None}

    def _add(self, sheet: Sheet, cells: CellRange) -> str:
        """Add the rule for a range, and return its formula, if any."""
        if not self.where:
            add_rule(sheet, cells, scale_rule(self.scale) if self.bars is None else bar_rule(self.bars))
            return ""
        table = table_around(sheet, cells, [condition.column for condition in self.where if condition.column])
        if self.header and table.min_row == cells.min_row and cells.max_row > cells.min_row:
            cells = CellRange(None, cells.min_col, cells.min_row + 1, cells.max_col, cells.max_row)
        formula = formula_of(sheet, cells, table, self.where, header=self.header)
        add_rule(sheet, cells, formula_rule(sheet, formula, self.changes))
        return f"={formula}"
