"""Tools that save copies of documents, also as PDF or pictures."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from callboard.messages import Effect, Target
from callboard.surfaces import run_process
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.documents._formats import plain_environment
from callboard.surfaces.documents._hidden_sheets import without_hidden_areas
from callboard.surfaces.documents._libre_office import PDF_SECONDS, lacking_office, pdfs_of, profile
from callboard.surfaces.documents._office import parts
from callboard.surfaces.documents._page_pictures import (
    PICTURE_FORMATS,
    Pages,
    Width,
    is_picture,
    page_range,
    pdf_of_office,
    save_pages,
)
from callboard.surfaces.documents._tables import Answer, Document, short

if TYPE_CHECKING:
    from callboard.surfaces.documents._workspace import Snapshot, Workspace

PAGED = ("word", "pdf")
OTHERS = ("calendar", "csv", "text")
_SUFFIXES = {"word": ".docx", "excel": ".xlsx", "powerpoint": ".pptx"}
_FILTERS = {"word": "writer_pdf_Export", "excel": "calc_pdf_Export", "powerpoint": "impress_pdf_Export"}

NewPath = Annotated[
    str, Field(description="The new path: of the same kind, .pdf, .png or .jpg; several pictures get numbers.")
]


class SaveTools:
    """The tool ``save_as`` of Word documents and PDFs."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    @tool(effect=Effect.ONCE, roots=PAGED, seconds=PDF_SECONDS + 30)
    async def save_as(
        self, document: Document, path: NewPath, *, pages: Pages = "", width: Width = None
    ) -> Target | Answer:
        """Save a copy, a PDF or pictures of pages; nothing is overwritten.

        The document itself is unchanged. The answer is the new window, or the files of the pictures.
        """
        return await save_copy(self._workspace, document, path, pages, width)


