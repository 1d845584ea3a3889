"""Office files for tests, and ways to change their parts."""

from __future__ import annotations

import io
import os
import zipfile
import zlib
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


def pdf_of(lines: list[str], content: bytes | None = None) -> bytes:
    """Make a PDF with one page of text."""
    shown = "\n".join(f"BT /F1 12 Tf 50 {750 - 20 * n} Td ({line}) Tj ET" for n, line in enumerate(lines))
    body = content if content is not None else zlib.compress(shown.encode())
    parts = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Filter/FlateDecode/Length %d>>stream\n%s\nendstream" % (len(body), body),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    content, offsets = b"%PDF-1.4\n", []
    for number, part in enumerate(parts, 1):
        offsets.append(len(content))
        content += b"%d 0 obj\n%s\nendobj\n" % (number, part)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return content + b"xref\n0 6\n0000000000 65535 f \n%strailer\n<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (
        table,
        len(content),
    )
