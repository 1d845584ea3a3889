"""Tools that read pages, and take files from them and to them."""

from __future__ import annotations

import asyncio
import mimetypes
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from callboard.messages import Effect, Hazard
from callboard.surfaces import current_call, is_link
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces._user_files import read_upload
from callboard.surfaces.browser._page_actions import (
    ACTION_MS,
    Answer,
    ControlId,
    TabId,
    commit,
    element,
    press,
    ready,
)

if TYPE_CHECKING:
    from playwright.async_api import Download, FilePayload

    from callboard.surfaces.browser._page_actions import Tabs
    from callboard.surfaces.browser._tab import Tab

_MOST_READ = 20_000
_MOST_ROWS, _MOST_CELLS = 5_000, 100_000
_DOWNLOAD_SECONDS, _OFFER_SECONDS = 300.0, 15.0
"""The time limits for a download, and for its begin after the click."""
_LARGEST, _LARGEST_UPLOAD = 100_000_000, 50_000_000
"""The largest files that are fetched and sent, in bytes; the second is Playwright's limit."""
_ROWS = """(table, most) => {
    const grids = 'table,[role=table],[role=grid],[role=treegrid]', grid = [];
    const cellRoles = '[role=cell],[role=gridcell],[role=columnheader],[role=rowheader]';
    const isShown = part => part.checkVisibility({visibilityProperty: true});
    const rows = [...table.querySelectorAll('tr,[role=row]')]
        .filter(row => row.closest(grids) === table && isShown(row));
    const cellsOf = row => [...(row instanceof HTMLTableRowElement ? row.cells : row.querySelectorAll(cellRoles))]
        .filter(cell => cell.closest(grids) === table && isShown(cell));
    const valued = 'input,textarea,select,img[alt]';
    const valueOf = field => field instanceof HTMLImageElement ? field.alt : field.type === 'password' ? ''
        : ['checkbox', 'radio'].includes(field.type) ? String(field.checked)
        : field instanceof HTMLSelectElement ? [...field.selectedOptions].map(option => option.label).join(', ')
        : field.value;
    const textOf = cell => {
        if (!cell.querySelector(valued)) return cell.innerText.trim();
        const pieces = [''], add = text => { pieces[pieces.length - 1] += text; };
        const readText = text => {
            if (getComputedStyle(text.parentElement).visibility === 'visible') add(text.data.replace(/\\s+/g, ' '));
        };
        const readPart = part => {
            const {display, visibility} = getComputedStyle(part);
            if (display !== 'contents' && !part.checkVisibility()) return;
            const isField = part.matches(valued), isApart = isField || !/^(inline|contents)/.test(display);
            if (isApart || part.tagName === 'BR') pieces.push('');
            if (isField) add(visibility === 'visible' ? valueOf(part) : '');
            else if (part.querySelector(valued)) readParts(part);
            else add(part.innerText ?? '');
            if (isApart) pieces.push('');
        };
        const readParts = part => part.childNodes.forEach(child => child instanceof Text ? readText(child)
            : child instanceof Element && readPart(child));
        readParts(cell);
        return pieces.map(text => text.trim()).filter(Boolean).join(' ');
    };
    rows.slice(0, most).forEach((row, number) => {
        const line = grid[number] = grid[number] || [], left = Math.min(rows.length, most) - number;
        let column = 0;
        for (const cell of cellsOf(row)) {
            while (line[column] !== undefined) column++;
            const text = textOf(cell), wide = Math.min(cell.colSpan || 1, 1000);
            const high = Math.min(cell.rowSpan === 0 ? left : cell.rowSpan || 1, left);
            for (let down = 0; down < high; down++) {
                const other = grid[number + down] = grid[number + down] || [];
                for (let across = 0; across < wide; across++) other[column + across] = text;
            }
        }
    });
    const isHeader = row => !!row && (row.parentElement?.tagName === 'THEAD' || cellsOf(row).every(
        cell => cell.tagName === 'TH' || cell.getAttribute('role') === 'columnheader'));
    const first = grid.findIndex(line => line.some(Boolean)), lines = grid.slice(Math.max(first, 0));
    return {rows: lines.map(line => [...line].map(text => text ?? '')), total: rows.length - Math.max(first, 0),
        header: first >= 0 && isHeader(rows[first])};
}"""


