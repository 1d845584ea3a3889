"""Pictures of slides, drawn by LibreOffice."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from callboard.messages import Effect, Target
from callboard.surfaces import current_call
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.documents._formats import read_in_process
from callboard.surfaces.documents._libre_office import LIBRE_OFFICE, OfficeFailedError
from callboard.surfaces.documents._save import PDF_SECONDS, pdf_of, read_for_copy
from callboard.surfaces.documents._tables import Answer, ControlId, ControlName, Document  # noqa: TC001 - for schemas
from callboard.surfaces.documents._workspace import fingerprint
from callboard.surfaces.documents.powerpoint._deck_controls import slide_name, slide_of
from callboard.surfaces.documents.powerpoint._deck_editor import POWERPOINT, SLIDE, PowerPointEditor
from callboard.surfaces.documents.powerpoint._slide_list import hide_slide

if TYPE_CHECKING:
    from callboard.surfaces.documents._workspace import Snapshot

_SHOWN_WIDTH, _SAVED_WIDTH = 960, 1920
"""The widths of pictures, in pixels."""


class SlideViewTools(PowerPointEditor):
    """The tools that draw slides, or save them in other formats."""

    @tool(effect=Effect.READ, roots=POWERPOINT, controls=SLIDE, seconds=PDF_SECONDS)
    def get_slide_picture(self, document: Document, control_id: ControlId, *, control_name: ControlName = "") -> Answer:
        """Draw a slide as a picture, to see how it looks."""
        snapshot = self._workspace.read(document)
        picture = self._draw(snapshot, control_id, control_name, _SHOWN_WIDTH)
        current_call().picture(picture)
        slide = slide_of(self._load(snapshot), control_id)
        return {"control_id": slide.id, "control_name": slide_name(slide)}

    @tool(effect=Effect.ONCE, roots=POWERPOINT, seconds=PDF_SECONDS + 30)
    async def save_as(
        self,
        document: Document,
        path: Annotated[
            str,
            Field(description="The new path in the workspace: .pptx, .pdf, or .png for one slide; must not exist yet."),
        ],
        *,
        control_id: Annotated[str, Field(description="The slide to draw, for a .png.")] = "",
        control_name: ControlName = "",
    ) -> Target:
        """Save a copy, PDF or picture of a slide; return its window.

        The deck itself is unchanged. A PDF leaves out hidden slides.
        """
        snapshot = await asyncio.to_thread(read_for_copy, self._workspace, document, path, (".pdf", ".png"))
        suffix, data = PurePosixPath(path).suffix.lower(), snapshot.data
        if suffix == ".png":
            data = await asyncio.to_thread(self._draw, snapshot, control_id, control_name, _SAVED_WIDTH)
        elif suffix == ".pdf":
            await asyncio.to_thread(self._load, snapshot)  # refuses what no Office program writes
            data = await pdf_of(snapshot)
        return await asyncio.to_thread(self._workspace.create, path, data)

    def _draw(self, snapshot: Snapshot, control_id: str, control_name: str, width: int) -> bytes:
        """Draw a slide as a PNG.

        Raises:
            ToolError: If the control is no slide, or LibreOffice can't draw it.
        """
        if not control_id:
            msg = "name the slide to draw by its control_id, such as slide-3"
            raise ToolError(msg)
        file = self._load(snapshot)
        drawn_slide = slide_of(file, control_id, control_name)
        for slide in file.slides():  # the numbers of pages stay, and one page is drawn
            hide_slide(slide, hidden=slide.number != drawn_slide.number)
        try:
            (pdf,) = LIBRE_OFFICE.convert([file.to_bytes()], ".pptx", "pdf", seconds=PDF_SECONDS)
        except OfficeFailedError as error:
            msg = f"the slide can't be drawn: {error or 'LibreOffice did not start, crashed or took too long'}"
            raise ToolError(msg) from error
        if pdf is None:
            msg = f"the slide can't be drawn: LibreOffice can't read {snapshot.document!r}"
            raise ToolError(msg)
        page = replace(snapshot, source=pdf, converted=None, fingerprint=fingerprint(pdf))
        return read_in_process({"what": "page", "width": width}, page, "pdf")[1]
