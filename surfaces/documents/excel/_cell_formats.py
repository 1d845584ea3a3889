"""Cell formats: fonts, fills, alignments, number formats and column widths.

Each change is an addition to a cell's style.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from lxml import etree
from openpyxl.worksheet.cell_range import CellRange
from pydantic import BaseModel, ConfigDict, Field

from callboard.surfaces._surface import ToolError
from callboard.surfaces.documents._office import q
from callboard.surfaces.documents._tables import Color, clean, color_code

if TYPE_CHECKING:
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


def format_cells(sheet: Sheet, cells: CellRange, wanted: Format) -> None:
    """Change the formats of the cells of a range.

    Raises:
        ToolError: If nothing is to change, or a color is none.
    """
    if not wanted.model_dump(exclude_none=True):
        msg = "say which format the cells get, such as bold or number_format"
        raise ToolError(msg)
    colors = {name: color_code(value) for name in ("color", "fill") if (value := getattr(wanted, name)) is not None}
    styles = sheet.file.styles
    key = wanted.model_dump_json(exclude={"width"})
    if wanted.model_dump(exclude_none=True, exclude={"width"}):
        for row in range(cells.min_row, cells.max_row + 1):
            for column in range(cells.min_col, cells.max_col + 1):
                style = styles.derive(
                    sheet.style(row, column), key, lambda entry: _apply(styles, entry, wanted, colors)
                )
                if wanted.number_format is not None:
                    style = styles.with_number_format(style, wanted.number_format)
                sheet.set_style(row, column, style)
    if wanted.width is not None:
        for column in range(cells.min_col, cells.max_col + 1):
            set_width(sheet, column, wanted.width)


def make_bold(sheet: Sheet, cells: CellRange) -> None:
    """Set the text of cells in bold."""
    format_cells(sheet, cells, Format(bold=True))


def width_at(sheet: Sheet, column: int) -> float:
    """Return a column's width in characters."""
    found = _column(sheet, column)
    text = found.get("width") if found is not None else None
    if text is None:
        defaults = sheet.root.find(q("sheetFormatPr"))
        text = defaults.get("defaultColWidth") if defaults is not None else None
    return float(text) if text else _DEFAULT_WIDTH


def set_width(sheet: Sheet, column: int, width: float) -> None:
    """Set the width of a column, in characters; its neighbours keep theirs."""
    own = _own_column(sheet, column)
    own.set("width", f"{width:g}")
    own.set("customWidth", "1")


def hide_column(sheet: Sheet, column: int) -> None:
    """Hide a column; its width stays."""
    _own_column(sheet, column).set("hidden", "1")


def column_look(sheet: Sheet, column: int) -> dict[str, str]:
    """Return a column's attributes: its width, its style, whether it is hidden."""
    found = _column(sheet, column)
    attributes = dict(found.attrib) if found is not None else {}
    return {name: value for name, value in attributes.items() if name not in {"min", "max"}}


def set_column_look(sheet: Sheet, column: int, look: dict[str, str]) -> None:
    """Give a column the attributes that another one had."""
    if look == column_look(sheet, column):
        return
    own = _own_column(sheet, column)
    if not look:
        columns = own.getparent()
        columns.remove(own)
        if len(columns) == 0:
            columns.getparent().remove(columns)
        return
    for name in {*own.attrib} - {"min", "max"}:
        del own.attrib[name]
    own.attrib.update(look)


