"""Documents that a page loads, and tabs that it opens."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Frame, Page, Request

_REQUEST_SECONDS = 5.0
"""The age at which a request no longer counts as loading: a page may wait for news all the time."""
_DOCUMENT_SECONDS = 60.0
"""The age at which the request of a document no longer counts as loading."""
_STREAMS = frozenset({"eventsource", "websocket", "media", "ping", "beacon", "cspreport"})
_MOST_REQUESTS = 1_000


class PageLoads:
    """All that one page loads.

    Args:
        page: The page.
        session: A session of the Chrome DevTools Protocol with it.
    """

    def __init__(self, page: Page, session: CDPSession) -> None:
        self._page = page
        self._requests: dict[Request, float] = {}
        self._documents: dict[Frame, tuple[float, str]] = {}
        """The frames that load a document, each with the time of its request and its address."""
        self._opening: list[float] = []
        """The times at which the page began to open other tabs that are not there yet."""
        page.on("request", self._on_request)
        page.on("requestfinished", self._on_request_end)
        page.on("requestfailed", self._on_request_end)
        page.on("domcontentloaded", self._on_loaded)
        page.on("popup", self._on_popup)
        session.on("Page.windowOpen", lambda _: self._opening.append(time.monotonic()))

    def _on_request(self, request: Request) -> None:
        if request.resource_type not in _STREAMS and len(self._requests) < _MOST_REQUESTS:
            self._requests[request] = time.monotonic()
        if request.is_navigation_request():
            self._documents[request.frame] = (time.monotonic(), request.url)

    def _on_request_end(self, request: Request) -> None:
        self._requests.pop(request, None)
        if request.failure and request.is_navigation_request():
            self._documents.pop(request.frame, None)

    def _on_loaded(self, page: Page) -> None:
        self.end(page.main_frame)

    def _on_popup(self, _page: Page) -> None:
        del self._opening[:1]

    def end(self, frame: Frame) -> bool:
        """Note that a frame loads no more; return whether it did."""
        return self._documents.pop(frame, None) is not None

    def clear(self) -> None:
        """Note that nothing is loaded any more."""
        self._documents.clear()
        self._requests.clear()
        self._opening.clear()

    @property
    def is_busy(self) -> bool:
        """True while the page, or a tab that it opens, loads."""
        now = time.monotonic()
        begun = any(now - begin < _REQUEST_SECONDS for begin in (*self._requests.values(), *self._opening))
        return begun or bool(self.address)

    @property
    def address(self) -> str:
        """The address of the document that the page itself loads, or empty."""
        begin, address = self._documents.get(self._page.main_frame, (0.0, ""))
        return address if time.monotonic() - begin < _DOCUMENT_SECONDS else ""
