"""Reader of PDFs, pictures and repeating events, in a process with limits.

Started by `_formats.read_in_process`: the request is JSON in the first argument, the file is on the standard input. It
prints one line of JSON, then bytes. It imports nothing of this package, so that it starts fast.
"""

from __future__ import annotations

import codecs
import collections
import contextlib
import datetime as dt
import io
import json
import math
import os
import re
import runpy
import statistics
import sys
import time
from pathlib import Path
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
HIDDEN = 1 << 1
"""A flag of annotations."""
UNDRAWN = frozenset({"Link", "Popup", "Highlight", "Underline", "Squiggly", "StrikeOut", "TrapNet", "PrinterMark"})
"""Kinds of annotations that draw nothing of their own."""
LINE_DIRECTIONS = {"ltr": "ttb", "rtl": "btt", "ttb": "rtl", "btt": "ltr"}
"""The order of lines, by the direction of their letters."""
MOST_OCCURRENCES = 5000
MOST_PIXELS = 100_000_000
"""The most pixels of a picture, before and after a conversion."""
_FORMATS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP")
"""The only formats that are decoded: others of Pillow's decoders are rarely used, and some start programs."""
OCR_SECONDS = 45
LETTER_HEIGHT = 28
"""The height of a word, in pixels, at which Tesseract makes the fewest errors."""
LEAST_ENLARGED, MOST_ENLARGED = 1.25, 4
MOST_ENLARGED_PIXELS = 20_000_000
TURNED = 60
"""The confidence in percent below which a picture may lie on its side, or stand on its head."""
CERTAIN = 80
"""The confidence in percent below which a word is uncertain."""
_OPAQUE = frozenset({"JPEG", "BMP"})

Answer = tuple[dict[str, Any], bytes]


def read_pdf(request: dict[str, Any], data: bytes) -> Answer:
    """Read the text or the tables of pages.

    `limit` is the most characters of texts, or the most pages of tables. `recognition` says which pages are read by
    character recognition (see `_scanned_pages`), in a `language`.
    """
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
        until = time.monotonic() + READING_SECONDS
        if request["tables"]:
            tables: list[list[Any]] = []
            fields = 0
            while page <= count and len(tables) < limit and (not tables or time.monotonic() < until):
                if _directions_of(pdf.pages[page - 1])[:1] not in ([], ["ltr"]):
                    reason = f"the text of page {page} is turned, so no table is found; read_text reads it"
                    return {"error": reason}, b""
                page_tables = pdf.pages[page - 1].extract_tables()
                # Empty grids are left out.
                tables.append([table for table in page_tables if any(cell for row in table for cell in row)])
                fields += len(_form_fields(pdf.pages[page - 1])[0])
                pdf.pages[page - 1].close()
                page += 1
            return {"pages": count, "tables": tables, "fields": fields}, b""
        texts: list[str] = []
        pictures = 0
        drawn: collections.Counter[str] = collections.Counter()
        scans = _beside("_scanned_pages.py")["ScannedPages"](request, data, _text_in)
        while page <= count and sum(map(len, texts)) < limit and (not texts or time.monotonic() < until):
            text, marks = _page_text(pdf.pages[page - 1])
            is_scan = scans.is_scan(pdf.pages[page - 1])
            if is_scan and scans.is_full:
                break
            recognized_text = scans.text_of(page) if is_scan else ""
            texts.append("\n".join(filter(None, [text, recognized_text])))
            drawn += marks
            pictures += 0 if recognized_text else len(pdf.pages[page - 1].images)
            pdf.pages[page - 1].close()
            page += 1
        metadata = {name: str(text) for name, text in pdf.metadata.items() if name in {"Title", "Author"} and text}
        unseen = _unseen_parts(pdf.doc.catalog)
        unseen = {"pictures": pictures, **unseen, "drawn notes": drawn["drawn"]}
        unseen["embedded files"] += drawn["file"]
        return {"pages": count, "texts": texts, "metadata": metadata, "unseen": unseen, **scans.answer()}, b""


