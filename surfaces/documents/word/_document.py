"""A Word document in memory: its blocks and their visible text."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import docx
from docx.oxml.ns import qn
from docx.table import Table
from docx.text.paragraph import Paragraph

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents import _office
from callboard.surfaces.documents._package import CONTENT_TYPES
from callboard.surfaces.documents.word._document_package import WordPackage
from callboard.surfaces.documents.word._paragraph_styles import WordStyles, outline_level, style_of
from callboard.surfaces.documents.word._symbols import (
    EQUATIONS,
    emoji_text,
    equation_text,
    field_text,
    form_field_text,
    letters_text,
    symbol_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from docx.oxml.text.paragraph import CT_P
    from docx.oxml.xmlchemy import BaseOxmlElement

    from callboard.surfaces.documents._workspace import Snapshot

Block: TypeAlias = Paragraph | Table

_NO_PARENT = cast("Any", None)
"""python-docx asks the parent for styles and pictures alone, which are not read through it here."""

_WRAPPERS = frozenset({qn("w:sdt"), qn("w:sdtContent"), qn("w:customXml"), qn("w:ins"), qn("w:smartTag")})
_HIDDEN = frozenset(
    qn(f"w:{name}") for name in ("del", "moveFrom", "txbxContent", "pict", "drawing", "object", "pPr", "rPr", "rt")
)
_MARKS = {qn("w:tab"): "\t", qn("w:ptab"): "\t", qn("w:br"): "\n", qn("w:cr"): "\n", qn("w:noBreakHyphen"): "-"}
_TEXTS: dict[str, Callable[[BaseOxmlElement], str]] = {
    qn("w:t"): letters_text,
    qn("w:sym"): symbol_text,
    "{http://schemas.microsoft.com/office/word/2015/wordml/symex}symEx": emoji_text,
    **dict.fromkeys(EQUATIONS, equation_text),
    **dict.fromkeys(_MARKS, lambda mark: _MARKS[mark.tag]),
}
"""Elements that show a text."""
_FIELD, _CODE = qn("w:fldChar"), qn("w:instrText")
_FIELD_KIND = qn("w:fldCharType")
_PARAGRAPH, _TABLE = qn("w:p"), qn("w:tbl")
_OUTLINE = f"{qn('w:pPr')}/{qn('w:outlineLvl')}"
_LEAVES = frozenset({*_TEXTS, _FIELD, _CODE})
_COMPATIBILITY = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"


@dataclass
class WordFile(_office.Edited):
    """A parsed document, with no open file."""

    package: WordPackage
    body: BaseOxmlElement
    styles: WordStyles

    @classmethod
    def load(cls, snapshot: Snapshot, max_bytes: int) -> WordFile:
        """Parse a document.

        Raises:
            ToolError: If the document is damaged, protected with a password, or does not match its suffix.
        """
        package = WordPackage(snapshot, max_bytes)
        if b"macroEnabled" in package.bytes_of(CONTENT_TYPES):
            msg = f"{snapshot.document!r} holds macros despite its suffix; save it as .docx"
            raise ToolError(msg)
        if not package.main:
            raise _office.damaged(snapshot.document, "its main part is missing")
        body = package.tree(package.main).find(qn("w:body"))
        if body is None:
            raise _office.damaged(snapshot.document, "it has no body")
        return cls(package, body, WordStyles(package))

    def not_writable(self) -> str:
        """Explain why the document must not be written; empty if it may."""
        if any(part.startswith("_xmlsignatures/") for part in self.package):
            return "writing it would break its digital signature"
        for part in self.package.beside("settings"):
            protection = self.package.tree(part).find(qn("w:documentProtection"))
            if protection is not None and protection.get(qn("w:enforcement")) in {"1", "true", "on"}:
                return "it is protected against editing; stop the protection in Word first"
        return ""

    def to_bytes(self) -> bytes:
        """Return the file's bytes; parts without edits stay the same."""
        return self.package.to_bytes()

    def blocks(self) -> Iterator[Block]:
        """Yield paragraphs and tables in order, also those in content controls."""
        yield from self._blocks(self.body)

    def _blocks(self, parent: BaseOxmlElement) -> Iterator[Block]:
        for child in parent.iterchildren():
            if child.tag == _PARAGRAPH:
                yield paragraph_of(child)
            elif child.tag == _TABLE:
                yield Table(child, _NO_PARENT)
            elif child.tag in _WRAPPERS:
                yield from self._blocks(child)

    def heading_level(self, paragraph: Paragraph) -> int | None:
        """Return a paragraph's heading level.

        Returns:
            1 to 9; 0 for the title, None for other paragraphs.
        """
        outline = paragraph._p.find(_OUTLINE)
        return outline_level(outline) if outline is not None else self.styles.level(style_of(paragraph._p))


def empty_document() -> bytes:
    """Return the bytes of a new document."""
    out = io.BytesIO()
    docx.Document().save(out)
    return out.getvalue()


def paragraph_of(element: CT_P) -> Paragraph:
    """Wrap a paragraph's element."""
    return Paragraph(element, _NO_PARENT)


def visible_text(element: BaseOxmlElement) -> str:
    """Return a paragraph's visible text.

    It includes links, insertions, symbols, check boxes and equations, but not deletions, text boxes, the codes of
    fields and reading aids (ruby).
    """
    return "".join(text for _, text in shown_texts(element))


def shown_texts(element: BaseOxmlElement) -> Iterator[tuple[BaseOxmlElement, str]]:
    """Yield the elements that show a text, with it."""
    open_fields: list[list[str]] = []  # code, and "result" where that has begun
    for leaf in _leaves(element):
        kind = leaf.get(_FIELD_KIND) if leaf.tag == _FIELD else None
        text = _TEXTS[leaf.tag](leaf) if leaf.tag in _TEXTS else ""
        if kind == "end" and open_fields:
            code, state = open_fields.pop()
            text = "" if state else field_text(code)
        elif kind == "separate" and open_fields and not open_fields[-1][1]:
            open_fields[-1][1] = "result"
        elif leaf.tag == _CODE and open_fields:
            open_fields[-1][0] += leaf.text or ""
        elif kind == "begin":
            text = form_field_text(leaf)
        if text and all(state == "result" for _, state in open_fields):
            yield leaf, text
        if kind == "begin":
            open_fields.append(["", "form" if text else ""])


def _leaves(element: BaseOxmlElement) -> Iterator[BaseOxmlElement]:
    """Yield the elements that hold texts or ends of fields.

    Of alternatives, those of the first one with a text.
    """
    for child in element.iterchildren():
        if child.tag in _LEAVES:
            yield child
        elif child.tag == f"{_COMPATIBILITY}AlternateContent":
            yield from next(filter(None, ([*_leaves(alternative)] for alternative in child)), [])
        elif child.tag not in _HIDDEN:
            yield from _leaves(child)
