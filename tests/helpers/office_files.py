"""Office files for tests, and ways to change their parts."""

from __future__ import annotations

import io
import os
import zipfile
from typing import TYPE_CHECKING

import docx
import pytest

from callboard.surfaces.documents import lacking_office

if TYPE_CHECKING:
    from collections.abc import Callable


def parts(data: bytes) -> dict[str, bytes]:
    """Unpack a package."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def letter() -> bytes:
    """Make a document with a paragraph and a table."""
    document = docx.Document()
    document.add_paragraph("Dear Ada,")
    document.add_table(2, 2)
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def changed(data: bytes, change: Callable[[dict[str, bytes]], None]) -> bytes:
    """Write a package with other parts."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    change(parts)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return out.getvalue()


def with_part(name: str, part: bytes = b"<x/>") -> Callable[[dict[str, bytes]], None]:
    """Add a part."""
    return lambda parts: parts.update({name: part})


def rewritten(name: str, old: bytes, new: bytes) -> Callable[[dict[str, bytes]], None]:
    """Replace some bytes of a part."""
    return lambda parts: parts.update({name: parts[name].replace(old, new)})


def need_office(suffix: str) -> None:
    """Skip a test where LibreOffice does not read a format."""
    if reason := lacking_office(suffix):
        (pytest.fail if os.environ.get("REQUIRE_SOFFICE") == "1" else pytest.skip)(reason)
