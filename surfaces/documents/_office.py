"""Checks before parsing an Office document, and an edit's answer."""

from __future__ import annotations

import contextlib
import functools
import io
import re
import zipfile
import zlib
from abc import ABC, abstractmethod
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from callboard.messages import reason_of
from callboard.surfaces import BoundedZipFile
from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._real_format import ENCRYPTED, OLE, RealFormat, real_format
from callboard.surfaces.documents._tables import short

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pydantic import JsonValue

    from callboard.surfaces.documents._workspace import Snapshot, Workspace

_E = TypeVar("_E", bound="Edited")
_R = TypeVar("_R")
_P = ParamSpec("_P")

READING: ContextVar[tuple[str, str] | None] = ContextVar("callboard_office_part", default=None)
"""The document and the part of it that were parsed last."""
_UNEXPECTED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
"""The namespace of a workbook's sheets, styles and tables."""
_MAX_PARTS = 10_000
UNPACKED = 5
"""Limit for the unpacked parts together, as a multiple of the largest allowed file."""
_ENTITIES = tuple(
    word.encode(coding) for word in ("<!DOCTYPE", "<!ENTITY") for coding in ("ascii", "utf-16-le", "utf-16-be")
)
_XML = (".xml", ".rels", ".vml")
_DECLARED = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([^\"'>]+)")
_CODINGS = frozenset({b"utf-8", b"utf8", b"utf-16", b"us-ascii", b"ascii", b"iso-8859-1", b"windows-1252"})
"""Encodings in which `_ENTITIES` are found. In others, such as UTF-32 and UTF-7, only the parser would see them."""
_STRICT = b"purl.oclc.org/ooxml/"
_MAIN = {"word": "word/document.xml", "excel": "xl/workbook.xml", "powerpoint": "ppt/presentation.xml"}
_MAIN_TYPES = {
    "word": (b"wordprocessingml.",),
    "excel": (b"spreadsheetml.", b"ms-excel."),
    "powerpoint": (b"presentationml.presentation.main",),
}


UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError)
"""Errors of the library for archives; `RuntimeError` for passwords and unknown compressions."""
_MALFORMED = (zipfile.BadZipFile, zlib.error, EOFError, SyntaxError)
"""`SyntaxError` is the parent of the errors of XML parsers."""


def q(name: str) -> str:
    """Return a name in the namespace of workbooks."""
    return f"{{{MAIN}}}{name}"


