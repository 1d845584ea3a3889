"""Excel tools: controls, cells, texts and formulas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from openpyxl.utils import get_column_letter
from pydantic import Field, TypeAdapter

from callboard.messages import Control, Effect
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.documents._page_pictures import show_page
from callboard.surfaces.documents._tables import Answer, ControlId, ControlName, Document, clean, short, width_of
from callboard.surfaces.documents.excel._cell_elements import area_of, is_within
from callboard.surfaces.documents.excel._cell_format_tools import ExcelFormatTools
from callboard.surfaces.documents.excel._cell_ranges import (
    bounded,
    check_arrays,
    filled_positions,
    read_cells,
    spread,
    start_of,
    write_cells,
)
from callboard.surfaces.documents.excel._cell_values import Value
from callboard.surfaces.documents.excel._chart_tools import ExcelChartTools
from callboard.surfaces.documents.excel._copy_cells import target_of
from callboard.surfaces.documents.excel._copy_tools import ExcelCopyTools, copied
from callboard.surfaces.documents.excel._dynamic_arrays import fill_spill, spills
from callboard.surfaces.documents.excel._formulas import checked, fill, fill_array, is_array, resolved, show_dates
from callboard.surfaces.documents.excel._pivot_tools import ExcelPivotTools
from callboard.surfaces.documents.excel._proven_shapes import single_range
from callboard.surfaces.documents.excel._range_pictures import pdf_of_cells
from callboard.surfaces.documents.excel._range_tools import ExcelTableTools
from callboard.surfaces.documents.excel._replace_texts import replace
from callboard.surfaces.documents.excel._save_tools import ExcelSaveTools
from callboard.surfaces.documents.excel._sheet import position_of
from callboard.surfaces.documents.excel._sheet_controls import (
    find_all,
    find_range,
    tree,
)
from callboard.surfaces.documents.excel._sheet_tools import ExcelSheetTools
from callboard.surfaces.documents.excel._split_texts import Split
from callboard.surfaces.documents.excel._touched_cells import TouchedCells, canonical, resources
from callboard.surfaces.documents.excel._validation_tools import ExcelValidationTools
from callboard.surfaces.documents.excel._workbook import ExcelFile
from callboard.surfaces.documents.excel._workbook_editor import (
    CELLS,
    EXCEL,
    FILLED,
    PIVOT,
    Cells,
    Corner,
    Rows,
    SheetTitle,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from openpyxl.worksheet.cell_range import CellRange
    from pydantic import JsonValue

    from callboard.surfaces.documents._workspace import Snapshot
    from callboard.surfaces.documents.excel._sheet import Sheet as Grid


_ROWS: TypeAdapter[list[list[Value]]] = TypeAdapter(list[list[Value]])
_SHOWN = 3


class ExcelTools(
    ExcelCopyTools,
    ExcelTableTools,
    ExcelSheetTools,
    ExcelFormatTools,
    ExcelChartTools,
    ExcelPivotTools,
    ExcelValidationTools,
    ExcelSaveTools,
):
    """The tools of ``.xlsx`` files.

    Each call reads the file, and an edit replaces it; no file stays open.
    """

    def controls(self, snapshot: Snapshot) -> list[Control]:
        """List a workbook's controls: sheets, used ranges, tables, charts, pivot tables.

        Raises:
            ToolError: If it is damaged.
        """
        return find_all(snapshot.once(self._load))

    def tree(self, snapshot: Snapshot) -> Answer:
        """Arrange a workbook's controls in a tree, by sheets."""
        return tree(snapshot.once(self._load), snapshot.path.name)

    def not_writable(self, snapshot: Snapshot) -> str:
        """Explain why a workbook must not be written; empty if it may."""
        return snapshot.once(self._load).not_writable()

    def empty(self) -> bytes:
        """Return the bytes of a new workbook."""
        return ExcelFile.new().to_bytes()

    def canonical(self, document: str, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Make the sheet's title and the cells explicit in the arguments."""
        return canonical(self._load(self._workspace.read(document)), arguments)

    def resources(self, document: str, tool_name: str, arguments: Mapping[str, Any]) -> Iterator[str]:
        """Name the sheets and ranges that a call touches."""
        return resources(self._load(self._workspace.read(document)), tool_name, arguments)

    def overwrites(self, document: str, tool_name: str, arguments: Mapping[str, Any]) -> str:
        """Describe the content that a call would replace; empty for none.

        A call that would be refused replaces nothing. Neither does a call that writes the present content, such as
        the repetition of a call that completed right before a crash.
        """
        selectors = {key: arguments.get(key, "") for key in ("cell", "cells", "sheet", "control_id", "control_name")}
        named = (selectors["control_id"], selectors["control_name"])
        try:
            load = self._load_whole if tool_name in {"copy_range", "replace_text"} else self._load
            file = load(self._workspace.read(document))
            if tool_name == "write_range":
                values = arguments["values"]
                target = start_of(file, selectors["sheet"], selectors["cell"], *named)
                cells = spread(target, len(values), width_of(values))
                before = _contents(target.sheet, cells)
                write_cells(target.sheet, cells, _ROWS.validate_python(values))
            elif tool_name == "copy_range":
                source = find_range(file, selectors["sheet"], selectors["cells"], *named)
                target = target_of(file, source, arguments["to"])
                before = _contents(target.sheet, target.sheet.used() or target.need())
                split = Split(*(arguments.get(key, "") for key in ("delimiter", "widths", "pattern", "parts")))
                options = {"content": arguments.get("content", "all"), "transpose": arguments.get("transpose", False)}
                cells = area_of(str(copied(file, source, arguments["to"], split, **options)["cells"]))
                before = {where: old for where, old in before.items() if is_within(cells, *position_of(where))}
            elif tool_name == "replace_text":
                target = find_range(file, selectors["sheet"], selectors["cells"], *named)
                cells = target.need()
                before = _contents(target.sheet, cells)
                options = {"match_case": arguments["match_case"], "whole_cell": arguments["whole_cell"]}
                is_pattern = arguments.get("pattern", False)
                replace(target, arguments["find_text"], arguments["new_text"], is_pattern=is_pattern, **options)
            else:
                target = find_range(file, selectors["sheet"], selectors["cells"], *named)
                cells = bounded(target.need())
                check_arrays(target.sheet, cells)
                before = _contents(target.sheet, cells)
                text = resolved(file, target.sheet, cells, checked(arguments["formula"]))
                _writer(text, is_array=is_array(arguments["formula"]))(target.sheet, cells, text)
        except ToolError:
            return ""
        after = _contents(target.sheet, cells)
        gone = [where for where, old in before.items() if after.get(where) != old]
        if not gone:
            return ""
        examples = ", ".join(f"{where} {short(str(before[where][0]), 30)!r}" for where in gone[:_SHOWN])
        remainder = f" and {len(gone) - _SHOWN} more" if len(gone) > _SHOWN else ""
        number = "1 cell" if len(gone) == 1 else f"{len(gone)} cells"
        return f"{number} of {target.sheet.title!r} with content: {examples}{remainder}"

    @tool(effect=Effect.READ, roots=EXCEL, controls=(*FILLED, *PIVOT))
    def read_range(
        self,
        document: Document,
        *,
        cells: Cells = "",
        header: Annotated[
            bool, Field(description="Whether the first row is given apart: as header, and the others as rows.")
        ] = False,
        picture: Annotated[
            bool, Field(description="Whether the cells are drawn as well, to see how they look.")
        ] = False,
        sheet: SheetTitle = "",
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Read cells by row.

        Numbers are numbers, dates are ISO texts (listed in ``dates``), and empty cells are null.

        A formula gives its result and stands in ``formulas``; without a result its value is ``(not computed)``, and it
        is listed in ``not_computed``. A merged cell's value stands at its top left corner.
        Long ranges are cut after whole rows; ``left_out`` says how many follow.
        """
        snapshot = self._workspace.read(document)
        file = self._load(snapshot)
        target = find_range(file, sheet, cells, control_id, control_name)
        if target.cells is None:
            return {"sheet": target.sheet.title, "cells": None, "values": [], "left_out": 0}
        if picture:
            copy = self._load_whole(snapshot)
            drawn = TouchedCells(copy.sheet(target.sheet.title), target.cells)
            show_page(document, pdf_of_cells(document, copy, drawn), 1, is_cut=True)
        answer = read_cells(file, target.sheet, target.cells)
        return _with_header(answer) if header else answer

    @tool(effect=Effect.IDEMPOTENT, roots=EXCEL, controls=CELLS)
    def write_range(
        self,
        document: Document,
        values: Rows,
        *,
        cell: Corner = "",
        sheet: SheetTitle = "",
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Write values into cells.

        Null empties a cell. A text that begins with ``=`` stays a text.
        """
        width = width_of(values)  # type: ignore[arg-type]
        with self._editing(document, streamed=True) as file:
            target = start_of(file, sheet, cell, control_id, control_name)
            cells = spread(target, len(values), width)
            write_cells(target.sheet, cells, values)
            return file.answers({"sheet": target.sheet.title, "cells": cells.coord})

    @tool(effect=Effect.IDEMPOTENT, roots=EXCEL, controls=CELLS)
    def replace_text(
        self,
        document: Document,
        find_text: Annotated[str, Field(min_length=1, description="The text to look for.")],
        new_text: Annotated[str, Field(description="The text in its place.")],
        *,
        cells: Cells = "",
        sheet: SheetTitle = "",
        match_case: Annotated[bool, Field(description="Whether capitals count.")] = False,
        whole_cell: Annotated[bool, Field(description="Whether only cells that hold exactly this text count.")] = False,
        pattern: Annotated[
            bool, Field(description=r"Whether find_text is a regular expression; \1 in new_text is its first group.")
        ] = False,
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Replace a text in cells that hold texts.

        Numbers, dates and formulas stay; the answer names those with the text. A whole text that becomes a number is
        one, but not in a cell that is formatted as text.
        """
        with self._editing(document) as file:
            target = find_range(file, sheet, cells, control_id, control_name)
            answer = replace(
                target, find_text, clean(new_text), match_case=match_case, whole_cell=whole_cell, is_pattern=pattern
            )
            if not answer["changed"]:
                msg = f"{find_text!r} is in no text of {target.sheet.title!r}!{target.need().coord}"
                keys = [name for name in ("formulas_not_changed", "numbers_not_changed") if name in answer]
                msg += f"; it stands in {' and '.join(name.partition('_')[0] for name in keys)}" if keys else ""
                raise ToolError(msg)
            return file.answers(answer)

    @tool(effect=Effect.IDEMPOTENT, roots=EXCEL, controls=CELLS)
    def set_formula(
        self,
        document: Document,
        formula: Annotated[
            str,
            Field(
                description="In English, like =SUM(B2:B10); arguments are separated by commas. "
                "In braces, like {=MAX(IF(B2:B10<9,B2:B10))}: one array formula for all the cells."
            ),
        ],
        cells: Annotated[str, Field(description="One cell, or a range to fill; relative references move along.")],
        *,
        sheet: SheetTitle = "",
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Answer:
        """Write a formula into a cell, or fill a range."""
        text, array = checked(formula), is_array(formula)
        if array and spills(text):
            msg = f"{formula!r} is refused: formulas of dynamic arrays are written without braces, into one cell"
            raise ToolError(msg)
        with self._editing(document, streamed=True) as file:
            target = find_range(file, sheet, cells, control_id, control_name)
            area = bounded(target.need())
            text = resolved(file, target.sheet, area, text)
            check_arrays(target.sheet, area)
            _writer(text, is_array=array)(target.sheet, area, text)
            show_dates(file, target.sheet, area, text)
            answer: Answer = {"sheet": target.sheet.title, "cells": area.coord}
            answer["formula"] = f"{{{text}}}" if array else text
            if spills(text):
                answer["note"] = (
                    "programs before Excel 2021 and LibreOffice 24.8 show #NAME? in such cells, also in PDFs that they "
                    "save; filter_rows, sort_range and delete_rows_or_columns make values"
                )
            elif not array and (single := single_range(text)):
                answer["note"] = (
                    f"{single} stands where one value is expected, and gives the one of the formula's row or column; "
                    "write the formula in braces, {=…}, to compute it for all cells"
                )
            return file.answers(answer)


def _with_header(answer: Answer) -> Answer:
    """Part the values into a header and rows."""
    values = answer.pop("values")
    first, rows = (values[0], values[1:]) if isinstance(values, list) else ([], [])
    header: JsonValue = ["" if value is None else str(value) for value in first] if isinstance(first, list) else []
    return {**answer, "header": header, "rows": rows}


def _writer(formula: str, *, is_array: bool) -> Callable[[Grid, CellRange, str], None]:
    """Return the function that writes a formula of a kind."""
    return fill_array if is_array else fill_spill if spills(formula) else fill


def _contents(sheet: Grid, cells: CellRange) -> dict[str, tuple[JsonValue, bool]]:
    """Read the filled cells of a range, for a comparison.

    Each entry is a formula or value, and whether it is a formula.
    """
    return {
        f"{get_column_letter(column)}{row}": (
            sheet.formula(row, column) or sheet.value(row, column),
            sheet.is_formula(row, column),
        )
        for row, column in filled_positions(sheet, cells)
    }
