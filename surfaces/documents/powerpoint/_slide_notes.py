"""The notes and comments of slides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lxml import etree

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._package import R_ID, Element, local
from callboard.surfaces.documents.powerpoint._deck import a, p, parse_xml, path, placeholder_of, shape_tree
from callboard.surfaces.documents.powerpoint._new_deck import templates
from callboard.surfaces.documents.powerpoint._shapes import empty_placeholder
from callboard.surfaces.documents.powerpoint._slide_texts import paragraph_text, text_of_body, write_lines

if TYPE_CHECKING:
    from callboard.surfaces.documents.powerpoint._deck import DeckFile, Slide

_TYPE = "application/vnd.openxmlformats-officedocument.presentationml.{}+xml"
_EMPTY_NOTES = """<p:notes><p:cSld><p:spTree><p:nvGrpSpPr><p:cNvPr id="1" name=""/><p:cNvGrpSpPr/><p:nvPr/>
</p:nvGrpSpPr><p:grpSpPr/></p:spTree></p:cSld><p:clrMapOvr><a:masterClrMapping/></p:clrMapOvr></p:notes>"""
_THEME_TYPE = "application/vnd.openxmlformats-officedocument.theme+xml"


@dataclass(frozen=True)
class SlideComment:
    """A comment on a slide, or an answer to one."""

    author: str
    text: str


def notes_part(slide: Slide) -> str:
    """Return the part of a slide's notes; empty if there is none."""
    return next(iter(slide.file.package.related(slide.part, "notesSlide")), "")


def _notes_body(file: DeckFile, part: str) -> Element | None:
    for element in shape_tree(file, part):
        mark = placeholder_of(element)
        if mark is not None and mark.get("type") == "body":
            return element.find(p("txBody"))
    return None


def notes_of(slide: Slide) -> str:
    """Return the text of a slide's notes; empty if there is none."""
    part = notes_part(slide)
    body = _notes_body(slide.file, part) if part else None
    return text_of_body(body).strip() if body is not None else ""


def write_notes(slide: Slide, text: str, *, append: bool) -> None:
    """Write the notes of a slide.

    Raises:
        ToolError: If its notes have no place for text.
    """
    part = notes_part(slide) or _add_notes(slide)
    slide.file.package.edit(part)
    body = _notes_body(slide.file, part)
    if body is None:
        msg = f"the notes of {slide.id} have no place for text; add one in PowerPoint"
        raise ToolError(msg)
    write_lines(body, [line.lstrip() for line in text.split("\n")], append=append)


def _add_notes(slide: Slide) -> str:
    package = slide.file.package
    master = next(iter(package.related(slide.file.main, "notesMaster")), "") or _add_notes_master(slide.file)
    part = package.free_name("ppt/notesSlides/notesSlide{}.xml")
    root = parse_xml(_EMPTY_NOTES)
    tree = root.find(path("p:cSld", "p:spTree"))
    for source in shape_tree(slide.file, master):
        mark = placeholder_of(source)
        if mark is not None and mark.get("type") in {"sldImg", "body"}:
            tree.append(empty_placeholder(source, mark, len(tree)))
    package.add(part, root, _TYPE.format("notesSlide"))
    package.relate(part, "notesMaster", master)
    package.relate(part, "slide", slide.part)
    package.relate(slide.part, "notesSlide", part)
    return part


def _add_notes_master(file: DeckFile) -> str:
    package = file.package
    master = package.free_name("ppt/notesMasters/notesMaster{}.xml")
    theme = package.free_name("ppt/theme/theme{}.xml")
    package.add(master, (templates() / "notesMaster.xml").read_bytes(), _TYPE.format("notesMaster"))
    package.add(theme, (templates() / "theme.xml").read_bytes(), _THEME_TYPE)
    package.relate(master, "theme", theme)
    root = package.edit(file.main)
    masters = etree.Element(p("notesMasterIdLst"))
    etree.SubElement(masters, p("notesMasterId")).set(R_ID, package.relate(file.main, "notesMaster", master))
    root.insert(sum(local(child) == "sldMasterIdLst" for child in root), masters)
    return master


def comments_of(slide: Slide) -> list[SlideComment]:
    """List the comments on a slide, with the answers to them."""
    package = slide.file.package
    if not (parts := package.related(slide.part, "comments")):
        return []
    authors: dict[str, str] = {}
    for kind in ("commentAuthors", "authors"):
        for part in package.related(slide.file.main, kind):
            authors |= {author.get("id", ""): author.get("name", "") for author in package.tree(part)}
    comments = []
    for part in parts:
        for element in package.tree(part).iter(etree.Element):
            if local(element) in {"cm", "reply"}:
                text = element.findtext(p("text"))
                if text is None:
                    bodies = (child for child in element if local(child) == "txBody")
                    text = "\n".join(paragraph_text(line) for body in bodies for line in body.iter(a("p")))
                comments.append(SlideComment(authors.get(element.get("authorId", ""), ""), text))
    return comments