def _own_column(sheet: Sheet, column: int) -> Element:
    """Return the element of one column alone, split from its neighbours."""
    columns = sheet.element("cols")
    own = _column(sheet, column)
    if own is None:
        own = etree.Element(q("col"))
        before = sum(1 for each in columns if int(each.get("max", "0")) < column)
        columns.insert(before, own)
    first, last = int(own.get("min", column)), int(own.get("max", column))
    for start, end, place in ((first, column - 1, 0), (column + 1, last, 1)):
        if start <= end:
            rest = etree.Element(q("col"), dict(own.attrib))
            rest.set("min", str(start))
            rest.set("max", str(end))
            columns.insert(columns.index(own) + place, rest)
    own.set("min", str(column))
    own.set("max", str(column))
    return own


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
    found = [each for each in merges if not CellRange(each.get("ref")).isdisjoint(cells)] if merges is not None else []
    for each in found:
        sheet.edit()
        merges.remove(each)
    if merges is not None and found:
        merges.set("count", str(len(merges)))
        if len(merges) == 0:
            sheet.edit().remove(merges)
    sheet.forget()
    return [each.get("ref") for each in found]


def _apply(styles: Styles, entry: Element, wanted: Format, colors: dict[str, str | None]) -> None:
    _apply_font(styles, entry, wanted, colors)
    if "fill" in colors:
        fill = etree.Element(q("fill"))
        pattern = etree.SubElement(fill, q("patternFill"))
        pattern.set("patternType", "solid" if colors["fill"] else "none")
        if colors["fill"]:
            etree.SubElement(pattern, q("fgColor")).set("rgb", f"FF{colors['fill']}")
            etree.SubElement(pattern, q("bgColor")).set("indexed", "64")
        entry.set("fillId", str(styles.intern("fills", fill)))
        entry.set("applyFill", "1")
    if wanted.border is not None:
        border = etree.Element(q("border"))
        for side in ("left", "right", "top", "bottom"):
            line = etree.SubElement(border, q(side))
            if wanted.border != "none":
                line.set("style", wanted.border)
                etree.SubElement(line, q("color")).set("auto", "1")
        etree.SubElement(border, q("diagonal"))
        entry.set("borderId", str(styles.intern("borders", border)))
        entry.set("applyBorder", "1")
    _align(entry, {"horizontal": wanted.horizontal, "vertical": wanted.vertical, "wrapText": wanted.wrap})


def _apply_font(styles: Styles, entry: Element, wanted: Format, colors: dict[str, str | None]) -> None:
    marks = {"b": wanted.bold, "i": wanted.italic, "u": wanted.underline}
    properties: dict[str, dict[str, str] | None] = {
        name: {} if mark else None for name, mark in marks.items() if mark is not None
    }
    if wanted.size:
        properties["sz"] = {"val": f"{wanted.size:g}"}
    if "color" in colors:
        properties["color"] = {"rgb": f"FF{colors['color']}"} if colors["color"] else None
    if wanted.font:
        properties |= {"name": {"val": clean(wanted.font)}, "scheme": None}
    if properties:
        font = styles.copied("fonts", entry.get("fontId"))
        for name, attributes in properties.items():
            _set(font, name, attributes)
        entry.set("fontId", str(styles.intern("fonts", font)))
        entry.set("applyFont", "1")


def _align(entry: Element, wanted: dict[str, str | bool | None]) -> None:
    """Set the alignment of a cell's content; None changes nothing."""
    changes = {name: value for name, value in wanted.items() if value is not None}
    if not changes:
        return
    found = entry.find(q("alignment"))
    if found is None:
        found = etree.Element(q("alignment"))
        entry.insert(0, found)
    for name, value in changes.items():
        found.set(name, str(int(value)) if isinstance(value, bool) else value)
    entry.set("applyAlignment", "1")


def _set(font: Element, name: str, attributes: dict[str, str] | None) -> None:
    """Set or remove (None) a property of a font."""
    for old in font.findall(q(name)):
        font.remove(old)
    if attributes is None:
        return
    made = etree.Element(q(name))
    for key, value in attributes.items():
        made.set(key, value)
    before = {q(each) for each in _FONT_ORDER[: _FONT_ORDER.index(name)]}
    font.insert(sum(1 for child in font if child.tag in before), made)


def _column(sheet: Sheet, column: int) -> Element | None:
    for found in sheet.root.iterfind(f"{q('cols')}/{q('col')}"):
        if int(found.get("min", "1")) <= column <= int(found.get("max", "0")):
            return found
    return None
