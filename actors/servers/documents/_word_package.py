"""A Word file as parts; an edit writes only the changed ones."""

from __future__ import annotations

import io
import posixpath
import zipfile
from typing import TYPE_CHECKING, cast

from docx.oxml.parser import element_class_lookup
from lxml import etree

from callboard.actors.servers.documents import _office

if TYPE_CHECKING:
    from docx.oxml.xmlchemy import BaseOxmlElement

    from callboard.actors.servers.documents._workspace import Snapshot

TYPES = "[Content_Types].xml"
_RELATIONSHIPS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PART_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.{}+xml"


class WordPackage:
    """The parts of a Word file.

    A part is parsed when it is asked for. All parts that an edit did not change keep their bytes. python-docx reads a
    whole package, fails at relationships that lead nowhere, and writes every part again; only its element classes are
    used here.
    """

    def __init__(self, snapshot: Snapshot, parts: dict[str, bytes]) -> None:
        self.parts = parts
        self._snapshot = snapshot
        self._trees: dict[str, BaseOxmlElement] = {}
        self.main = next(iter(self._targets("_rels/.rels", "", "officeDocument")), "")

    def tree(self, part: str) -> BaseOxmlElement:
        """Return a part's root element; an edit changes it in place.

        Raises:
            ToolError: If the part is not well-formed XML.
        """
        if part not in self._trees:
            self._trees[part] = self._parse(part)
        return self._trees[part]

    def related(self, kind: str) -> list[str]:
        """List the parts of a kind to which the main part refers.

        Args:
            kind: The end of a relationship's type, such as ``styles``.

        Returns:
            Their names; missing parts are left out.
        """
        return self._targets(_rels_of(self.main), posixpath.dirname(self.main), kind)

    def add(self, kind: str, root: BaseOxmlElement) -> BaseOxmlElement:
        """Add a part to which the main part refers.

        Args:
            kind: The end of the relationship's type, such as ``numbering``.
            root: Its root element, which is returned.
        """
        folder = posixpath.dirname(self.main)
        names = (posixpath.join(folder, f"{kind}{number or ''}.xml") for number in range(len(self.parts) + 1))
        name = next(name for name in names if name not in self.parts)
        rels = _rels_of(self.main)
        if rels not in self.parts:
            self.parts[rels] = f'<Relationships xmlns="{_RELATIONSHIPS}"/>'.encode()
        entries = self.tree(rels)
        taken = {entry.get("Id") for entry in entries}
        free = next(key for number in range(1, len(taken) + 2) if (key := f"rId{number}") not in taken)
        entry = etree.SubElement(entries, f"{{{_RELATIONSHIPS}}}Relationship")
        for key, value in (("Id", free), ("Type", f"{_OFFICE}/{kind}"), ("Target", f"/{name}")):
            entry.set(key, value)
        types = self.tree(TYPES)
        override = etree.SubElement(types, types.tag.replace("}Types", "}Override"))
        override.set("PartName", f"/{name}")
        override.set("ContentType", _PART_TYPE.format(kind))
        self._trees[name] = root
        return root

    def to_bytes(self) -> bytes:
        """Return the bytes of the file, with those of unchanged parts."""
        changed = {name: _bytes_of(tree) for name, tree in self._trees.items() if self._changed(name, tree)}
        out = io.BytesIO()
        with (
            zipfile.ZipFile(io.BytesIO(self._snapshot.data)) as old,
            zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new,
        ):
            for entry in {entry.filename: entry for entry in old.infolist()}.values():
                data = changed.pop(entry.filename, None)
                new.writestr(_same_entry(entry), old.read(entry) if data is None else data)
            for name, data in changed.items():
                new.writestr(name, data)
        return out.getvalue()

    def _changed(self, part: str, tree: BaseOxmlElement) -> bool:
        return part not in self.parts or _bytes_of(self._parse(part)) != _bytes_of(tree)

    def _parse(self, part: str) -> BaseOxmlElement:
        parser = etree.XMLParser(resolve_entities=False)
        parser.set_element_class_lookup(element_class_lookup)
        try:
            return cast("BaseOxmlElement", etree.fromstring(self.parts[part], parser))
        except etree.XMLSyntaxError as error:
            raise _office.damaged(self._snapshot.document, f"{part}: {error.msg}") from error

    def _targets(self, rels: str, folder: str, kind: str) -> list[str]:
        if rels not in self.parts:
            return []
        found: list[str] = []
        for entry in self.tree(rels).iterchildren("{*}Relationship"):
            target = entry.get("Target", "").replace("\\", "/")
            name = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
            if entry.get("Type", "").rpartition("/")[2] == kind and name in self.parts and name not in found:
                found.append(name)
        return found


def _rels_of(part: str) -> str:
    folder, name = posixpath.split(part)
    return posixpath.join(folder, "_rels", f"{name}.rels")


def _bytes_of(tree: BaseOxmlElement) -> bytes:
    written: bytes = etree.tostring(tree.getroottree(), xml_declaration=True, encoding="UTF-8", standalone=True)
    return written


def _same_entry(entry: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """Copy what describes an entry, but not what describes its compressed bytes."""
    same = zipfile.ZipInfo(entry.filename, entry.date_time)
    same.compress_type, same.external_attr, same.comment = entry.compress_type, entry.external_attr, entry.comment
    same.create_system = entry.create_system
    return same
