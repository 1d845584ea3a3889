"""Text in pictures: small letters, transparent grounds, uncertain words."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from callboard.surfaces.documents import _file_reader

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Call

Image = pytest.importorskip("PIL.Image")
pytest.importorskip("pytesseract")
pytestmark = pytest.mark.skipif(shutil.which("tesseract") is None, reason="tesseract is not installed")

LINES = ["Invoice 33381 Region", "Total 938.47 Client", "Amount 6608 Street", "Order 5539.06 Quarter"]


def picture_of(lines: list[str], size: int, mode: str = "RGB", ground: Any = "white") -> Any:
    """Draw lines of text."""
    drawing, fonts = pytest.importorskip("PIL.ImageDraw"), pytest.importorskip("PIL.ImageFont")
    picture = Image.new(mode, (size * 26, size * (2 * len(lines) + 1)), ground)
    for number, line in enumerate(lines):
        place = (size, size * (1 + 2 * number))
        drawing.Draw(picture).text(place, line, fill="black", font=fonts.load_default(size))
    return picture


@pytest.mark.parametrize("size", [9, 11])
def test_small_letters_are_read_as_well_as_large_ones(workspace: Path, call: Call, size: int) -> None:
    picture_of(LINES, size).save(workspace / "a.png")
    answer = call("read_text", "a.png")
    words = " ".join(LINES).split()
    assert sum(word in answer["text"].split() for word in words) >= len(words) - 2  # 3 of 12 without an enlargement
    assert answer["confidence"] > 80


def test_text_on_a_transparent_ground_is_read(workspace: Path, call: Call) -> None:
    picture_of(LINES[:1], 20, "RGBA", (0, 0, 0, 0)).save(workspace / "a.png")
    assert call("read_text", "a.png")["text"] == LINES[0]


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_picture_that_is_turned_is_read_upright(workspace: Path, call: Call, degrees: int) -> None:
    picture_of(LINES, 20).rotate(degrees, expand=True).save(workspace / "a.png")
    picture_of(LINES, 20).rotate(degrees, expand=True).save(workspace / "a.pdf", resolution=100)
    words = " ".join(LINES).split()
    for name in ("a.png", "a.pdf"):
        text = call("read_text", name)["text"].split()
        assert sum(word in text for word in words) >= len(words) - 1


def test_a_picture_without_text_has_none(workspace: Path, call: Call) -> None:
    Image.new("RGB", (200, 100), "white").save(workspace / "a.png")
    answer = call("read_text", "a.png")
    assert (answer["text"], answer["confidence"], "uncertain" in answer) == ("", 0, False)


def test_uncertain_words_are_named_and_lines_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("text", "conf", "height", "block_num", "par_num", "line_num")
    rows = [("Total", 96, 28, 1, 1, 1), ("33S", 41, 28, 1, 1, 1), ("Sum", 96, 28, 1, 1, 2), ("End", 90, 28, 2, 1, 1)]
    words = [dict(zip(names, row, strict=True)) for row in rows]
    monkeypatch.setattr(_file_reader, "_words_in", lambda *_: words)
    answer, _ = _file_reader._text_in(Image.new("RGB", (200, 100)), "eng")
    assert answer == {"text": "Total 33S\nSum\n\nEnd", "confidence": 83, "uncertain": ["33S"]}
