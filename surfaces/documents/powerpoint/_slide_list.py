"""The list of a deck's slides: add, copy, move, remove and hide."""

from __future__ import annotations

import copy
import zlib
from typing import TYPE_CHECKING

from lxml import etree

from callboard.surfaces.documents._package import R_ID, Element, local
from callboard.surfaces.documents.powerpoint import _deck as deck
from callboard.surfaces.documents.powerpoint._deck import SLIDE_TYPE, a, p, parse_xml, path
from callboard.surfaces.documents.powerpoint._part_copies import copy_linked
from callboard.surfaces.documents.powerpoint._shapes import (
    FOOTERS,
    TITLES,
    add_shape,
    empty_placeholder,
    footers_of,
    next_shape_id,
)

if TYPE_CHECKING:
    from callboard.surfaces.documents.powerpoint._deck import DeckFile, Slide

_FIRST_ID = 256
_P14 = f"{{{deck.POWERPOINT_2010}}}"
_EMPTY = """<p:sld><p:cSld><p:spTree><p:nvGrpSpPr><p:cNvPr id="1" name=""/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr>
<p:grpSpPr/></p:spTree></p:cSld><p:clrMapOvr><a:masterClrMapping/></p:clrMapOvr></p:sld>"""


def add_slide(file: DeckFile, layout: str, number: int) -> Slide:
    """Add a slide with the placeholders of a layout.

    Args:
        file: The deck.
        layout: The part of its layout.
        number: Its place, from 1.
    """
    root = parse_xml(_EMPTY)
    tree = root.find(path("p:cSld", "p:spTree"))
    for source in deck.shape_tree(file, layout):
        mark = deck.placeholder_of(source)
        if mark is not None and mark.get("type") not in FOOTERS:
            tree.append(empty_placeholder(source, mark, len(tree)))
    part = file.package.free_name("ppt/slides/slide{}.xml")
    file.package.add(part, root, SLIDE_TYPE)
    file.package.relate(part, "slideLayout", layout)
    slide = _insert(file, part, number)
    neighbors = [other for other in file.slides() if other.part != part]
    model = neighbors[max(0, number - 2)] if neighbors else slide
    for kind, source in footers_of(model).items():
        if (shape := copy_footer(slide, kind)) is not None and (body := source.find(p("txBody"))) is not None:
            shape.replace(shape.find(p("txBody")), copy.deepcopy(body))
    count_slides(file)
    return slide


def copy_footer(slide: Slide, kind: str) -> Element | None:
    """Give a slide the date, footer or number of its layout.

    Returns:
        The new shape; None if the layout has none.
    """
    for source in deck.shape_tree(slide.file, slide.layout) if slide.layout else ():
        mark, body = deck.placeholder_of(source), source.find(p("txBody"))
        if mark is not None and mark.get("type") == kind and body is not None:
            slide.edit()
            shape = empty_placeholder(source, mark, next_shape_id(slide))
            body = copy.deepcopy(body)
            for styles in body.iterfind(f"{a('lstStyle')}/*"):
                styles.getparent().remove(styles)
            shape.replace(shape.find(p("txBody")), body)
            add_shape(slide, shape)
            return shape
    return None


def duplicate_slide(slide: Slide, number: int) -> Slide:
    """Copy a slide, with its notes, charts and other parts.

    Comments stay with the original.
    """
    file = slide.file
    part = file.package.free_name("ppt/slides/slide{}.xml")
    copy_linked(file.package, slide.part, part, {"comments"})
    for mark in file.package.edit(part).iter(f"{_P14}creationId"):
        mark.set("val", str(zlib.crc32(f"{mark.get('val')} {part}".encode())))
    new = _insert(file, part, number)
    count_slides(file)
    return new


def move_slide(slide: Slide, number: int) -> None:
    """Move a slide to a place; it joins the section there."""
    _remove_from_sections(slide.file, slide.entry.get("id", ""))
    entries = slide.file.package.edit(slide.file.main).find(p("sldIdLst"))
    entries.remove(slide.entry)
    _put_entry(slide.file, entries, slide.entry, number)
    count_slides(slide.file)


def delete_slide(slide: Slide) -> None:
    """Delete a slide, parts that only it uses, and links to it."""
    file, package = slide.file, slide.file.package
    _remove_from_sections(file, slide.entry.get("id", ""))
    notes_parts = package.related(slide.part, "notesSlide")
    for source, link in list(package.sources_of(slide.part)):
        if source in package and source not in notes_parts:
            _remove_references(package.edit(source), link)
            package.unrelate(source, link)
    package.remove(slide.part)
    count_slides(file)


