"""Rules for the requests of pages, registered in one place."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from callboard.surfaces.browser._page_addresses import origin_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from playwright.async_api import BrowserContext, Page, Request, Route

    from callboard.surfaces.browser._tab import Tab

SCHEMES = frozenset({"http", "https"})
"""The schemes of pages. The others show files of this machine, or pages of the browser itself."""
_EMBEDDED = frozenset({"about", "blob", "data"})
"""The schemes that a page may use for its own parts."""
BLANK = "about:blank"
_FAILURE = "chrome-error"
"""The scheme of the browser's own page about an address that could not be opened."""


def is_page(url: str) -> bool:
    """Return whether agents may see the page at an address."""
    return url == BLANK or urlsplit(url).scheme in {*SCHEMES, _FAILURE}


async def apply_page_rules(pages: BrowserContext | Page, tabs: Mapping[Page, Tab]) -> None:
    """Refuse requests that no page of an agent may make.

    These are documents of other schemes, and forms that a page sends without an action that was ruled as sending.

    Args:
        pages: The context of the pages, or one page.
        tabs: All tabs, by their pages.
    """

    async def rule(route: Route) -> None:
        request = route.request
        scheme = urlsplit(request.url).scheme
        if scheme not in SCHEMES | _EMBEDDED:
            await route.abort("aborted")  # the page stays as it is
        elif request.is_navigation_request() and request.method not in {"GET", "HEAD"}:
            senders, in_frame = _senders(request, tabs)
            origin = origin_of(request.url)
            if any(tab.forms.admit(origin, tab.documents[0], in_frame=in_frame) for tab in senders):
                await route.continue_()
                return
            for tab in senders:
                tab.note(tab.forms.stop(request.url))
            await route.abort("aborted")
        else:
            await route.continue_()

    await pages.route("**/*", rule)


def _senders(request: Request, tabs: Mapping[Page, Tab]) -> tuple[list[Tab], bool]:
    """Return a request's possible tabs, and whether it is a frame's.

    They are its own tab, and the one that has opened this. For a page that is about to open, they are those with a
    document of the origin that the request names, or all if it names none.
    """
    from playwright.async_api import Error

    with contextlib.suppress(Error, KeyError):  # the page has no frame yet, or no tab
        tab, in_frame = tabs[request.frame.page], request.frame.parent_frame is not None
        return [tab] if in_frame or tab.opener is None else [tab, tab.opener], in_frame
    origin = request.headers.get("origin", "null")
    shows_origin = [tab for tab in tabs.values() if origin in {origin_of(frame.url) for frame in tab.page.frames}]
    return shows_origin if origin != "null" else list(tabs.values()), False
