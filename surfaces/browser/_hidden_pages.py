"""Pictures of pages that no window shows, such as background tabs."""

from __future__ import annotations

import asyncio
import base64
import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

_SIZE = "[innerWidth, innerHeight]"


async def hidden_picture(session: CDPSession) -> bytes:
    """Take a picture of a background page, as PNG, in CSS pixels.

    The browser draws the page for it, and the tab stays where it is. Playwright's own pictures wait for the page to be
    drawn. (The scale of a `clip` counts only in pages that are shown.)
    """
    tree = await session.send("Page.getFrameTree")
    world = await session.send("Page.createIsolatedWorld", {"frameId": tree["frameTree"]["frame"]["id"]})
    request = {"expression": _SIZE, "contextId": world["executionContextId"], "returnByValue": True}
    width, height = (await session.send("Runtime.evaluate", request))["result"]["value"]
    picture = base64.b64decode((await session.send("Page.captureScreenshot", {"format": "png"}))["data"])
    return await asyncio.to_thread(_resized, picture, (width, height))


def _resized(picture: bytes, size: tuple[int, int]) -> bytes:
    from PIL import Image

    with Image.open(io.BytesIO(picture)) as image:
        if image.size == size:
            return picture
        buffer = io.BytesIO()
        image.convert("RGB").resize(size).save(buffer, "PNG")
        return buffer.getvalue()
