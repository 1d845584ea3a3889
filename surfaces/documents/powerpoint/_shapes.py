"""The shapes of a slide: their kinds, texts, places and ancestors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.surfaces.documents._package import R_ID, Element, local
from callboard.surfaces.documents.powerpoint._deck import CHART, a, p, parse_xml, path, placeholder_of, shape_tree
from callboard.surfaces.documents.powerpoint._slide_texts import text_of_body

if TYPE_CHECKING:
    from collections.abc import Iterator

    from callboard.surfaces.documents.powerpoint._deck import DeckFile, Slide

FOOTERS = ("dt", "ftr", "sldNum")
"""The types of placeholders for the date, the footer and the number."""
TITLES = ("title", "ctrTitle")
_EMPTY_KINDS = {
    "pic": "picture",
    "tbl": "table",
    "chart": "chart",
    "dgm": "object",
    "media": "object",
    "clipArt": "object",
}
_PLACEHOLDERS = {
    "title": "title", "ctrTitle": "title", "subTitle": "subtitle", "body": "text", "obj": "content", "pic": "picture",
    "tbl": "table", "chart": "chart", "dgm": "SmartArt", "media": "media", "clipArt": "picture",
}  # fmt: skip
_GRAPHICS = {"/table": "table", "/chart": "chart"}
_ALTERNATIVE = "{http://schemas.openxmlformats.org/markup-compatibility/2006}AlternateContent"
_TEXTLESS = frozenset({"sldImg", "pic", "chart", "tbl", "dgm", "media", "clipArt"})
"""The types of placeholders that hold no text."""
_BODY_TYPES = frozenset({"body", "obj", "subTitle"})


@dataclass(frozen=True)
class Frame:
    """The place of a shape on its slide, in EMU."""

    left: int
    top: int
    width: int
    height: int


@dataclass(frozen=True)
class SlideShape:
    """A shape of a slide that is a control."""

    slide: Slide
    id: str
    kind: str
    """``title``, ``text``, ``table``, ``chart``, ``picture`` or ``object``."""
    element: Element

    @property
    def file(self) -> DeckFile:
        """Its deck."""
        return self.slide.file

    @property
    def facts(self) -> Element:
        """The element with its name and alternative text."""
        return _facts(self.element)

    @property
    def placeholder(self) -> str:
        """The contents that a placeholder is for; empty for other shapes."""
        mark = placeholder_of(self.element)
        return "" if mark is None else _PLACEHOLDERS.get(mark.get("type", "obj"), "content")

    @property
    def body(self) -> Element | None:
        """Its paragraphs; None where there can be none."""
        return self.element.find(p("txBody")) if local(self.element) == "sp" else None

    @property
    def text(self) -> str:
        """Its text, with two spaces for each level."""
        body = self.body
        return "" if body is None else text_of_body(body)

    @property
    def is_empty(self) -> bool:
        """True for a placeholder that nothing fills, and a shape without text."""
        return local(self.element) == "sp" and not self.text.strip()

    @property
    def table(self) -> Element | None:
        """Its table, if it holds one."""
        return self.element.find(path("a:graphic", "a:graphicData", "a:tbl"))

    @property
    def chart_part(self) -> str:
        """The part of its chart; empty if it holds none."""
        chart = self.element.find(f"{path('a:graphic', 'a:graphicData')}/{{{CHART}}}chart")
        target = self.file.package.target(self.slide.part, chart.get(R_ID)) if chart is not None else None
        return target or ""

    @property
    def ancestors(self) -> list[Element]:
        """The placeholders of its layout and master, from which it inherits."""
        mark = placeholder_of(self.element)
        if mark is None or not (layout := self.slide.layout):
            return []
        kind, index = mark.get("type", "obj"), mark.get("idx", "0")
        layout_placeholder = placeholder_in(self.file, layout, kind, index)
        master = next(iter(self.file.package.related(layout, "slideMaster")), "")
        if layout_placeholder is not None and (layout_mark := placeholder_of(layout_placeholder)) is not None:
            kind = layout_mark.get("type", kind)
        of_master = _placeholder_of_master(self.file, master, kind) if master else None
        return [element for element in (layout_placeholder, of_master) if element is not None]

    @property
    def frame(self) -> Frame | None:
        """Its place on the slide, also an inherited one."""
        frame = next((frame for element in (self.element, *self.ancestors) if (frame := _own_frame(element))), None)
        for group in self.element.iterancestors(p("grpSp")):
            frame = frame and _in_group(frame, group)
        return frame


def placeholder_in(file: DeckFile, part: str, kind: str, index: str) -> Element | None:
    """Find the placeholder of a layout that fits one of a slide."""
    for element in shape_tree(file, part):
        mark = placeholder_of(element)
        if mark is None:
            continue
        layout_kind = mark.get("type", "obj")
        special = next((kinds for kinds in (TITLES, *((name,) for name in FOOTERS)) if kind in kinds), ())
        if special:
            fits = layout_kind in special
        else:
            fits = layout_kind not in {*TITLES, *FOOTERS} and mark.get("idx", "0") == index
        if fits:
            return element
    return None


def _placeholder_of_master(file: DeckFile, master: str, kind: str) -> Element | None:
    master_kind = "title" if kind in TITLES else kind if kind in FOOTERS else "body"
    for element in shape_tree(file, master):
        mark = placeholder_of(element)
        if mark is not None and mark.get("type", "obj") == master_kind:
            return element
    return None


def _own_frame(element: Element) -> Frame | None:
    transform = element.find(path("p:spPr", "a:xfrm"))
    transform = element.find(p("xfrm")) if transform is None else transform
    return None if transform is None else _frame(transform, "off", "ext")


def _in_group(frame: Frame, group: Element) -> Frame | None:
    """Convert a place in a group to one outside of it."""
    transform = group.find(path("p:grpSpPr", "a:xfrm"))
    if transform is None:
        return frame
    outer, inner = _frame(transform, "off", "ext"), _frame(transform, "chOff", "chExt")
    if outer is None or inner is None or not (inner.width and inner.height):
        return None
    return Frame(
        outer.left + (frame.left - inner.left) * outer.width // inner.width,
        outer.top + (frame.top - inner.top) * outer.height // inner.height,
        frame.width * outer.width // inner.width,
        frame.height * outer.height // inner.height,
    )


def _frame(transform: Element, offset_name: str, extent_name: str) -> Frame | None:
    offset, extent = transform.find(a(offset_name)), transform.find(a(extent_name))
    if offset is None or extent is None:
        return None
    texts = (offset.get("x", ""), offset.get("y", ""), extent.get("cx", ""), extent.get("cy", ""))
    numbers = [int(text) for text in texts if text.lstrip("-").isdigit()]
    return Frame(*numbers) if len(numbers) == len(texts) else None


def shapes_of(slide: Slide) -> list[SlideShape]:
    """List the shapes that are controls, with those in groups.

    They are counted by kind in their order, so that an id stays the same when a shape's text changes. Connectors, and
    placeholders of dates, footers and numbers, are left out.
    """
    counts: dict[str, int] = {}
    shapes = []
    for element in _elements(slide.shapes):
        if (kind := _kind(element)) and _facts(element) is not None:
            counts[kind] = counts.get(kind, 0) + 1
            shapes.append(SlideShape(slide, f"{slide.id}-{kind}-{counts[kind]}", kind, element))
    return shapes


def _facts(element: Element) -> Element | None:
    return next((facts for names in element if local(names).startswith("nv") for facts in names), None)


def footers_of(slide: Slide) -> dict[str, Element]:
    """Find the placeholders of the date, footer and number, by type."""
    marks = ((element, placeholder_of(element)) for element in slide.shapes)
    return {mark.get("type"): element for element, mark in marks if mark is not None and mark.get("type") in FOOTERS}


def _elements(tree: Element) -> Iterator[Element]:
    for child in tree:
        if local(child) == "grpSp":
            yield from _elements(child)
        elif child.tag == _ALTERNATIVE:
            yield from _elements(child[0]) if len(child) else ()
        else:
            yield child


def _kind(element: Element) -> str:
    """Return a shape's kind; empty for one that is no control."""
    match local(element):
        case "sp":
            mark = placeholder_of(element)
            kind = mark.get("type", "obj") if mark is not None else ""
            if kind in FOOTERS:
                return ""
            return "title" if kind in TITLES else _EMPTY_KINDS.get(kind, "text")
        case "pic":
            media = element.find(p("nvPicPr") + "/" + p("nvPr"))
            plays = media is not None and any(local(child) in {"videoFile", "audioFile"} for child in media)
            return "object" if plays else "picture"
        case "graphicFrame":
            data = element.find(path("a:graphic", "a:graphicData"))
            uri = data.get("uri", "") if data is not None else ""
            return next((kind for end, kind in _GRAPHICS.items() if uri.endswith(end)), "object")
    return ""


