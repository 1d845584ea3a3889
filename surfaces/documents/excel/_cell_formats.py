"""Cell formats: fonts, fills, alignments, number formats and column widths.

Each change is an addition to a cell's style.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from lxml import etree
from openpyxl.worksheet.cell_range import CellRange
from pydantic import BaseModel, ConfigDict, Field

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._office import q
from callboard.surfaces.documents._tables import Color, clean, color_code

if TYPE_CHECKING:
    from collections.abc import Iterable

    from callboard.surfaces.documents._package import Element
    from callboard.surfaces.documents.excel._cell_styles import Styles
    from callboard.surfaces.documents.excel._sheet import Sheet

_DEFAULT_WIDTH = 13.0
_FONT_ORDER = ("b", "i", "strike", "condense", "extend", "outline", "shadow", "u", "vertAlign", "sz", "color", "name")


class Format(BaseModel):
    """Changes to the formats of cells; None changes nothing."""

    model_config = ConfigDict(extra="forbid")

    number_format: Annotated[
        str | None,
        Field(min_length=1, max_length=255, description="How numbers are shown: a code, like #,##0.00 or yyyy-mm-dd."),
    ] = None
    bold: bool | None = None
    italic: bool | None = None
    underline: bool | None = None
    font: Annotated[str | None, Field(min_length=1, max_length=31, description="The font's name.")] = None
    size: Annotated[float | None, Field(ge=1, le=409, description="In points.")] = None
    color: Annotated[Color | None, Field(description="Of the text.")] = None
    fill: Annotated[Color | None, Field(description="Of the cell.")] = None
    horizontal: Literal["left", "center", "right", "justify", "general"] | None = None
    vertical: Literal["top", "center", "bottom"] | None = None
    wrap: Annotated[bool | None, Field(description="Whether long texts are broken into lines.")] = None
    border: Literal["none", "thin", "medium", "thick"] | None = None
    width: Annotated[float | None, Field(ge=0, le=255, description="Of the columns, in characters.")] = None


def format_cells(
    sheet: Sheet, ranges: Iterable[CellRange], changes: Format, positions: Iterable[tuple[int, int]] | None = None
) -> None:
    """Change the formats of the cells of ranges.

    Args:
        sheet: The sheet.
        ranges: The ranges; a width is that of all their columns.
        changes: The changes.
        positions: Those of the cells that change; None for all.

    Raises:
        ToolError: If nothing is to change, or a color is none.
    """
    if not changes.model_dump(exclude_none=True):
        msg = "say which format the cells get, such as bold or number_format"
        raise ToolError(msg)
    colors = {name: color_code(value) for name in ("color", "fill") if (value := getattr(changes, name)) is not None}
    styles = sheet.file.styles
    key = changes.model_dump_json(exclude={"width"})
    ranges = [*ranges]
    if positions is None:
        positions = (position for cells in ranges for row in cells.rows for position in row)
    if changes.model_dump(exclude_none=True, exclude={"width"}):
        for row, column in positions:
            style = styles.derive(sheet.style(row, column), key, lambda entry: _apply(styles, entry, changes, colors))
            if changes.number_format is not None:
                style = styles.with_number_format(style, changes.number_format)
            sheet.set_style(row, column, style)
    if changes.width is not None:
        for column in {column for cells in ranges for column in range(cells.min_col, cells.max_col + 1)}:
            set_width(sheet, column, changes.width)


def make_bold(sheet: Sheet, cells: CellRange) -> None:
    """Set the text of cells in bold."""
    format_cells(sheet, [cells], Format(bold=True))


def width_at(sheet: Sheet, column: int) -> float:
    """Return a column's width in characters."""
    column_element = _column(sheet, column)
    text = column_element.get("width") if column_element is not None else None
    if text is None:
        defaults = sheet.root.find(q("sheetFormatPr"))
        text = defaults.get("defaultColWidth") if defaults is not None else None
    return float(text) if text else _DEFAULT_WIDTH


def set_width(sheet: Sheet, column: int, width: float) -> None:
    """Set the width of a column, in characters; its neighbours keep theirs."""
    column_element = _single_column(sheet, column)
    column_element.set("width", f"{width:g}")
    column_element.set("customWidth", "1")


def hide_column(sheet: Sheet, column: int) -> None:
    """Hide a column; its width stays."""
    _single_column(sheet, column).set("hidden", "1")


def column_look(sheet: Sheet, column: int) -> dict[str, str]:
    """Return a column's attributes: its width, its style, whether it is hidden."""
    column_element = _column(sheet, column)
    attributes = dict(column_element.attrib) if column_element is not None else {}
    return {name: value for name, value in attributes.items() if name not in {"min", "max"}}


def set_column_look(sheet: Sheet, column: int, look: dict[str, str]) -> None:
    """Give a column the attributes that another one had."""
    if look == column_look(sheet, column):
        return
    column_element = _single_column(sheet, column)
    if not look:
        columns = column_element.getparent()
        columns.remove(column_element)
        if len(columns) == 0:
            columns.getparent().remove(columns)
        return
    for name in {*column_element.attrib} - {"min", "max"}:
        del column_element.attrib[name]
    column_element.attrib.update(look)


