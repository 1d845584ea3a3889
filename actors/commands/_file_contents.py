"""The contents of documents that people count and compare."""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
import zlib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from callboard.surfaces import BoundedZipFile

if TYPE_CHECKING:
    from pathlib import Path
    from xml.etree.ElementTree import Element

MOST_BYTES = 100_000_000
"""The largest size, unpacked, of a document whose contents are compared."""
_SHEET = re.compile(r"xl/worksheets/[^/]+\.xml")
_CHART = re.compile(r"(?:xl|word|ppt)/charts/chart(?:Ex)?\d*\.xml")
_PIVOT = re.compile(r"xl/pivotTables/[^/]+\.xml")
_PICTURE = re.compile(r"(?:xl|word|ppt)/media/[^/]+")
FORMULA = "="
"""The content of a formula that is written once for several cells."""
_OFFICE = (".docx", ".xlsx", ".pptx")


@dataclass
class Contents:
    """The parts of a document that people count."""

    cells: dict[tuple[str, str], str] = field(default_factory=dict)
    """The values and formulas of a workbook, by sheet and cell."""
    results: dict[tuple[str, str], str] = field(default_factory=dict)
    """The stored results of formulas."""
    sheets: dict[str, str] = field(default_factory=dict)
    """The titles of sheets, by their ids."""
    titles: dict[str, str] = field(default_factory=dict)
    """The titles of sheets, by the names of their parts."""
    texts: dict[str, Counter[str]] = field(default_factory=dict)
    """Texts by their kinds: paragraphs, cells of a table in a text, lines."""
    parts: dict[str, Counter[bytes | int]] = field(default_factory=dict)
    """Charts, pivot tables, pictures, tables and slides, by their kinds."""


def contents_of(path: Path) -> Contents | None:
    """Read the contents of a document.

    None if there is no such file, or if it can't be read as a document.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            return None
        return contents_in(path.name, path.read_bytes())
    except OSError:
        return None


def contents_in(name: str, data: bytes) -> Contents | None:
    """Read the contents of a document from its bytes.

    None if they can't be read as a document.
    """
    try:
        if name.lower().endswith(_OFFICE):
            return _office(name, data)
        return Contents(texts={"line": Counter(data.decode("utf-8").splitlines())})
    except (OSError, ValueError, LookupError, SyntaxError, zipfile.BadZipFile, zlib.error, EOFError):
        return None  # a document that can't be parsed is only named
    except (NotImplementedError, RuntimeError):  # a compression that zipfile does not know, or an encrypted part
        return None


def _parsed(data: bytes) -> Element:
    """Parse a part of a document, without resolving entities."""
    from lxml import etree

    element: Element = etree.fromstring(data, etree.XMLParser(resolve_entities=False))
    return element


def _office(name: str, data: bytes) -> Contents | None:
    with BoundedZipFile(io.BytesIO(data)) as archive:
        if sum(entry.file_size for entry in archive.infolist()) > MOST_BYTES:
            return None
        contents = Contents()
        for kind, pattern in (("chart", _CHART), ("pivot table", _PIVOT), ("picture", _PICTURE)):
            named = (part for part in archive.namelist() if pattern.fullmatch(part))
            contents.parts[kind] = Counter(archive.read(part) for part in named)
        if name.lower().endswith(".docx"):
            _add_texts(contents, _parsed(archive.read("word/document.xml")), "paragraph")
        elif name.lower().endswith(".pptx"):
            _add_slides(contents, archive)
        else:
            _add_workbook(contents, archive)
        return contents


def _add_slides(contents: Contents, archive: zipfile.ZipFile) -> None:
    """Add the texts of slides and notes, in order."""
    entries = [part for part in _parsed(archive.read("ppt/presentation.xml")).iter() if _is(part, "sldId")]
    links = _links(archive, "ppt/presentation.xml")
    slides = [links[value] for entry in entries for key, value in entry.attrib.items() if key.endswith("}id")]
    contents.parts["slide"] = Counter(archive.read(slide) for slide in slides)
    for slide in slides:
        _add_texts(contents, _parsed(archive.read(slide)), "paragraph")
        for notes in (target for target in _links(archive, slide).values() if target.startswith("ppt/notesSlides/")):
            _add_texts(contents, _parsed(archive.read(notes)), "note")


def _add_texts(contents: Contents, root: Element, kind: str) -> None:
    """Add paragraphs as texts of a kind, cells and tables."""
    cells = [cell for cell in root.iter() if _is(cell, "tc")]
    inside = [part for cell in cells for part in cell.iter() if _is(part, "p")]
    cell_paragraphs = set(map(id, inside))  # ids are unique as long as the list holds the elements
    paragraphs = [part for part in root.iter() if _is(part, "p") and id(part) not in cell_paragraphs]
    for name, elements in ((kind, paragraphs), ("cell", cells)):
        contents.texts.setdefault(name, Counter()).update(text for text in map(_text, elements) if text)
    contents.parts.setdefault("table", Counter())[0] += sum(_is(part, "tbl") for part in root.iter())


def _links(archive: zipfile.ZipFile, part: str) -> dict[str, str]:
    """Return the targets of a part's links within the file, by id."""
    folder, name = posixpath.split(part)
    rels = f"{folder}/_rels/{name}.rels"
    if rels not in archive.namelist():
        return {}
    return {
        link.attrib.get("Id", ""): posixpath.normpath(
            posixpath.join("/", folder, link.attrib.get("Target", ""))
        ).lstrip("/")
        for link in _parsed(archive.read(rels))
        if link.attrib.get("TargetMode") != "External"
    }


