"""Keep hidden sheets out of a workbook's PDF."""

from __future__ import annotations

import io

from callboard.surfaces import BoundedZipFile
from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._office import UNREADABLE, q
from callboard.surfaces.documents._package import Package

_PRINT_AREA = "_xlnm.print_area"


def without_hidden_areas(workbook: bytes) -> bytes:
    """Drop the print areas of the hidden sheets of an ``.xlsx`` file.

    LibreOffice prints a hidden sheet if it has one. A file without such a sheet, or that can't be read here, is
    returned as it is.
    """
    try:
        with BoundedZipFile(io.BytesIO(workbook)) as archive:
            package = Package("workbook", {entry.filename: archive.read(entry) for entry in archive.infolist()})
        part = next(iter(package.related("", "officeDocument")), "xl/workbook.xml")
        root = package.tree(part)
    except (*UNREADABLE, ToolError):
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
