"""Keep hidden sheets out of a workbook's PDF."""

from __future__ import annotations

import io
import zipfile
import zlib

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._office import q
from callboard.surfaces.documents._package import Package

_PRINT_AREA = "_xlnm.print_area"
_UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError, ToolError)


def without_hidden_areas(workbook: bytes) -> bytes:
    """Drop the print areas of the hidden sheets of an ``.xlsx`` file.

    LibreOffice prints a hidden sheet if it has one. A file without such a sheet, or that can't be read here, is
    returned as it is.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(workbook)) as archive:
            package = Package("workbook", {entry.filename: archive.read(entry) for entry in archive.infolist()})
        part = next(iter(package.related("", "officeDocument")), "xl/workbook.xml")
        root = package.tree(part)
    except _UNREADABLE:
        return workbook
    sheets = root.iterfind(f"{q('sheets')}/{q('sheet')}")
    hidden = {str(index) for index, sheet in enumerate(sheets) if sheet.get("state", "visible") != "visible"}
    names = [
        name
        for name in root.iterfind(f"{q('definedNames')}/{q('definedName')}")
        if name.get("name", "").lower() == _PRINT_AREA and name.get("localSheetId") in hidden
    ]
    if not names:
        return workbook
    for name in names:
        name.getparent().remove(name)
    package.edit(part)
    return package.to_bytes()