class PageTools:
    """Tools for a page's contents and files.

    Args:
        tabs: Returns a tab, by its id.
        workspace: The folder from which files may be uploaded; None: no files.
    """

    def __init__(self, tabs: Tabs, workspace: Path | None) -> None:
        self._tabs = tabs
        self._workspace = workspace

    @tool(effect=Effect.READ)
    async def read(
        self,
        tab: TabId,
        *,
        control_id: Annotated[str, Field(description="A part of the page; empty: all of it.")] = "",
        start: Annotated[int, Field(ge=0, description="The number of characters to pass over.")] = 0,
    ) -> Answer:
        """Read the text of the page, whole or from a position on."""
        snapshot = await (await self._tabs(tab)).snapshot()
        node = snapshot.node(control_id) if control_id else None
        if control_id and node is None:
            msg = f"the control {control_id!r} is gone: look again"
            raise ToolError(msg)
        text = snapshot.text(node)
        part = text[start : start + _MOST_READ]
        answer: Answer = {"text": part, "characters": len(text)}
        return {**answer, "next": start + _MOST_READ} if start + len(part) < len(text) else answer

    @tool(effect=Effect.READ, controls=("table", "grid", "treegrid"), takes_disabled=True)
    async def extract_table(self, tab: TabId, control_id: ControlId) -> Answer:
        """Read a table as a header and rows; merged cells repeat."""
        opened = await self._tabs(tab)
        target = await element(opened, control_id, may_be_disabled=True)
        table = await opened.run(target.handle.evaluate(_ROWS, _MOST_ROWS))
        if not isinstance(table, dict):  # the page may have changed what its scripts use
            msg = "the page's scripts keep the table from being read: read gives its text"
            raise ToolError(msg)
        rows: list[list[str]] = table["rows"]
        width = max(map(len, rows), default=0)
        fitting_rows = [[*row, *([""] * (width - len(row)))] for row in rows[: _MOST_CELLS // max(width, 1)]]
        header = fitting_rows.pop(0) if table["header"] and fitting_rows else []
        answer: Answer = {"header": header, "rows": fitting_rows}
        left_out = table["total"] - len(fitting_rows) - bool(header)
        return {**answer, "left_out": f"{left_out} more rows"} if left_out else answer

    @tool(effect=Effect.ONCE, hazards=(Hazard.SENDS,))
    async def upload(
        self,
        tab: TabId,
        control_id: ControlId,
        files: Annotated[list[str], Field(min_length=1, max_length=20, description="Their paths in the workspace.")],
    ) -> Answer:
        """Give files of the workspace to the page."""
        opened, payloads = await self._tabs(tab), [await asyncio.to_thread(self._file, name) for name in files]
        target = await element(opened, control_id)
        if not target.node.is_file:
            target = await ready(opened, control_id)

        async def give() -> None:
            if target.node.is_file:
                await target.handle.set_input_files(payloads, timeout=ACTION_MS)
                return
            async with opened.page.expect_file_chooser(timeout=ACTION_MS) as offer:  # a button in place of the field
                await target.handle.click(timeout=ACTION_MS, no_wait_after=True)
            await (await offer.value).set_files(payloads, timeout=ACTION_MS)

        await commit(opened, give, target)
        return {"files": [payload["name"] for payload in payloads]}

    def _file(self, name: str) -> FilePayload:
        """Read a file that may be uploaded.

        Raises:
            ToolError: If there is none, or a link leads to it: it may lead out of the workspace.
        """
        if self._workspace is None:
            msg = "no files can be uploaded: there is no workspace (browser.workspace)"
            raise ToolError(msg)
        parts = Path(name).parts
        path = self._workspace
        is_inside = parts and not Path(name).is_absolute() and ".." not in parts and "\0" not in name
        if not is_inside or any(part.startswith(".") for part in parts):
            msg = f"{name!r} is not in the workspace"
            raise ToolError(msg)
        for part in parts:
            path /= part
            if is_link(path):
                msg = f"{name!r} is not uploaded: {part!r} is a link"
                raise ToolError(msg)
        try:
            content = read_upload(path, _LARGEST_UPLOAD, f"{name!r} is not uploaded")
        except OSError as error:
            msg = f"{name!r} can't be read in the workspace: {error.strerror}"
            raise ToolError(msg) from error
        if len(content) > _LARGEST_UPLOAD:
            msg = f"{name!r} is larger than {_LARGEST_UPLOAD:,} bytes"
            raise ToolError(msg)
        mime_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        return {"name": path.name, "mimeType": mime_type, "buffer": content}

    @tool(effect=Effect.ONCE, hazards=(Hazard.DOWNLOADS,), seconds=_DOWNLOAD_SECONDS + 30)
    async def download(self, tab: TabId, control_id: ControlId) -> Answer:
        """Click on a control, and keep the file that it gives."""
        opened = await self._tabs(tab)
        offer = opened.offer = asyncio.get_running_loop().create_future()
        try:
            await press(opened, control_id, lambda handle: handle.click(timeout=ACTION_MS, no_wait_after=True))
            return await self._kept(opened, await asyncio.wait_for(offer, _OFFER_SECONDS))
        except TimeoutError as error:
            msg = f"the page gave no file within {_OFFER_SECONDS:g} s; it may show what is missing"
            raise ToolError(msg) from error
        finally:
            opened.offer = None

    async def _kept(self, opened: Tab, download: Download) -> Answer:
        """Wait for a download, and keep its file as an artifact."""
        name = Path(download.suggested_filename).name or "download"
        with tempfile.TemporaryDirectory(prefix="callboard-") as folder:
            path = Path(folder, "file")
            try:
                async with asyncio.timeout(_DOWNLOAD_SECONDS):
                    await opened.run(download.save_as(path))  # also from a browser that another process holds
                content = await asyncio.to_thread(_content, path)
            except TimeoutError as error:
                msg = f"the file {name!r} did not end within {_DOWNLOAD_SECONDS:g} s, and was not kept"
                raise ToolError(msg) from error
            finally:
                await opened.run(download.cancel())  # otherwise its end is waited for
                await opened.run(download.delete())
        return {
            "file": await _artifact(content, mimetypes.guess_type(name)[0], name),
            "name": name,
            "size": len(content),
        }

    @tool(effect=Effect.IDEMPOTENT)
    async def save_as_pdf(self, tab: TabId) -> Answer:
        """Save the page as a PDF file."""
        opened = await self._tabs(tab)
        content = await opened.run(opened.page.pdf(print_background=True))
        await commit(opened, _nothing, once=False)
        return {"file": await _artifact(content, "application/pdf", "page.pdf"), "size": len(content)}


def _content(path: Path) -> bytes:
    if path.stat().st_size > _LARGEST:
        msg = f"the file is larger than {_LARGEST:,} bytes, and was not kept"
        raise ToolError(msg)
    return path.read_bytes()


async def _nothing() -> None:
    """Only check that the call was not stopped."""


async def _artifact(content: bytes, mime_type: str | None, name: str) -> str:
    try:
        path = await asyncio.to_thread(
            current_call().artifact, content, mime_type or "application/octet-stream", name=name
        )
    except ValueError as error:
        raise ToolError(str(error)) from error
    return str(path)
