"""An Office file as a package of parts.

Parts that an edit does not touch are written back byte for byte.
"""

from __future__ import annotations

import io
import posixpath
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from lxml import etree

from callboard.surfaces.documents import _office

if TYPE_CHECKING:
    from collections.abc import Iterator

    from callboard.surfaces._tool_function import ToolError
    from callboard.surfaces.documents._workspace import Snapshot

Element: TypeAlias = Any
"""An element of lxml, which has no types of its own."""

CONTENT_TYPES = "[Content_Types].xml"
RELATIONSHIPS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
_RELS_TYPE = "application/vnd.openxmlformats-package.relationships+xml"
R_ID = f"{{{RELATIONSHIPS}}}id"


@dataclass(frozen=True)
class Relationship:
    """A link from a part to another part, or outside."""

    id: str
    type: str
    """The last word of its URI, such as ``worksheet``."""
    target: str
    """The name of the part; as it stands for something outside."""
    external: bool


class Package:
    """The parts of an Office file, by name; XML is parsed lazily.

    A tree that `tree` returns is for reading. `edit` returns one that is written in place of the part's bytes.
    """

    classes: Any = None
    """The lookup of lxml for the classes of elements; None for lxml's own."""

    def __init__(self, document: str, parts: dict[str, bytes]) -> None:
        self.document = document
        self._parts = parts
        self._trees: dict[str, Element] = {}
        self._edited: set[str] = set()
        self._by_small_letters = {name.casefold(): name for name in parts}

    @classmethod
    def load(cls, snapshot: Snapshot, max_bytes: int) -> Package:
        """Unpack a file.

        Raises:
            ToolError: If it is damaged, password-protected, in another format, or unpacks to more than allowed.
        """
        return cls(snapshot.document, _office.parts(snapshot, max_bytes))

    def __contains__(self, name: str) -> bool:
        return name in self._parts

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._parts))

    def bytes_of(self, name: str) -> bytes:
        """Return a part's bytes as they would be written now."""
        if name in self._edited:
            xml: bytes = etree.tostring(
                self._trees[name].getroottree(), xml_declaration=True, encoding="UTF-8", standalone=True
            )
            return xml
        return self._parts[name]

    def tree(self, name: str) -> Element:
        """Parse a part.

        Raises:
            ToolError: If it is missing or not well-formed.
        """
        _office.READING.set((self.document, name))
        if name not in self._trees:
            if name not in self._parts:
                msg = f"its part {name} is missing"
                raise self.damaged(msg)
            parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, remove_pis=False)
            parser.set_element_class_lookup(self.classes)
            try:
                self._trees[name] = etree.fromstring(self._parts[name], parser)
            except etree.XMLSyntaxError as error:
                msg = f"its part {name} can't be parsed: {error}"
                raise self.damaged(msg) from error
        return self._trees[name]

    def check(self) -> None:
        """Parse all parts.

        Raises:
            ToolError: If one is not well-formed.
        """
        for name in self:
            if name.endswith((".xml", ".rels")):
                self.tree(name)

    def edit(self, name: str) -> Element:
        """Parse a part that is about to change."""
        tree = self.tree(name)
        self._edited.add(name)
        return tree

    def replace(self, name: str, content: bytes) -> None:
        """Put other bytes in a part's place."""
        self._trees.pop(name, None)
        self._edited.discard(name)
        self._parts[name] = content

    def damaged(self, reason: Exception | str) -> ToolError:
        """Make the error for a file that can't be understood."""
        return _office.damaged(self.document, reason)

    def relationships(self, part: str) -> list[Relationship]:
        """List a part's links; the package's own for the empty name."""
        rels = rels_of(part)
        if rels not in self._parts:
            return []
        links = []
        for element in self.tree(rels):
            if not isinstance(element.tag, str):
                continue
            external = element.get("TargetMode") == "External"
            target = element.get("Target", "")
            if not external:
                target = self._resolve_target(posixpath.dirname(part), target)
            kind = element.get("Type", "").rpartition("/")[2]
            links.append(Relationship(element.get("Id", ""), kind, target, external))
        return links

    def related(self, part: str, kind: str) -> list[str]:
        """List the existing parts of a kind that a part links to."""
        targets = [
            relationship.target
            for relationship in self.relationships(part)
            if relationship.type == kind and not relationship.external
        ]
        return [name for name in targets if name in self._parts]

    def target(self, part: str, relationship: str | None) -> str | None:
        """Return the part that a link leads to, if any."""
        for link in self.relationships(part):
            if link.id == relationship and not link.external and link.target in self._parts:
                return link.target
        return None

    def free_name(self, pattern: str) -> str:
        """Return the first free name of a pattern like ``xl/charts/chart{}.xml``."""
        number = 1
        while pattern.format(number).casefold() in self._by_small_letters:
            number += 1
        return pattern.format(number)

    def add(self, name: str, content: Element | bytes, content_type: str) -> None:
        """Add a part."""
        if isinstance(content, bytes):
            self._parts[name] = content
        else:
            self._parts[name] = b""
            self._trees[name] = content
            self._edited.add(name)
        self._by_small_letters[name.casefold()] = name
        if self.content_type(name) == content_type:
            return
        types = self.edit(CONTENT_TYPES)
        entry = etree.SubElement(types, f"{{{_TYPES}}}Override")
        entry.set("PartName", f"/{name}")
        entry.set("ContentType", content_type)

    def relate(self, part: str, kind: str, target: str) -> str:
        """Link a part to another one. Returns the link's id."""
        if rels_of(part) not in self._parts:
            self.add_relationships(part, etree.Element(f"{{{PACKAGE}}}Relationships", nsmap={None: PACKAGE}))
        return str(self._add_link(part, kind, f"/{target}").get("Id"))

    def add_relationships(self, part: str, links: Element) -> None:
        """Add the links of a part that has none."""
        rels = rels_of(part)
        self._parts[rels] = b""
        self._trees[rels] = links
        self._edited.add(rels)
        self._by_small_letters[rels.casefold()] = rels
        self.ensure_default("rels", _RELS_TYPE)

    def relate_outside(self, part: str, kind: str, target: str) -> str:
        """Link a part that has links to something outside of the file.

        Returns the link's id.
        """
        entry = self._add_link(part, kind, target)
        entry.set("TargetMode", "External")
        return str(entry.get("Id"))

    def _add_link(self, part: str, kind: str, target: str) -> Element:
        ids = {relationship.id for relationship in self.relationships(part)}
        number = next(n for n in range(1, len(ids) + 2) if f"rId{n}" not in ids)
        entry = etree.SubElement(self.edit(rels_of(part)), f"{{{PACKAGE}}}Relationship")
        entry.set("Id", f"rId{number}")
        entry.set("Type", f"{RELATIONSHIPS}/{kind}")
        entry.set("Target", target)
        return entry

    def unrelate(self, part: str, relationship: str) -> None:
        """Take away a link; the part that it led to stays."""
        rels = self.edit(rels_of(part))
        for element in list(rels):
            if isinstance(element.tag, str) and element.get("Id") == relationship:
                rels.remove(element)

    def remove(self, name: str) -> None:
        """Remove a part, and those that only it links to."""
        targets = [relationship.target for relationship in self.relationships(name) if not relationship.external]
        self._drop(name)
        self._drop(rels_of(name))
        for target in targets:
            if target in self._parts and not any(self.sources_of(target)):
                self.remove(target)

    def sources_of(self, name: str) -> Iterator[tuple[str, str]]:
        """Yield the parts that link to a part, with the links' ids."""
        for rels in [part for part in self._parts if part.endswith(".rels")]:
            source = _part_of(rels)
            for link in self.relationships(source):
                if link.target == name and not link.external:
                    yield source, link.id

    def to_bytes(self) -> bytes:
        """Write the package, its parts in the order in which they came."""
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in self._parts:
                entry = zipfile.ZipInfo(name)  # of one date: the same edit gives the same bytes
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o600 << 16
                self._write(archive, entry)
        return out.getvalue()

    def _write(self, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> None:
        archive.writestr(entry, self.bytes_of(entry.filename))

    def _resolve_target(self, folder: str, target: str) -> str:
        path = target[1:] if target.startswith("/") else posixpath.normpath(posixpath.join(folder, target))
        return path if path in self._parts else self._by_small_letters.get(path.casefold(), path)

    def _drop(self, name: str) -> None:
        if self._parts.pop(name, None) is None:
            return
        self._trees.pop(name, None)
        self._edited.discard(name)
        self._by_small_letters.pop(name.casefold(), None)
        types = self.tree(CONTENT_TYPES)
        for entry in list(types):
            if isinstance(entry.tag, str) and entry.get("PartName", "").casefold() == f"/{name}".casefold():
                self.edit(CONTENT_TYPES).remove(entry)

    def content_type(self, name: str) -> str:
        """Return a part's content type; empty if the file states none."""
        suffix, by_suffix = name.rpartition(".")[2].casefold(), ""
        for entry in self.tree(CONTENT_TYPES).iterchildren(tag=etree.Element):
            if entry.get("PartName", "").casefold() == f"/{name}".casefold():
                return str(entry.get("ContentType", ""))
            if entry.get("Extension", "").casefold() == suffix:
                by_suffix = str(entry.get("ContentType", ""))
        return by_suffix

    def ensure_default(self, extension: str, content_type: str) -> None:
        """State the content type of a suffix, if there is none."""
        types = self.tree(CONTENT_TYPES)
        tag = f"{{{_TYPES}}}Default"
        if any(entry.get("Extension", "").casefold() == extension for entry in types.iter(tag)):
            return
        entry = etree.Element(tag)
        entry.set("Extension", extension)
        entry.set("ContentType", content_type)
        self.edit(CONTENT_TYPES).insert(0, entry)


def local(element: Element) -> str:
    """Return an element's name without its namespace; empty for a comment."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def rels_of(part: str) -> str:
    """Return the name of the part that holds a part's links."""
    folder, _, name = part.rpartition("/")
    return f"{folder}/_rels/{name}.rels" if folder else f"_rels/{name}.rels"


def _part_of(rels: str) -> str:
    folder, _, name = rels.rpartition("/_rels/") if "/_rels/" in rels else ("", "", rels.removeprefix("_rels/"))
    name = name.removesuffix(".rels")
    return f"{folder}/{name}" if folder else name
