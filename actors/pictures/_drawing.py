"""Draw into pictures: black over secrets, labels on controls, marks at points."""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING, NamedTuple

from callboard.actors.pictures._tags import place_tags
from callboard.messages import Box, SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw

    Point = tuple[int, int]


LARGEST = 50_000_000
"""The most pixels that a picture may have: a small file can require any amount of memory. A screen of 8K has 33
million."""
_PNG = b"\x89PNG\r\n\x1a\n"
"""The signature of a PNG."""
_CHUNK = struct.Struct(">I4s")
"""The head of a PNG's chunk: the length of its data, and its name. A checksum of four bytes ends each chunk."""
_SIZE = struct.Struct(">II")
"""The beginning of the first chunk's data: the width and height."""
_PIXELS = frozenset({b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"})
"""The chunks that define the pixels of one picture."""
_SEEN = 1_568
"""Vision models scale a picture down until its longer side has about this many pixels."""
_MOST_SEEN = 1_150_000
"""The other limit of vision models: the total number of pixels, about."""
_TEXT = 12
"""The height of the labels' text after such scaling, in pixels."""
_LONGEST = 24
"""The longest label, in characters; a longer one is cut."""
_MARGIN = 2
"""The margin around a control that is blacked out with it, in pixels: text and frames may stick out."""
_COLOURS = (
    ((200, 0, 60), "white"),
    ((0, 90, 200), "white"),
    ((255, 210, 0), "black"),
    ((0, 120, 60), "white"),
    ((130, 0, 170), "white"),
    ((0, 215, 235), "black"),
    ((190, 70, 0), "white"),
    ((160, 240, 60), "black"),
)
"""The colours of the labels, in turn, with those of their text: each pair has a contrast of at least 4.5 to 1."""


class PictureError(Exception):
    """A picture can't be read; the text has the reason."""


class Drawn(NamedTuple):
    """A picture twice, as PNG."""

    clean: bytes
    """The pixels alone, with secrets blacked out. The original bytes if nothing had to be changed."""
    annotated: bytes | None
    """With labels and marks too; None without any."""


def require_pillow(what: str) -> None:
    """Check that Pillow is installed.

    Raises:
        SettingsError: If it is not installed; it begins with `what`.
    """
    try:
        import PIL.Image  # noqa: F401 - an extra
    except ImportError as error:
        msg = f"{what} needs Pillow, which comes with callboard[pictures]"
        raise SettingsError(msg) from error


def fitting_size(size: tuple[int, int]) -> tuple[int, int]:
    """Return the size to which a picture is scaled down.

    At this size, no provider scales it.
    """
    width, height = size
    factor = min(1.0, _SEEN / max(width, height, 1), (_MOST_SEEN / max(width * height, 1)) ** 0.5)
    return max(1, int(width * factor)), max(1, int(height * factor))


def scaled(picture: bytes, size: tuple[int, int]) -> bytes:
    """Scale a PNG to a width and height.

    It takes some tenths of a second, on any thread.

    Raises:
        PictureError: As `draw` does.
        SettingsError: If Pillow is not installed.
    """
    require_pillow("scaling a picture down to a size that models see as it is")
    from PIL.Image import Resampling

    return _written(_opened(only_pixels(picture)).resize(size, Resampling.LANCZOS))


def draw(
    picture: bytes,
    masked: Iterable[Box],
    marked: Mapping[str, Box],
    strokes: Iterable[Sequence[tuple[int, int]]] = (),
) -> Drawn:
    """Black out parts of a picture, and label or mark others.

    It takes some tenths of a second, on any thread.

    Args:
        picture: A PNG.
        masked: The boxes to black out, in the picture's pixels; parts outside of it are ignored.
        marked: The labels, and the boxes that they are for.
        strokes: The points to mark: one of a click, both of a drag.

    Raises:
        PictureError: If it is no PNG, is damaged, or has more than `LARGEST` pixels.
    """
    picture = only_pixels(picture)
    image = _opened(picture)
    from PIL import ImageDraw

    canvas = ImageDraw.Draw(image)
    black = [box for box in (_within(_grown(box), image.size) for box in masked) if box is not None]
    for box in black:
        canvas.rectangle(_corners(box), fill="black")
    clean = _written(image) if black else picture
    inside = ((label, _within(box, image.size)) for label, box in marked.items() if label)
    boxes = {label: box for label, box in inside if box is not None}
    points = [stroke for stroke in strokes if stroke]
    if not boxes and not points:
        return Drawn(clean, None)
    if boxes:
        _label(canvas, boxes, image.size)
    mark_points(canvas, points, _scale(image.size))
    return Drawn(clean, _written(image))


def only_pixels(picture: bytes) -> bytes:
    """Remove all parts of a PNG except its pixels.

    These are texts, profiles, the later frames of an animation, and data after its end.

    Raises:
        PictureError: If it is no PNG, ends too early, or has more than `LARGEST` pixels.
    """
    parts, at, name = [_PNG], len(_PNG), b""
    while name != b"IEND" and at + _CHUNK.size <= len(picture):
        length, name = _CHUNK.unpack_from(picture, at)
        end = at + _CHUNK.size + length + 4
        if name in _PIXELS:
            parts.append(picture[at:end])
        if (name == b"IHDR") != (at == len(_PNG)):  # with two of them, the second one would count
            break
        at = end
    if not picture.startswith(_PNG) or name != b"IEND" or at > len(picture):
        msg = "the picture is not a PNG, or is damaged"
        raise PictureError(msg)
    width, height = _SIZE.unpack_from(picture, len(_PNG) + _CHUNK.size)  # before Pillow, which would only warn
    if width * height > LARGEST:
        msg = f"the picture has {width} x {height} pixels; at most {LARGEST:,} are taken"
        raise PictureError(msg)
    return b"".join(parts)


def _opened(picture: bytes) -> Image:
    from PIL import Image

    try:
        with Image.open(io.BytesIO(picture), formats=("PNG",)) as image:
            return image.convert("RGB")
    except (OSError, SyntaxError, ValueError) as error:  # Pillow's errors for damaged files
        msg = f"the picture is not a PNG, or is damaged: {error}"
        raise PictureError(msg) from error


def _written(image: Image) -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG", compress_level=3)  # a third of the default's time, for a tenth more bytes
    return file.getvalue()


def _label(canvas: ImageDraw, boxes: Mapping[str, Box], size: tuple[int, int]) -> None:
    from PIL import ImageFont

    scale = _scale(size)
    font = ImageFont.load_default(_TEXT * scale)
    line, pad = max(1, round(1.5 * scale)), max(1, round(scale))
    ascent, descent = font.getmetrics() if isinstance(font, ImageFont.FreeTypeFont) else (_TEXT, 0)
    texts = {label: _shown(label) for label in boxes}
    sizes = {label: (round(font.getlength(text)) + 2 * pad, ascent + descent) for label, text in texts.items()}
    tags = place_tags(boxes, sizes, size)
    colours = {label: _COLOURS[number % len(_COLOURS)] for number, label in enumerate(boxes)}
    for label, box in boxes.items():
        colour, _ = colours[label]
        canvas.rectangle(_corners(box), outline=colour, width=line)
        tag = tags[label]
        x, y = tag.x + tag.width // 2, tag.y + tag.height // 2
        nearest = min(max(x, box.x), box.x + box.width - 1), min(max(y, box.y), box.y + box.height - 1)
        canvas.line(((x, y), nearest), fill=colour, width=line)
    for label, tag in tags.items():  # last: nothing may cross a label
        colour, ink = colours[label]
        canvas.rectangle(_corners(tag), fill=colour)
        canvas.text((tag.x + pad, tag.y), texts[label], fill=ink, font=font)


def _scale(size: tuple[int, int]) -> float:
    """Return the factor for drawing into a picture.

    Models see the picture scaled down.
    """
    return max(1.0, max(size) / _SEEN)


def _shown(label: str) -> str:
    """Format a label as one short line.

    An id may hold any text.
    """
    text = "".join(letter if letter.isprintable() else "?" for letter in label)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _grown(box: Box) -> Box:
    wide, high = box.width + 2 * _MARGIN, box.height + 2 * _MARGIN
    return Box(x=box.x - _MARGIN, y=box.y - _MARGIN, width=wide, height=high)


def _within(box: Box, size: tuple[int, int]) -> Box | None:
    """Return the part of a box within a picture, or None."""
    left, top = max(0, box.x), max(0, box.y)
    width, height = min(size[0], box.x + box.width) - left, min(size[1], box.y + box.height) - top
    return Box(x=left, y=top, width=width, height=height) if width > 0 and height > 0 else None


def _corners(box: Box) -> tuple[int, int, int, int]:
    """Return the first and the last pixel of a box.

    Pillow draws boxes so.
    """
    return box.x, box.y, box.x + box.width - 1, box.y + box.height - 1


_RING, _REACH, _GAP = 20, 30, 10
"""The ring's radius, and the beginning and end of the cross's arms, in pixels from the point."""
_EDGE, _LINE = 7, 3
"""The width of the light edge and of the line in it."""
_INK, _PAPER = (200, 0, 60), "white"
"""Dark on light: one of both stands out from any background."""


def mark_points(canvas: ImageDraw, strokes: Iterable[Sequence[Point]], scale: float) -> None:
    """Draw a mark at each point, with lines between them.

    A line connects the points of a stroke.

    Args:
        canvas: The picture.
        strokes: One point for a click, two for a drag, in the picture's pixels.
        scale: The factor by which everything is enlarged.
    """
    lines = [tuple(stroke) for stroke in strokes]
    for width, colour in ((_EDGE, _PAPER), (_LINE, _INK)):
        line = max(1, round(width * scale))
        for stroke in lines:
            canvas.line(stroke, fill=colour, width=line)
            for point in stroke:
                _mark(canvas, point, scale, line, colour)


def _mark(canvas: ImageDraw, point: Point, scale: float, line: int, colour: str | tuple[int, int, int]) -> None:
    x, y = point
    ring, reach, gap = (round(length * scale) for length in (_RING, _REACH, _GAP))
    out = ring + line // 2  # Pillow draws an outline inwards: so the dark ring runs in the middle of the light one
    canvas.ellipse((x - out, y - out, x + out, y + out), outline=colour, width=line)
    for way in (-1, 1):
        canvas.line((x + way * gap, y, x + way * reach, y), fill=colour, width=line)
        canvas.line((x, y + way * gap, x, y + way * reach), fill=colour, width=line)