def _add_workbook(contents: Contents, archive: zipfile.ZipFile) -> None:
    workbook = _parsed(archive.read("xl/workbook.xml"))
    sheets = [part for part in workbook.iter() if _is(part, "sheet")]
    contents.sheets = {part.attrib["sheetId"]: part.attrib["name"] for part in sheets}
    links = _links(archive, "xl/workbook.xml")
    for part in sheets:
        for attribute, value in part.attrib.items():
            if attribute.endswith("}id") and value in links:
                contents.titles[links[value]] = part.attrib["name"]
    shared: list[str] = []
    if "xl/sharedStrings.xml" in archive.namelist():
        strings = _parsed(archive.read("xl/sharedStrings.xml"))
        shared = [_text(part) for part in strings.iter() if _is(part, "si")]
    for name in filter(_SHEET.fullmatch, archive.namelist()):
        for cell in _parsed(archive.read(name)).iter():
            if _is(cell, "c") and (content := _content(cell, shared)):
                key = name, cell.attrib["r"]
                contents.cells[key] = content
                if content.startswith(FORMULA) and (result := _value(cell, shared)):
                    contents.results[key] = result


def _content(cell: Element, shared: list[str]) -> str:
    """Return a cell's formula, else its value; empty for an empty cell."""
    formula = next((child for child in cell if _is(child, "f")), None)
    return _value(cell, shared) if formula is None else FORMULA + (formula.text or "")


def _value(cell: Element, shared: list[str]) -> str:
    """Return a cell's value; empty for an empty cell."""
    children = {_name(child): child for child in cell}
    value = children.get("v")
    if cell.attrib.get("t") == "s" and value is not None:
        return shared[int(value.text or "")]
    inline = children.get("is")
    return _text(inline) if inline is not None else (value.text or "") if value is not None else ""


def chart_words(chart: bytes) -> str:
    """Describe a chart by its kind and its ranges."""
    try:
        root = _parsed(chart)
    except SyntaxError:
        return "that can't be read"
    kinds = [_name(part).removesuffix("Chart") for part in root.iter() if _name(part).endswith("Chart")]
    ranges = [part.text for part in root.iter() if _is(part, "f") and part.text]
    return (
        f"{', '.join(dict.fromkeys(kinds)) or 'of no known kind'} of {', '.join(dict.fromkeys(ranges)) or 'no range'}"
    )


def _name(part: Element) -> str:
    """Return an element's name without its namespace; empty for a comment."""
    return part.tag.rpartition("}")[2] if isinstance(part.tag, str) else ""


def _is(part: Element, name: str) -> bool:
    return _name(part) == name


def _text(part: Element) -> str:
    return "".join(text.text or "" for text in part.iter() if _is(text, "t"))
