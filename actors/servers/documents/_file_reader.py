"""Reader of PDFs, pictures and repeating events, in a process with limits.

Started by `_formats.read_apart`: the request is JSON in the first argument, the file is on the standard input. It
prints one line of JSON, then bytes. It imports nothing of this package, so that it starts fast.
"""

from __future__ import annotations

import contextlib
import datetime as dt
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
DEEPEST_FIELD = 20
RADIO, PUSH_BUTTON, PASSWORD = 1 << 15, 1 << 16, 1 << 13
"""Flags of form fields."""
MOST_OCCURRENCES = 5000
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
            fields = len(_form_fields(pdf.pages[page - 1])[0]) if count else 0
            return {"pages": count, "tables": filled, "fields": fields}, b""
        texts: list[str] = []
        pictures = 0
        until = time.monotonic() + READING_SECONDS
        while page <= count and sum(map(len, texts)) < limit and (not texts or time.monotonic() < until):
            texts.append(_page_text(pdf.pages[page - 1]))
            pictures += len(pdf.pages[page - 1].images)
            pdf.pages[page - 1].close()
            page += 1
        about = {name: str(text) for name, text in pdf.metadata.items() if name in {"Title", "Author"} and text}
        unseen = {"pictures": pictures, **_unseen_parts(pdf.doc.catalog)}
        return {"pages": count, "texts": texts, "metadata": about, "unseen": unseen}, b""


def _page_text(page: Any) -> str:
    """Return a page's text, with form fields and notes below it."""
    fields, notes = _form_fields(page)
    texts = [page.extract_text() or ""]
    for title, lines in (("[form fields]", fields), ("[notes]", notes)):
        texts += [title, *lines] if lines else []
    return "\n".join(texts).strip()


def _form_fields(page: Any) -> tuple[list[str], list[str]]:
    """Return the form fields with their values, and the notes."""
    from pdfminer.pdftypes import resolve1

    fields: list[str] = []
    notes: list[str] = []
    for reference in resolve1(page.page_obj.annots) or []:
        annotation = resolve1(reference)
        if not isinstance(annotation, dict):
            continue
        if _pdf_text(annotation.get("Subtype")) == "Widget":
            fields += _field_line(annotation)
        elif text := _pdf_text(annotation.get("Contents")):
            notes.append(" ".join(text.split()))
    return fields, notes


def _field_line(widget: dict[str, Any]) -> list[str]:
    """Write a field as its name and value.

    A field inherits missing entries from the fields above it.
    """
    from pdfminer.pdftypes import resolve1

    names: list[str] = []
    inherited: dict[str, Any] = {}
    field: Any = widget
    for _ in range(DEEPEST_FIELD):
        if not isinstance(field, dict):
            break
        names = [_pdf_text(field["T"]), *names] if "T" in field else names
        inherited = {**field, **inherited}
        field = resolve1(field.get("Parent"))
    kind, flags = _pdf_text(inherited.get("FT")), resolve1(inherited.get("Ff", 0))
    flags = flags if isinstance(flags, int) else 0
    name = ".".join(names) or "(no name)"
    if kind == "Btn":
        state = _pdf_text(widget.get("AS") or inherited.get("V"))
        choice = f" ({state})" if flags & RADIO and state not in {"", "Off"} else ""
        return [] if flags & PUSH_BUTTON else [f"{name}: {'not ticked' if state in {'', 'Off'} else 'ticked'}{choice}"]
    if kind == "Sig":
        return [f"{name}: {'signed' if inherited.get('V') else 'not signed'}"]
    value = resolve1(inherited.get("V"))
    values = value if isinstance(value, list) else [value]
    text = "(hidden)" if flags & PASSWORD and kind == "Tx" else ", ".join(map(_pdf_text, values))
    return [f"{name}: {text or '(empty)'}"]


def _pdf_text(value: Any) -> str:
    """Return a PDF's string or name as text."""
    from pdfminer.pdftypes import PDFStream, resolve1
    from pdfminer.utils import decode_text

    value = resolve1(value)
    if isinstance(value, PDFStream):
        value = value.get_data()
    if isinstance(value, bytes):
        return decode_text(value).replace("\r", "\n")
    name = getattr(value, "name", value)
    return name.decode("latin-1") if isinstance(name, bytes) else "" if name is None else str(name)


def _unseen_parts(catalog: dict[str, Any]) -> dict[str, int]:
    """Count the parts of a document that are not read."""
    from pdfminer.pdftypes import resolve1

    form, names = resolve1(catalog.get("AcroForm")), resolve1(catalog.get("Names"))
    files = resolve1(names.get("EmbeddedFiles")) if isinstance(names, dict) else None
    files = files if isinstance(files, dict) else {}
    listed, per_file = resolve1(files.get("Names") or files.get("Kids")), 2 if "Names" in files else 1
    return {
        "XFA forms": int(isinstance(form, dict) and "XFA" in form),
        "embedded files": len(listed) // per_file if isinstance(listed, list) else 0,
    }


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


def read_calendar(request: dict[str, Any], data: bytes) -> Answer:
    """Read the occurrences of events between two days."""
    import icalendar
    import recurring_ical_events

    first, last = (dt.date.fromisoformat(request[name]) for name in ("first", "last"))
    rows: list[tuple[dt.datetime, dict[str, str]]] = []
    cancelled = number = 0
    for calendar in icalendar.Calendar.from_ical(data, multiple=True):
        for event in calendar.walk("VEVENT"):
            number += 1
            event["X-CALLBOARD-NUMBER"] = str(number)  # each occurrence is a copy
        for event in recurring_ical_events.of(calendar).between(first, last + dt.timedelta(days=1)):
            if len(rows) >= MOST_OCCURRENCES:
                return {"error": f"these days have more than {MOST_OCCURRENCES} events; name fewer days"}, b""
            if str(event.get("STATUS", "")).upper() == "CANCELLED":
                cancelled += 1
                continue
            start, end = event["DTSTART"].dt, event["DTEND"].dt if "DTEND" in event else None
            row = {"control_id": f"event-{event['X-CALLBOARD-NUMBER']}", "start": _moment(start), "end": _moment(end)}
            texts = {name.lower(): " ".join(str(event.get(name, "")).split())[:200] for name in ("SUMMARY", "LOCATION")}
            rows.append((_in_order(start), {**row, **texts}))
    return {"rows": [row for _, row in sorted(rows, key=lambda pair: pair[0])], "cancelled": cancelled}, b""


def _moment(moment: dt.date | None) -> str:
    zone = getattr(getattr(moment, "tzinfo", None), "key", "")
    return "" if moment is None else moment.isoformat() + (f" {zone}" if zone and zone != "UTC" else "")


def _in_order(moment: dt.date) -> dt.datetime:
    """Return a time that can be compared with all others."""
    if not isinstance(moment, dt.datetime):
        moment = dt.datetime.combine(moment, dt.time.min)
    return moment.astimezone(dt.UTC) if moment.tzinfo else moment.replace(tzinfo=dt.UTC)


def limit() -> None:
    """Limit memory and CPU time where the platform can."""
    with contextlib.suppress(ImportError):  # Windows has no such limits
        import resource  # noqa: PLC0415 - only some platforms have it

        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with contextlib.suppress(ValueError, OSError):  # macOS refuses a limit on the address space
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


READERS = {"pdf": read_pdf, "calendar": read_calendar}
"""The readers of what is no picture."""


def main() -> None:
    """Read one file, and print the answer."""
    limit()
    request = json.loads(sys.argv[1])
    data = sys.stdin.buffer.read()
    try:
        found, rest = READERS.get(request["what"], read_picture)(request, data)
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
