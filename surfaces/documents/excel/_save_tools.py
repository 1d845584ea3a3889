"""The Excel tool that saves copies, PDFs, and pictures of cells."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from callboard.messages import Effect, Target
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.documents._libre_office import PDF_SECONDS
from callboard.surfaces.documents._page_pictures import PICTURE_FORMATS, Pages, Width, save_pages
from callboard.surfaces.documents._save import NewPath, read_for_copy, save_copy
from callboard.surfaces.documents._tables import Answer, Document  # noqa: TC001 - schemas are made of them
from callboard.surfaces.documents.excel._range_pictures import pdf_of_cells
from callboard.surfaces.documents.excel._touched_cells import pictured_cells
from callboard.surfaces.documents.excel._workbook_editor import EXCEL, ExcelEditor

if TYPE_CHECKING:
    from callboard.surfaces.documents._workspace import Snapshot

PicturedCells = Annotated[
    str,
    Field(description="For a picture: a range like Sales!B2:F20, a table, or a sheet's title; empty for all pages."),
]


class ExcelSaveTools(ExcelEditor):
    """The tool ``save_as`` of workbooks."""

    @tool(effect=Effect.ONCE, roots=EXCEL, seconds=PDF_SECONDS + 30)
    async def save_as(
        self,
        document: Document,
        path: NewPath,
        *,
        cells: PicturedCells = "",
        pages: Pages = "",
        width: Width = None,
    ) -> Target | Answer:
        """Save a copy, PDF, or pictures of pages or cells; overwrite nothing.

        The workbook itself is unchanged. The answer is the new window, or the files of the pictures.
        """
        if not cells:
            return await save_copy(self._workspace, document, path, pages, width)
        others = tuple(PICTURE_FORMATS)
        snapshot = await asyncio.to_thread(read_for_copy, self._workspace, document, path, others, only_pictures=cells)
        return await asyncio.to_thread(self._save_picture, snapshot, path, cells, pages, width)

    def _save_picture(self, snapshot: Snapshot, path: str, cells: str, pages: str, width: int | None) -> Answer:
        """Save pictures of a range or a sheet.

        Raises:
            ToolError: If the cells do not exist or can't be drawn.
        """
        file = self._load_whole(snapshot)
        drawn = pictured_cells(file, cells)
        if drawn.cells is not None and pages not in {"", "1"}:
            msg = "a range is one picture: leave pages out, or name a sheet's title in cells"
            raise ToolError(msg)
        pdf = pdf_of_cells(snapshot.document, file, drawn)
        is_cut = drawn.cells is not None
        return save_pages(self._workspace, snapshot.document, pdf, path, pages, width=width, is_cut=is_cut)
