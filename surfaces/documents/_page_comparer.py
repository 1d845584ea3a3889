"""Draw the pages of two files, and outline their differences.

Run by `_file_reader` in its process, which has limits of memory and time; it imports nothing of this package.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from PIL.Image import Image

MOST_WIDTH, MOST_HEIGHT = 1000, 1400
"""The largest picture of a page, in pixels; a larger one is made smaller."""
CELL = 10
"""Differences are outlined by squares of so many pixels."""
SMALLEST = 24
"""The smallest difference of a colour that counts, of 255."""
MARGIN = 3
OUTLINE = (200, 0, 40)


class DrawnFile:
    """The pages of a file, drawn one at a time."""

    def __init__(self, data: bytes, kind: str, open_picture: Callable[[bytes], Any]) -> None:
        self._picture: Image | None = None
        self._document: Any = None
        self.count = 0
        if not data:
            return
        if kind == "picture":
            self._picture = open_picture(data).convert("RGB")
            self._picture.thumbnail((MOST_WIDTH, MOST_HEIGHT))
            self.count = 1
        else:
            import pypdfium2

            self._document = pypdfium2.PdfDocument(data)
            self._document.init_forms()
            self.count = len(self._document)

    def draw(self, number: int) -> Image | None:
        """Draw a page, from 0; None if there is none."""
        if number >= self.count:
            return None
        if self._picture is not None:
            return self._picture
        page = self._document[number]
        width, height = page.get_size()
        picture: Image = page.render(scale=min(MOST_WIDTH / max(width, 1), MOST_HEIGHT / max(height, 1))).to_pil()
        page.close()
        return picture.convert("RGB")


def compare(request: dict[str, Any], data: bytes, open_picture: Callable[[bytes], Any]) -> tuple[dict[str, Any], bytes]:
    """Draw the pages that differ.

    Args:
        request: The `kind` of the files, ``pdf`` or ``picture``, their `sizes`, the number of pages that are `compared`
            at most, and of those that are `shown`.
        data: Both files.
        open_picture: Opens a picture of a known format and an allowed size, upright and on white.
    """
    first_size, second_size = request["sizes"]
    before = DrawnFile(data[:first_size], request["kind"], open_picture)
    after = DrawnFile(data[first_size : first_size + second_size], request["kind"], open_picture)
    pages: list[list[int]] = []
    content = bytearray()
    differing = 0
    for number in range(min(request["compared"], max(before.count, after.count))):
        old, new = before.draw(number), after.draw(number)
        boxes = list(_changed_boxes(old, new)) if old is not None and new is not None else []
        if old is not None and new is not None and not boxes:
            continue
        differing += 1
        if len(pages) < request["shown"]:
            pictures = [_png(old), _png(new), _png(_side_by_side(old, new, boxes))]
            pages.append([number + 1, *map(len, pictures)])
            content += b"".join(pictures)
    answer = {"pages": pages, "before": before.count, "after": after.count, "differing": differing}
    return answer, bytes(content)


def _png(picture: Image | None) -> bytes:
    if picture is None:
        return b""
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


def _side_by_side(old: Image | None, new: Image | None, boxes: list[tuple[int, int, int, int]]) -> Image | None:
    """Put two pictures side by side, with outlines around what differs."""
    from PIL import Image, ImageDraw

    if old is None or new is None:
        return None
    gap = 2 * CELL
    size = old.width + gap + new.width, max(old.height, new.height)
    canvas = Image.new("RGB", size, "white")
    canvas.paste(old, (0, 0))
    canvas.paste(new, (old.width + gap, 0))
    drawing = ImageDraw.Draw(canvas)
    for left, top, right, bottom in boxes:
        for shift in (0, old.width + gap):
            corners = (left + shift - MARGIN, top - MARGIN, right + shift + MARGIN, bottom + MARGIN)
            drawing.rectangle(corners, outline=OUTLINE, width=2)
    return canvas


def _changed_boxes(old: Image, new: Image) -> Iterator[tuple[int, int, int, int]]:
    """Yield the boxes of regions that differ.

    Neighbouring squares are one region.
    """
    from PIL import Image, ImageChops

    size = max(old.width, new.width), max(old.height, new.height)
    canvases = []
    for picture in (old, new):
        canvas = Image.new("RGB", size, "white")
        canvas.paste(picture, (0, 0))
        canvases.append(canvas)
    bands = ImageChops.difference(*canvases).split()
    difference = ImageChops.lighter(ImageChops.lighter(bands[0], bands[1]), bands[2])
    mask = difference.point(lambda level: 255 if level >= SMALLEST else 0)
    columns, rows = -(-size[0] // CELL), -(-size[1] // CELL)
    squares = {
        (column, row)
        for row in range(rows)
        for column in range(columns)
        if mask.crop((column * CELL, row * CELL, (column + 1) * CELL, (row + 1) * CELL)).getbbox()
    }
    while squares:
        region = _region_of(squares)
        xs, ys = [column for column, _ in region], [row for _, row in region]
        yield min(xs) * CELL, min(ys) * CELL, (max(xs) + 1) * CELL, (max(ys) + 1) * CELL


def _region_of(squares: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """Take a region of neighbouring squares out of a set."""
    region = [squares.pop()]
    for column, row in region:
        for neighbour in ((column + x, row + y) for x in (-1, 0, 1) for y in (-1, 0, 1)):
            if neighbour in squares:
                squares.remove(neighbour)
                region.append(neighbour)
    return region
