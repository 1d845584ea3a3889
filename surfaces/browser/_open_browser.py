"""An open browser: its contexts, and its tabs."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from callboard.config import HostLog
from callboard.surfaces._console_windows import shows_console
from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.browser._context_networks import ContextNetworks
from callboard.surfaces.browser._held_browser import HeldBrowser
from callboard.surfaces.browser._launch import SHARED
from callboard.surfaces.browser._network_guard import guard_documents
from callboard.surfaces.browser._page_rules import BLANK, apply_page_rules, is_page
from callboard.surfaces.browser._playwright_errors import as_tool_error, reason_for_model
from callboard.surfaces.browser._tab import Tab
from callboard.surfaces.browser._tab_record import TabRecord, tab_facts

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from playwright.async_api import Browser, BrowserContext, BrowserType, Page, Playwright

    from callboard.network import Refusal
    from callboard.surfaces.browser._launch import BrowserLaunch

_log = HostLog()
_CONNECT_SECONDS = 30.0
_REOPEN_SECONDS = 30.0
_ID_LENGTH = 6
_NEW = "new tab"
"""The name of work that adds a tab: lists of tabs wait for it."""
_MOST_URL = 200
"""The characters of an address in a note."""
_MOST_LOST_URL = 2_000
"""The characters of the address of a crashed page in a note: as many as an agent has seen before."""


class OpenBrowser:
    """An open browser. All methods run on one event loop.

    Args:
        launch: The way in which it is started, or connected to.
        folder: The folder of its records.
        grace: The seconds for which it stays after this program is killed; 0 without a next program.
    """

    def __init__(self, launch: BrowserLaunch, folder: Path, grace: float) -> None:
        self._launch = launch
        self._record = TabRecord(folder / "tabs.json", is_written=bool(grace))
        self._held = HeldBrowser(folder / "browser.json", self._refused) if launch.cdp_url is None else None
        self._networks = ContextNetworks(launch.network, self._held, self._note)
        self._grace = grace
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._contexts: dict[str, BrowserContext] = {}
        """The contexts by the session of their tasks; the empty session's is that of a profile."""
        self._tabs: dict[Page, Tab] = {}
        self._pending: set[asyncio.Task[Any]] = set()
        self._adding = asyncio.Lock()
        self._starting = asyncio.Lock()
        self._closing = False

    async def open(self) -> None:
        """Start or connect to the browser, and restore its tabs.

        Raises:
            RuntimeError: If it can't be started; the text gives the reason.
            ToolError: If it can't be reached.
        """
        self._record.read()
        await self._start()

    async def _start(self) -> None:
        from playwright.async_api import async_playwright

        playwright = asyncio.ensure_future(async_playwright().start())  # meanwhile: it takes as long as a browser
        try:
            if self._held is not None:
                await self._held.open(self._launch.launch_options(), self._grace)
        finally:
            self._playwright = await playwright
        chromium, seconds = self._playwright.chromium, _CONNECT_SECONDS * 1000
        with as_tool_error():
            if self._held is not None:
                browser = await chromium.connect(self._held.endpoint, timeout=seconds)
            else:
                browser = await self._running(chromium)
                await self._launch.check_running(browser)
            self._browser = browser
            await self._networks.open()
            await self._find_tabs(browser)
        await self._reopen()

    async def _running(self, chromium: BrowserType) -> Browser:
        from playwright.async_api import Error

        url, is_shared = str(self._launch.cdp_url), self._launch.profile == SHARED
        try:
            return await chromium.connect_over_cdp(url, timeout=_CONNECT_SECONDS * 1000, no_defaults=is_shared)
        except Error as error:
            msg = f"browser.cdp_url: no browser answers at {url}: {reason_for_model(str(error))}"
            raise ToolError(msg) from error

    def _refused(self, context: str, refusal: Refusal) -> None:
        self._networks.refused(context, refusal)

    def _note(self, context: str, text: str) -> None:
        """Tell the tabs of a context."""
        for tab in self._tabs.values():
            if tab.page.context is self._contexts.get(context):
                tab.note(text)

    async def _ensure_connected(self) -> None:
        """Start or connect again if the browser has ended.

        Its tabs are opened again: they were closed with it, right before its end was noticed.
        """
        async with self._starting:
            if self._closing or self._browser is None or self._browser.is_connected():
                return
            self._record.note_end(self._tabs.values())
            self._contexts.clear()
            self._tabs.clear()
            _log.warning(
                "the browser has ended; it is started again, and %d tabs are opened again", len(self._record.earlier)
            )
            await self._stop()
            await self._start()

    async def _stop(self) -> None:
        """End the browser, or disconnect from one that was running."""
        if self._browser is not None and self._held is None:
            with contextlib.suppress(ToolError), as_tool_error():
                await self._browser.close()
        if self._held is not None:
            await self._held.end()
        if self._playwright is not None:
            await self._playwright.stop()
        await self._networks.close()

    async def _find_tabs(self, browser: Browser) -> None:
        if self._launch.cdp_url is not None and not self._launch.shares_context:
            return
        for context in browser.contexts:
            owner = "" if self._launch.shares_context else await self._owner_of(context)
            if owner is None:
                await context.close()  # no task has a tab in it
                continue
            await self._networks.admit(owner)  # its rules are those of this process from now on
            await self._take(context, owner)
            await asyncio.gather(*(self._add(page, owner) for page in context.pages))

    async def _owner_of(self, context: BrowserContext) -> str | None:
        """Return the session whose recorded tabs are in a context, if any."""
        entries = [self._record.of_target(await _target_of(page)) for page in context.pages]
        return next((entry[1]["owner"] for entry in entries if entry is not None), None)

    async def _reopen(self) -> None:
        """Open the addresses of lost tabs again.

        One that came from an action with a hazard could send or pay again: its tab is opened empty.
        """
        if self._launch.profile == SHARED:  # a person may have closed them
            return
        self._record.note_lost({tab.id for tab in self._tabs.values()})
        for tab_id, facts in tuple(self._record.lost.items()):
            tab = await self._new_tab(facts["owner"], tab_id, tuple(facts["documents"]))
            del self._record.lost[tab_id]
            if not facts["repeatable"]:
                tab.note(
                    f"The browser has ended, and with it the page {facts['url']} of this tab. It came from an action "
                    "with a hazard, so it was not opened again; nothing was sent again."
                )
            elif is_page(facts["url"]):
                self._spawn(_reload(tab, facts["url"]))

    def _spawn(self, work: Coroutine[Any, Any, None], name: str | None = None) -> None:
        task = asyncio.create_task(work, name=name)
        self._pending.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._pending.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.warning("a tab of the browser could not be used: %s", error)

    async def close(self) -> None:
        """Close the browser, or the contexts in one that was running.

        The record stays, so that the next process opens the tabs again.
        """
        self._closing = True
        for task in self._pending:
            task.cancel()
        await asyncio.gather(*self._pending, return_exceptions=True)
        await self._stop()

    # Tabs

    async def tabs(self) -> list[Tab]:
        """List the tabs that show pages, in order of opening.

        The empty tab with which a browser opens a profile is none of a task: it keeps the browser open.
        """
        with contextlib.suppress(ToolError, RuntimeError):  # a new tab reports the reason
            await self._ensure_connected()
        news = [task for task in self._pending if task.get_name() == _NEW]
        if news:
            await asyncio.wait(news)
        unlisted = BLANK if isinstance(self._launch.profile, Path) else None
        tabs = [
            tab
            for page, tab in self._tabs.items()
            if not page.is_closed() and is_page(page.url) and (tab.owner or page.url != unlisted)
        ]
        if self._launch.network is not None:  # the proxy is refused by each console
            return tabs
        return [tab for tab in tabs if not await _shows_console(tab)]

    async def tab(self, tab_id: str) -> Tab:
        """Return the tab with an id.

        Raises:
            ToolError: If it is closed.
        """
        tab = next((tab for tab in await self.tabs() if tab.id == tab_id), None)
        if tab is None:
            msg = f"the tab {tab_id!r} is closed"
            raise ToolError(msg)
        return tab

    async def new_tab(self, owner: str, tab_id: str = "", *, documents: tuple[int, ...] = (0, 0)) -> Tab:
        """Open an empty tab for a session's tasks."""
        await self._ensure_connected()
        return await self._new_tab(owner, tab_id, documents)

    async def _new_tab(self, owner: str, tab_id: str, documents: tuple[int, ...]) -> Tab:
        async with self._adding:
            with as_tool_error():
                context = await self._context(owner)
                page = await context.new_page()
                tab = await self._add(page, owner, tab_id)
        tab.documents = (documents[0], documents[1])
        return tab

    async def _context(self, owner: str) -> BrowserContext:
        key = "" if self._launch.shares_context else owner
        if key not in self._contexts:
            if self._browser is None or not self._browser.is_connected():
                msg = "the browser has ended"
                raise ToolError(msg)
            options = self._launch.context_options() | await self._networks.admit(key)
            context = await self._browser.new_context(**options)
            await self._take(context, key)
        return self._contexts[key]

    async def _take(self, context: BrowserContext, owner: str) -> None:
        """Apply the rules to a context, and take its new pages."""
        self._contexts[owner] = context
        if self._launch.profile != SHARED:
            await apply_page_rules(context, self._tabs)
            guard_documents(
                context, lambda url: self._note(owner, f"The page tried to show {url[:_MOST_URL]}; it was emptied.")
            )

        context.on("page", lambda page: self._spawn(self._add_popup(page, owner), _NEW))
        context.on("request", lambda request: self._networks.asked(owner, request.url))

    async def _add_popup(self, page: Page, owner: str) -> None:
        """Add a page that another one has opened, to the same task."""
        from playwright.async_api import Error

        async with self._adding:
            if page in self._tabs:  # `new_tab` has opened it
                return
            try:
                opener = await page.opener()
                opener_tab = self._tabs.get(opener) if opener is not None else None
                tab = await self._add(page, opener_tab.owner if opener_tab is not None else owner, opener=opener_tab)
                repeats = all(other.repeats for other in self._tabs.values() if other.owner == tab.owner)
                tab.repeats = tab.is_repeatable = repeats  # any of them may have opened it
                self._write_record()
            except Error:
                if not (page.is_closed() or self._closing):
                    raise

    async def _add(self, page: Page, owner: str, tab_id: str = "", *, opener: Tab | None = None) -> Tab:
        if page in self._tabs:
            return self._tabs[page]
        key = "" if self._launch.shares_context else owner
        session = await page.context.new_cdp_session(page)
        target = (await session.send("Target.getTargetInfo"))["targetInfo"]["targetId"]
        recorded = self._record.of_target(target)
        new = {"owner": owner, "documents": (0, 0), "repeatable": True}
        facts: Mapping[str, Any] = new if recorded is None else recorded[1]
        tab = Tab(
            tab_id or (f"tab-{target[:_ID_LENGTH].lower()}" if recorded is None else recorded[0]),
            page,
            session,
            str(facts["owner"]),
            documents=tuple(facts["documents"]),
            target=target,
            rules=self._launch.network,
            on_change=self._write_record,
        )
        tab.opener, tab.repeats, tab.is_repeatable = opener, facts["repeatable"], facts["repeatable"]
        self._tabs[page] = tab
        await session.send("Page.enable")  # it tells of windows that the page opens
        page.on("websocket", lambda socket: self._networks.asked(key, socket.url))
        if self._launch.profile == SHARED:
            await session.send("Emulation.setFocusEmulationEnabled", {"enabled": True})  # in the background, too
            if tab.owner:
                await apply_page_rules(page, self._tabs)
        page.on("close", self._remove)
        page.on("crash", self._crashed)
        self._write_record()
        return tab

    def _crashed(self, page: Page) -> None:
        tab = self._tabs.get(page)
        if tab is not None and tab.owner and not self._closing:
            self._remove(page)
            self._spawn(self._replace(tab), _NEW)

    async def _replace(self, crashed: Tab) -> None:
        """Open an empty page in a tab whose page has crashed.

        The address is not opened again: it might crash in a loop.
        """
        _log.warning("the page in the tab %s of the browser has crashed; the tab is empty now", crashed.id)
        tab = await self._new_tab(crashed.owner, crashed.id, crashed.documents)
        url = tab_facts(crashed)["url"][:_MOST_LOST_URL]  # without its query, if an action with a hazard gave that
        tab.note(
            f"The page {url} has crashed, and this tab is empty now. Nothing was sent again; open can open it again."
        )
        self._spawn(crashed.close())

    def _remove(self, page: Page) -> None:
        tab = self._tabs.pop(page, None)
        if tab is not None and not self._closing:
            self._record.note_closed(tab)
        self._write_record()
        for owner, context in () if self._closing else tuple(self._contexts.items()):
            if context is page.context and not context.pages and not self._launch.shares_context:
                del self._contexts[owner]
                self._spawn(self._close_context(context, owner))

    async def _close_context(self, context: BrowserContext, owner: str) -> None:
        with contextlib.suppress(ToolError), as_tool_error():
            await context.close()
        await self._networks.release(owner)

    def _write_record(self) -> None:
        """Record the tabs for the next process."""
        if not self._closing:
            self._record.write(self._tabs.values())


async def _reload(tab: Tab, url: str) -> None:
    with contextlib.suppress(ToolError):  # the agent sees that the page is empty
        await tab.run(tab.page.goto(url, wait_until="commit", timeout=_REOPEN_SECONDS * 1000))


async def _shows_console(tab: Tab) -> bool:
    """Return whether a tab shows the console: it is for people."""
    from playwright.async_api import Error

    try:
        return shows_console([(await _target_info(tab.page))["title"]])
    except Error:  # it is closed
        return True


async def _target_of(page: Page) -> str:
    target: str = (await _target_info(page))["targetId"]
    return target


async def _target_info(page: Page) -> dict[str, Any]:
    """Return the browser's facts of a page; no dialog delays them."""
    session = await page.context.new_cdp_session(page)
    facts: dict[str, Any] = (await session.send("Target.getTargetInfo"))["targetInfo"]
    await session.detach()
    return facts
