"""A Word document in memory: its blocks and their visible text."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import docx
from docx.oxml.ns import qn
from docx.table import Table
from docx.text.paragraph import Paragraph

from callboard.actors.servers._server import ToolError
from callboard.actors.servers.documents import _office
from callboard.actors.servers.documents._package import CONTENT_TYPES
from callboard.actors.servers.documents._word_package import WordPackage
from callboard.actors.servers.documents._word_styles import WordStyles, outline_level, style_of
from callboard.actors.servers.documents._word_symbols import EQUATIONS, equation_text, form_field_text, symbol_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docx.oxml.text.paragraph import CT_P
    from docx.oxml.xmlchemy import BaseOxmlElement

    from callboard.actors.servers.documents._workspace import Snapshot

Block: TypeAlias = Paragraph | Table

_NO_PARENT = cast("Any", None)
"""python-docx asks the parent for styles and pictures alone, which are not read through it here."""

_WRAPPERS = frozenset({qn("w:sdt"), qn("w:sdtContent"), qn("w:customXml"), qn("w:ins"), qn("w:smartTag")})
HIDDEN = frozenset({qn("w:del"), qn("w:moveFrom"), qn("w:txbxContent"), qn("w:pict"), qn("w:drawing"), qn("w:object")})
MARKS = {qn("w:tab"): "\t", qn("w:br"): "\n", qn("w:cr"): "\n", qn("w:noBreakHyphen"): "-"}

OTHER_TEXTS = {
    qn("w:sym"): symbol_text,
    qn("w:fldChar"): form_field_text,
    **dict.fromkeys(EQUATIONS, equation_text),
}
"""Elements that show a text without holding it as letters."""


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
            if child.tag == qn("w:p"):
                yield paragraph_of(child)
            elif child.tag == qn("w:tbl"):
                yield Table(child, _NO_PARENT)
            elif child.tag in _WRAPPERS:
                yield from self._blocks(child)

    def heading_level(self, paragraph: Paragraph) -> int | None:
        """Return a paragraph's heading level.

        Returns:
            1 to 9; 0 for the title, None for other paragraphs.
        """
        outline = paragraph._p.find(f"{qn('w:pPr')}/{qn('w:outlineLvl')}")
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

    It includes links, insertions, symbols, check boxes and equations, but not deletions and text boxes.
    """
    pieces: list[str] = []
    _gather(element, pieces)
    return "".join(pieces)


def _gather(element: BaseOxmlElement, pieces: list[str]) -> None:
    for child in element.iterchildren():
        if child.tag == qn("w:t"):
            pieces.append(child.text or "")
        elif child.tag in MARKS:
            pieces.append(MARKS[child.tag])
        elif child.tag in OTHER_TEXTS:
            pieces.append(OTHER_TEXTS[child.tag](child))
        elif child.tag not in HIDDEN and child.tag != qn("w:pPr"):
            _gather(child, pieces)
