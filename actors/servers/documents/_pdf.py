"""PDF tools: read text and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from callboard.actors.servers._server import ToolError, tool
from callboard.actors.servers.documents._formats import FormatTools, Limit, Offset, Rows, Start, read_apart
from callboard.actors.servers.documents._tables import Answer, Document, short
from callboard.actors.servers.documents._word_tables import Grid, answer_of
from callboard.messages import Effect

if TYPE_CHECKING:
    from typing import Any

    from pydantic import JsonValue

    from callboard.actors.servers.documents._workspace import Snapshot

PDF = ("pdf",)
_PREVIEW = 1500
"""The characters of the first page that an observation shows."""

Page = Annotated[int, Field(ge=1, description="The page, from 1.")]


class PdfTools(FormatTools):
    """The tools of ``.pdf`` files, which are only read."""

    @tool(effect=Effect.READ, roots=PDF)
    def read_text(self, document: Document, *, page: Page = 1, offset: Offset = 0, limit: Limit = 20_000) -> Answer:
        """Read the text of a PDF, from a page on.

        ``next`` is where to continue; null at the end. Scanned pages have no text.
        """
        found = _read(self._workspace.read(document), page, limit=offset + limit)
        texts: list[str] = found["texts"]
        parts: list[str] = []
        following: JsonValue = None
        for number, text in enumerate(texts, page):
            skipped = offset if number == page else 0
            room = limit - sum(map(len, parts))
            parts.append(f"[page {number}]\n{text[skipped : skipped + room]}")
            if len(text) - skipped > room:
                following = {"page": number, "offset": skipped + room}
                break
        else:
            last = page + len(texts)
            following = {"page": last, "offset": 0} if last <= found["pages"] else None
        answer: Answer = {"text": "\n".join(parts), "pages": found["pages"], "next": following}
        if not any(texts):
            answer["note"] = "these pages have no text; they may be scanned pictures"
        return answer

    @tool(effect=Effect.READ, roots=PDF)
    def read_table(
        self,
        document: Document,
        *,
        page: Page = 1,
        table: Annotated[int, Field(ge=1, description="Which table of the page, from 1.")] = 1,
        numbers: Annotated[
            bool, Field(description="Whether cells that are unambiguous numbers become numbers.")
        ] = True,
        decimal: Annotated[Literal["auto", ".", ","], Field(description="The decimal separator.")] = "auto",
        header: Annotated[bool, Field(description="Whether the first row is the header.")] = True,
        start: Start = 0,
        limit: Rows = 1000,
    ) -> Answer:
        """Read a table with lines on a page: its header, its rows and the columns' units.

        ``tables_on_page`` counts them. Numbers are read as in a Word table.
        """
        found, _ = read_apart(_request(page, 0, tables=True), self._workspace.read(document), "pdf")
        tables: list[list[list[str | None]]] = found["tables"]
        if table > len(tables):
            msg = f"page {page} of {document!r} has {len(tables)} tables with lines; read_text shows its text"
            raise ToolError(msg)
        rows = tables[table - 1]
        width = max(map(len, rows), default=0)
        texts = [[" ".join((cell or "").split()) for cell in [*row, *[""] * (width - len(row))]] for row in rows]
        mark = None if decimal == "auto" else decimal
        grid = Grid(texts, {}, [])
        answer = answer_of(grid, header=header, numbers=numbers, decimal=mark, start=start, limit=limit)
        return {**answer, "tables_on_page": len(tables)}

    def not_writable(self, snapshot: Snapshot) -> str:
        """Explain that PDFs are only read."""
        return "PDFs are only read; write a Word document, and save it as a PDF"

    def preview(self, snapshot: Snapshot) -> str:
        """Return the beginning of the first page."""
        texts: list[str] = _read(snapshot, 1, limit=1)["texts"]
        return texts[0][:_PREVIEW] if texts else ""

    def facts(self, snapshot: Snapshot) -> dict[str, JsonValue]:
        """Return the number of pages, the title and the author."""
        found = _read(snapshot, 1, limit=1)
        about: dict[str, str] = found["metadata"]
        return {"pages": found["pages"], **{name.lower(): short(text) for name, text in about.items()}}


def _request(page: int, limit: int, *, tables: bool) -> dict[str, JsonValue]:
    return {"what": "pdf", "page": page, "limit": limit, "tables": tables}


def _read(snapshot: Snapshot, page: int, *, limit: int) -> dict[str, Any]:
    return read_apart(_request(page, limit, tables=False), snapshot, "pdf")[0]
