"""Counts of changes: contents of documents before and after a task."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from openpyxl.xml.functions import fromstring  # it resolves no entities

from callboard.terminal._text import short

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from xml.etree.ElementTree import Element

    from callboard.messages import TaskResult

_MOST_BYTES = 100_000_000
"""The largest size, unpacked, of a document whose contents are compared."""
_SHEET = re.compile(r"xl/worksheets/[^/]+\.xml")
_CHART = re.compile(r"(?:xl|word)/charts/chart(?:Ex)?\d*\.xml")
_PICTURE = re.compile(r"(?:xl|word)/media/[^/]+")
_FORMULA = "="
"""The content of a formula that is written once for several cells."""


@dataclass
class Contents:
    """The parts of a document that people count."""

    cells: dict[tuple[str, str], str] = field(default_factory=dict)
    """The values and formulas of a workbook, by sheet and cell."""
    sheets: dict[str, str] = field(default_factory=dict)
    """The titles of sheets, by their ids."""
    texts: dict[str, Counter[str]] = field(default_factory=dict)
    """Texts by their kinds: paragraphs, cells of a table in a text, lines."""
    parts: dict[str, Counter[bytes | int]] = field(default_factory=dict)
    """Charts, pictures and tables, by their kinds."""


def contents_of(path: Path) -> Contents | None:
    """Read the contents of a document.

    None if there is no such file, or if it can't be read as a document.
    """
    try:
        if path.suffix.lower() in {".docx", ".xlsx"}:
            return _office(path)
        if path.stat().st_size > _MOST_BYTES:
            return None
        return Contents(texts={"line": Counter(path.read_text(encoding="utf-8").splitlines())})
    except (OSError, ValueError, LookupError, SyntaxError, zipfile.BadZipFile, zlib.error, EOFError):
        return None  # counts are a courtesy: a document that can't be parsed is only named
    except NotImplementedError:  # a compression that zipfile does not know
        return None


def described_changes(before: Contents | None, after: Contents | None) -> str:
    """Describe the differences, such as `12 cells, 1 new chart`.

    Without contents before, all that there is counts. Empty if nothing can be counted.
    """
    if after is None:
        return ""
    if before is None:
        return ", ".join(_totals(after))
    return ", ".join(_differences(before, after)) or "no values changed"


def _office(path: Path) -> Contents | None:
    with zipfile.ZipFile(path) as archive:
        if sum(entry.file_size for entry in archive.infolist()) > _MOST_BYTES:
            return None
        found = Contents()
        for kind, pattern in (("chart", _CHART), ("picture", _PICTURE)):
            named = (name for name in archive.namelist() if pattern.fullmatch(name))
            found.parts[kind] = Counter(archive.read(name) for name in named)
        if path.suffix.lower() == ".docx":
            _add_text(found, fromstring(archive.read("word/document.xml")))
        else:
            _add_workbook(found, archive)
        return found


def _add_text(found: Contents, document: Element) -> None:
    cells = [cell for cell in document.iter() if _is(cell, "tc")]
    inside = [part for cell in cells for part in cell.iter() if _is(part, "p")]
    known = set(map(id, inside))  # ids are unique as long as the list holds the elements
    paragraphs = [part for part in document.iter() if _is(part, "p") and id(part) not in known]
    found.texts["paragraph"] = Counter(text for text in map(_text, paragraphs) if text)
    found.texts["cell"] = Counter(text for text in map(_text, cells) if text)
    found.parts["table"] = Counter({0: sum(_is(part, "tbl") for part in document.iter())})


def _add_workbook(found: Contents, archive: zipfile.ZipFile) -> None:
    workbook = fromstring(archive.read("xl/workbook.xml"))
    found.sheets = {part.attrib["sheetId"]: part.attrib["name"] for part in workbook.iter() if _is(part, "sheet")}
    shared: list[str] = []
    if "xl/sharedStrings.xml" in archive.namelist():
        strings = fromstring(archive.read("xl/sharedStrings.xml"))
        shared = [_text(part) for part in strings.iter() if _is(part, "si")]
    for name in filter(_SHEET.fullmatch, archive.namelist()):
        for cell in fromstring(archive.read(name)).iter():
            if _is(cell, "c") and (content := _content(cell, shared)):
                found.cells[name, cell.attrib["r"]] = content


def _content(cell: Element, shared: list[str]) -> str:
    """Return a cell's formula, else its value; empty for an empty cell."""
    children = {_name(child): child for child in cell}
    if (formula := children.get("f")) is not None:
        return _FORMULA + (formula.text or "")
    value = children.get("v")
    if cell.attrib.get("t") == "s" and value is not None:
        return shared[int(value.text or "")]
    inline = children.get("is")
    return _text(inline) if inline is not None else (value.text or "") if value is not None else ""