class CopyTools:
    """The tool ``save_as`` of formats that are saved as they are."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    @tool(effect=Effect.ONCE, roots=OTHERS)
    def save_as(
        self,
        document: Document,
        path: Annotated[str, Field(description="The new path in the workspace, of the same kind; must not exist yet.")],
    ) -> Target:
        """Save a copy under another name and return its window.

        The document itself is unchanged.
        """
        snapshot = read_for_copy(self._workspace, document, path)
        return self._workspace.create(path, snapshot.data)


async def save_copy(
    workspace: Workspace, document: str, path: str, pages: str = "", width: int | None = None
) -> Target | Answer:
    """Save a copy, a PDF or pictures of pages of a document.

    Raises:
        ToolError: If that is not possible. Nothing is written then.
    """
    others = (".pdf", *PICTURE_FORMATS)
    snapshot = await asyncio.to_thread(read_for_copy, workspace, document, path, others, only_pictures=pages or width)
    if snapshot.root != "pdf" and PurePosixPath(path).suffix.lower() in others:
        await asyncio.to_thread(parts, snapshot, workspace.max_bytes)  # refuses what no Office program writes
    if is_picture(path):
        return await asyncio.to_thread(_save_pictures, workspace, snapshot, path, pages, width)
    is_new_pdf = PurePosixPath(path).suffix.lower() == ".pdf" and snapshot.root != "pdf"
    data = await pdf_of(snapshot) if is_new_pdf else snapshot.data
    return await asyncio.to_thread(workspace.create, path, data)


def _save_pictures(workspace: Workspace, snapshot: Snapshot, path: str, pages: str, width: int | None) -> Answer:
    page_range(pages)  # refused before anything is converted
    return save_pages(workspace, snapshot.document, pdf_to_draw(snapshot), path, pages, width=width)


def pdf_to_draw(snapshot: Snapshot) -> bytes:
    """Return a document as a PDF whose pages are drawn.

    Raises:
        ToolError: If it is no PDF, and LibreOffice can't make one of it.
    """
    if snapshot.root == "pdf":
        return snapshot.data
    return pdf_of_office(snapshot.document, snapshot.data, _SUFFIXES[snapshot.root])


def read_for_copy(
    workspace: Workspace, document: str, path: str, others: tuple[str, ...] = (), *, only_pictures: object = None
) -> Snapshot:
    """Read the document, and check the new path.

    Args:
        workspace: The workspace.
        document: The document's path in it.
        path: The new path.
        others: The suffixes that it may have besides the document's own.
        only_pictures: Arguments of the call that other files than pictures do not have; empty for none.

    Raises:
        ToolError: If it has another suffix or is taken, or the document can't be read or was changed.
    """
    snapshot = workspace.read_unchanged(document)
    new = PurePosixPath(path).suffix.lower()
    suffixes = tuple(dict.fromkeys((snapshot.suffix, *others)))
    if new not in suffixes:
        listed = f"{', '.join(suffixes[:-1])} or {suffixes[-1]}" if len(suffixes) > 1 else suffixes[0]
        msg = f"{path!r} is refused: {document!r} can only be saved as another {listed} file"
        raise ToolError(msg)
    if only_pictures and not is_picture(path):
        msg = f"{path!r} is refused: pages, cells and width are for pictures; a {new} file is saved whole"
        raise ToolError(msg)
    workspace.resolve_new(path)
    return snapshot


async def pdf_of(snapshot: Snapshot) -> bytes:
    """Convert an Office document with LibreOffice.

    It gets a copy in a folder of its own, a profile of its own and none of this process's variables. On Linux it also
    has no network and sees none of this user's files, where the kernel allows that.

    Raises:
        ToolError: If LibreOffice is missing, fails or takes too long.
    """
    if not lacking_office(_SUFFIXES[snapshot.root]):
        failure = f"LibreOffice made no PDF of {snapshot.document!r}"
        # a PDF of a workbook shows the results that the file holds
        is_computed = snapshot.root != "excel"
        files = [snapshot.data]
        (pdf,) = await asyncio.to_thread(pdfs_of, files, _SUFFIXES[snapshot.root], failure, is_computed=is_computed)
        return pdf
    return await _plain_pdf(snapshot)


async def _plain_pdf(snapshot: Snapshot) -> bytes:
    """Convert a document by a LibreOffice started for it alone."""
    program = shutil.which("soffice")
    if program is None:
        msg = "LibreOffice makes the PDF, and is not installed: there is no program soffice"
        raise ToolError(msg)
    with tempfile.TemporaryDirectory(prefix="callboard-pdf-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        source = await asyncio.to_thread(_write_source, home, snapshot)
        command = (
            program,
            f"-env:UserInstallation={(home / 'profile').as_uri()}",
            "--headless",
            "--norestore",
            "--nologo",
            "--nolockcheck",
            "--convert-to",
            f"pdf:{_FILTERS[snapshot.root]}",
            "--outdir",
            home / "out",
            source,
        )
        try:
            async with asyncio.timeout(PDF_SECONDS):
                done = await run_process(command, cwd=home, env=plain_environment(home))
        except TimeoutError:
            msg = f"LibreOffice took longer than {PDF_SECONDS} seconds for {snapshot.document!r}; no PDF was made"
            raise ToolError(msg) from None
        pdf_path = home / "out" / "document.pdf"
        if not pdf_path.is_file():
            reason = short(done.err.decode("utf-8", "replace"), 200) or f"it ended with code {done.code}"
            msg = f"LibreOffice made no PDF of {snapshot.document!r}: {reason}"
            raise ToolError(msg)
        return await asyncio.to_thread(pdf_path.read_bytes)


def _write_source(home: Path, snapshot: Snapshot) -> Path:
    """Write the document, under a fixed name, and the profile."""
    user = home / "profile" / "user"
    user.mkdir(parents=True)
    (user / "registrymodifications.xcu").write_text(profile(), encoding="utf-8")
    source = home / f"document{snapshot.suffix}"
    source.write_bytes(without_hidden_areas(snapshot.data) if snapshot.root == "excel" else snapshot.data)
    return source