@dataclass
class Edited(ABC):
    """An opened document that an edit changes."""

    answer: dict[str, JsonValue] | None = field(default=None, init=False)
    """The answer of the edit. It is journaled before the file is replaced, so that a crash does not lose it."""

    def answers(self, answer: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """Set the answer and return it: the last line of an edit."""
        self.answer = answer
        return answer

    @abstractmethod
    def not_writable(self) -> str:
        """Explain why the document must not be written; empty if it may."""

    @abstractmethod
    def to_bytes(self) -> bytes:
        """Return the bytes of the edited document."""


def report_unreadable_part(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Report which part of an Office document made a function fail unexpectedly.

    A file may hold anything: what a library, or our own code, did not expect in it is an error of this call alone.
    """

    @functools.wraps(function)
    def run(*arguments: _P.args, **keywords: _P.kwargs) -> _R:
        token = READING.set(None)
        try:
            return function(*arguments, **keywords)
        except _UNEXPECTED as error:
            if (read := READING.get()) is None:
                raise
            document, part = read
            reason = f"{type(error).__name__}: {short(str(error), 200)}"
            msg = f"{document!r} can't be read: its part {part} holds something unexpected ({reason}); it is unchanged"
            raise ToolError(msg) from error
        finally:
            READING.reset(token)

    return run


@contextlib.contextmanager
def replacing(workspace: Workspace, document: str, load: Callable[[Snapshot], _E]) -> Iterator[_E]:
    """Open a document for one edit; replace it unless the body raises."""
    snapshot = workspace.read_to_write(document)
    file = load(snapshot)
    if reason := file.not_writable():
        msg = f"{document!r} is not written: {reason}"
        raise ToolError(msg)
    yield file
    workspace.replace(snapshot, file.to_bytes(), file.answer)


def parts(snapshot: Snapshot, max_bytes: int, stand_ins: Mapping[str, bytes] | None = None) -> dict[str, bytes]:
    """Unpack a document into its parts, by name.

    Args:
        snapshot: The document.
        max_bytes: The largest size of a file.
        stand_ins: The bytes of parts that are not unpacked here.

    Raises:
        ToolError: If the document is damaged, password-protected, in another format, or unpacks to more than allowed.
    """
    name, data = snapshot.document, snapshot.data
    if data.startswith(OLE):
        msg = f"{name!r} is protected with a password; it was not opened, and is unchanged"
        if ENCRYPTED not in data:
            real = real_format(data, snapshot.suffix) or RealFormat("", "in the format of Office 97")
            msg = real.refusal(name)
        raise ToolError(msg)
    try:
        with BoundedZipFile(io.BytesIO(data)) as archive:
            _check_size(archive, name, max_bytes * UNPACKED)
            parts_by_name = {
                entry.filename: archive.read(entry)
                if stand_ins is None or entry.filename not in stand_ins
                else stand_ins[entry.filename]
                for entry in archive.infolist()
                if not entry.is_dir()
            }
    except zipfile.BadZipFile as error:
        actual_format = real_format(data, snapshot.suffix)
        if actual_format is not None and actual_format.suffix != snapshot.suffix:
            raise ToolError(actual_format.refusal(name)) from error
        raise damaged(name, "it is empty" if not data else "it is not an Office document, or is truncated") from error
    except UNREADABLE as error:
        raise damaged(name, error) from error
    _check_kind(parts_by_name, snapshot)
    return parts_by_name


def damaged(name: str, error: Exception | str) -> ToolError:
    """Make the error for a document that can't be parsed.

    Only malformed bytes are called damaged: a library's other errors, a time-out and a full memory do not prove it.
    """
    reason = error if isinstance(error, str) else reason_of(error)
    if isinstance(error, (str, *_MALFORMED)):
        return ToolError(f"{name!r} is damaged and can't be opened ({reason}); it is unchanged")
    if isinstance(error, (OSError, MemoryError)):
        return ToolError(f"{name!r} was not read ({reason}); it may be in order, and is unchanged; try again")
    msg = f"{name!r} can't be opened here ({reason}); it may be in order, and is unchanged; save it again in Office"
    return ToolError(msg)


def _check_size(archive: zipfile.ZipFile, name: str, limit: int) -> None:
    entries = archive.infolist()
    if any(entry.flag_bits & 1 for entry in entries):
        msg = f"{name!r} is protected with a password; it was not opened, and is unchanged"
        raise ToolError(msg)
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > limit or len(entries) > _MAX_PARTS:
        size = f"{unpacked} bytes in {len(entries)} parts"
        msg = (
            f"{name!r} is too large: it unpacks to {size}, and at most {limit} bytes in {_MAX_PARTS} parts are read "
            f"({UNPACKED} times documents.max_bytes); split it, or ask a person to raise the limit"
        )
        raise ToolError(msg)


def _refused_encoding(data: bytes) -> str:
    """Name an XML part's encoding if it would hide entities; else empty."""
    if b"\0\0" in data[:4]:
        return "UTF-32"
    declared = _DECLARED.match(data.removeprefix(b"\xef\xbb\xbf").lstrip())
    is_refused = declared is not None and declared[1].lower() not in _CODINGS
    return declared[1].decode("ascii", "replace") if declared is not None and is_refused else ""


def _check_kind(parts_by_name: dict[str, bytes], snapshot: Snapshot) -> None:
    name, root = snapshot.document, snapshot.root
    for part, data in parts_by_name.items():
        if part.endswith(_XML) and (coding := _refused_encoding(data)):
            msg = f"{name!r} is refused: its part {part} is in {coding}, which no Office program writes; save it again"
            raise ToolError(msg)
    types = parts_by_name.get("[Content_Types].xml")
    if types is None:
        raise damaged(name, "it has no list of content types, so it is not an Office document")
    if not any(kind in types for kind in _MAIN_TYPES[root]):
        real = real_format(snapshot.data, snapshot.suffix)
        if real is not None and real.suffix != snapshot.suffix:
            raise ToolError(real.refusal(name))
        msg = (
            f"{name!r} is refused: its content does not match its suffix; open it in Office, and save it as "
            f"{snapshot.suffix}; it is unchanged"
        )
        raise ToolError(msg)
    for part, data in parts_by_name.items():
        if part.endswith(_XML) and any(word in data for word in _ENTITIES):
            raise damaged(name, f"{part} declares entities, which no Office program writes")
    if _STRICT in parts_by_name.get(_MAIN[root], b"")[:4000]:
        suffix = snapshot.path.suffix
        msg = f"{name!r} is saved as Strict Open XML, which can't be read; save it as an ordinary {suffix} file"
        raise ToolError(msg)
