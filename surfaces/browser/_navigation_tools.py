"""Tools that open addresses, and go back, scroll and wait in tabs."""

from __future__ import annotations

import asyncio
import contextlib
import fnmatch
import re
import time
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import urlsplit, urlunsplit

from pydantic import Field

from callboard.messages import Effect
from callboard.surfaces import committing, current_call
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.browser._context_networks import check_address
from callboard.surfaces.browser._page_actions import BOTH, Answer, TabId, commit, element
from callboard.surfaces.browser._page_addresses import origin_of, resolved
from callboard.surfaces.browser._page_rules import BLANK, SCHEMES
from callboard.surfaces.browser._tab import LoadingError

if TYPE_CHECKING:
    from playwright.async_api import Request

    from callboard.surfaces.browser._page_actions import Tabs
    from callboard.surfaces.browser._tab import Tab

Address = Annotated[
    str, Field(min_length=1, max_length=8_000, description="An address: https://example.com/page, or example.com.")
]
OPEN_SECONDS = 60.0
_ANSWER_MS = 55_000
"""The time limit for the answer of a server, in milliseconds."""
_WAIT_SECONDS = 120.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 0.5
_DIRECTIONS = {"down": (0, 1), "up": (0, -1), "right": (1, 0), "left": (-1, 0)}
_STEP = 0.8
"""The share of the page's visible part that one scroll moves."""
_FAILURE_PAGE, _FAILURE_MS = "chrome-error://**", 1_000
_PROXY_NAME = "callboard"
"""The name in the answers of the proxy itself."""


def full_address(text: str) -> str:
    """Return an address in one form.

    Raises:
        ToolError: If it is not that of a page.

    >>> full_address("Example.com:443/a b")
    'https://example.com/a%20b'
    """
    stripped = text.strip()
    if stripped == BLANK:
        return BLANK
    if "://" not in stripped:
        head = stripped.partition("/")[0]
        name, colon, port = head.partition(":")
        if colon and not port.isdigit():
            msg = f"{text!r} is not the address of a page: only http and https are opened"
            raise ToolError(msg)
        is_here = name in {"localhost", "127.0.0.1"}
        stripped = f"{'http' if is_here else 'https'}://{stripped}"
    web = stripped.partition("://")
    if web[0].lower() not in SCHEMES:
        msg = f"{text!r} is not the address of a page: only http and https are opened"
        raise ToolError(msg)
    if "@" in re.split(r"[/\\?#]", web[2], maxsplit=1)[0]:
        msg = "an address with a user's name or password is not opened: log in on the page"
        raise ToolError(msg)
    url = resolved("", stripped)
    if not url:
        msg = f"{text!r} is not the address of a page: it has no plain host (one with other letters begins with xn--)"
        raise ToolError(msg)
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc, parts.path.replace(" ", "%20") or "/", parts.query, parts.fragment))


async def open_address(tab: Tab, address: str) -> Answer:
    """Open an address in a tab, and return the page's facts.

    Raises:
        ToolError: If the rules refuse it, it can't be opened, or its server does not answer.
    """
    url, status, refusal = full_address(address), 0, ""
    check_address(tab.rules, url)
    current_call().check_origin(origin_of(url))  # of the server that gets it

    async def go() -> None:
        nonlocal status, refusal
        tab.repeats = True
        response = await tab.page.goto(url, wait_until="commit", timeout=_ANSWER_MS)
        status = 0 if response is None else response.status
        if response is not None and response.headers.get("proxy-status") == _PROXY_NAME:
            refusal = " ".join((await response.text()).split())

    try:
        await commit(tab, go, once=False, may_send=False)
    except ToolError as error:
        if "net::" in str(error) and "ERR_ABORTED" not in str(error):
            with contextlib.suppress(ToolError):  # otherwise the browser's own page interrupts the next navigation
                await tab.run(tab.page.wait_for_url(_FAILURE_PAGE, wait_until="commit", timeout=_FAILURE_MS))
        reason = str(error).partition(" at ")[0]
        if "Download is starting" in reason:
            reason = "it is a file, no page: the tool download fetches it"
        msg = f"{url} can't be opened: {reason}"
        raise ToolError(msg) from error
    if refusal:
        msg = f"{url} can't be opened: {refusal}"
        raise ToolError(msg)
    return {"url": tab.page.url, **({"status": status} if status >= 400 else {}), **_held_by(tab)}


def _held_by(tab: Tab) -> Answer:
    """Return the dialog that keeps the page from being left, if any."""
    if tab.dialog is None or tab.dialog.type != "beforeunload":
        return {}
    return {"dialog": "the page asks before it is left: accept_dialog leaves it, dismiss_dialog stays on it"}


