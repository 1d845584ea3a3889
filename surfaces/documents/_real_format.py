"""The real format of a file, by its contents.

Programs give files the names of other formats: web pages and lists of text are offered as `.xls`, Word opens rich text
named `.doc`, and a file is renamed without being converted.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.surfaces.documents._encodings import detect_encoding

if TYPE_CHECKING:
    from collections.abc import Iterator

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""The first bytes of files of Office 97."""
ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
"""The name of the only stream of a document with a password."""
_ZIP = b"PK\x03\x04"
OLD_SHEETS = tuple(map(bytes.fromhex, ("09000400", "09020600", "09040600", "09080800", "09081000")))
"""The first bytes of the files of Excel 2 to 95 that have no container."""
_END_RECORD = 0x0A
_OLE_HEADER_BYTES = 512
_ENTRY_BYTES = 128
_HEAD_BYTES = 4096
_WEB_PAGE = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.{0,500}?-->\s*)?<(?:!doctype\s+html|html|head|body|table|meta|style)\b",
    re.IGNORECASE | re.DOTALL,
)
_STREAMS = {
    ".doc": ("WordDocument",),
    ".ppt": ("PowerPoint Document",),
    ".xls": ("Workbook", "Book"),
    ".msg": ("__properties_version1.0",),
    "PowerPoint 95": ("PP40",),
}
"""The streams that tell what a file of Office 97 is."""
_PARTS = {
    b"word/document": ".docx", b"xl/workbook": ".xlsx", b"ppt/presentation": ".pptx",
    b"mimetypeapplication/vnd.oasis.opendocument.text": ".odt",
    b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet": ".ods",
    b"mimetypeapplication/vnd.oasis.opendocument.presentation": ".odp",
}  # fmt: skip
"""The names of parts that tell what a package is."""
_NAMES = {
    ".doc": "a document of Word 97 or before",
    ".xls": "a workbook of Excel 97 or before",
    ".ppt": "a presentation of PowerPoint 97 or before",
    ".msg": "a message of Outlook",
    "PowerPoint 95": "a presentation of PowerPoint 95",
    "Word 2": "a document of Word 2 or before",
    ".docx": "a Word document",
    ".xlsx": "an Excel workbook",
    ".pptx": "a PowerPoint presentation",
    ".odt": "a text of OpenDocument",
    ".ods": "a spreadsheet of OpenDocument",
    ".odp": "a presentation of OpenDocument",
    ".rtf": "a rich text (RTF)",
    ".pdf": "a PDF document",
}
_NOT_READ = frozenset({".msg", "PowerPoint 95", "Word 2"})
_WORD_2 = (b"\xdb\xa5", b"\x9b\xa5", b"\x31\xbe\0\0")
_PRESENT = {".doc": ".docx", ".rtf": ".docx", ".odt": ".docx", ".xls": ".xlsx", ".ods": ".xlsx", ".ppt": ".pptx",
            ".odp": ".pptx"}  # fmt: skip


@dataclass(frozen=True)
class RealFormat:
    """The format that a file's contents have."""

    suffix: str
    """The suffix that fits; empty for a format that is not read."""
    name: str

    def refusal(self, document: str) -> str:
        """Tell that a file has another format than its name says."""
        suffix = "." + document.rpartition(".")[2].lower()
        way = (
            f"rename it to end with {self.suffix}"
            if self.suffix
            else f"open it in Office, and save it as {_PRESENT.get(suffix, suffix)}"
        )
        despite = "" if self.is_of(suffix) else ", despite its name"
        return f"{document!r} can't be read: it is {self.name}{despite}; {way}; it is unchanged"

    def is_of(self, suffix: str) -> bool:
        """Return whether files of the format usually have a suffix."""
        return (self.name, suffix) in {(_NAMES["PowerPoint 95"], ".ppt"), (_NAMES["Word 2"], ".doc")}


def real_format(data: bytes, suffix: str) -> RealFormat | None:
    """Return the format of a file; None if it is unknown.

    Args:
        data: Its bytes.
        suffix: The suffix of its name, in lower case, which decides where the contents allow several formats.
    """
    if (known := next(_known_suffixes(data, suffix), "")) != "":
        return RealFormat("" if known in _NOT_READ else known, _NAMES[known])
    head = data[:_HEAD_BYTES]
    if _WEB_PAGE.match(head.removeprefix(b"\xef\xbb\xbf")):
        return RealFormat("", "a web page")
    if b"schemas-microsoft-com:office:" in head or b"schemas.microsoft.com/office/word/2003" in head:
        return RealFormat("", "a file of Office 2003 in XML")
    if head[:13].lower() == b"mime-version:":
        return RealFormat("", "a web archive")
    if head.strip() and b"<" not in head[:1] and not data.startswith((OLE, _ZIP)) and _is_text(head):
        is_table = suffix in {".xls", ".xlsx", ".ods"}
        return RealFormat(".csv" if is_table else ".txt", "a plain text")
    return None


def _known_suffixes(data: bytes, suffix: str) -> Iterator[str]:
    """Yield the suffixes of binary formats, that of the name first."""
    if data.startswith(OLE):
        fitting = [key for key, names in _STREAMS.items() if any(_has_stream(data, name) for name in names)]
        yield from sorted(fitting, key=lambda key: key != suffix)
    elif data.startswith(_ZIP):
        yield from (known for part, known in _PARTS.items() if part in data)
    elif data.startswith(OLD_SHEETS):
        yield ".xls"
    elif data.startswith(_WORD_2):
        yield "Word 2"
    elif data.startswith(b"{\\rtf"):
        yield ".rtf"
    elif data.startswith(b"%PDF-"):
        yield ".pdf"


def _is_text(head: bytes) -> bool:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return True
    return detect_encoding(head)[0] != "" and not re.search(rb"[\0-\x08\x0b\x0e-\x1a\x1c-\x1f]", head)


def _has_stream(data: bytes, name: str) -> bool:
    """Return whether a container lists a stream.

    Its texts may hold the name, too.
    """
    text = name.encode("utf-16-le")
    return text.ljust(64, b"\0") + struct.pack("<H", len(text) + 2) in data


def is_whole_container(data: bytes) -> bool:
    """Return whether a file of Office 97 has its list of streams.

    Programs often write it at the end.
    """
    if len(data) < _OLE_HEADER_BYTES:
        return False
    (power,), (sector,) = struct.unpack_from("<H", data, 30), struct.unpack_from("<I", data, 48)
    return bool(((sector + 1) << min(power, 16)) + _ENTRY_BYTES <= len(data))


def is_whole_old_sheet(data: bytes) -> bool:
    """Return whether the records of an early Excel file are complete."""
    offset, kind = 0, 0
    while offset + 4 <= len(data):
        kind, size = struct.unpack_from("<HH", data, offset)
        offset += 4 + size
        if kind == _END_RECORD and not data[offset:].strip(b"\0"):
            return True
    return False
