"""The parts of a Word document that no tool shows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from docx.oxml.ns import qn

from callboard.surfaces.documents.word._document import visible_text
from callboard.surfaces.documents.word._lists import count_numbers

if TYPE_CHECKING:
    from docx.oxml.xmlchemy import BaseOxmlElement

    from callboard.surfaces.documents.word._document import WordFile

_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}graphicData"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_WATERMARK = "{urn:schemas-microsoft-com:vml}textpath"
_WHOLE = {
    qn("w:altChunk"): "embedded text",
    qn("w:subDoc"): "embedded document",
    qn("w:ruby"): "reading aid",
}
_TAGS = (_DRAWING, qn("w:pict"), qn("w:object"), qn("w:txbxContent"), qn("w:del"), *_WHOLE)
_GRAPHICS = {"/picture": "picture", "/chart": "chart", "/chartex": "chart", "/diagram": "SmartArt graphic"}
"""Kinds of drawings, by the end of their namespace's name."""
_STORIES = {
    "header": ("header", qn("w:hdr")),
    "footer": ("footer", qn("w:ftr")),
    "footnotes": ("footnote", qn("w:footnote")),
    "endnotes": ("endnote", qn("w:endnote")),
    "comments": ("comment", qn("w:comment")),
}


def unseen_parts(file: WordFile) -> str:
    """Name and count the parts that no control and no text shows."""
    counts: Counter[str] = Counter()
    counts.update(_names_in(file.body))
    counts["list number"] = count_numbers(file)
    for kind, (name, tag) in _STORIES.items():
        for part in file.package.beside(kind):
            stories = [story for story in file.package.tree(part).iter(tag) if not story.get(qn("w:type"))]
            counts[name] += sum(bool(visible_text(story).strip()) for story in stories)
            for story in stories:
                counts.update(_names_in(story))
    return ", ".join(f"{count} {name}{'s' if count > 1 else ''}" for name, count in counts.items() if count)


def _names_in(story: BaseOxmlElement) -> list[str]:
    elements = story.iter(*_TAGS)
    visible_elements = (element for element in elements if next(element.iterancestors(_FALLBACK), None) is None)
    return [name for element in visible_elements if (name := _name(element))]


def _name(element: BaseOxmlElement) -> str:
    if element.tag in _WHOLE:
        return _WHOLE[element.tag]
    if element.tag == qn("w:object"):
        return "embedded object"
    if element.tag == qn("w:txbxContent"):
        return "text box" if visible_text(element).strip() else ""
    if element.tag == qn("w:del"):
        return "tracked deletion" if element.find(f".//{qn('w:delText')}") is not None else ""
    if element.tag == qn("w:pict"):
        is_box = element.find(f".//{qn('w:txbxContent')}") is not None
        if element.find(f".//{_WATERMARK}") is not None:
            return "watermark or drawn text"
        return "" if is_box or element.getparent().tag == qn("w:object") else "picture"
    uri = element.get("uri", "")
    return next((name for end, name in _GRAPHICS.items() if uri.endswith(end)), "")
