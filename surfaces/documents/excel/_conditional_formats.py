"""Conditional formats: described, added, and deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from lxml import etree

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._office import q
from callboard.surfaces.documents._package import local
from callboard.surfaces.documents._tables import color_code, short
from callboard.surfaces.documents.excel._cell_elements import SIGNS, area_of
from callboard.surfaces.documents.excel._rule_ranges import ranges_of, without

if TYPE_CHECKING:
    from openpyxl.worksheet.cell_range import CellRange

    from callboard.surfaces.documents._package import Element
    from callboard.surfaces.documents._tables import Answer
    from callboard.surfaces.documents.excel._cell_formats import Format
    from callboard.surfaces.documents.excel._sheet import Sheet

Conditional: TypeAlias = Literal["add", "replace", "delete"]

_MOST_RULES = 20
_KINDS = {
    "colorScale": "a color scale", "dataBar": "data bars", "iconSet": "icons", "duplicateValues": "repeated values",
    "uniqueValues": "values that occur once", "aboveAverage": "above or below the average",
    "containsBlanks": "empty cells", "notContainsBlanks": "filled cells", "containsErrors": "errors",
    "notContainsErrors": "no errors",
}  # fmt: skip
_OF_CELLS = frozenset({"font", "size", "horizontal", "vertical", "wrap", "width"})
"""Formats that Excel does not change by conditions."""
_SCALE_COLORS = (2, 3)


def conditional_formats_of(sheet: Sheet) -> Answer:
    """Describe the conditional formats of a sheet for an observation."""
    entries: list[tuple[str, str]] = []
    for element in _formats(sheet):
        cells = ranges_of(element)
        entries += [(cells, _description(rule)) for rule in element if local(rule) == "cfRule"]
    if not entries:
        return {}
    descriptions: dict[str, str] = {}
    for cells, text in entries[:_MOST_RULES]:
        descriptions[cells] = f"{descriptions[cells]}; {text}" if cells in descriptions else text
    more: Answer = {"conditional_formats_left_out": len(entries) - _MOST_RULES} if len(entries) > _MOST_RULES else {}
    return {"conditional_formats": dict(descriptions), **more}


def _description(rule: Element) -> str:
    kind = rule.get("type", "")
    formulas = [element.text or "" for element in rule if local(element) in {"formula", "f"}]
    if kind == "cellIs":
        operator = rule.get("operator", "")
        sign = SIGNS.get(operator)
        return short(f"{sign} {formulas[0]}" if sign and formulas else f"{operator}: {' and '.join(formulas)}")
    if kind == "top10":
        return f"the {'lowest' if rule.get('bottom') == '1' else 'highest'} {rule.get('rank', '10')}"
    if rule.get("text"):
        return short(f"{kind}: {rule.get('text')}")
    return short(_KINDS.get(kind) or (f"={formulas[0]}" if formulas else kind))


def add_rule(sheet: Sheet, cells: CellRange, rule: Element) -> None:
    """Add a rule for a range, before all others, if missing."""
    sheet.edit()
    if any(ranges_of(entry) == cells.coord and any(_same(rule, old) for old in entry) for entry in _formats(sheet)):
        return
    for later_rule in [element for entry in _formats(sheet) for element in entry if local(element) == "cfRule"]:
        if later_rule.get("priority", "").isdigit():
            later_rule.set("priority", str(int(later_rule.get("priority")) + 1))
    rule.set("priority", "1")
    holder = etree.Element(q("conditionalFormatting"))
    holder.set("sqref", cells.coord)
    holder.append(rule)
    sheet.insert(holder, "conditionalFormatting")


def _same(rule: Element, other: Element) -> bool:
    """Compare two rules, but for their priority."""
    first, second = ({**element.attrib, "priority": ""} for element in (rule, other))
    if (rule.tag, first, rule.text or "", len(rule)) != (other.tag, second, other.text or "", len(other)):
        return False
    return all(_same(*pair) for pair in zip(rule, other, strict=True))


def formula_rule(sheet: Sheet, formula: str, changes: Format) -> Element:
    """Make a rule that formats cells where a formula is true.

    Raises:
        ToolError: If no format is given, or one that conditions can't change.
    """
    names = {*changes.model_dump(exclude_none=True)}
    if not names or names & _OF_CELLS:
        excess = ", ".join(sorted(names & _OF_CELLS))
        msg = f"conditions can't change {excess}" if excess else "say which format the cells get, such as bold or fill"
        msg += "; they change number_format, bold, italic, underline, color, fill and border"
        raise ToolError(msg)
    rule = etree.Element(q("cfRule"))
    rule.set("type", "expression")
    rule.set("dxfId", str(sheet.file.styles.add_difference(_difference(sheet, changes))))
    etree.SubElement(rule, q("formula")).text = formula
    return rule


def scale_rule(colors: list[str]) -> Element:
    """Make a scale of two or three colors, the lowest first.

    Raises:
        ToolError: If there are more or fewer, or one is none.
    """
    codes = [color_code(color) for color in colors]
    if len(codes) not in _SCALE_COLORS or None in codes:
        msg = "a scale has two or three colors, from the lowest number to the highest"
        raise ToolError(msg)
    rule = etree.Element(q("cfRule"))
    rule.set("type", "colorScale")
    scale = etree.SubElement(rule, q("colorScale"))
    for kind in ("min", "percentile", "max") if len(codes) == _SCALE_COLORS[1] else ("min", "max"):
        stop = etree.SubElement(scale, q("cfvo"))
        stop.set("type", kind)
        if kind == "percentile":
            stop.set("val", "50")
    for code in codes:
        etree.SubElement(scale, q("color")).set("rgb", f"FF{code}")
    return rule


def bar_rule(color: str) -> Element:
    """Make bars that are as long as the numbers.

    Raises:
        ToolError: If the color is none.
    """
    code = color_code(color)
    if code is None:
        msg = "bars need a color"
        raise ToolError(msg)
    rule = etree.Element(q("cfRule"))
    rule.set("type", "dataBar")
    bar = etree.SubElement(rule, q("dataBar"))
    for kind in ("min", "max"):
        etree.SubElement(bar, q("cfvo")).set("type", kind)
    etree.SubElement(bar, q("color")).set("rgb", f"FF{code}")
    return rule


def delete_rules(sheet: Sheet, cells: CellRange) -> int:
    """Take the conditional formats of cells away, and count them.

    A rule that holds for other cells, too, stays for those.
    """
    count = 0
    for element in [entry for entry in _formats(sheet) if ranges_of(entry)]:
        areas = [area_of(reference) for reference in ranges_of(element).split()]
        if all(area.isdisjoint(cells) for area in areas):
            continue
        count += sum(1 for rule in element if local(rule) == "cfRule")
        without(sheet, element, cells)
    return count


def _formats(sheet: Sheet) -> list[Element]:
    return [element for element in sheet.root.iter("{*}conditionalFormatting") if isinstance(element.tag, str)]


def _difference(sheet: Sheet, changes: Format) -> Element:
    """Write changes of a format as a differential format."""
    colors = {name: color_code(value) for name in ("color", "fill") if (value := getattr(changes, name)) is not None}
    entry = etree.Element(q("dxf"))
    marks = {"b": changes.bold, "i": changes.italic, "u": changes.underline}
    if any(mark is not None for mark in marks.values()) or colors.get("color"):
        font = etree.SubElement(entry, q("font"))
        for name, mark in marks.items():
            if mark is not None:
                value = ("single" if mark else "none") if name == "u" else str(int(mark))
                etree.SubElement(font, q(name)).set("val", value)
        if colors.get("color"):
            etree.SubElement(font, q("color")).set("rgb", f"FF{colors['color']}")
    if changes.number_format is not None:
        number, code = sheet.file.styles.number_of_format(changes.number_format), changes.number_format
        etree.SubElement(entry, q("numFmt"), {"numFmtId": str(number), "formatCode": code})
    if colors.get("fill"):
        pattern = etree.SubElement(etree.SubElement(entry, q("fill")), q("patternFill"), {"patternType": "solid"})
        etree.SubElement(pattern, q("fgColor")).set("rgb", f"FF{colors['fill']}")
        etree.SubElement(pattern, q("bgColor")).set("rgb", f"FF{colors['fill']}")
    if changes.border is not None:
        border = etree.SubElement(entry, q("border"))
        for side in ("left", "right", "top", "bottom"):
            line = etree.SubElement(border, q(side))
            if changes.border != "none":
                line.set("style", changes.border)
                etree.SubElement(line, q("color")).set("auto", "1")
    return entry
