"""Draw the pages of a PDF as pictures.

Run by `_file_reader` in its process, which has limits of memory and time; it imports nothing of this package.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL.Image import Image

MOST_PIXELS = 50_000_000
"""The most pixels of a page's picture."""
MOST_PIXELS_TOGETHER = 150_000_000
NATURAL_SCALE = 150 / 72
"""The pixels of a point where no width is given: 150 to the inch."""
MARGIN = 4
"""The points around the contents of a page that is cut to them."""


class DrawnPages:
    """The pages of a PDF, drawn one at a time."""

    def __init__(self, data: bytes) -> None:
        import pypdfium2

        self._document = pypdfium2.PdfDocument(data)
        self._document.init_forms()
        self.count = len(self._document)

    def size(self, number: int) -> tuple[float, float]:
        """Return the width and height of a page, from 1, in points."""
        width, height = self._document[number - 1].get_size()
        return max(width, 1.0), max(height, 1.0)

    def draw(self, number: int, width: int | None, *, cut: bool = False) -> Image:
        """Draw a page, from 1.

        Args:
            number: The page.
            width: In pixels; None for 150 to the inch.
            cut: Whether the empty space around the contents is left out.

        Raises:
            OverflowError: If it has too many pixels.
            ValueError: If it is empty, and is to be cut.
        """
        page = self._document[number - 1]
        page_width, page_height = page.get_size()
        left, bottom, right, top = _empty_edges(page) if cut else (0.0, 0.0, 0.0, 0.0)
        inner_width, inner_height = max(page_width - left - right, 1), max(page_height - bottom - top, 1)
        scale = width / inner_width if width else NATURAL_SCALE
        if (pixels := inner_width * inner_height * scale**2) > MOST_PIXELS:
            msg = (
                f"page {number} would have {pixels:,.0f} pixels, and at most {MOST_PIXELS:,} are drawn; draw it smaller"
            )
            raise OverflowError(msg)
        picture: Image = page.render(scale=scale, crop=(left, bottom, right, top)).to_pil().convert("RGB")
        page.close()
        return picture


def draw(request: dict[str, Any], data: bytes) -> tuple[dict[str, Any], bytes]:
    """Draw some pages.

    Args:
        request: The `first` and the `last` page (null for the end), the `most` pages that are drawn, the `width` in
            pixels or null, whether each is `cut` to its contents, and the `format`, ``PNG`` or ``JPEG``.
        data: The PDF.

    Returns:
        The number of all `pages`, and the `sizes` in bytes of the pictures, which follow each other.
    """
    document = DrawnPages(data)
    first, last = request["first"], request["last"] or document.count
    if last > document.count:
        return {"error": f"it has {document.count} pages, and no page {last}"}, b""
    if last - first >= request["most"]:
        most = request["most"]
        return {"error": f"it has {document.count} pages, and at most {most} are drawn; name some, like 1-{most}"}, b""
    sizes: list[int] = []
    content = bytearray()
    pixels = 0
    for number in range(first, last + 1):
        try:
            picture = document.draw(number, request["width"], cut=request["cut"])
        except (OverflowError, ValueError) as error:
            return {"error": str(error)}, b""
        pixels += picture.width * picture.height
        if pixels > MOST_PIXELS_TOGETHER:
            return {
                "error": f"pages {first} to {last} have too many pixels together; name fewer, or a smaller width"
            }, b""
        output = io.BytesIO()
        picture.save(output, request["format"], **({"quality": 90} if request["format"] == "JPEG" else {}))
        sizes.append(len(output.getvalue()))
        content += output.getvalue()
    return {"pages": document.count, "sizes": sizes}, bytes(content)


def _empty_edges(page: Any) -> tuple[float, float, float, float]:
    """Measure the empty left, bottom, right and top edges, in points."""
    from PIL import ImageOps

    picture = page.render(scale=1).to_pil().convert("L")
    box = ImageOps.invert(picture).getbbox()
    if box is None:
        msg = "there is nothing to see"
        raise ValueError(msg)
    left, top, right, bottom = box[0] - MARGIN, box[1] - MARGIN, box[2] + MARGIN, box[3] + MARGIN
    width, height = page.get_size()
    return max(left, 0.0), max(height - bottom, 0.0), max(width - right, 0.0), max(top, 0.0)
