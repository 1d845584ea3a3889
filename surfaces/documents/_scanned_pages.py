"""Read scanned pages of a PDF by character recognition.

Run by `_file_reader` in its process, which has limits of memory and time; it imports nothing of this package.
"""

from __future__ import annotations

import math
import runpy
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

MARK = "[by character recognition]"
MOST_PAGES = 10
"""The most pages that one call recognizes."""
SECONDS = 40
"""No recognition goes on for longer after the first one has begun."""
PAGE_SECONDS = 25
FEW_LETTERS = 200
"""A page with fewer letters may be a scan with a few words printed on it, such as a page number."""
LARGE_PICTURES = 0.5
"""The part of a page that the pictures of a scan cover together."""
PIXELS_OF_INCH = 300
MOST_PIXELS = 20_000_000


class ScannedPages:
    """Recognizes the text of pages that are pictures.

    Args:
        request: Its `recognition` is ``none``, ``scans`` or ``all``, for all pages; `language` is Tesseract's code.
        data: The PDF.
        recognize: Recognizes the text of a picture in a language, within some seconds.
    """

    def __init__(self, request: dict[str, Any], data: bytes, recognize: Callable[..., Any]) -> None:
        self._recognition = request.get("recognition", "none")
        self._language = request.get("language", "eng")
        self._data = data
        self._recognize = recognize
        self._pages: Any = None
        self._until = 0.0
        self._readings: list[dict[str, Any]] = []
        self._error = ""

    def is_scan(self, page: Any) -> bool:
        """Return whether a page of pdfplumber is to be recognized."""
        if self._recognition == "none" or self._error:
            return False
        if self._recognition == "all":
            return True
        letters = sum(not char["text"].isspace() for char in page.chars)
        if not letters:
            return bool(page.images or page.curves or page.rects or page.lines)
        covered = sum(abs(image["width"] * image["height"]) for image in page.images)
        return letters < FEW_LETTERS and covered >= LARGE_PICTURES * float(page.width) * float(page.height)

    @property
    def is_full(self) -> bool:
        """True if a further page has to wait for the next call."""
        return bool(self._readings) and (len(self._readings) >= MOST_PAGES or time.monotonic() > self._until)

    def text_of(self, number: int) -> str:
        """Recognize the text of a page, from 1; empty if that fails."""
        try:
            answer, _ = self._recognize(self._picture_of(number), self._language, PAGE_SECONDS)
        except ImportError as error:
            answer = {"error": f"{error.name} is not installed: it comes with callboard[ocr]"}
        except RuntimeError as error:  # of PDFium, or it took too long
            answer = {"error": " ".join(str(error).split())[:200]}
        if "error" in answer:
            self._error = f"page {number} was not recognized: {answer['error']}"
            return ""
        text = answer.pop("text").strip()
        self._readings.append({"page": number, **answer})
        return f"{MARK}\n{text}" if text else ""

    def _picture_of(self, number: int) -> Any:
        """Draw a page at a size that suits recognition."""
        if self._pages is None:
            self._until = time.monotonic() + SECONDS - PAGE_SECONDS
            self._pages = runpy.run_path(str(Path(__file__).with_name("_page_drawer.py")))["DrawnPages"](self._data)
        width, height = self._pages.size(number)
        scale = min(PIXELS_OF_INCH / 72, math.sqrt(MOST_PIXELS / (width * height)))
        return self._pages.draw(number, max(round(width * scale), 1))

    def answer(self) -> dict[str, Any]:
        """Return the readings of recognized pages, and the last error."""
        return {"recognized": self._readings, "not_recognized": self._error}
