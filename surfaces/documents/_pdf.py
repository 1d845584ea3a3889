"""PDF tools: read text and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import Field

from callboard.messages import Effect
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.documents import _formats as formats
from callboard.surfaces.documents._grids import answer_of, plain_grid
from callboard.surfaces.documents._picture_tools import MOST_UNCERTAIN, Language
from callboard.surfaces.documents._tables import Answer, Document, short

if TYPE_CHECKING:
    from typing import Any

    from pydantic import JsonValue

    from callboard.surfaces.documents._grids import Grid
    from callboard.surfaces.documents._workspace import Snapshot

PDF = ("pdf",)
_PREVIEW = 1500
"""The characters of the first page that an observation shows."""

_MOST_CHARACTERS = 10_000_000
"""The most characters that one start of the reader gives."""
_MOST_PAGES = 200
"""The most pages that are searched for a table."""

PdfTable: TypeAlias = list[list[str | None]]
"""The rows of a table, as they were read."""
Page = Annotated[int, Field(ge=1, description="The page, from 1.")]


class PdfTools(formats.FormatTools):
    """The tools of ``.pdf`` files, which are only read."""

    @tool(effect=Effect.READ, roots=PDF)
    def read_text(
        self,
        document: Document,
        *,
        page: Page = 1,
        offset: formats.Offset = 0,
        limit: formats.Limit = 20_000,
        language: Language = "eng",
        recognize_all: Annotated[
            bool, Field(description="Whether pages with a text are read by character recognition, too.")
        ] = False,
    ) -> Answer:
        """Read a PDF's text from a page on, and recognize scanned pages.

        Values of form fields and notes stand below a page's text. ``next`` is where to continue; null at the end.
        ``recognized`` lists the pages that were read by character recognition, with errors: ``confidence`` is the mean
        in percent, and ``uncertain`` lists words that may be wrong.
        """
        reader_answer = _read(
            self._workspace.read(document),
            page,
            limit=offset + limit,
            recognition="all" if recognize_all else "scans",
            language=language,
        )
        texts: list[str] = reader_answer["texts"]
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
            following = {"page": last, "offset": 0} if last <= reader_answer["pages"] else None
        answer: Answer = {"text": "\n".join(parts), "pages": reader_answer["pages"], "next": following}
        if unseen := _unseen(reader_answer):
            answer["not_shown"] = unseen
        if recognized_pages := [_certainty(reading) for reading in reader_answer["recognized"]]:
            answer["recognized"] = [*recognized_pages]
        if reader_answer["not_recognized"]:
            answer["not_recognized"] = reader_answer["not_recognized"]
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
        numbers: formats.Numbers = True,
        decimal: formats.Decimal = "auto",
        header: formats.Header = True,
        start: formats.Start = 0,
        limit: formats.Rows = 1000,
    ) -> Answer:
        """Read a table with lines: its header, rows and units.

        ``tables_on_page`` counts them. Numbers are read as in a Word table.
        """
        reader_answer = _read(self._workspace.read(document), page, limit=1, tables=True)
        tables: list[PdfTable] = reader_answer["tables"][0] if reader_answer["tables"] else []
        if table > len(tables):
            msg = f"page {page} of {document!r} has {len(tables)} tables with lines; read_text shows its text"
            raise ToolError(msg)
        answer = answer_of(
            grid_of(tables[table - 1]), header=header, numbers=numbers, decimal=decimal, start=start, limit=limit
        )
        if reader_answer["fields"]:
            answer["not_shown"] = f"{reader_answer['fields']} form fields of the page; read_text shows them"
        return {**answer, "tables_on_page": len(tables)}

    def not_writable(self, snapshot: Snapshot) -> str:
        """Explain that PDFs are only read."""
        return "PDFs are only read; write a Word document, and save it as a PDF"

    def empty(self) -> bytes:
        """Refuse to make an empty PDF.

        Raises:
            ToolError: Always.
        """
        msg = "a PDF can't be made empty: pass its text or rows"
        raise ToolError(msg)

    def preview(self, snapshot: Snapshot) -> str:
        """Return the beginning of the first page."""
        texts: list[str] = _read(snapshot, 1, limit=1)["texts"]
        return texts[0][:_PREVIEW] if texts else ""

    def facts(self, snapshot: Snapshot) -> dict[str, JsonValue]:
        """Return the number of pages, the title and the author."""
        reader_answer = _read(snapshot, 1, limit=1)
        metadata: dict[str, str] = reader_answer["metadata"]
        facts: dict[str, JsonValue] = {name.lower(): short(text) for name, text in metadata.items()}
        unseen = _unseen(reader_answer)
        return {"pages": reader_answer["pages"], **facts, **({"not_shown": unseen} if unseen else {})}


def _unseen(reader_answer: dict[str, Any]) -> str:
    """List the visible contents that the text lacks."""
    counts: dict[str, int] = reader_answer["unseen"]
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


def _certainty(reading: dict[str, Any]) -> dict[str, JsonValue]:
    """Shorten the list of a recognized page's uncertain words."""
    uncertain_words = [*dict.fromkeys(reading["uncertain"])][:MOST_UNCERTAIN]
    return {**reading, "uncertain": [*uncertain_words]}


def _read(
    snapshot: Snapshot,
    page: int,
    *,
    limit: int,
    tables: bool = False,
    recognition: Literal["none", "scans", "all"] = "none",
    language: str = "eng",
) -> dict[str, Any]:
    request: dict[str, JsonValue] = {"what": "pdf", "page": page, "limit": limit, "tables": tables}
    if recognition != "none":
        request |= {"recognition": recognition, "language": language}
    return formats.read_in_process(request, snapshot, "pdf")[0]


def grid_of(table: PdfTable) -> Grid:
    """Lay a table out on a grid, with one space between words."""
    return plain_grid([[" ".join((cell or "").split()) for cell in row] for row in table])


def full_text(snapshot: Snapshot, page: int = 1) -> str:
    """Read the text of all pages from one on.

    Raises:
        ToolError: If it has no text but something else that a person sees, such as a scanned page.
    """
    texts: list[str] = []
    pages, unseen = page, ""
    while page + len(texts) <= pages:
        reader_answer = _read(snapshot, page + len(texts), limit=_MOST_CHARACTERS)
        pages, unseen = reader_answer["pages"], unseen or _unseen(reader_answer)
        texts += reader_answer["texts"]
        if not reader_answer["texts"]:
            break
    if unseen and not any(texts):
        msg = f"the pages of {snapshot.document!r} have no text, but {unseen}; they may be scanned pictures"
        raise ToolError(msg)
    return "\n".join(f"[page {number}]\n{text}" for number, text in enumerate(texts, page))


def tables_of(snapshot: Snapshot, page: int | None = None) -> dict[str, PdfTable]:
    """Read tables, by page and number like ``2/1``.

    Raises:
        ToolError: If there are too many pages to look for tables.
    """
    first, count = page or 1, 0
    pages: list[list[PdfTable]] = []
    while not pages or (page is None and len(pages) < count):
        reader_answer = _read(snapshot, first + len(pages), limit=1 if page else _MOST_PAGES, tables=True)
        count = reader_answer["pages"]
        if page is None and count > _MOST_PAGES:
            msg = (
                f"{snapshot.document!r} has {count} pages, and at most {_MOST_PAGES} are searched; pass a page in args"
            )
            raise ToolError(msg)
        if not reader_answer["tables"]:
            break
        pages += reader_answer["tables"]
    return {
        f"{page_number}/{table_number}": table
        for page_number, page_tables in enumerate(pages, first)
        for table_number, table in enumerate(page_tables, 1)
    }
