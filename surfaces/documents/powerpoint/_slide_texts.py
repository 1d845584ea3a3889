"""Paragraphs of slides: their texts, levels, bullets and new contents."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Literal, TypeAlias

from lxml import etree

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._package import Element, local
from callboard.surfaces.documents._tables import clean
from callboard.surfaces.documents.powerpoint._deck import DRAWING, a, parse_xml

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Bullets: TypeAlias = Literal["bullet", "number", "none"]

LAST_LEVEL = 8
"""The deepest level, from 0."""
_SPACES = 2
"""The spaces for one level in a line of text."""
_INDENT = 342_900
_PROPERTIES = (
    *("lnSpc", "spcBef", "spcAft", "buClrTx", "buClr", "buSzTx", "buSzPct", "buSzPts", "buFontTx", "buFont"),
    *("buNone", "buAutoNum", "buChar", "buBlip", "tabLst", "defRPr", "extLst"),
)
"""The children of a paragraph's properties in their order."""
_BULLETS = frozenset({"buFontTx", "buFont", "buNone", "buAutoNum", "buChar", "buBlip"})
_BULLET_XML = {
    "bullet": '<a:buFont typeface="Arial"/><a:buChar char="&#8226;"/>',
    "number": '<a:buFont typeface="+mj-lt"/><a:buAutoNum type="arabicPeriod"/>',
    "none": "<a:buNone/>",
}
_LINKS = ("hlinkClick", "hlinkMouseOver")
_OBSTACLES = {"fld": "a field", "m": "a formula", "AlternateContent": "a formula", **dict.fromkeys(_LINKS, "a link")}


def paragraph_text(paragraph: Element) -> str:
    """Return a paragraph's text, with a line feed for a line break."""
    return "".join(text for _, text in _leaves(paragraph))


def _leaves(paragraph: Element) -> Iterator[tuple[Element | None, str]]:
    """Yield the texts of runs with their elements; others without."""
    for child in paragraph:
        match local(child):
            case "r":
                for text in child.iterfind(a("t")):
                    yield text, text.text or ""
            case "br":
                yield None, "\n"
            case "fld":
                yield None, "".join(text.text or "" for text in child.iterfind(a("t")))
            case "m" | "AlternateContent":
                alternative = child if local(child) == "m" else next(iter(child), child)
                yield None, "".join(text.text or "" for text in alternative.iter() if local(text) == "t")


def pieces_of(paragraph: Element) -> list[tuple[Element | None, str]]:
    """List a paragraph's texts; fixed ones match nothing."""
    return [(element, text if element is not None else "\0" * len(text)) for element, text in _leaves(paragraph)]


def level_of(paragraph: Element) -> int:
    """Return a paragraph's level, from 0."""
    properties = paragraph.find(a("pPr"))
    text = properties.get("lvl", "0") if properties is not None else "0"
    return min(int(text), LAST_LEVEL) if text.isdigit() else 0


def lines_of(body: Element) -> list[str]:
    """Return the paragraphs, with two spaces for each level."""
    return [f"{' ' * _SPACES * level_of(line)}{paragraph_text(line)}" for line in body.iterfind(a("p"))]


def text_of_body(body: Element) -> str:
    """Return all paragraphs, one a line."""
    return "\n".join(lines_of(body))


def parse_line(line: str) -> tuple[int, str]:
    """Return the level and the text of a line.

    Raises:
        ToolError: If it is deeper than PowerPoint's levels.
    """
    text = clean(line)
    stripped = text.lstrip(" \t")
    indent = text[: len(text) - len(stripped)]
    level = indent.count("\t") + indent.count(" ") // _SPACES
    if level > LAST_LEVEL:
        msg = f"the line {stripped[:40]!r} has level {level + 1}; there are {LAST_LEVEL + 1}"
        raise ToolError(msg)
    return level, stripped


def check_plain(paragraphs: Sequence[Element]) -> None:
    """Refuse to replace paragraphs that hold more than text.

    Raises:
        ToolError: If they hold a link, field or formula, which would be lost.
    """
    names = {local(element) for paragraph in paragraphs for element in paragraph.iter(etree.Element)}
    if obstacles := sorted({_OBSTACLES[name] for name in names & _OBSTACLES.keys()}):
        msg = f"it holds {', '.join(obstacles)}, which a new text would remove; replace_text can change words in it"
        raise ToolError(msg)


