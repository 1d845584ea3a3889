"""A deck that python-pptx makes, and a look into the parts of a file."""

from __future__ import annotations

import functools
import io
import posixpath
import zipfile
from typing import TYPE_CHECKING

import pptx
from lxml import etree
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

if TYPE_CHECKING:
    Parts = dict[str, bytes]

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000020000000108020000007b40e8dd0000000d49444154789c63f8cf0004ff01070001ffe223"
    "9e590000000049454e44ae426082"
)


@functools.cache
def sample_deck() -> bytes:
    """Make a deck of five slides: title, bullets, table, chart, picture."""
    deck = pptx.Presentation()
    layouts = deck.slide_layouts
    first = deck.slides.add_slide(layouts[0])
    first.shapes.title.text = "Report 2026"
    first.placeholders[1].text = "Sales and costs"
    first.notes_slide.notes_text_frame.text = "Welcome all.\nBe brief."
    bullets = deck.slides.add_slide(layouts[1])
    bullets.shapes.title.text = "Agenda"
    frame = bullets.placeholders[1].text_frame
    frame.text = "Sales in "
    frame.paragraphs[0].add_run().text = "spring"
    frame.paragraphs[0].runs[1].font.bold = True
    inner = frame.add_paragraph()
    inner.text, inner.level = "North", 1
    figures = deck.slides.add_slide(layouts[5])
    figures.shapes.title.text = "Figures"
    table = figures.shapes.add_table(3, 3, Inches(1), Inches(2), Inches(8), Inches(1.2)).table
    for row, texts in enumerate([["Region", "Q1", "Q2"], ["North", "1.5", "2"], ["Total", "1.5", "2"]]):
        for column, text in enumerate(texts):
            table.cell(row, column).text = text
    chart = deck.slides.add_slide(layouts[5])
    chart.shapes.title.text = "Chart"
    data = CategoryChartData()
    data.categories = ["Q1", "Q2"]
    data.add_series("Sales", (3, 4))
    chart.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, Inches(1), Inches(2), Inches(6), Inches(4), data)
    chart.notes_slide.notes_text_frame.text = "Sales rose."
    last = deck.slides.add_slide(layouts[6])
    last.shapes.add_picture(io.BytesIO(PNG), Inches(1), Inches(1), Inches(2), Inches(1))
    last.shapes.add_textbox(Inches(1), Inches(3), Inches(4), Inches(1)).text_frame.text = "See spring"
    file = io.BytesIO()
    deck.save(file)
    return file.getvalue()


def parts_of(data: bytes) -> Parts:
    """Unpack a file."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def faults_in(parts: Parts) -> list[str]:
    """List links to missing parts, links that are missing, orphans, and parts without a type."""
    types = etree.fromstring(parts["[Content_Types].xml"])
    suffixes = {entry.get("Extension") for entry in types}
    named = [str(entry.get("PartName")) for entry in types if entry.get("PartName")]
    faults = [f"{name} is typed twice" for name in named if named.count(name) > 1]
    faults += [f"{name} is typed, and missing" for name in named if name[1:] not in parts]
    reached, pending = {"[Content_Types].xml"}, [""]
    while pending:
        part = pending.pop()
        folder, name = posixpath.split(part)
        rels = posixpath.join(folder, "_rels", f"{name}.rels")
        reached |= {part, rels} & parts.keys()
        links = list(etree.fromstring(parts[rels])) if rels in parts else []
        for link in links:
            if link.get("TargetMode") != "External":
                target = posixpath.normpath(posixpath.join("/", folder, link.get("Target")))[1:]
                faults += [] if target in parts else [f"{part} leads to {target}, which is missing"]
                pending += [target] if target in parts and target not in reached else []
                reached.add(target)
        ids = [link.get("Id") for link in links]
        used = {value for key, value in _attributes(parts.get(part, b"")) if "officeDocument" in key and "}" in key}
        faults += [f"{part} uses {link}, which is missing" for link in used - {*ids} if link]
    faults += [f"{name} is an orphan" for name in parts.keys() - reached]
    return faults + [
        f"{name} has no type" for name in parts if f"/{name}" not in named and name.rpartition(".")[2] not in suffixes
    ]


def _attributes(part: bytes) -> list[tuple[str, str]]:
    if not part.lstrip().startswith(b"<"):
        return []
    return [pair for element in etree.fromstring(part).iter(etree.Element) for pair in element.attrib.items()]
