"""The tool that shows a page to models with vision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.messages import Effect
from callboard.surfaces._surface import tool
from callboard.surfaces.documents._libre_office import PDF_SECONDS
from callboard.surfaces.documents._office import parts
from callboard.surfaces.documents._page_pictures import show_page
from callboard.surfaces.documents._pdf import Page  # noqa: TC001 - schemas are made of it
from callboard.surfaces.documents._save import PAGED, pdf_to_draw
from callboard.surfaces.documents._tables import Answer, Document  # noqa: TC001 - schemas are made of them

if TYPE_CHECKING:
    from callboard.surfaces.documents._workspace import Workspace


class PageViewTools:
    """The tool ``get_picture`` of Word documents and PDFs."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    @tool(effect=Effect.READ, roots=PAGED, seconds=PDF_SECONDS)
    def get_picture(self, document: Document, *, page: Page = 1) -> Answer:
        """Draw a page as a picture, to see how it looks."""
        snapshot = self._workspace.read(document)
        if snapshot.root != "pdf":
            parts(snapshot, self._workspace.max_bytes)  # refuses what no Office program writes
        return {"page": page, "pages": show_page(document, pdf_to_draw(snapshot), page)}