def draw_pages(request: dict[str, Any], data: bytes) -> Answer:
    """Draw pages of a PDF as pictures."""
    try:
        answer: Answer = _beside("_page_drawer.py")["draw"](request, data)
    except RuntimeError as error:  # of PDFium
        if "password" not in str(error):
            raise
        return {"error": "it is protected with a password"}, b""
    return answer


def _beside(name: str) -> dict[str, Any]:
    """Return the names of a module in this folder."""
    return runpy.run_path(str(Path(__file__).with_name(name)))


def _page_text(page: Any) -> tuple[str, collections.Counter[str]]:
    """Return a page's text, fields and notes, and count the drawn notes."""
    fields, notes, drawn = _form_fields(page)
    texts = [_upright_text(page)]
    for title, lines in (("[form fields]", fields), ("[notes]", notes)):
        texts += [title, *lines] if lines else []
    return "\n".join(texts).strip(), drawn


def _upright_text(page: Any) -> str:
    """Return a page's text; lines in another direction stand below the others."""
    all_directions = _directions_of(page)
    if all_directions in ([], ["ltr"]):
        return page.extract_text() or ""
    texts = []
    for direction in all_directions:
        lines = page.filter(
            lambda item, line_direction=direction: item["object_type"] != "char" or _direction(item) == line_direction
        )
        directions = {"char_dir": direction, "line_dir": LINE_DIRECTIONS[direction]}
        rotated = {f"{name}_rotated": value for name, value in directions.items()}
        texts.append(lines.extract_text(**directions, **rotated, line_dir_render="ttb", char_dir_render="ltr") or "")
    return "\n".join(texts)


def _directions_of(page: Any) -> list[str]:
    """Return the directions of a page's letters, the most frequent first."""
    return [direction for direction, _ in collections.Counter(map(_direction, page.chars)).most_common()]


def _direction(char: dict[str, Any]) -> str:
    """Return the direction of a letter's line on the page."""
    across, up, _, height, _, _ = char["matrix"]
    if abs(across) >= abs(up):
        return "rtl" if across < 0 and height < 0 else "ltr"
    return "btt" if up > 0 else "ttb"


def _form_fields(page: Any) -> tuple[list[str], list[str], collections.Counter[str]]:
    """Return the form fields and the notes, and count the drawn notes."""
    from pdfminer.pdftypes import resolve1

    fields: list[str] = []
    notes: list[str] = []
    drawn: collections.Counter[str] = collections.Counter()
    for reference in resolve1(page.page_obj.annots) or []:
        annotation = resolve1(reference)
        flags = resolve1(annotation.get("F", 0)) if isinstance(annotation, dict) else HIDDEN
        if isinstance(flags, int) and flags & HIDDEN:
            continue
        kind = _pdf_text(annotation.get("Subtype"))
        text = " ".join(_pdf_text(annotation.get("Contents")).split())
        if kind == "Stamp" and "Name" in annotation:
            text = ", ".join(filter(None, [f"stamp: {_pdf_text(annotation['Name'])}", text]))
        if kind == "Widget":
            fields += _field_line(annotation)
        elif text:
            notes.append(text)
        elif kind not in UNDRAWN and kind != "FileAttachment":
            drawn["drawn"] += 1
        drawn["file"] += kind == "FileAttachment"
    return fields, notes, drawn


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
    choices = resolve1(inherited.get("Opt"))
    choices = choices if isinstance(choices, list) else []
    if kind == "Btn":
        state = _pdf_text(widget.get("AS") or _state_of(widget, inherited))
        label = _pdf_text(choices[int(state)]) if state.isdigit() and int(state) < len(choices) else state
        choice = f" ({label})" if flags & RADIO and state not in {"", "Off"} else ""
        return [] if flags & PUSH_BUTTON else [f"{name}: {'not ticked' if state in {'', 'Off'} else 'ticked'}{choice}"]
    if kind == "Sig":
        return [f"{name}: {'signed' if inherited.get('V') else 'not signed'}"]
    value = resolve1(inherited.get("V"))
    pairs = [pair for pair in map(resolve1, choices) if isinstance(pair, list) and len(pair) > 1]
    labels = {_pdf_text(pair[0]): _pdf_text(pair[1]) for pair in pairs} if kind == "Ch" else {}
    values = [_pdf_text(entry) for entry in (value if isinstance(value, list) else [value])]
    text = ", ".join(labels.get(entry, entry) for entry in values)
    text = text or " ".join(re.sub("<[^>]*>", " ", _pdf_text(inherited.get("RV"))).split())
    return [f"{name}: {'(hidden)' if flags & PASSWORD and kind == 'Tx' else text or '(empty)'}"]


