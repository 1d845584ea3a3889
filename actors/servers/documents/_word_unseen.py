"""The parts of a Word document that no tool shows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from docx.oxml.ns import qn

from callboard.actors.servers.documents._word_file import visible_text

if TYPE_CHECKING:
    from docx.oxml.xmlchemy import BaseOxmlElement

    from callboard.actors.servers.documents._word_file import WordFile

_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}graphicData"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
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
    for element in file.body.iter(_DRAWING, qn("w:pict"), qn("w:object"), qn("w:txbxContent"), qn("w:del")):
        if next(element.iterancestors(_FALLBACK), None) is None and (name := _name(element)):
            counts[name] += 1
    for kind, (name, tag) in _STORIES.items():
        for part in file.package.beside(kind):
            stories = [story for story in file.package.tree(part).iter(tag) if not story.get(qn("w:type"))]
            counts[name] += sum(bool(visible_text(story).strip()) for story in stories)
    return ", ".join(f"{count} {name}{'s' if count > 1 else ''}" for name, count in counts.items() if count)


def _name(element: BaseOxmlElement) -> str:
    if element.tag == qn("w:object"):
        return "embedded object"
    if element.tag == qn("w:txbxContent"):
        return "text box" if visible_text(element).strip() else ""
    if element.tag == qn("w:del"):
        return "tracked deletion" if element.find(f".//{qn('w:delText')}") is not None else ""
    if element.tag == qn("w:pict"):
        is_box = element.find(f".//{qn('w:txbxContent')}") is not None
        return "" if is_box or element.getparent().tag == qn("w:object") else "picture"
    uri = element.get("uri", "")
    return next((name for end, name in _GRAPHICS.items() if uri.endswith(end)), "")
