"""Draws into pictures: black over what must not be seen, a label on each control, a mark at each point."""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING, NamedTuple

from callboard.actors.pictures._points import mark_points
from callboard.actors.pictures._tags import place_tags
from callboard.messages import Box, SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw

LARGEST = 50_000_000
"""The most pixels that a picture may have: a small file can ask for any amount of memory. A screen of 8K has 33
million."""
_PNG = b"\x89PNG\r\n\x1a\n"
"""What a PNG begins with."""
_CHUNK = struct.Struct(">I4s")
"""What each of its chunks begins with: the length of its data, and its name. A checksum of four bytes ends it."""
_SIZE = struct.Struct(">II")
"""What the first chunk's data begin with: the width and height."""
_PIXELS = frozenset({b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"})
"""The chunks that tell the pixels of one picture."""
_SEEN = 1_568
"""Vision models scale a picture down until its longer side has about so many pixels."""
_MOST_SEEN = 1_150_000
"""And until it has no more than about so many pixels."""
_TEXT = 12
"""The height of the labels' text once it is scaled so, in pixels."""
_LONGEST = 24
"""A longer label is cut."""
_MARGIN = 2
"""So many pixels around a control are black with it: text and frames may stick out."""
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
"""Of the labels, in turn, with the text's: each pair has a contrast of at least 4.5 to 1."""


class PictureError(Exception):
    """A picture can't be read; the text says why."""


class Drawn(NamedTuple):
    """A picture twice, as PNG."""

    clean: bytes
    """The pixels alone, without what must not be seen; the same bytes where there was nothing else."""
    annotated: bytes | None
    """With labels and marks too; None where there is nothing to label or to mark."""


def require_pillow(what: str) -> None:
    """Refuse to go on without Pillow.

    Raises:
        SettingsError: If it is not installed; it begins with `what`.
    """
    try:
        import PIL.Image  # noqa: F401 - an extra
    except ImportError as error:
        msg = f"{what} needs Pillow: pip install 'callboard[pictures]'"
        raise SettingsError(msg) from error


def fitting_size(size: tuple[int, int]) -> tuple[int, int]:
    """Give the size that a picture of another size is scaled down to, so that no provider has to do so."""
    width, height = size
    factor = min(1.0, _SEEN / max(width, height, 1), (_MOST_SEEN / max(width * height, 1)) ** 0.5)
    return max(1, int(width * factor)), max(1, int(height * factor))


def scaled(picture: bytes, size: tuple[int, int]) -> bytes:
    """Scale a PNG to a width and height. It takes some tenths of a second, on any thread.

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
    """Black out some places of a picture, and label or mark others. It takes some tenths of a second, on any thread.

    Args:
        picture: A PNG.
        masked: What is made black, in the picture's pixels; what lies outside of it is ignored.
        marked: The labels, and where what they are for is.
        strokes: Points that are marked: one of a click, both of a drag.

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
    """Leave out what a PNG holds beside its pixels: texts, profiles, the later frames of an animation, what follows it.

    Raises:
        PictureError: If it is no PNG, ends too early, or has more than `LARGEST` pixels.
    """
    kept, at, name = [_PNG], len(_PNG), b""
    while name != b"IEND" and at + _CHUNK.size <= len(picture):
        length, name = _CHUNK.unpack_from(picture, at)
        end = at + _CHUNK.size + length + 4
        if name in _PIXELS:
            kept.append(picture[at:end])
        if (name == b"IHDR") != (at == len(_PNG)):  # a second one would be the one that counts
            break
        at = end
    if not picture.startswith(_PNG) or name != b"IEND" or at > len(picture):
        msg = "the picture is no PNG, or damaged"
        raise PictureError(msg)
    width, height = _SIZE.unpack_from(picture, len(_PNG) + _CHUNK.size)  # before Pillow, which would only warn
    if width * height > LARGEST:
        msg = f"the picture has {width} x {height} pixels; at most {LARGEST:,} are taken"
        raise PictureError(msg)
    return b"".join(kept)


def _opened(picture: bytes) -> Image:
    from PIL import Image

    try:
        with Image.open(io.BytesIO(picture), formats=("PNG",)) as image:
            return image.convert("RGB")
    except (OSError, SyntaxError, ValueError) as error:  # what Pillow raises for damaged files
        msg = f"the picture is no PNG, or damaged: {error}"
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
    colours = {label: _COLOURS[place % len(_COLOURS)] for place, label in enumerate(boxes)}
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
    """Give how much larger than usual things are drawn into a picture that models see scaled down."""
    return max(1.0, max(size) / _SEEN)


def _shown(label: str) -> str:
    """Write a label in one short line: an id may hold anything."""
    text = "".join(letter if letter.isprintable() else "?" for letter in label)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _grown(box: Box) -> Box:
    wide, high = box.width + 2 * _MARGIN, box.height + 2 * _MARGIN
    return Box(x=box.x - _MARGIN, y=box.y - _MARGIN, width=wide, height=high)


def _within(box: Box, size: tuple[int, int]) -> Box | None:
    """Give the part of a box that lies within a picture; None if none does."""
    left, top = max(0, box.x), max(0, box.y)
    width, height = min(size[0], box.x + box.width) - left, min(size[1], box.y + box.height) - top
    return Box(x=left, y=top, width=width, height=height) if width > 0 and height > 0 else None


def _corners(box: Box) -> tuple[int, int, int, int]:
    """Give the first and the last pixel of a box, as Pillow draws them."""
    return box.x, box.y, box.x + box.width - 1, box.y + box.height - 1
