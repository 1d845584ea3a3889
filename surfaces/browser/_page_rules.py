"""Rules for the requests of pages, registered in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.async_api import BrowserContext, Page, Route

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


async def apply_page_rules(context: BrowserContext, tab_of: Callable[[Page], Tab | None]) -> None:
    """Refuse requests that no page of an agent may make.

    These are documents of other schemes, and forms that a page sends without an action that was ruled as sending.

    Args:
        context: The context of the pages.
        tab_of: Returns the tab of a page; None if it has none yet.
    """

    async def rule(route: Route) -> None:
        request = route.request
        scheme = urlsplit(request.url).scheme
        if scheme not in SCHEMES | _EMBEDDED:
            await route.abort("aborted")  # the page stays as it is
        elif request.is_navigation_request() and request.method not in {"GET", "HEAD"}:
            tab = tab_of(request.frame.page)
            if tab is None or tab.may_send:
                await route.continue_()
            else:
                tab.notes.append(f"The page tried to send a form to {request.url} by itself; it was stopped.")
                await route.abort("aborted")  # the page stays as it is
        else:
            await route.continue_()

    await context.route("**/*", rule)