def _state_of(widget: dict[str, Any], inherited: dict[str, Any]) -> Any:
    """Return a button's value, if this widget can have it."""
    from pdfminer.pdftypes import resolve1

    value, looks = inherited.get("V"), resolve1(widget.get("AP"))
    states = resolve1(looks.get("N")) if isinstance(looks, dict) else None
    can_have = not isinstance(states, dict) or _pdf_text(value) in {_pdf_text(state) for state in states}
    return value if can_have else None


def _pdf_text(value: Any) -> str:
    """Return a PDF's string or name as text."""
    from pdfminer.pdftypes import PDFStream, resolve1
    from pdfminer.utils import decode_text

    value = resolve1(value)
    if isinstance(value, PDFStream):
        value = value.get_data()
    if isinstance(value, bytes) and value.startswith(codecs.BOM_UTF8):  # PDF 2.0
        return value.decode("utf-8-sig", "replace").replace("\r", "\n")
    if isinstance(value, bytes):
        return decode_text(value).replace("\r", "\n")
    name = getattr(value, "name", value)
    return name.decode("latin-1") if isinstance(name, bytes) else "" if name is None else str(name)


def _unseen_parts(catalog: dict[str, Any]) -> dict[str, int]:
    """Count the parts of a document that are not read."""
    from pdfminer.pdftypes import resolve1

    form, names = resolve1(catalog.get("AcroForm")), resolve1(catalog.get("Names"))
    files = resolve1(names.get("EmbeddedFiles")) if isinstance(names, dict) else None
    return {"XFA forms": int(isinstance(form, dict) and "XFA" in form), "embedded files": _count_names(files)}