def _single_column(sheet: Sheet, column: int) -> Element:
    """Return the element of one column alone, split from its neighbours."""
    columns = sheet.element("cols")
    column_element = _column(sheet, column)
    if column_element is None:
        column_element = etree.Element(q("col"))
        index = sum(1 for element in columns if int(element.get("max", "0")) < column)
        columns.insert(index, column_element)
    first, last = int(column_element.get("min", column)), int(column_element.get("max", column))
    for start, end, offset in ((first, column - 1, 0), (column + 1, last, 1)):
        if start <= end:
            neighbour = etree.Element(q("col"), dict(column_element.attrib))
            neighbour.set("min", str(start))
            neighbour.set("max", str(end))
            columns.insert(columns.index(column_element) + offset, neighbour)
    column_element.set("min", str(column))
    column_element.set("max", str(column))
    return column_element


def merge_cells(sheet: Sheet, cells: CellRange) -> None:
    """Merge the cells of a range into one.

    Raises:
        ToolError: If the range is one cell.
    """
    if cells.size == {"rows": 1, "columns": 1}:
        msg = f"{cells.coord} is one cell; name the range that becomes one"
        raise ToolError(msg)
    etree.SubElement(merges := sheet.element("mergeCells"), q("mergeCell")).set("ref", cells.coord)
    merges.set("count", str(len(merges)))
    sheet.forget()


def unmerge_cells(sheet: Sheet, cells: CellRange) -> list[str]:
    """Take the merged cells of a range apart. Returns their ranges."""
    merges = sheet.root.find(q("mergeCells"))
    merge_elements = (
        [element for element in merges if not CellRange(element.get("ref")).isdisjoint(cells)]
        if merges is not None
        else []
    )
    for element in merge_elements:
        sheet.edit()
        merges.remove(element)
    if merges is not None and merge_elements:
        merges.set("count", str(len(merges)))
        if len(merges) == 0:
            sheet.edit().remove(merges)
    sheet.forget()
    return [element.get("ref") for element in merge_elements]


def _apply(styles: Styles, entry: Element, changes: Format, colors: dict[str, str | None]) -> None:
    _apply_font(styles, entry, changes, colors)
    if "fill" in colors:
        fill = etree.Element(q("fill"))
        pattern = etree.SubElement(fill, q("patternFill"))
        pattern.set("patternType", "solid" if colors["fill"] else "none")
        if colors["fill"]:
            etree.SubElement(pattern, q("fgColor")).set("rgb", f"FF{colors['fill']}")
            etree.SubElement(pattern, q("bgColor")).set("indexed", "64")
        entry.set("fillId", str(styles.intern("fills", fill)))
        entry.set("applyFill", "1")
    if changes.border is not None:
        border = etree.Element(q("border"))
        for side in ("left", "right", "top", "bottom"):
            line = etree.SubElement(border, q(side))
            if changes.border != "none":
                line.set("style", changes.border)
                etree.SubElement(line, q("color")).set("auto", "1")
        etree.SubElement(border, q("diagonal"))
        entry.set("borderId", str(styles.intern("borders", border)))
        entry.set("applyBorder", "1")
    _align(entry, {"horizontal": changes.horizontal, "vertical": changes.vertical, "wrapText": changes.wrap})


def _apply_font(styles: Styles, entry: Element, changes: Format, colors: dict[str, str | None]) -> None:
    marks = {"b": changes.bold, "i": changes.italic, "u": changes.underline}
    properties: dict[str, dict[str, str] | None] = {
        name: {} if mark else None for name, mark in marks.items() if mark is not None
    }
    if changes.size:
        properties["sz"] = {"val": f"{changes.size:g}"}
    if "color" in colors:
        properties["color"] = {"rgb": f"FF{colors['color']}"} if colors["color"] else None
    if changes.font:
        properties |= {"name": {"val": clean(changes.font)}, "scheme": None}
    if properties:
        font = styles.copied("fonts", entry.get("fontId"))
        for name, attributes in properties.items():
            _set(font, name, attributes)
        entry.set("fontId", str(styles.intern("fonts", font)))
        entry.set("applyFont", "1")


def _align(entry: Element, alignment: dict[str, str | bool | None]) -> None:
    """Set the alignment of a cell's content; None changes nothing."""
    changes = {name: value for name, value in alignment.items() if value is not None}
    if not changes:
        return
    element = entry.find(q("alignment"))
    if element is None:
        element = etree.Element(q("alignment"))
        entry.insert(0, element)
    for name, value in changes.items():
        element.set(name, str(int(value)) if isinstance(value, bool) else value)
    entry.set("applyAlignment", "1")


def _set(font: Element, name: str, attributes: dict[str, str] | None) -> None:
    """Set or remove (None) a property of a font."""
    for old in font.findall(q(name)):
        font.remove(old)
    if attributes is None:
        return
    element = etree.Element(q(name))
    for key, value in attributes.items():
        element.set(key, value)
    preceding_tags = {q(property_name) for property_name in _FONT_ORDER[: _FONT_ORDER.index(name)]}
    font.insert(sum(1 for child in font if child.tag in preceding_tags), element)


def _column(sheet: Sheet, column: int) -> Element | None:
    for column_element in sheet.root.iterfind(f"{q('cols')}/{q('col')}"):
        if int(column_element.get("min", "1")) <= column <= int(column_element.get("max", "0")):
            return column_element
    return None