def _name(part: Element) -> str:
    """Return an element's name without its namespace; empty for a comment."""
    return part.tag.rpartition("}")[2] if isinstance(part.tag, str) else ""


def _is(part: Element, name: str) -> bool:
    return _name(part) == name


def _text(part: Element) -> str:
    return "".join(text.text or "" for text in part.iter() if _is(text, "t"))


def _totals(found: Contents) -> Iterable[str]:
    yield from _counted(len(found.cells), "cell")
    for kind, texts in found.texts.items():
        yield from _counted(texts.total(), kind)
    for kind, some in found.parts.items():
        yield from _counted(some.total(), kind)


def _differences(before: Contents, after: Contents) -> Iterable[str]:
    yield from _counted(sum(_differ(before, after, cell) for cell in before.cells.keys() | after.cells.keys()), "cell")
    for kind in before.texts | after.texts:
        old, new = before.texts.get(kind, Counter()), after.texts.get(kind, Counter())
        yield from _counted(max((new - old).total(), (old - new).total()), kind)
    for kind in before.parts | after.parts:
        old_parts, new_parts = before.parts.get(kind, Counter()), after.parts.get(kind, Counter())
        more = new_parts.total() - old_parts.total()
        yield from _counted(more, f"new {kind}")
        yield from _counted(-more, f"{kind} removed")
        yield from _counted((new_parts - old_parts).total() - max(more, 0), f"{kind} changed")
    renamed = sum(after.sheets.get(key, title) != title for key, title in before.sheets.items())
    yield from _counted(len(after.sheets.keys() - before.sheets), "new sheet")
    yield from _counted(len(before.sheets.keys() - after.sheets), "sheet removed")
    yield from _counted(renamed, "sheet renamed")


def _differ(before: Contents, after: Contents, cell: tuple[str, str]) -> bool:
    old, new = before.cells.get(cell, ""), after.cells.get(cell, "")
    repeated = _FORMULA in {old, new} and old.startswith(_FORMULA) and new.startswith(_FORMULA)
    return old != new and not repeated


def _counted(number: int, kind: str) -> Iterable[str]:
    """Format a number of things; nothing for none."""
    if number > 0:
        first, _, more = kind.partition(" ")
        plural = f"new {more}s" if first == "new" else f"{first}s {more}".rstrip()
        yield f"{number:,} {kind if number == 1 else plural}"


@dataclass(frozen=True)
class Before:
    """The documents before a task."""

    originals: Mapping[Path, Path] = field(default_factory=dict)
    """The originals of copies: files, or folders with all in them."""
    contents: Mapping[Path, Contents | None] = field(default_factory=dict)
    """The contents of documents that the task works on in place."""

    def lines(self, result: TaskResult) -> list[tuple[str, str]]:
        """List made and changed files, with counts of the differences."""
        return [
            self._line(name, made=name in result.made) for name in dict.fromkeys((*result.artifacts, *result.changed))
        ]

    def _line(self, name: str, *, made: bool) -> tuple[str, str]:
        path = Path(name)
        if not path.is_absolute():
            return "changed", name
        before = self._contents(path)
        new = made and before is None
        counts = described_changes(before, contents_of(path)) if new or before is not None else ""
        return "made" if new else "changed", f"{short(path)} ({counts})" if counts else short(path)

    def _contents(self, path: Path) -> Contents | None:
        if path in self.contents:
            return self.contents[path]
        for copy, original in self.originals.items():
            if path == copy:
                return contents_of(original)
            if path.is_relative_to(copy):
                return contents_of(original / path.relative_to(copy))
        return None