def _count_names(node: Any, depth: int = 0) -> int:
    """Count the entries of a tree of names."""
    from pdfminer.pdftypes import resolve1

    node = resolve1(node)
    if not isinstance(node, dict) or depth > DEEPEST_FIELD:
        return 0
    names, kids = resolve1(node.get("Names")), resolve1(node.get("Kids"))
    below = sum(_count_names(kid, depth + 1) for kid in kids) if isinstance(kids, list) else 0
    return below + (len(names) // 2 if isinstance(names, list) else 0)


def _open_picture(data: bytes) -> Image:
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
        picture = _open_picture(data)
    except OverflowError as error:
        return {"error": str(error)}, b""
    # Pillow gives the upright size of a TIFF, and would decode the pixels of a PNG to look for a mark behind them.
    marked = picture.format != "TIFF" and (picture.format != "PNG" or "exif" in picture.info)
    orientation = picture.getexif().get(ORIENTATION, 1) if marked else 1
    sideways = orientation in {5, 6, 7, 8}
    facts = {
        "width": picture.height if sideways else picture.width,
        "height": picture.width if sideways else picture.height,
        "format": picture.format,
        "mode": picture.mode,
        "frames": getattr(picture, "n_frames", 1),
        **({"turned": True} if orientation in range(2, 9) else {}),
    }
    if request["what"] == "size":
        return facts, b""
    if request["what"] == "pixels":
        picture.load()
        return facts, b""
    from PIL import ImageOps

    if picture.mode == "F":
        return {"error": "its pixels are fractions, which have no fixed black and white"}, b""
    upright = ImageOps.exif_transpose(picture)  # the new file has no such mark
    if upright.mode.startswith("I"):  # Pillow would make all but the darkest of 16-bit levels white
        upright = upright.convert("I").point(lambda level: level * (1 / 257)).convert("L")
    if request["what"] == "text":
        return _text_in(upright, request["language"])
    if size := request["size"]:
        upright = upright.convert("RGBA" if "A" in upright.getbands() or upright.mode == "P" else "RGB").resize(size)
    output = io.BytesIO()
    _fitting(upright, request["format"]).save(output, request["format"], **request["options"])
    return {"width": upright.width, "height": upright.height}, output.getvalue()


def _fitting(picture: Image, into: str) -> Image:
    """Convert to a mode of the format."""
    from PIL import Image

    if into not in _OPAQUE:
        return picture.convert("RGBA") if picture.mode not in {"1", "L", "LA", "P", "RGB", "RGBA"} else picture
    if picture.mode in {"LA", "PA", "P", "RGBA"}:
        rgba_picture = picture.convert("RGBA")
        background = Image.new("RGBA", rgba_picture.size, "white")
        return Image.alpha_composite(background, rgba_picture).convert("RGB")
    return picture if picture.mode in {"L", "RGB"} else picture.convert("RGB")


def _text_in(picture: Image, language: str, seconds: float = OCR_SECONDS) -> Answer:
    """Recognize the text of a picture, with the confidence of its words.

    Small letters are read wrongly. Where the first look finds some, the picture is enlarged to the height of letters
    that Tesseract was trained with, and read again. Larger ones are read worse, too.
    """
    import pytesseract

    started, picture = time.monotonic(), _fitting(picture, "JPEG").convert("RGB")
    try:
        words = _words_in(picture, language, seconds)
        if _confidence(words) < TURNED:
            picture, words = _words_if_turned(picture, words, language, started + seconds)
        height = statistics.median([word["height"] for word in words]) if words else LETTER_HEIGHT / MOST_ENLARGED
        factor = min(LETTER_HEIGHT / height, MOST_ENLARGED, math.sqrt(MOST_ENLARGED_PIXELS / math.prod(picture.size)))
        if factor >= LEAST_ENLARGED:
            large_picture = picture.resize([round(side * factor) for side in picture.size])
            with contextlib.suppress(RuntimeError):  # it takes too long
                remaining_seconds = seconds - (time.monotonic() - started)
                words = max(words, _words_in(large_picture, language, remaining_seconds), key=_confidence)
    except pytesseract.TesseractNotFoundError:
        return {"error": "the program tesseract is not installed, so no text in pictures can be read"}, b""
    except pytesseract.TesseractError as error:
        return {"error": f"tesseract failed: {' '.join(str(error.message).split())[:200]}"}, b""
    uncertain_words = [word["text"] for word in words if word["conf"] < CERTAIN]
    return {"text": _laid_out(words), "confidence": round(_confidence(words)), "uncertain": uncertain_words}, b""


def _words_if_turned(
    picture: Image, words: list[dict[str, Any]], language: str, until: float
) -> tuple[Image, list[dict[str, Any]]]:
    """Turn a picture so that its text can be read."""
    readings = {0: words}
    with contextlib.suppress(RuntimeError):  # it takes too long
        for degrees in (90, 270, 180):
            seconds = until - time.monotonic()
            if seconds > 1:
                readings[degrees] = _words_in(picture.rotate(degrees, expand=True), language, seconds)
    best = max(readings, key=lambda degrees: sum(len(w["text"]) for w in readings[degrees] if w["conf"] >= CERTAIN))
    return picture.rotate(best, expand=True), readings[best]


def _words_in(picture: Image, language: str, seconds: float) -> list[dict[str, Any]]:
    """Recognize words, each with its confidence, height and line."""
    import pytesseract

    os.environ["OMP_THREAD_LIMIT"] = "1"  # on busy cores, Tesseract's threads wait for each other ten times as long
    options = {"lang": language, "timeout": max(seconds, 1), "output_type": pytesseract.Output.DICT}
    columns = pytesseract.image_to_data(picture, **options)
    names = ("text", "conf", "height", "block_num", "par_num", "line_num")
    rows = (dict(zip(names, row, strict=True)) for row in zip(*(columns[name] for name in names), strict=True))
    return [row for row in rows if row["conf"] >= 0 and str(row["text"]).strip()]


def _confidence(words: list[dict[str, Any]]) -> float:
    """Return the mean confidence of words in percent, by their letters."""
    letters = sum(len(word["text"]) for word in words)
    return sum(word["conf"] * len(word["text"]) for word in words) / letters if letters else 0.0


def _laid_out(words: list[dict[str, Any]]) -> str:
    """Join words into lines, with an empty line between paragraphs."""
    paragraphs: dict[tuple[int, int], dict[int, list[str]]] = {}
    for word in words:
        lines = paragraphs.setdefault((word["block_num"], word["par_num"]), {})
        lines.setdefault(word["line_num"], []).append(word["text"])
    return "\n\n".join("\n".join(map(" ".join, lines.values())) for lines in paragraphs.values())


def read_calendar(request: dict[str, Any], data: bytes) -> Answer:
    """Read the occurrences of events between two days."""
    import icalendar
    import recurring_ical_events

    first, last = (dt.date.fromisoformat(request[name]) for name in ("first", "last"))
    rows: list[tuple[dt.datetime, dict[str, str]]] = []
    cancelled = number = 0
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("cp1252", "replace")
    for calendar in icalendar.Calendar.from_ical(text, multiple=True):
        is_cancelled = str(calendar.get("METHOD", "")).upper() == "CANCEL"
        for event in calendar.walk("VEVENT"):
            if "EXRULE" in event:
                return {"error": "an event has a rule of exceptions (EXRULE), which is not computed"}, b""
            number += 1
            event["X-CALLBOARD-NUMBER"] = str(number)  # each occurrence is a copy
        for event in recurring_ical_events.of(calendar).between(first, last + dt.timedelta(days=1)):
            if len(rows) >= MOST_OCCURRENCES:
                return {"error": f"these days have more than {MOST_OCCURRENCES} events; name fewer days"}, b""
            if is_cancelled or str(event.get("STATUS", "")).upper() == "CANCELLED":
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


def compare_pages(request: dict[str, Any], data: bytes) -> Answer:
    """Draw the pages of two files, and outline their differences."""
    from PIL import ImageOps

    try:
        answer: Answer = _beside("_page_comparer.py")["compare"](
            request, data, lambda picture: _fitting(ImageOps.exif_transpose(_open_picture(picture)), "JPEG")
        )
    except OverflowError as error:
        return {"error": str(error)}, b""
    return answer


READERS = {"calendar": read_calendar, "comparison": compare_pages, "pages": draw_pages, "pdf": read_pdf}
"""The readers of files other than pictures."""


def main() -> None:
    """Read one file, and print the answer."""
    limit()
    request = json.loads(sys.argv[1])
    data = sys.stdin.buffer.read()
    try:
        answer, content = READERS.get(request["what"], read_picture)(request, data)
    except MemoryError:
        answer, content = {"error": "it needs too much memory"}, b""
    except ImportError as error:
        answer, content = {"missing": error.name}, b""
    except Exception as error:  # the edge of the process: any error of a parser is an answer
        text = " ".join(str(error).split())[:200] or type(error).__name__
        short = "allocate" in text  # zlib reports a lack of memory by an error of its own
        reason = "it needs too much memory" if short else f"it is damaged, or not what its name says ({text})"
        answer, content = {"error": reason}, b""
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n" + content)


if __name__ == "__main__":
    main()
