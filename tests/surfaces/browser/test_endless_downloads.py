"""Downloads that do not end."""

from __future__ import annotations

import asyncio

import pytest

from callboard.surfaces import ToolError
from callboard.surfaces.browser import _page_tools
from callboard.surfaces.browser._page_tools import PageTools


class EndlessDownload:
    """A download that ends only by a cancel.

    Like Playwright's, it is deleted after its end."""

    suggested_filename = "big.bin"

    def __init__(self):
        self.ended = asyncio.Event()
        self.is_deleted = False

    async def save_as(self, path):
        await self.ended.wait()

    async def cancel(self):
        self.ended.set()

    async def delete(self):
        await self.ended.wait()
        self.is_deleted = True


def test_a_download_that_does_not_end_is_cancelled(visit, shop, run, monkeypatch):
    monkeypatch.setattr(_page_tools, "_DOWNLOAD_SECONDS", 0.1)
    tab, download = visit(shop.url), EndlessDownload()
    tools = next(part for part in tab.surface._parts if isinstance(part, PageTools))
    with pytest.raises(ToolError, match=r"the file 'big.bin' did not end within 0.1 s, and was not kept"):
        run(tools._kept(tab.tab, download))
    assert download.is_deleted
