"""Workbooks of the first versions of Excel, and the container of Office 95, written by hand."""

from __future__ import annotations

import struct

_SECTOR = 512
_END, _FREE, _FAT = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD
_BOF = {2: 0x0009, 3: 0x0209, 4: 0x0409}


def ole_file(stream: bytes, name: str) -> bytes:
    """Pack one stream as a compound file does.

    A stream of less than 4,096 bytes is filled up with zeros.
    """
    data = stream.ljust(4096, b"\0")
    data += bytes(-len(data) % _SECTOR)
    count = len(data) // _SECTOR
    fat = [_FAT, _END, *range(3, count + 2), _END]
    fat += [_FREE] * (128 - len(fat))
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<5H", 0x3E, 3, 0xFFFE, 9, 6) + bytes(10)
    header += struct.pack("<IIIIIIII", 1, 1, 0, 4096, _END, 0, _END, 0) + struct.pack("<109I", 0, *[_FREE] * 108)
    entries = _entry("Root Entry", 5, _FREE, 1, _END, 0) + _entry(name, 2, _FREE, _FREE, 2, len(data))
    return header + struct.pack("<128I", *fat) + entries.ljust(_SECTOR, b"\0") + data


def _entry(name: str, kind: int, left: int, child: int, start: int, size: int) -> bytes:
    text = name.encode("utf-16-le") + b"\0\0"
    head = text.ljust(64, b"\0") + struct.pack("<HBB", len(text), kind, 1)
    return head + struct.pack("<3I", left, _FREE, child) + bytes(36) + struct.pack("<IQ", start, size)


def _record(kind: int, data: bytes = b"") -> bytes:
    return struct.pack("<HH", kind, len(data)) + data


def _cells(version: int, text: bytes, number: float) -> bytes:
    """Return the cells A1, a text, and B1, a number."""
    if version == 2:
        label = struct.pack("<HH3xB", 0, 0, len(text)) + text
        return _record(4, label) + _record(3, struct.pack("<HH3xd", 0, 1, number))
    label = struct.pack("<HHHH", 0, 0, 0, len(text)) + text
    return _record(0x0204, label) + _record(0x0203, struct.pack("<HHHd", 0, 1, 0, number))


def excel_sheet(version: int, text: bytes = b"rent", number: float = 400) -> bytes:
    """Return a worksheet of Excel 2, 3 or 4: a file without a container."""
    head = struct.pack("<HH", version, 0x10).ljust(4 if version == 2 else 6, b"\0")
    codepage = _record(0x42, struct.pack("<H", 0x8001))
    return _record(_BOF[version], head) + codepage + _cells(version, text, number) + _record(0x0A)


def excel_95(text: bytes = b"rent", number: float = 400) -> bytes:
    """Return a workbook of Excel 5 or 95, without its container."""
    name = b"Costs"
    bof = struct.pack("<HHHH", 0x0500, 0x0005, 0x0DBB, 0x07CC)
    codepage = _record(0x42, struct.pack("<H", 1252))
    offset = len(_record(0x0809, bof) + codepage) + 4 + 7 + len(name) + 4
    sheet = _record(0x85, struct.pack("<IBBB", offset, 0, 0, len(name)) + name)
    sheet_bof = _record(0x0809, struct.pack("<HHHH", 0x0500, 0x0010, 0x0DBB, 0x07CC))
    return _record(0x0809, bof) + codepage + sheet + _record(0x0A) + sheet_bof + _cells(5, text, number) + _record(0x0A)
