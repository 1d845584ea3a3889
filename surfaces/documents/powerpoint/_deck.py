"""A PowerPoint deck in memory: its slides, layouts and linked parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lxml import etree

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents import _office
from callboard.surfaces.documents._package import CONTENT_TYPES, R_ID, RELATIONSHIPS, Element, Package, local
from callboard.surfaces.documents._tables import listed, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from callboard.surfaces.documents._workspace import Snapshot

DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
PRESENTATION = "http://schemas.openxmlformats.org/presentationml/2006/main"
CHART = "http://schemas.openxmlformats.org/drawingml/2006/chart"
POWERPOINT_2010 = "http://schemas.microsoft.com/office/powerpoint/2010/main"
NAMESPACES = f'xmlns:a="{DRAWING}" xmlns:p="{PRESENTATION}" xmlns:r="{RELATIONSHIPS}"'
"""The declarations of the namespaces of a slide's XML."""
SLIDE_TYPE = "application/vnd.openxmlformats-officedocument.presentationml.slide+xml"
_PLACEHOLDER = f"{{{PRESENTATION}}}nvPr/{{{PRESENTATION}}}ph"
_USUAL_SIZE = (9_144_000, 6_858_000)
_FALSE = frozenset({"0", "false"})


def a(name: str) -> str:
    """Return a name in the namespace of drawings."""
    return f"{{{DRAWING}}}{name}"


def p(name: str) -> str:
    """Return a name in the namespace of presentations."""
    return f"{{{PRESENTATION}}}{name}"


def path(*names: str) -> str:
    """Return a path of names such as ``p:cSld`` and ``a:off``."""
    spaces = {"a": DRAWING, "p": PRESENTATION, "c": CHART}
    pairs = (name.split(":") for name in names)
    return "/".join(f"{{{spaces[prefix]}}}{word}" for prefix, word in pairs)


def parse_xml(text: str) -> Element:
    """Parse XML that uses the prefixes ``a``, ``p`` and ``r``."""
    end = next(number for number, letter in enumerate(text) if letter in " />")
    return etree.fromstring(f"{text[:end]} {NAMESPACES}{text[end:]}")


@dataclass(frozen=True)
class Slide:
    """A slide at its place in the deck."""

    file: DeckFile
    number: int
    """Its place, from 1."""
    part: str
    entry: Element
    """Its entry in the list of slides."""

    @property
    def root(self) -> Element:
        """The slide's XML, for reading."""
        return self.file.package.tree(self.part)

    @property
    def shapes(self) -> Element:
        """The tree of its shapes."""
        return shape_tree(self.file, self.part)

    @property
    def id(self) -> str:
        """The id of its control."""
        return f"slide-{self.number}"

    @property
    def hidden(self) -> bool:
        """True if a show leaves it out."""
        return self.root.get("show") in _FALSE

    @property
    def layout(self) -> str:
        """The part of its layout; empty if it has none."""
        return next(iter(self.file.package.related(self.part, "slideLayout")), "")

    def edit(self) -> Element:
        """Return the slide's XML for an edit."""
        return self.file.package.edit(self.part)


@dataclass
class DeckFile(_office.Edited):
    """A parsed deck, with no open file."""

    package: Package
    main: str
    """The part that lists the slides."""

    @classmethod
    def load(cls, snapshot: Snapshot, max_bytes: int) -> DeckFile:
        """Parse a deck.

        Raises:
            ToolError: If the file is damaged, protected with a password, or does not match its suffix.
        """
        package = Package.load(snapshot, max_bytes)
        if b"macroEnabled" in package.bytes_of(CONTENT_TYPES):
            msg = f"{snapshot.document!r} holds macros despite its suffix; save it as .pptx"
            raise ToolError(msg)
        main = next(iter(package.related("", "officeDocument")), "")
        if not main or local(package.tree(main)) != "presentation":
            raise _office.damaged(snapshot.document, "its main part is missing")
        return cls(package, main)

    def not_writable(self) -> str:
        """Explain why the deck must not be written; empty if it may."""
        if any(part.startswith("_xmlsignatures/") for part in self.package):
            return "writing it would break its digital signature"
        if self.package.tree(self.main).find(p("modifyVerifier")) is not None:
            return "it is protected against editing; take the password away in PowerPoint first"
        return ""

    def to_bytes(self) -> bytes:
        """Return the file's bytes; parts without edits stay the same."""
        return self.package.to_bytes()

    def slides(self) -> list[Slide]:
        """List the slides in order.

        Raises:
            ToolError: If one is missing.
        """
        targets = {link.id: link.target for link in self.package.relationships(self.main) if not link.external}
        slides: list[Slide] = []
        for entry in self.package.tree(self.main).iterfind(path("p:sldIdLst", "p:sldId")):
            part = targets.get(entry.get(R_ID), "")
            if part not in self.package:
                msg = f"its slide {len(slides) + 1} is missing"
                raise self.package.damaged(msg)
            slides.append(Slide(self, len(slides) + 1, part, entry))
        return slides

    @property
    def size(self) -> tuple[int, int]:
        """The width and height of a slide, in EMU."""
        size = self.package.tree(self.main).find(p("sldSz"))
        if size is None:
            return _USUAL_SIZE
        return int(size.get("cx", _USUAL_SIZE[0])), int(size.get("cy", _USUAL_SIZE[1]))

    def layouts(self) -> dict[str, str]:
        """List the names of the layouts, by part."""
        masters = self.package.related(self.main, "slideMaster")
        parts = [layout for master in masters for layout in self._ordered_layouts(master)]
        return {part: self.layout_name(part) for part in parts}

    def _ordered_layouts(self, master: str) -> Iterator[str]:
        targets = {link.id: link.target for link in self.package.relationships(master)}
        for entry in self.package.tree(master).iterfind(path("p:sldLayoutIdLst", "p:sldLayoutId")):
            if (part := targets.get(entry.get(R_ID), "")) in self.package:
                yield part

    def layout_name(self, part: str) -> str:
        """Return the name of a layout."""
        sheet = self.package.tree(part).find(p("cSld")) if part in self.package else None
        return str(sheet.get("name", "")) if sheet is not None else ""

    def find_layout(self, name: str) -> str:
        """Find a layout by its name, in any case.

        Raises:
            ToolError: If the deck has none of that name.
        """
        layouts = self.layouts()
        for part, layout in layouts.items():
            if layout.casefold() == name.strip().casefold():
                return part
        msg = f"there is no layout {name!r}; there are: {listed(layouts.values())}{nearest(name, layouts.values())}"
        raise ToolError(msg)


def shape_tree(file: DeckFile, part: str) -> Element:
    """Return the tree of a slide's, layout's or master's shapes.

    Raises:
        ToolError: If it has none.
    """
    tree = file.package.tree(part).find(path("p:cSld", "p:spTree"))
    if tree is None:
        msg = f"its part {part} has no shapes"
        raise file.package.damaged(msg)
    return tree


def placeholder_of(shape: Element) -> Element | None:
    """Return the mark of a placeholder; None for another shape."""
    return next(
        (mark for names in shape if local(names).startswith("nv") for mark in names.iterfind(_PLACEHOLDER)), None
    )