def write_lines(body: Element, lines: Sequence[str], *, append: bool = False, bullets: Bullets | None = None) -> None:
    """Replace the paragraphs of a shape, or add some; formats stay.

    A new paragraph looks like the first one of its level, or like the first one of all.

    Args:
        body: The text body of a shape.
        lines: The paragraphs, with two spaces or a tab for each level.
        append: Whether the present ones stay.
        bullets: The kind of bullets; None for those that the level has.

    Raises:
        ToolError: If the present paragraphs hold more than text.
    """
    old = list(body.iterfind(a("p")))
    if not append:
        check_plain(old)
    models: dict[int, Element] = {}
    for paragraph in old:
        models.setdefault(level_of(paragraph), paragraph)
    is_blank = not any(paragraph_text(paragraph).strip() for paragraph in old)
    new = [_paragraph(*parse_line(line), models, bullets) for line in lines]
    if not append or is_blank:
        for paragraph in old:
            body.remove(paragraph)
    body.extend(new or [etree.Element(a("p"))])


def set_text(body: Element, text: str) -> None:
    """Replace the text of a table's cell, in its present format."""
    old = list(body.iterfind(a("p")))
    check_plain(old)
    models = {0: old[0]} if old else {}
    new = [_paragraph(level_of(old[0]) if old else 0, line, models, None) for line in clean(text).split("\n")]
    for paragraph in old:
        body.remove(paragraph)
    body.extend(new)


def _paragraph(level: int, text: str, models: dict[int, Element], bullets: Bullets | None) -> Element:
    paragraph = etree.Element(a("p"), nsmap={"a": DRAWING})
    model = models.get(level, next(iter(models.values()), None))
    if model is not None and (looks := model.find(a("pPr"))) is not None:
        looks = copy.deepcopy(looks)
        if level_of(model) != level:
            for name in ("marL", "indent"):
                looks.attrib.pop(name, None)
        paragraph.append(looks)
    if level or paragraph.find(a("pPr")) is not None:
        _properties(paragraph).set("lvl", str(level))
    if bullets is not None:
        set_bullets(paragraph, bullets)
    font = _font_of(model)
    for number, part in enumerate(text.split("\n")):
        if number:
            paragraph.append(_with_font(etree.Element(a("br")), font))
        if part:
            run = _with_font(etree.SubElement(paragraph, a("r")), font)
            etree.SubElement(run, a("t")).text = part
    if not text and font is not None:
        end = copy.deepcopy(font)
        end.tag = a("endParaRPr")
        paragraph.append(end)
    return paragraph


def _properties(paragraph: Element) -> Element:
    properties = paragraph.find(a("pPr"))
    if properties is None:
        properties = etree.Element(a("pPr"))
        paragraph.insert(0, properties)
    return properties


def set_bullets(paragraph: Element, bullets: Bullets) -> None:
    """Set the kind of a paragraph's bullet, and its indent."""
    properties = _properties(paragraph)
    for child in [child for child in properties if local(child) in _BULLETS]:
        properties.remove(child)
    for mark in list(parse_xml(f"<a:pPr>{_BULLET_XML[bullets]}</a:pPr>")):
        preceding_names = _PROPERTIES[: _PROPERTIES.index(local(mark))]
        properties.insert(sum(local(child) in preceding_names for child in properties), mark)
    level = level_of(paragraph)
    properties.set("marL", "0" if bullets == "none" else str(_INDENT * (level + 1)))
    properties.set("indent", "0" if bullets == "none" else str(-_INDENT))


def _font_of(model: Element | None) -> Element | None:
    """Copy the format of a paragraph's first letters, without links."""
    if model is None:
        return None
    run = model.find(a("r"))
    font = model.find(a("endParaRPr")) if run is None else run.find(a("rPr"))
    if font is None:
        return None
    font = copy.deepcopy(font)
    font.tag = a("rPr")
    for name in ("dirty", "err", "smtClean"):
        font.attrib.pop(name, None)
    for child in [child for child in font if local(child) in _LINKS]:
        font.remove(child)
    return font


def _with_font(element: Element, font: Element | None) -> Element:
    if font is not None:
        element.append(copy.deepcopy(font))
    return element