class NavigationTools:
    """Tools for the page as a whole.

    Args:
        tabs: Returns a tab, by its id.
    """

    def __init__(self, tabs: Tabs) -> None:
        self._tabs = tabs

    @tool(effect=Effect.IDEMPOTENT, seconds=OPEN_SECONDS, agents=BOTH)
    async def open(self, tab: TabId, address: Address) -> Answer:
        """Open an address in this tab."""
        return await open_address(await self._tabs(tab), address)

    @tool(effect=Effect.ONCE, seconds=OPEN_SECONDS, agents=BOTH)
    async def back(self, tab: TabId) -> Answer:
        """Go back to the page before, unless a form made it."""
        opened = await self._tabs(tab)
        page, went, is_form = opened.page, False, False

        async def go() -> None:
            nonlocal went
            opened.repeats = False  # the page before may have come from any action
            went = await page.go_back(wait_until="commit", timeout=_ANSWER_MS) is not None

        def requested(request: Request) -> None:
            nonlocal is_form
            is_form = is_form or (request.method == "POST" and request.frame == page.main_frame)

        url = page.url
        page.on("request", requested)
        try:
            await commit(opened, go, may_send=False)
        except ToolError as error:
            if is_form:
                msg = "the page before was made by a form, which would be sent again: it is not opened"
                raise ToolError(msg) from error
            raise
        finally:
            page.remove_listener("request", requested)
        held_by = _held_by(opened)
        if not (went or held_by) and page.url == url:
            msg = "there is no page before this one"
            raise ToolError(msg)
        return {"url": page.url, **held_by}

    @tool(effect=Effect.ONCE, takes_disabled=True)
    async def scroll(
        self,
        tab: TabId,
        direction: Annotated[Literal["down", "up", "left", "right"], Field(description="Where to look.")] = "down",
        *,
        control_id: Annotated[str, Field(description="A control to scroll in; empty: the page.")] = "",
        times: Annotated[int, Field(ge=1, le=20, description="How far, in screens.")] = 1,
    ) -> Answer:
        """Scroll the page or a part of it; controls need no scrolling."""
        opened = await self._tabs(tab)
        page = opened.page
        size = page.viewport_size or {"width": 1280, "height": 800}
        x, y, width, height = 0.0, 0.0, float(size["width"]), float(size["height"])
        if control_id:
            handle = (await element(opened, control_id, may_be_disabled=True)).handle
            await opened.run(handle.scroll_into_view_if_needed(timeout=2_000))
            box = await opened.run(handle.bounding_box())
            if box is not None:
                x, y, width, height = box["x"], box["y"], box["width"], box["height"]
        across, down = _DIRECTIONS[direction]

        opened.pointer = (x + width / 2, y + height / 2)

        async def turn() -> None:
            await page.mouse.move(x + width / 2, y + height / 2)
            for _ in range(times):
                await page.mouse.wheel(across * width * _STEP, down * height * _STEP)

        await commit(opened, turn, once=False, may_send=False)
        return {}

    @tool(effect=Effect.READ, seconds=_WAIT_SECONDS + 5)
    async def wait_for(
        self,
        tab: TabId,
        *,
        text: Annotated[str, Field(max_length=2_000, description="A text on the page.")] = "",
        control: Annotated[str, Field(max_length=500, description="The name of a control.")] = "",
        address: Annotated[str, Field(max_length=2_000, description="A pattern for the address: */thanks*.")] = "",
        seconds: Annotated[float, Field(gt=0, le=_WAIT_SECONDS, description="The longest wait.")] = 10.0,
    ) -> Answer:
        """Wait until the given text, control and address are there."""
        if not (text or control or address):
            msg = "give a text, a control or an address to wait for"
            raise ToolError(msg)
        opened, end, pause = await self._tabs(tab), time.monotonic() + seconds, _FIRST_PAUSE
        while True:
            try:
                snapshot = await opened.snapshot()
            except LoadingError:
                if time.monotonic() > end:
                    raise
                continue
            missing = [
                f"the text {text!r}" if text and _plain(text) not in _plain(snapshot.text()) else "",
                f"the control {control!r}"
                if control and all(_plain(part.name) != _plain(control) for part in snapshot.controls())
                else "",
                f"the address {address!r}" if address and not fnmatch.fnmatchcase(snapshot.url, address) else "",
            ]
            if not any(missing):
                return {"url": snapshot.url}
            if time.monotonic() > end:
                msg = f"after {seconds:g} s there is still not {' and '.join(filter(None, missing))} on {snapshot.url}"
                raise ToolError(msg)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    @tool(effect=Effect.IDEMPOTENT)
    async def close(self, tab: TabId) -> Answer:
        """Close this tab."""
        opened = await self._tabs(tab)
        if not opened.owner:
            msg = "this tab was opened by a person, and stays"
            raise ToolError(msg)
        with committing():  # unless its call was stopped
            pass
        await opened.close()
        return {}


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
