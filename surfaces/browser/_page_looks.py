"""Looks at a page: accessibility snapshots and pictures."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import re
from typing import TYPE_CHECKING

from callboard.surfaces.browser._drawn_boxes import find_labels
from callboard.surfaces.browser._hidden_pages import hidden_picture
from callboard.surfaces.browser._page_snapshot import Inset, PageSnapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.async_api import CDPSession, Page

LOOK_SECONDS = 20.0
"""The time limit for a page to be looked at: one that computes does not answer."""
_SHOWN_MS = 500
"""The time in which a page that is shown is drawn, in milliseconds."""
_MOST_FIELDS = 20
_LONG_SNAPSHOT = 50_000
"""The characters above which a snapshot is read in a thread, so that other tasks go on meanwhile."""
_INSET = """frame => {
    const style = getComputedStyle(frame), box = frame.getBoundingClientRect();
    const across = box.width / frame.offsetWidth || 1, down = box.height / frame.offsetHeight || 1;
    return [(frame.clientLeft + parseFloat(style.paddingLeft)) * across,
        (frame.clientTop + parseFloat(style.paddingTop)) * down, across, down];
}"""


class PageLooks:
    """Looks at one page, one after the other.

    Args:
        page: The page.
        session: A session of the Chrome DevTools Protocol with it.
        loads: Returns whether it loads a document.
        documents: Returns the numbers of documents that it and its frames have shown.
    """

    def __init__(
        self, page: Page, session: CDPSession, loads: Callable[[], bool], documents: Callable[[], tuple[int, int]]
    ) -> None:
        self._page = page
        self._session = session
        self._loads = loads
        self._documents = documents
        self._looking = asyncio.Lock()

    async def snapshot(self, *, boxes: bool) -> PageSnapshot:
        """Take an accessibility snapshot, with the places of parts if wanted."""
        async with self._looking:  # also until the end of one that is no longer waited for: they would pile up
            # First, since refs are of the last snapshot
            passwords, files = [await self._fields(kind) for kind in ("password", "file")]
            if not (self._loads() or await self._page.locator("body, frameset").count()):
                return PageSnapshot("", self._page.url)  # an image or other data, no document
            text = await self._page.aria_snapshot(mode="ai", boxes=boxes, timeout=LOOK_SECONDS * 1000)
            insets = await self._insets(text) if boxes else {}
        page_suffix, frame_suffix = map(_suffix, self._documents())
        read = functools.partial(
            PageSnapshot,
            text,
            self._page.url,
            passwords=passwords,
            files=files,
            suffixes=(page_suffix, frame_suffix),
            insets=insets,
        )
        snapshot = await asyncio.to_thread(read) if len(text) > _LONG_SNAPSHOT else read()
        with contextlib.suppress(Exception):  # as below
            await find_labels(self._page, snapshot)
        return snapshot

    async def _fields(self, kind: str) -> set[str] | None:
        """Return the refs of all fields of a type without a role.

        None if there are too many to ask for.
        """
        refs: set[str] = set()
        for frame in self._page.frames:
            fields = frame.locator(f"input[type={kind}]")
            with contextlib.suppress(Exception):  # a frame may be gone by now
                count = await fields.count()
                if count > _MOST_FIELDS:
                    return None
                for number in range(count):
                    text = await fields.nth(number).aria_snapshot(mode="ai", timeout=LOOK_SECONDS * 1000)
                    refs |= {node.ref for node in PageSnapshot(text).nodes}
        return refs

    async def _insets(self, text: str) -> dict[str, Inset]:
        """Return the places of the contents of frames, by the frames' refs."""
        insets: dict[str, Inset] = {}
        for ref in re.findall(r"^ *- '?iframe [^\n]*?\[ref=(\w+)\]", text, re.MULTILINE):
            with contextlib.suppress(Exception):  # as above
                inset = await self._page.locator(f"aria-ref={ref}").evaluate(_INSET, timeout=1_000)
                insets[ref] = Inset(*inset)
        return insets

    async def picture(self) -> bytes:
        """Take a picture of the visible part of the page, as PNG."""
        from playwright.async_api import TimeoutError as LateError

        try:
            return await self._page.screenshot(timeout=_SHOWN_MS, scale="css")
        except LateError:  # a person may look at another tab, which stays in front
            return await hidden_picture(self._session)


def _suffix(documents: int) -> str:
    return f"-{documents}" if documents > 1 else ""
