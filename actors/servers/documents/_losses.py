"""Content that a document would lose if its library wrote it.

A document with such content is read, but never written.

openpyxl rebuilds a workbook from the parts that it understood, and drops the rest without an error. This module
lists the content that it keeps (from the reader and writer of openpyxl 3.1.5); everything else counts as lost. Some
lost content does not count, because no person made it: calculation chains, printer settings, thumbnails,
ignored-error marks, phonetic guides, sort marks, and the size and fonts of a note's box (its text and author are
kept).

python-docx writes back every part that it can reach, understood or not. It loses parts without a relationship, and
it invalidates digital signatures.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from openpyxl.chart.chartspace import ChartSpace
from openpyxl.chart.reader import read_chart
from openpyxl.drawing.image import PILImage
from openpyxl.xml.functions import fromstring, tostring

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_KEPT = re.compile(
    r"\[Content_Types\]\.xml|_rels/\.rels|docProps/(app|core|custom)\.xml|docProps/thumbnail\.\w+"
    r"|xl/workbook\.xml|xl/_rels/workbook\.xml\.rels|xl/(styles|sharedStrings|calcChain)\.xml|xl/theme/theme\d+\.xml"
    r"|xl/(worksheets|chartsheets)/(_rels/)?[^/]+\.xml(\.rels)?|xl/tables/table\d+\.xml"
    r"|xl/(drawings|externalLinks)/(_rels/)?[^/]+\.xml(\.rels)?|xl/drawings/(_rels/)?[^/]+\.vml(\.rels)?"
    r"|xl/charts/chart\d+\.xml|xl/media/[^/]+|xl/printerSettings/.*|xl/comments\d*\.xml|xl/comments/comment\d+\.xml",
)
_LOST_PARTS = (
    (re.compile(r"xl/(vbaProject|vbaData|macrosheets/)"), "macros"),
    (re.compile(r"xl/pivot"), "pivot tables"),
    (re.compile(r"xl/slicer"), "slicers"),
    (re.compile(r"xl/timeline"), "timelines"),
    (re.compile(r"xl/(ctrlProps|activeX)/"), "form controls"),
    (re.compile(r"xl/embeddings/"), "embedded objects"),
    (re.compile(r"xl/(connections\.xml|queryTables/|model/)"), "data connections"),
    (re.compile(r"xl/diagrams/"), "SmartArt"),
    (re.compile(r"xl/(threadedComments|persons)/"), "threaded comments"),
    (re.compile(r"xl/charts/(style|colors|_rels/|chartEx)"), "charts made by another program"),
    (re.compile(r"xl/(metadata\.xml|richData/)"), "dynamic arrays or linked data types"),
    (re.compile(r"customXml/"), "custom XML data"),
    (re.compile(r"docMetadata/"), "sensitivity labels"),
    (re.compile(r"customUI/"), "ribbon buttons"),
    (re.compile(r"_xmlsignatures/"), "a digital signature"),
    (re.compile(r"xl/revisions/"), "tracked changes"),
)
_SHEET_KEPT = frozenset(
    [
        "sheetPr",
        "dimension",
        "sheetViews",
        "sheetFormatPr",
        "cols",
        "sheetData",
        "sheetProtection",
        "scenarios",
        "autoFilter",
        "mergeCells",
        "conditionalFormatting",
        "dataValidations",
        "hyperlinks",
        "printOptions",
        "pageMargins",
        "pageSetup",
        "headerFooter",
        "rowBreaks",
        "colBreaks",
        "drawing",
        "legacyDrawing",
        "tableParts",
        "phoneticPr",
        "ignoredErrors",
        "sortState",
        "sheetCalcPr",
    ],
)
_SHEET_LOST = {
    "customSheetViews": "custom views",
    "legacyDrawingHF": "pictures in headers or footers",
    "drawingHF": "pictures in headers or footers",
    "picture": "a background picture",
    "oleObjects": "embedded objects",
    "controls": "form controls",
    "protectedRanges": "protected ranges",
    "AlternateContent": "form controls",
}
_EXTENSIONS = {
    "{78C0D931-6437-407D-A8EE-F0AAD7539E65}": "extended conditional formats",
    "{CCE6A557-97BC-4B89-ADB6-D9C93CAAB3DF}": "extended data validations",
    "{05C60535-1F16-4FD2-B633-F4F36F0B64E0}": "sparklines",
    "{A8765BA9-456A-4DAB-B4F3-ACF838C121DE}": "slicers",
    "{3A4CF648-6AED-40F4-86FF-DC5316D8AED3}": "slicers",
    "{7E03D99C-DC04-49D9-9315-930204A7B6E9}": "timelines",
    "{FC87AEE6-9EDD-4A0A-B7FB-166176984837}": "protected ranges",
}
_IGNORED_ERRORS = "{01252117-D84E-4E92-8308-4BE1C098FCBB}"
_BOOK_LOST = {
    "fileSharing": "the recommendation to open read-only",
    "customWorkbookViews": "custom views",
    "functionGroups": "macro function groups",
    "oleSize": "the view of an embedded object",
    "webPublishing": "web publishing",
    "webPublishObjects": "web publishing",
    "smartTagPr": "smart tags",
    "smartTagTypes": "smart tags",
}
_SHAPES = frozenset({"sp", "cxnSp", "grpSp", "contentPart", "AlternateContent"})
_PICTURES = (".png", ".jpg", ".jpeg", ".gif")
_CHILD = 2
_NOTE = re.compile(rb'ObjectType="(?!Note")')


def lost_by_openpyxl(parts: dict[str, bytes]) -> list[str]:
    """List the content of a workbook that openpyxl would lose.

    Returns:
        Readable phrases, sorted; empty if openpyxl keeps everything.

    Raises:
        xml.etree.ElementTree.ParseError: If a part can't be parsed.
    """
    lost = {_lost_part(name) for name in parts}
    for name, data in parts.items():
        if name.startswith("xl/worksheets/") and name.endswith(".xml"):
            lost.update(_lost_of_sheet(data))
        elif name == "xl/workbook.xml":
            lost.update(_BOOK_LOST.get(_local(element), "") for element in _parse(data))
        elif name.startswith("xl/drawings/") and name.endswith(".xml"):
            lost.update(_lost_of_drawing(data))
        elif name.startswith("xl/charts/chart") and name.endswith(".xml") and not _chart_survives(data):
            lost.add("charts made by another program")
        elif name.endswith(".vml") and _NOTE.search(data):
            lost.add("form controls")
    return sorted(lost - {""})


def lost_by_docx(parts: dict[str, bytes], reached: Iterable[str]) -> list[str]:
    """List the content of a document that python-docx would lose.

    Args:
        parts: The document's parts.
        reached: The names of the parts that python-docx found by following relationships.

    Returns:
        Readable phrases, sorted; empty if python-docx keeps everything.
    """
    names = {name for name in parts if name != "[Content_Types].xml" and not name.endswith(".rels")}
    lost = {f"the part {name}" for name in names - set(reached)}
    if any(name.startswith("_xmlsignatures/") for name in parts):
        lost.add("a digital signature")
    return sorted(lost)


def _lost_part(name: str) -> str:
    for pattern, words in _LOST_PARTS:
        if pattern.match(name):
            return words
    if name.startswith("xl/media/"):
        return "" if PILImage and name.lower().endswith(_PICTURES) else "pictures"
    return "" if _KEPT.fullmatch(name) else f"the part {name}"


def _lost_of_sheet(data: bytes) -> Iterator[str]:
    path: list[str] = []
    for event, element in ET.iterparse(io.BytesIO(data), events=("start", "end")):  # noqa: S314 - no entities
        if event == "end":
            path.pop()
            element.clear()
            continue
        path.append(_local(element))
        if path[1:] == ["extLst", "ext"]:
            uri = element.get("uri", "").upper()
            yield "" if uri == _IGNORED_ERRORS else _EXTENSIONS.get(uri, f"the sheet extension {uri}")
        elif len(path) == _CHILD and path[1] not in _SHEET_KEPT | {"extLst"}:
            yield _SHEET_LOST.get(path[1], f"the sheet part {path[1]}")


def _lost_of_drawing(data: bytes) -> Iterator[str]:
    for element in _parse(data).iter():
        tag = _local(element)
        if tag in _SHAPES:
            yield "text boxes or shapes"
        elif tag == "nvGraphicFramePr":
            named = next((child for child in element if _local(child) == "cNvPr"), None)
            has_words = named is not None and (named.get("descr") or named.get("title"))
            yield "alternative texts of charts" if has_words else ""


def _chart_survives(data: bytes) -> bool:
    """Return whether openpyxl writes the same elements that it read."""
    tree: Any = fromstring(data)
    read: Any = read_chart
    try:
        written = read(ChartSpace.from_tree(tree))._write()  # as openpyxl's own writer calls it
    except (TypeError, ValueError, AttributeError, KeyError, IndexError):
        return False
    return _shape(_parse(data)) == _shape(_parse(tostring(written)))


def _shape(element: ET.Element) -> tuple[object, ...]:
    """Make an element comparable, ignoring prefixes and white space between elements."""
    inner = tuple(_shape(child) for child in element)
    text = "" if inner else element.text or ""
    return (element.tag, tuple(sorted(element.attrib.items())), text, inner)


def _local(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


def _parse(data: bytes) -> ET.Element:
    return ET.fromstring(data)  # noqa: S314 - `_office.parts` refuses entities
