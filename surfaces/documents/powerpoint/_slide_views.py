"""Pictures of slides, drawn by LibreOffice."""

from __future__ import annotations

import asyncio
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from callboard.messages import Effect, Target
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.documents._libre_office import PDF_SECONDS
from callboard.surfaces.documents._page_pictures import (
    PICTURE_FORMATS,
    Pages,
    Width,
    draw_pages,
    is_picture,
    page_range,
    pdf_of_office,
    show_page,
    write_pictures,
)
from callboard.surfaces.documents._save import NewPath, pdf_of, read_for_copy
from callboard.surfaces.documents._tables import Answer, ControlId, ControlName, Document  # noqa: TC001 - for schemas
from callboard.surfaces.documents.powerpoint._deck_controls import slide_name, slide_of
from callboard.surfaces.documents.powerpoint._deck_editor import POWERPOINT, SLIDE, PowerPointEditor
from callboard.surfaces.documents.powerpoint._slide_list import hide_slide

if TYPE_CHECKING:
    from collections.abc import Collection

    from callboard.surfaces.documents._workspace import Snapshot
    from callboard.surfaces.documents.powerpoint._deck import DeckFile

_SAVED_WIDTH = 1920
"""The width of a saved picture, in pixels, where none is given."""


class SlideViewTools(PowerPointEditor):
    """The tools that draw slides, or save them in other formats."""

    @tool(effect=Effect.READ, roots=POWERPOINT, controls=SLIDE, seconds=PDF_SECONDS)
    def get_picture(self, document: Document, control_id: ControlId, *, control_name: ControlName = "") -> Answer:
        """Draw a slide as a picture, to see how it looks."""
        snapshot = self._workspace.read(document)
        slide = slide_of(self._load(snapshot), control_id, control_name)
        show_page(document, self._pdf_of_slides(snapshot, {slide.number}), 1)
        return {"control_id": slide.id, "control_name": slide_name(slide)}

    @tool(effect=Effect.ONCE, roots=POWERPOINT, seconds=PDF_SECONDS + 30)
    async def save_as(
        self,
        document: Document,
        path: NewPath,
        *,
        control_id: Annotated[str, Field(description="The slide to draw; empty for those of pages.")] = "",
        control_name: ControlName = "",
        pages: Pages = "",
        width: Width = None,
    ) -> Target | Answer:
        """Save a copy, a PDF or pictures of slides; nothing is overwritten.

        The deck itself is unchanged. A PDF leaves out hidden slides, and so do pictures of all. The answer is the new
        window, or the files of the pictures.
        """
        options, others = control_id or pages or width, (".pdf", *PICTURE_FORMATS)
        snapshot = await asyncio.to_thread(
            read_for_copy, self._workspace, document, path, others, only_pictures=options
        )
        if is_picture(path):
            return await asyncio.to_thread(
                self._save_pictures, snapshot, path, (control_id, control_name), pages, width
            )
        data = snapshot.data
        if PurePosixPath(path).suffix.lower() == ".pdf":
            await asyncio.to_thread(self._load, snapshot)  # refuses what no Office program writes
            data = await pdf_of(snapshot)
        return await asyncio.to_thread(self._workspace.create, path, data)

    def _save_pictures(
        self, snapshot: Snapshot, path: str, slide: tuple[str, str], pages: str, width: int | None
    ) -> Answer:
        """Save pictures of a slide, of some or of all shown ones.

        Raises:
            ToolError: If there is no such slide, or LibreOffice can't draw it.
        """
        file = self._load(snapshot)
        numbers = [slide_of(file, *slide).number] if slide[0] else _numbers_of(file, pages)
        pdf = self._pdf_of_slides(snapshot, numbers)
        form = PICTURE_FORMATS[PurePosixPath(path).suffix.lower()]
        pictures, _ = draw_pages(snapshot.document, pdf, (1, len(numbers)), width=width or _SAVED_WIDTH, form=form)
        slides = dict(zip(numbers, pictures, strict=True))
        return write_pictures(self._workspace, path, slides, len(file.slides()))

    def _pdf_of_slides(self, snapshot: Snapshot, numbers: Collection[int]) -> bytes:
        """Make a PDF with a page for each slide, hidden or not."""
        file = self._load(snapshot)
        for slide in file.slides():
            hide_slide(slide, hidden=slide.number not in numbers)
        return pdf_of_office(snapshot.document, file.to_bytes(), ".pptx")


def _numbers_of(file: DeckFile, pages: str) -> list[int]:
    """Return the numbers of slides, by default of all that are shown.

    Raises:
        ToolError: If there is no such slide.
    """
    first, last = page_range(pages)
    slides = file.slides()
    if (last or 0) > len(slides):
        msg = f"the deck has {len(slides)} slides, and no slide {last}"
        raise ToolError(msg)
    numbers = [slide.number for slide in slides if (first <= slide.number <= last if last else not slide.hidden)]
    if not numbers:
        msg = "the deck shows no slides; name the ones to draw, like 1-4"
        raise ToolError(msg)
    return numbers
