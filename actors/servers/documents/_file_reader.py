"""Reader of PDFs and pictures, in a process with limits.

Started by `_formats.read_apart`: the request is JSON in the first argument, the file is on the standard input. It
prints one line of JSON, then bytes. It imports nothing of this package, so that it starts fast.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL.Image import Image

MEMORY = 3_000_000_000
"""The most address space, in bytes."""
CPU_SECONDS = 50
READING_SECONDS = 30
"""Text is read page by page for at most this time; the answer says where to continue."""
ORIENTATION = 0x0112
"""The mark in a picture's EXIF data that says how viewers turn it."""
MOST_PIXELS = 100_000_000
"""The most pixels of a picture, before and after a conversion."""
_FORMATS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP")
"""The only formats that are decoded: others of Pillow's decoders are rarely used, and some start programs."""
_OPAQUE = frozenset({"JPEG", "BMP"})

Answer = tuple[dict[str, Any], bytes]


def read_pdf(request: dict[str, Any], data: bytes) -> Answer:
    """Read the text of pages, or the tables of one page."""
    import pdfplumber
    from pdfminer.pdfdocument import PDFPasswordIncorrect
    from pdfplumber.utils.exceptions import PdfminerException

    try:
        opened = pdfplumber.open(io.BytesIO(data))
    except PdfminerException as error:
        if error.args and isinstance(error.args[0], PDFPasswordIncorrect):
            return {"error": "it is protected with a password"}, b""
        raise
    with opened as pdf:
        count = len(pdf.pages)
        page, limit = request["page"], request["limit"]
        if page > max(count, 1):
            return {"error": f"it has {count} pages, and no page {page}"}, b""
        if request["tables"]:
            found = pdf.pages[page - 1].extract_tables() if count else []
            filled = [table for table in found if any(cell for row in table for cell in row)]  # a chart's grid is empty
            return {"pages": count, "tables": filled}, b""
        texts: list[str] = []
        until = time.monotonic() + READING_SECONDS
        while page <= count and sum(map(len, texts)) < limit and (not texts or time.monotonic() < until):
            texts.append(pdf.pages[page - 1].extract_text() or "")
            pdf.pages[page - 1].close()
            page += 1
        about = {name: str(text) for name, text in pdf.metadata.items() if name in {"Title", "Author"} and text}
        return {"pages": count, "texts": texts, "metadata": about}, b""


def _opened(data: bytes) -> Image:
    """Open a picture; its pixels are not decoded yet."""
    from PIL import Image, UnidentifiedImageError

    Image.MAX_IMAGE_PIXELS = None  # the size is checked here, with words that say what to do
    try:
        picture = Image.open(io.BytesIO(data), formats=_FORMATS)
    except UnidentifiedImageError as error:  # its text names an address in memory
        msg = f"no picture in {', '.join(_FORMATS)}"
        raise ValueError(msg) from error
    if picture.width * picture.height > MOST_PIXELS:
        msg = f"{picture.width} x {picture.height} pixels are more than {MOST_PIXELS}"
        raise OverflowError(msg)
    return picture


def read_picture(request: dict[str, Any], data: bytes) -> Answer:
    """Read a picture's size or text, or convert it.

    Width and height are those of the upright picture, as viewers show it.
    """
    try:
        picture = _opened(data)
    except OverflowError as error:
        return {"error": str(error)}, b""
    # Pillow gives the upright size of a TIFF, and would decode the pixels of a PNG to look for a mark behind them.
    marked = picture.format != "TIFF" and (picture.format != "PNG" or "exif" in picture.info)
    sideways = marked and picture.getexif().get(ORIENTATION) in {5, 6, 7, 8}
    about = {
        "width": picture.height if sideways else picture.width,
        "height": picture.width if sideways else picture.height,
        "format": picture.format,
        "mode": picture.mode,
        "frames": getattr(picture, "n_frames", 1),
    }
    if request["what"] == "size":
        return about, b""
    from PIL import ImageOps

    if picture.mode == "F":
        return {"error": "its pixels are fractions, which have no fixed black and white"}, b""
    turned = ImageOps.exif_transpose(picture)  # the new file has no such mark
    if turned.mode.startswith("I"):  # Pillow would make all but the darkest of 16-bit levels white
        turned = turned.convert("I").point(lambda level: level * (1 / 257)).convert("L")
    if request["what"] == "text":
        return _text_in(turned, request["language"])
    if size := request["size"]:
        turned = turned.convert("RGBA" if "A" in turned.getbands() or turned.mode == "P" else "RGB").resize(size)
    made = io.BytesIO()
    _fitting(turned, request["format"]).save(made, request["format"], **request["options"])
    return {"width": turned.width, "height": turned.height}, made.getvalue()


def _fitting(picture: Image, into: str) -> Image:
    """Convert to a mode of the format."""
    from PIL import Image

    if into not in _OPAQUE:
        return picture.convert("RGBA") if picture.mode not in {"1", "L", "LA", "P", "RGB", "RGBA"} else picture
    if picture.mode in {"LA", "PA", "P", "RGBA"}:
        shown = picture.convert("RGBA")
        below = Image.new("RGBA", shown.size, "white")
        return Image.alpha_composite(below, shown).convert("RGB")
    return picture if picture.mode in {"L", "RGB"} else picture.convert("RGB")


def _text_in(picture: Image, language: str) -> Answer:
    import pytesseract

    try:
        return {"text": pytesseract.image_to_string(picture.convert("RGB"), lang=language, timeout=45)}, b""
    except pytesseract.TesseractNotFoundError:
        return {"error": "the program tesseract is not installed, so no text in pictures can be read"}, b""
    except pytesseract.TesseractError as error:
        return {"error": f"tesseract failed: {' '.join(str(error.message).split())[:200]}"}, b""


def limit() -> None:
    """Limit memory and CPU time where the platform can."""
    with contextlib.suppress(ImportError):  # Windows has no such limits
        import resource  # noqa: PLC0415 - only some platforms have it

        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with contextlib.suppress(ValueError, OSError):  # macOS refuses a limit on the address space
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def main() -> None:
    """Read one file, and print the answer."""
    limit()
    request = json.loads(sys.argv[1])
    data = sys.stdin.buffer.read()
    try:
        found, rest = (read_pdf if request["what"] == "pdf" else read_picture)(request, data)
    except MemoryError:
        found, rest = {"error": "it needs too much memory"}, b""
    except ImportError as error:
        found, rest = {"missing": error.name}, b""
    except Exception as error:  # the edge of the process: any error of a parser is an answer
        text = " ".join(str(error).split())[:200] or type(error).__name__
        short = "allocate" in text  # zlib reports a lack of memory by an error of its own
        reason = "it needs too much memory" if short else f"it is damaged, or not what its name says ({text})"
        found, rest = {"error": reason}, b""
    sys.stdout.buffer.write(json.dumps(found).encode() + b"\n" + rest)


if __name__ == "__main__":
    main()
