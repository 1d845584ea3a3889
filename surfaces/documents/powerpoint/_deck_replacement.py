"""Replacement of a text everywhere in a deck; formats stay."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from callboard.surfaces.documents._package import Element, local
from callboard.surfaces.documents.powerpoint._deck import a, p
from callboard.surfaces.documents.powerpoint._slide_notes import comments_of, notes_part
from callboard.surfaces.documents.powerpoint._slide_texts import paragraph_text, pieces_of

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable

    from callboard.surfaces.documents.powerpoint._deck import Slide

_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_LINK = "hlinkClick"


@dataclass
class DeckReplacement:
    """The replacement of all matches of a pattern, counted over paragraphs.

    A match may span runs; the new text gets the format of the first character that it replaces. Fields and formulas are
    left alone.
    """

    pattern: re.Pattern[str]
    new: str
    count: int = 0
    matches: set[str] = field(default_factory=set)
    slides: set[int] = field(default_factory=set)
    """The numbers of the slides with a match."""
    skip_counts: Counter[str] = field(default_factory=Counter)
    """The matches that are left alone, by place."""
    links: list[str] = field(default_factory=list)
    """The new texts of links, whose targets stay."""
    texts: list[str] = field(default_factory=list)
    """The texts that were searched."""

    def apply_to(self, slide: Slide, elements: Iterable[Element] | None = None) -> None:
        """Replace all matches on a slide with its notes, or in shapes."""
        parts = [slide.part] if elements is not None else [slide.part, *filter(None, [notes_part(slide)])]
        for part in parts:
            roots = [slide.file.package.tree(part)] if elements is None else elements
            paragraphs = [paragraph for root in roots for paragraph in root.iter(a("p"))]
            if any(self.pattern.search("".join(text for _, text in pieces_of(paragraph))) for paragraph in paragraphs):
                slide.file.package.edit(part)
            for paragraph in paragraphs:
                is_copy = next(paragraph.iterancestors(_FALLBACK), None) is not None  # for old programs
                if self._apply(paragraph, counted=not is_copy):
                    self.slides.add(slide.number)
        if elements is None:
            self._count_elsewhere(slide)
        self.skip_counts = +self.skip_counts

    def _apply(self, paragraph: Element, *, counted: bool) -> bool:
        pieces = pieces_of(paragraph)
        text = "".join(text for _, text in pieces)
        if counted:
            self.texts.append(paragraph_text(paragraph))
        matches = [match for match in self.pattern.finditer(text) if match.group()]
        everywhere = sum(bool(match.group()) for match in self.pattern.finditer(paragraph_text(paragraph)))
        self.skip_counts["fields and formulas"] += max(0, everywhere - len(matches)) if counted else 0
        for match in reversed(matches):  # the last one first, so that earlier positions stay valid
            links = self._put(pieces, *match.span())
            self.count += counted
            self.matches.add(match.group())
            self.links += links if counted else []
        return bool(matches)

    def _put(self, pieces: list[tuple[Element | None, str]], start: int, end: int) -> list[str]:
        """Replace a match; return the new texts of links in it."""
        position, new, links = 0, self.new, []
        for piece, text in pieces:
            first, last = max(start - position, 0), min(end - position, len(text))
            position += len(text)
            if piece is None or first >= last:
                continue
            words = piece.text or ""
            piece.text = words[:first] + new + words[last:]
            new = ""
            if any(local(child) == _LINK for child in piece.getparent().iter()):
                links.append(piece.text)
        return links

    def _count_elsewhere(self, slide: Slide) -> None:
        """Count the matches in parts that are not written."""
        package = slide.file.package
        for comment in comments_of(slide):
            self.skip_counts["comments"] += len(self.pattern.findall(comment.text))
        for kind, name in (("diagramData", "SmartArt graphics"), ("chart", "charts")):
            for part in package.related(slide.part, kind):
                root = package.tree(part)
                values = [element.text or "" for element in root.iter() if local(element) == "v"]
                texts = [*map(paragraph_text, root.iter(a("p"))), *values]
                self.skip_counts[name] += sum(len(self.pattern.findall(text)) for text in texts)
        texts = [
            text for facts in slide.root.iter(p("cNvPr")) for name in ("title", "descr") if (text := facts.get(name))
        ]
        self.skip_counts["alternative texts"] += sum(len(self.pattern.findall(text)) for text in texts)
