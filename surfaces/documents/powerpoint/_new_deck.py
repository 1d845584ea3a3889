"""New decks, made of python-pptx's templates."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._package import Package
from callboard.surfaces.documents.powerpoint._deck import a, p

_WIDE = 12_192_000
"""The width of a slide of 16 to 9, in EMU."""


def templates() -> Path:
    """Return the folder of python-pptx's templates.

    Raises:
        ToolError: If it is not installed.
    """
    try:
        import pptx
    except ImportError as error:
        msg = "python-pptx is not installed, and this needs it: it comes with callboard[powerpoint]"
        raise ToolError(msg) from error
    return Path(pptx.__file__).with_name("templates")


def empty_deck() -> bytes:
    """Return the bytes of a deck of 16 to 9, without slides.

    Raises:
        ToolError: If python-pptx is not installed.
    """
    with zipfile.ZipFile(io.BytesIO((templates() / "default.pptx").read_bytes())) as archive:
        package = Package("", {name: archive.read(name) for name in archive.namelist()})
    size = package.edit("ppt/presentation.xml").find(p("sldSz"))
    width = int(size.get("cx"))
    size.set("cx", str(_WIDE))
    del size.attrib["type"]
    for part in [part for part in package if part.startswith(("ppt/slideLayouts/slide", "ppt/slideMasters/slide"))]:
        for element in package.edit(part).iter(a("off"), a("ext")):
            name = "x" if element.tag == a("off") else "cx"
            if element.get(name) is not None:
                element.set(name, str(int(element.get(name)) * _WIDE // width))
    return package.to_bytes()
