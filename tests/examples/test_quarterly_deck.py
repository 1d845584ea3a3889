"""The example: a workbook and a document become a deck."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import docx
import openpyxl
import pytest
from pptx import Presentation

from callboard import Outcome, Supervisor, Task, TaskResult
from callboard.config import Settings, load_yaml
from support import PATIENCE

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "quarterly_deck"


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """A fresh copy of the example."""
    return Path(shutil.copytree(EXAMPLE, tmp_path / "quarterly_deck"))


def play(example: Path) -> TaskResult:
    with Supervisor.start(Settings.load(example / "callboard.yaml")) as supervisor:
        task = Task.model_validate(load_yaml(example / "task.yaml"))
        return supervisor.submit(task).result(PATIENCE)


def slides_of(example: Path) -> dict[str, Any]:
    deck = Presentation(str(example / "workspace" / "quarter.pptx"))
    return {slide.shapes.title.text: slide for slide in deck.slides}


def figures(example: Path) -> list[list[Any]]:
    sheet = openpyxl.load_workbook(example / "workspace" / "figures.xlsx")["Regions"]
    return [[cell.value for cell in row] for row in sheet[sheet.tables["Regions"].ref]]


def test_deck_shows_the_workbook_and_the_document(example: Path) -> None:
    result = play(example)
    assert (result.outcome, result.verified, result.output) == (Outcome.FINISHED, True, 5)
    slides = slides_of(example)
    assert [*slides] == ["Third quarter", "Highlights", "Figures", "Revenue and costs", "Outlook"]
    paragraphs = [text.text for text in docx.Document(str(example / "workspace" / "summary.docx")).paragraphs]
    texts = [
        text.text for name in ("Highlights", "Outlook") for text in slides[name].placeholders[1].text_frame.paragraphs
    ]
    assert texts == [*paragraphs[2:5], *paragraphs[6:8]]
    (table,) = (shape.table for shape in slides["Figures"].shapes if shape.has_table)
    expected = figures(example)
    assert [[cell.text for cell in row.cells] for row in table.rows] == [
        [value if isinstance(value, str) else f"{value:g}" for value in row] for row in expected
    ]
    (chart,) = (shape.chart for shape in slides["Revenue and costs"].shapes if shape.has_chart)
    assert [*chart.plots[0].categories] == [row[0] for row in expected[1:]]
    assert [[series.name, *series.values] for series in chart.plots[0].series] == [
        list(column) for column in zip(*expected, strict=True)
    ][1:]


def test_an_edited_workbook_gives_another_deck(example: Path) -> None:
    path = example / "workspace" / "figures.xlsx"
    book = openpyxl.load_workbook(path)
    sheet = book["Regions"]
    sheet.append(["Abroad", 10, 20.5, 7.25])
    sheet.tables["Regions"].ref = "A1:D6"
    book.save(path)
    assert play(example).verified
    (table,) = (shape.table for shape in slides_of(example)["Figures"].shapes if shape.has_table)
    assert [cell.text for cell in table.rows[5].cells] == ["Abroad", "10", "20.5", "7.25"]


def test_no_number_of_the_workbook_is_in_the_script() -> None:
    script = (EXAMPLE / "script.yaml").read_text(encoding="utf-8")
    numbers = {float(value) for row in figures(EXAMPLE)[1:] for value in row[1:]}
    assert not numbers & {float(text) for text in re.findall(r"\d+\.\d+", script)}


def test_libreoffice_draws_every_slide(example: Path, tmp_path: Path) -> None:
    soffice = shutil.which("soffice")
    if soffice is None:
        (pytest.fail if os.environ.get("REQUIRE_SOFFICE") else pytest.skip)("soffice is not installed")
    play(example)
    profile = f"-env:UserInstallation={(tmp_path / 'profile').as_uri()}"
    deck = example / "workspace" / "quarter.pptx"
    command = [soffice, profile, "--headless", "--convert-to", "pdf", "--outdir", str(tmp_path), str(deck)]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    pdf = (tmp_path / "quarter.pdf").read_bytes()
    assert len(re.findall(rb"/Type ?/Page\b", pdf)) == 5
