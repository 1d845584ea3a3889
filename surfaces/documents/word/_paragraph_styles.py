"""The styles of a Word document, and properties inherited from them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, TypeAlias
from xml.sax.saxutils import quoteattr

from docx.oxml import OxmlElement
from docx.oxml.ns import nsdecls, qn
from docx.oxml.parser import parse_xml

from callboard.surfaces._tool_function import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docx.oxml.xmlchemy import BaseOxmlElement

    from callboard.surfaces.documents.word._document_package import WordPackage

StyleKind: TypeAlias = Literal["paragraph", "table"]

_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)
_STYLE_OF_PARAGRAPH = f"{qn('w:pPr')}/{qn('w:pStyle')}"
_VALUE = qn("w:val")
_LEVELS = 9
_SIZES = {0: 24, 1: 16, 2: 14, 3: 12}
"""Font sizes of added headings, in points, by level; 0 is the title."""


class WordStyles:
    """The styles of a document, by id and by name.

    A document may have none. The elements are read without python-docx's proxies, which fail at a style without a type.
    """

    def __init__(self, package: WordPackage) -> None:
        self._package = package
        parts = package.beside("styles")
        self._root = package.tree(parts[0]) if parts else None
        self._levels: dict[str, int | None] = {}
        self._paragraphs: dict[str | None, BaseOxmlElement] = {}
        """The paragraph styles by id; empty until they are needed."""

    def find(self, kind: StyleKind, name: str) -> str:
        """Find a style's id by its name or its id.

        Capitals do not matter.

        Raises:
            ToolError: If the document has no such style; the text lists the styles that it has.
        """
        if style_id := self._id_of(kind, name):
            return style_id
        names = sorted({entry_name for _, entry_name in self._ids_and_names(kind)}, key=str.casefold)
        msg = f"the document has no {kind} style {name!r}; it has: {', '.join(names) or 'none'}"
        raise ToolError(msg)

    def has(self, kind: StyleKind, name: str) -> str:
        """Find a style's id as `find`; empty if there is none."""
        return self._id_of(kind, name)

    def heading(self, level: int) -> str:
        """Return the id of a heading's style.

        Level 0 is the title. A missing style is added to the document.
        """
        name = f"heading {level}" if level else "Title"
        return self._id_of("paragraph", name) or self._add_heading(name, level)

    def level(self, style_id: str) -> int | None:
        """Return the heading level of a style.

        Returns:
            1 to 9; 0 for the title, None for other styles.
        """
        if style_id not in self._levels:
            self._levels[style_id] = self._level_of(style_id)
        return self._levels[style_id]

    def numbering(self, style_id: str) -> BaseOxmlElement | None:
        """Return the ``w:numPr`` that a style gives its paragraphs."""
        for style in self._chain(style_id):
            numbering: BaseOxmlElement | None = style.find(f"{qn('w:pPr')}/{qn('w:numPr')}")
            if numbering is not None:
                return numbering
        return None

    def is_default(self, style_id: str) -> bool:
        """Tell whether a style is that of paragraphs without one."""
        return style_id in {"", self._default_id("paragraph")}

    def _all(self, kind: str) -> Iterator[BaseOxmlElement]:
        if self._root is not None:
            for style in self._root.iterchildren(qn("w:style")):
                if style.get(qn("w:type"), "paragraph") == kind:  # the type that the format assumes
                    yield style

    def _ids_and_names(self, kind: str) -> Iterator[tuple[str, str]]:
        for style in self._all(kind):
            name, style_id = style.find(qn("w:name")), style.get(qn("w:styleId"))
            if name is not None and style_id:
                yield style_id, name.get(qn("w:val"), "")

    def _id_of(self, kind: str, style_name: str) -> str:
        entries, style_name = list(self._ids_and_names(kind)), style_name.casefold()
        by_name = (style_id for style_id, name in entries if name.casefold() == style_name)
        by_id = (style_id for style_id, _ in entries if style_id.casefold() == style_name)
        return next(by_name, "") or next(by_id, "")

    def _default_id(self, kind: str) -> str:
        defaults = (style for style in self._all(kind) if style.get(qn("w:default")) in {"1", "true", "on"})
        return next((style.get(qn("w:styleId"), "") for style in defaults), "")

    def _chain(self, style_id: str) -> Iterator[BaseOxmlElement]:
        """Yield a paragraph style and those that it is based on."""
        self._paragraphs = self._paragraphs or {style.get(qn("w:styleId")): style for style in self._all("paragraph")}
        styles = self._paragraphs
        visited_ids: set[str] = set()
        while style_id in styles and style_id not in visited_ids:
            visited_ids.add(style_id)
            yield styles[style_id]
            base = styles[style_id].find(qn("w:basedOn"))
            style_id = base.get(qn("w:val"), "") if base is not None else ""

    def _level_of(self, style_id: str) -> int | None:
        for style in self._chain(style_id or self._default_id("paragraph")):
            name = style.find(qn("w:name"))
            text = name.get(qn("w:val"), "") if name is not None else ""
            if text.casefold() == "title":
                return 0
            if match := _HEADING.fullmatch(text):
                return int(match[1])
            outline = style.find(f"{qn('w:pPr')}/{qn('w:outlineLvl')}")
            if outline is not None:
                return outline_level(outline)
        return None

    def _add_heading(self, name: str, level: int) -> str:
        if self._root is None:
            self._root = self._package.add_beside("styles", OxmlElement("w:styles"))
        style_ids = {style.get(qn("w:styleId")) for style in self._root.iterchildren(qn("w:style"))}
        stem = name.title().replace(" ", "")
        style_id = next(
            key for number in range(len(style_ids) + 1) if (key := f"{stem}{number or ''}") not in style_ids
        )
        base = self._default_id("paragraph")
        around = f"<w:basedOn w:val={quoteattr(base)}/><w:next w:val={quoteattr(base)}/>" if base else ""
        outline = f'<w:outlineLvl w:val="{level - 1}"/>' if level else ""
        self._root.append(
            parse_xml(
                f'<w:style {nsdecls("w")} w:type="paragraph" w:styleId="{style_id}"><w:name w:val="{name}"/>{around}'
                f'<w:qFormat/><w:pPr><w:keepNext/><w:spacing w:before="240" w:after="120"/>{outline}</w:pPr>'
                f'<w:rPr><w:b/><w:sz w:val="{2 * _SIZES.get(level, 11)}"/></w:rPr></w:style>'
            )
        )
        self._levels.clear()
        self._paragraphs.clear()
        return style_id


def outline_level(outline: BaseOxmlElement) -> int | None:
    """Read a ``w:outlineLvl``: 1 to 9; None for body text."""
    value = outline.get(qn("w:val"))
    return int(value) + 1 if value is not None and value.isdigit() and int(value) < _LEVELS else None


def style_of(paragraph: BaseOxmlElement) -> str:
    """Return the id of a paragraph's style; empty if it names none."""
    style = paragraph.find(_STYLE_OF_PARAGRAPH)
    return style.get(_VALUE, "") if style is not None else ""