def hide_slide(slide: Slide, *, hidden: bool) -> None:
    """Leave a slide out of shows, or take it in again."""
    root = slide.edit()
    if hidden:
        root.set("show", "0")
    else:
        root.attrib.pop("show", None)
    count_slides(slide.file)


def section_of(slide: Slide) -> str:
    """Return the name of a slide's section; empty if there is none."""
    number = slide.entry.get("id")
    for section in _sections(slide.file.package.tree(slide.file.main)):
        if any(entry.get("id") == number for entry in section.iter(f"{_P14}sldId")):
            return str(section.get("name", ""))
    return ""


def _insert(file: DeckFile, part: str, number: int) -> Slide:
    root = file.package.edit(file.main)
    entries = root.find(p("sldIdLst"))
    if entries is None:
        entries = etree.Element(p("sldIdLst"))
        lists = {"sldMasterIdLst", "notesMasterIdLst", "handoutMasterIdLst"}
        root.insert(sum(local(child) in lists for child in root), entries)
    ids = [int(entry.get("id", "0")) for entry in entries]
    entry = etree.Element(p("sldId"))
    entry.set("id", str(max([_FIRST_ID - 1, *ids]) + 1))
    entry.set(R_ID, file.package.relate(file.main, "slide", part))
    _put_entry(file, entries, entry, number)
    return next(slide for slide in file.slides() if slide.part == part)


def _put_entry(file: DeckFile, entries: Element, entry: Element, number: int) -> None:
    """Put a slide at its place, and into the section there."""
    entries.insert(number - 1, entry)
    neighbor = entry.getprevious() if entry.getprevious() is not None else entry.getnext()
    for section in _sections(file.package.tree(file.main)):
        section_ids = section.find(f"{_P14}sldIdLst")
        for sibling in section_ids if section_ids is not None and neighbor is not None else ():
            if sibling.get("id") == neighbor.get("id"):
                mark = etree.Element(f"{_P14}sldId")
                mark.set("id", entry.get("id"))
                section_ids.insert(section_ids.index(sibling) + (entry.getprevious() is not None), mark)
                return
    sections = _sections(file.package.tree(file.main))
    section_ids = sections[-1].find(f"{_P14}sldIdLst") if sections else None
    if section_ids is not None:
        etree.SubElement(section_ids, f"{_P14}sldId").set("id", entry.get("id"))


def _sections(root: Element) -> list[Element]:
    return list(root.iterfind(f"{p('extLst')}/{p('ext')}/{_P14}sectionLst/{_P14}section"))


def _remove_from_sections(file: DeckFile, number: str) -> None:
    for section in _sections(file.package.edit(file.main)):
        for entry in [entry for entry in section.iter(f"{_P14}sldId") if entry.get("id") == number]:
            entry.getparent().remove(entry)


def _remove_references(root: Element, link: str) -> None:
    """Remove the entries of lists, and the links, to a deleted slide."""
    for element in [element for element in root.iter(etree.Element) if element.get(R_ID) == link]:
        parent = element.getparent()
        parent.remove(element)
        if local(parent) == "sldLst" and not len(parent) and local(parent.getparent()) == "custShow":
            shows = parent.getparent().getparent()
            shows.remove(parent.getparent())
            if not len(shows):
                shows.getparent().remove(shows)


def count_slides(file: DeckFile) -> None:
    """Write the numbers of slides and notes where the file has them."""
    slides = file.slides()
    counts = {
        "Slides": len(slides),
        "HiddenSlides": sum(slide.hidden for slide in slides),
        "Notes": sum(bool(file.package.related(slide.part, "notesSlide")) for slide in slides),
    }
    for part in file.package.related("", "extended-properties"):
        for element in file.package.tree(part):
            count = counts.get(local(element))
            if count is not None and element.text != str(count):
                file.package.edit(part)
                element.text = str(count)


def has_title(file: DeckFile, layout: str) -> bool:
    """Return whether a layout has a place for a title."""
    marks = [deck.placeholder_of(element) for element in deck.shape_tree(file, layout)]
    return any(mark is not None and mark.get("type") in TITLES for mark in marks)


def default_layout(file: DeckFile) -> str:
    """Return the layout of a title and contents, or a similar one.

    Raises:
        ToolError: If the deck has no layout.
    """
    kinds: dict[str, str] = {}
    for part in file.layouts():
        kinds.setdefault(file.package.tree(part).get("type", ""), part)
        kinds.setdefault("title" if has_title(file, part) else "any", part)
    for kind in ("obj", "tx", "titleOnly", "title", "any", *kinds):
        if kind in kinds:
            return kinds[kind]
    msg = "it has no layout"
    raise file.package.damaged(msg)
