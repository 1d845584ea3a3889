"""A Word document in memory: its blocks and their visible text."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import docx
from docx.oxml.ns import qn
from docx.table import Table
from docx.text.paragraph import Paragraph

from callboard.actors.servers._server import ToolError
from callboard.actors.servers.documents import _office
from callboard.actors.servers.documents._losses import lost_by_docx

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docx.document import Document
    from docx.oxml.xmlchemy import BaseOxmlElement

    from callboard.actors.servers.documents._workspace import Snapshot

Block: TypeAlias = Paragraph | Table

_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)
_WRAPPERS = frozenset({qn("w:sdt"), qn("w:sdtContent"), qn("w:customXml"), qn("w:ins"), qn("w:smartTag")})
HIDDEN = frozenset({qn("w:del"), qn("w:moveFrom"), qn("w:txbxContent"), qn("w:pict"), qn("w:drawing"), qn("w:object")})
MARKS = {qn("w:tab"): "\t", qn("w:br"): "\n", qn("w:cr"): "\n", qn("w:noBreakHyphen"): "-"}


@dataclass
class WordFile(_office.Edited):
    """A parsed document, with no open file."""

    document: Document
    lost: list[str]
    """Content that writing the document would lose, as readable phrases."""
    _levels: dict[str, int | None] = field(default_factory=dict)

    @classmethod
    def load(cls, snapshot: Snapshot, max_bytes: int) -> WordFile:
        """Parse a document.

        Raises:
            ToolError: If the document is damaged, protected with a password, or does not match its suffix.
        """
        parts = _office.parts(snapshot, max_bytes)
        if b"macroEnabled" in parts["[Content_Types].xml"]:
            msg = f"{snapshot.document!r} holds macros despite its suffix; save it as .docx"
            raise ToolError(msg)
        try:
            document = docx.Document(io.BytesIO(snapshot.data))
            reached = [str(part.partname).lstrip("/") for part in document.part.package.iter_parts()]
        except Exception as error:
            raise _office.damaged(snapshot.document, error) from error
        if document.element.body is None:
            raise _office.damaged(snapshot.document, "it has no body")
        return cls(document, lost_by_docx(parts, reached))

    @classmethod
    def new(cls) -> WordFile:
        """Make an empty document."""
        return cls(docx.Document(), [])

    def to_bytes(self) -> bytes:
        """Return the document as the bytes of a file."""
        out = io.BytesIO()
        self.document.save(out)
        return out.getvalue()

    def not_writable(self) -> str:
        """Explain why the document must not be written; empty if it may."""
        if self.lost:
            return f"writing it would lose {', '.join(self.lost)}"
        protection = self.document.settings.element.find(qn("w:documentProtection"))
        if protection is not None and protection.get(qn("w:enforcement")) in {"1", "true", "on"}:
            return "it is protected against editing; stop the protection in Word first"
        return ""

    def blocks(self) -> Iterator[Block]:
        """Yield paragraphs and tables in order, also those in content controls."""
        yield from self._blocks(self.document.element.body)

    def _blocks(self, parent: BaseOxmlElement) -> Iterator[Block]:
        for child in parent.iterchildren():
            if child.tag == qn("w:p"):
                yield Paragraph(child, self.document._body)  # as python-docx makes them
            elif child.tag == qn("w:tbl"):
                yield Table(child, self.document._body)
            elif child.tag in _WRAPPERS:
                yield from self._blocks(child)

    def heading_level(self, paragraph: Paragraph) -> int | None:
        """Return a paragraph's heading level.

        Returns:
            1 to 9; 0 for the title, None for other paragraphs.
        """
        outline = paragraph._p.find(f"{qn('w:pPr')}/{qn('w:outlineLvl')}")
        if outline is not None:
            return _outline(outline.get(qn("w:val")))
        key = paragraph._p.style or ""  # the style's id, without looking it up
        if key not in self._levels:
            self._levels[key] = _level_of_style(paragraph)
        return self._levels[key]


def visible_text(element: BaseOxmlElement) -> str:
    """Return a paragraph's visible text.

    It includes links and insertions, but not deletions and text boxes.
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
        elif child.tag not in HIDDEN and child.tag != qn("w:pPr"):
            _gather(child, pieces)


def _outline(value: str | None) -> int | None:
    return int(value) + 1 if value is not None and value.isdigit() and int(value) < 9 else None


def _level_of_style(paragraph: Paragraph) -> int | None:
    style = paragraph.style
    seen: set[str] = set()
    while style is not None and style.style_id not in seen:
        seen.add(style.style_id)
        name = style.name or ""
        if name.lower() == "title":
            return 0
        if match := _HEADING.fullmatch(name):
            return int(match[1])
        outline = style.element.find(f"{qn('w:pPr')}/{qn('w:outlineLvl')}")
        if outline is not None:
            return _outline(outline.get(qn("w:val")))
        style = style.base_style
    return None
