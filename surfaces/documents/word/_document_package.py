"""A Word file as parts; an edit writes only the changed ones."""

from __future__ import annotations

import io
import posixpath
import zipfile
from typing import TYPE_CHECKING

from docx.oxml.parser import element_class_lookup

from callboard.surfaces.documents import _office
from callboard.surfaces.documents._package import Package

if TYPE_CHECKING:
    from docx.oxml.xmlchemy import BaseOxmlElement

    from callboard.surfaces.documents._workspace import Snapshot

_PART_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.{}+xml"


class WordPackage(Package):
    """The parts of a Word file, with python-docx's element classes.

    python-docx itself fails at relationships that lead nowhere, and writes every part again.
    """

    classes = element_class_lookup

    def __init__(self, snapshot: Snapshot, max_bytes: int) -> None:
        parts = _office.parts(snapshot, max_bytes)
        super().__init__(snapshot.document, parts)
        self._originals = dict(parts)
        self._snapshot = snapshot
        self.main = next(iter(self.related("", "officeDocument")), "")

    def beside(self, kind: str) -> list[str]:
        """List the parts of a kind to which the main part refers.

        Args:
            kind: The end of a relationship's type, such as ``styles``.
        """
        return self.related(self.main, kind)

    def add_beside(self, kind: str, root: BaseOxmlElement) -> BaseOxmlElement:
        """Add a part that the main part refers to; returns its root."""
        stem = posixpath.join(posixpath.dirname(self.main), kind)
        name = self.free_name(f"{stem}{{}}.xml") if f"{stem}.xml" in self else f"{stem}.xml"
        self.add(name, root, _PART_TYPE.format(kind))
        self.relate(self.main, kind, name)
        return root

    def to_bytes(self) -> bytes:
        """Return the bytes of the file.

        A part whose content is as before keeps its bytes, and with them its place, date and attributes in the file.
        """
        original = Package(self.document, self._originals)
        original.classes = self.classes
        out = io.BytesIO()
        with (
            zipfile.ZipFile(io.BytesIO(self._snapshot.data)) as old,
            zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new,
        ):
            entries: dict[str, zipfile.ZipInfo] = {}
            for entry in old.infolist():  # the same, without the description of its compressed bytes
                entries[entry.filename] = entry_copy = zipfile.ZipInfo(entry.filename, entry.date_time)
                entry_copy.external_attr, entry_copy.comment, entry_copy.create_system = (
                    entry.external_attr,
                    entry.comment,
                    entry.create_system,
                )
            for name in self:
                entries.setdefault(name, zipfile.ZipInfo(name)).compress_type = zipfile.ZIP_DEFLATED
            for name, entry in entries.items():
                new.writestr(entry, self._encode_part(name, original) if name in self else b"")
        return out.getvalue()

    def _encode_part(self, name: str, original: Package) -> bytes:
        if name in original and name in self._trees:
            self.edit(name)
            original.edit(name)
            if original.bytes_of(name) == self.bytes_of(name):
                return self._originals[name]
        return self.bytes_of(name)