def title_of(slide: Slide) -> str:
    """Return a slide's title on one line; empty if it has none."""
    return next((" ".join(shape.text.split()) for shape in shapes_of(slide) if shape.kind == "title"), "")


def body_placeholders(shapes: list[SlideShape]) -> list[SlideShape]:
    """List the placeholders that hold text below the title."""
    marks = ((shape, placeholder_of(shape.element)) for shape in shapes if local(shape.element) == "sp")
    return [shape for shape, mark in marks if mark is not None and mark.get("type", "obj") in _BODY_TYPES]


def next_shape_id(slide: Slide) -> int:
    """Return a number that no shape of the slide has."""
    numbers = [element.get("id", "") for element in slide.root.iter(p("cNvPr"))]
    return max([1, *(int(number) for number in numbers if number.isdigit())]) + 1


def add_shape(slide: Slide, shape: Element) -> None:
    """Put a shape in front of a slide's others."""
    tree = slide.shapes
    tree.insert(sum(local(child) != "extLst" for child in tree), shape)


def empty_placeholder(source: Element, mark: Element, number: int) -> Element:
    """Make an empty placeholder of a slide from that of its layout."""
    kind = mark.get("type", "obj")
    label = next(facts.get("name", "") for names in source if local(names).startswith("nv") for facts in names)
    shape = parse_xml(
        f'<p:sp><p:nvSpPr><p:cNvPr id="{number}"/><p:cNvSpPr><a:spLocks noGrp="1"/></p:cNvSpPr>'
        "<p:nvPr><p:ph/></p:nvPr></p:nvSpPr><p:spPr/></p:sp>"
    )
    next(shape.iter(p("cNvPr"))).set("name", label)
    for name in ("type", "orient", "sz", "idx"):
        if mark.get(name) is not None:
            next(shape.iter(p("ph"))).set(name, mark.get(name))
    if kind not in _TEXTLESS:
        shape.append(parse_xml("<p:txBody><a:bodyPr/><a:lstStyle/><a:p/></p:txBody>"))
    return shape
