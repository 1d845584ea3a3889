"""The end of a page."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.browser._playwright_errors import as_tool_error

if TYPE_CHECKING:
    from playwright.async_api import Page

_AGAIN_SECONDS = 0.25
_MOST_ATTEMPTS = 40


async def close_page(page: Page) -> None:
    """Close a page.

    Chromium 150 loses the command at times, while it shows a new document: it answers "success", and the page stays.
    Playwright sends it once. So it is sent again until the page is closed.

    Raises:
        ToolError: If the page does not close.
    """
    from playwright.async_api import Error

    with as_tool_error():
        closing = asyncio.ensure_future(page.close())
        try:
            for _ in range(_MOST_ATTEMPTS):
                ended, _ = await asyncio.wait({closing}, timeout=_AGAIN_SECONDS)
                if ended:
                    await closing
                    return
                with contextlib.suppress(Error, TimeoutError):  # it has ended meanwhile
                    await asyncio.wait_for(_send_again(page), _AGAIN_SECONDS)
        finally:
            closing.cancel()
    msg = "the page does not close"
    raise ToolError(msg)


async def _send_again(page: Page) -> None:
    session = await page.context.new_cdp_session(page)
    target = (await session.send("Target.getTargetInfo"))["targetInfo"]["targetId"]
    await session.send("Target.closeTarget", {"targetId": target})
