"""Pictures of the pages of documents, drawn by LibreOffice and PDFium."""

from __future__ import annotations

import functools
import io
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from callboard.surfaces import MOST_PICTURE_BYTES, current_call
from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._formats import run_reader
from callboard.surfaces.documents._libre_office import pdfs_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from callboard.surfaces.documents._tables import Answer
    from callboard.surfaces.documents._workspace import Workspace

PICTURE_FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG"}
"""The formats in which pages are saved, by suffix."""
MOST_PAGES = 20
"""The most pages that a call draws."""
PAGE_WIDTH = 1600
"""The width of a page's picture, in pixels, where none is given."""
_SHOWN_WIDTHS = (1200, 800, 400)
"""The widths of pictures for models: a smaller one if the picture is too large."""

Pages = Annotated[
    str,
    Field(
        pattern=r"^([1-9][0-9]{0,4}(-[1-9][0-9]{0,4})?)?$",
        description=f"For pictures: a page like 1, or several like 2-4; empty for all. At most {MOST_PAGES}.",
    ),
]
Width = Annotated[int | None, Field(ge=16, le=6000, description="Of each picture, in pixels; null for the usual one.")]


def page_range(pages: str) -> tuple[int, int | None]:
    """Return the first and the last page; None for the end.

    Raises:
        ToolError: If the first one is behind the last one, or there are too many.
    """
    if not pages:
        return 1, None
    first, _, last = pages.partition("-")
    numbers = int(first), int(last or first)
    if not numbers[0] <= numbers[1] < numbers[0] + MOST_PAGES:
        msg = f"pages {pages!r} are refused: name at most {MOST_PAGES}, from the first to the last, like 2-4"
        raise ToolError(msg)
    return numbers


def picture_names(path: str, pages: str) -> list[str]:
    """List the paths of all pictures that a call may write.

    A single page has the given path; the pictures of several have their numbers in their names: ``plan-2.png``.
    """
    first, last = page_range(pages)
    if first == last:
        return [path]
    return [path, *(_numbered(path, number) for number in range(first, (last or MOST_PAGES) + 1))]


def _numbered(path: str, number: int) -> str:
    plain_path = PurePosixPath(path)
    return str(plain_path.with_name(f"{plain_path.stem}-{number}{plain_path.suffix}"))


def is_picture(path: str) -> bool:
    """Return whether a new path has a picture's suffix."""
    return PurePosixPath(path).suffix.lower() in PICTURE_FORMATS


def pdf_of_office(document: str, data: bytes, suffix: str) -> bytes:
    """Convert an Office document in order to draw it.

    Args:
        document: Its path, for errors.
        data: Its bytes.
        suffix: Their suffix, such as ``.docx``.

    Raises:
        ToolError: If LibreOffice is missing, fails, takes too long or can't read it.
    """
    (pdf,) = pdfs_of([data], suffix, f"{document!r} can't be drawn")
    return pdf


def draw_pages(
    document: str,
    pdf: bytes,
    pages: tuple[int, int | None],
    *,
    width: int | None = PAGE_WIDTH,
    form: str = "PNG",
    is_cut: bool = False,
) -> tuple[list[bytes], int]:
    """Draw pages of a PDF, in a process with limits.

    Args:
        document: The path of the drawn document, for errors.
        pdf: The bytes of the PDF.
        pages: The first and the last page, from 1; None for the end.
        width: In pixels; None for 150 to the inch.
        form: The format of the pictures, ``PNG`` or ``JPEG``.
        is_cut: Whether each is cut to the contents of its page.

    Returns:
        The pictures, and the number of all pages.

    Raises:
        ToolError: If they can't be drawn; the text gives the reason.
    """
    request: dict[str, Any] = {"what": "pages", "first": pages[0], "last": pages[1], "most": MOST_PAGES}
    answer, content = run_reader({**request, "width": width, "format": form, "cut": is_cut}, pdf)
    if name := answer.get("missing"):
        msg = f"{document!r} can't be drawn: {name} is not installed: it comes with callboard[pdf]"
        raise ToolError(msg)
    if "error" in answer:
        msg = f"{document!r} can't be drawn: {answer['error']}"
        raise ToolError(msg)
    stream = io.BytesIO(content)
    return [stream.read(size) for size in answer["sizes"]], answer["pages"]


def save_pages(
    workspace: Workspace, document: str, pdf: bytes, path: str, pages: str, *, width: int | None, is_cut: bool = False
) -> Answer:
    """Save pages of a PDF as new pictures.

    Args:
        workspace: The workspace.
        document: The path of the drawn document.
        pdf: The document as a PDF.
        path: The path of the new pictures; several have their page's number behind it.
        pages: The pages; empty for all.
        width: In pixels; None for the usual one.
        is_cut: Whether each is cut to the contents of its page.

    Raises:
        ToolError: If they can't be drawn, or a name is taken. Nothing is written then.
    """
    first, last = page_range(pages)
    form = PICTURE_FORMATS[PurePosixPath(path).suffix.lower()]
    usual_width = None if is_cut else PAGE_WIDTH
    pictures, count = draw_pages(document, pdf, (first, last), width=width or usual_width, form=form, is_cut=is_cut)
    return write_pictures(workspace, path, dict(enumerate(pictures, first)), count)


def write_pictures(workspace: Workspace, path: str, pictures: dict[int, bytes], count: int) -> Answer:
    """Write pictures as new files, by the numbers of their pages.

    `count` is the number of all pages.
    """
    names = [path] if len(pictures) == 1 else [_numbered(path, number) for number in pictures]
    answer: Answer = {"files": [*names], "pages": count}
    readings = {name: functools.partial(bytes, picture) for name, picture in zip(names, pictures.values(), strict=True)}
    workspace.write_all_new(readings, answer)
    return answer


def show_page(document: str, pdf: bytes, number: int, *, is_cut: bool = False) -> int:
    """Add the picture of a page to the running call's answer.

    Returns:
        The number of all pages.
    """
    for picture, count in _shown_pictures(document, pdf, number, is_cut=is_cut):
        if len(picture) <= MOST_PICTURE_BYTES:
            current_call().picture(picture)
            return count
    msg = f"page {number} of {document!r} can't be shown: its picture is too large"
    raise ToolError(msg)


def _shown_pictures(document: str, pdf: bytes, number: int, *, is_cut: bool) -> Iterator[tuple[bytes, int]]:
    """Draw a page in smaller and smaller pictures."""
    widths: Sequence[int | None] = (None, *_SHOWN_WIDTHS) if is_cut else _SHOWN_WIDTHS
    for width in widths:
        (picture,), count = draw_pages(document, pdf, (number, number), width=width, is_cut=is_cut)
        yield picture, count
