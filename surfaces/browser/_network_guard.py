"""Options that leave a browser no way past the proxy.

Each was tried with Chromium 150 in a network namespace in which every address answers, and every packet is seen:

- Without `--webrtc-ip-handling-policy`, WebRTC sends UDP to any address. (`--force-webrtc-ip-handling-policy` has no
  effect any more.)
- Without `--host-resolver-rules`, the browser asks the DNS for the names of TURN servers that a page gives, so a page
  could send data in names. With it the browser resolves no name at all, and connects to no address but loopback's.
- Without a proxy for the whole browser, its own services (accounts, push messages) are not proxied. This one has no
  credentials, so they get an answer that refuses them.
- Without ``<-loopback>``, addresses of loopback are not proxied.
- `--autofill-server-url`: the browser else sends the fields of each form to a service of its maker, through the proxy.
- `--gaia-url`, `--gcm-*` and `--google-base-url`: the browser else asks its maker's hosts for accounts, push messages
  and the page of a new tab, and with a profile it has the credentials of the pages there.
- `PreconnectToSearch`: the browser else connects to its search engine with the credentials of each context. Playwright
  disables it in browsers that it starts. The last list of features counts, so `LAUNCH_ARGUMENTS` has none.
- No argument switches off the download of a dictionary once a text is typed; `DICTIONARY_HOST` is refused.
- Prefetches of other sites, WebTransport, dns-prefetch and preconnect use the proxy, or do nothing.

Documents of ``file:``, ``chrome:``, ``view-source:`` and ``devtools:`` are opened for the program that controls the
browser, and for no page, link, frame or redirect. Documents of ``data:`` are opened in frames, too. Routes of
Playwright do not see all of them: `guard_documents` does.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from callboard.surfaces.browser._page_end import close_page

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.async_api import Browser, BrowserContext, Frame, Page, ProxySettings

    from callboard.network import ProxyCredentials

NO_BYPASS = "<-loopback>"
"""The list of hosts that bypass the proxy: not even loopback's. It is given, so that no environment variable of
Playwright changes it."""
LAUNCH_ARGUMENTS = (
    "--autofill-server-url=http://127.0.0.1:1/",  # a port that no browser connects to
    "--component-updater=url-source=http://127.0.0.1:1/",
    "--disable-background-networking",
    "--disable-quic",
    "--gaia-url=http://127.0.0.1:1/",
    "--gcm-checkin-url=http://127.0.0.1:1/",
    "--gcm-registration-url=http://127.0.0.1:1/",
    "--google-base-url=http://127.0.0.1:1/",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
)
"""The arguments that a browser needs besides its proxy."""
DISABLED_FEATURE = "PreconnectToSearch"
"""The feature that has to be disabled in a browser that Playwright does not start."""
DICTIONARY_HOST = "redirector.gvt1.com"
"""The host of the browser's dictionaries."""
MANAGED_POLICY: dict[str, Any] = {
    "AutofillAddressEnabled": False,
    "AutofillCreditCardEnabled": False,
    "BackgroundModeEnabled": False,
    "ComponentUpdatesEnabled": False,
    "DnsOverHttpsMode": "off",
    "EnableMediaRouter": False,
    "ExtensionInstallBlocklist": ["*"],
    "NetworkPredictionOptions": 2,
    "ProxySettings": {
        "ProxyMode": "fixed_servers",
        "ProxyServer": "http://127.0.0.1:1",
        "ProxyBypassList": NO_BYPASS,
    },
    "QuicAllowed": False,
    "SpellcheckEnabled": False,
    "URLBlocklist": [
        "chrome-untrusted:*",
        "chrome:*",
        "data:*",
        "devtools:*",
        "file:*",
        "filesystem:*",
        "ftp:*",
        "view-source:*",
    ],
    "WebRtcIPHandling": "disable_non_proxied_udp",
}
"""A managed policy, for a machine or container whose browser is used by agents only: it holds for all its users.

It stands in ``/etc/chromium/policies/managed``, or ``/etc/opt/chrome/policies/managed``. The proxies of contexts go
before the one that it names.
"""
_DOCUMENTS = frozenset({"http", "https", "chrome-error"})
_PDF_VIEWER = "chrome-extension://mhjfbmdgcfjbbpaeojofohoefgiehjai/"
"""The part of the browser that shows PDFs of the web; pages can't open it."""
_EMPTY = frozenset({"", "about:blank", "about:srcdoc", "about:blank#blocked"})
_MOST_BLANKED = 20
"""The documents of one page that are blanked; with the next one, the page is closed."""
_MOST_ATTEMPTS = 3
"""The attempts to blank a document while the page shows others."""


def launch_options(server: str) -> dict[str, Any]:
    """Return Playwright's options for the start of a browser.

    Args:
        server: The proxy's address.
    """
    return {"args": list(LAUNCH_ARGUMENTS), "proxy": {"server": server, "bypass": NO_BYPASS}}


def context_options(credentials: ProxyCredentials) -> dict[str, Any]:
    """Return Playwright's options for a context.

    A browser that is started with a profile has them, too.
    """
    proxy: ProxySettings = {
        "server": credentials.server,
        "bypass": NO_BYPASS,
        "username": credentials.username,
        "password": credentials.password,
    }
    return {"proxy": proxy, "service_workers": "block"}


async def missing_arguments(browser: Browser) -> tuple[str, ...]:
    """Return the arguments that a running browser was not started with."""
    session = await browser.new_browser_cdp_session()
    try:
        command = (await session.send("SystemInfo.getInfo"))["commandLine"].replace('"', "")
    finally:
        await session.detach()
    missing = [argument for argument in LAUNCH_ARGUMENTS if argument not in command]
    return (*missing, *([] if DISABLED_FEATURE in command else [f"--disable-features={DISABLED_FEATURE}"]))


def is_web_document(url: str) -> bool:
    """Return whether a document is of the web, or empty."""
    scheme = urlsplit(url.removeprefix("blob:")).scheme
    return scheme in _DOCUMENTS or url in _EMPTY or url.startswith(_PDF_VIEWER)


def guard_documents(context: BrowserContext, on_refusal: Callable[[str], None]) -> None:
    """Blank the documents of other schemes in a context's pages and frames.

    Args:
        context: The context.
        on_refusal: Called with the address of each blanked document.
    """
    guard = _DocumentGuard(on_refusal)
    context.on("page", guard.watch)
    for page in context.pages:
        guard.watch(page)


class _DocumentGuard:
    """The documents of a context's pages."""

    def __init__(self, on_refusal: Callable[[str], None]) -> None:
        self._on_refusal = on_refusal
        self._blanked: dict[Page, int] = {}
        self._pending: set[asyncio.Task[None]] = set()

    def watch(self, page: Page) -> None:
        self._blanked[page] = 0
        page.on("framenavigated", self._navigated)
        page.on("close", self._closed)
        for frame in page.frames:
            self._navigated(frame)

    def _closed(self, page: Page) -> None:
        self._blanked.pop(page, None)

    def _navigated(self, frame: Frame) -> None:
        if is_web_document(frame.url) or frame.page not in self._blanked:
            return
        self._on_refusal(frame.url)
        self._blanked[frame.page] += 1
        is_last = self._blanked[frame.page] > _MOST_BLANKED
        task = asyncio.create_task(close_page(frame.page) if is_last else _blank(frame))
        self._pending.add(task)
        task.add_done_callback(self._pending.discard)


async def _blank(frame: Frame) -> None:
    """Show an empty document instead; close the page if that fails."""
    from playwright.async_api import Error

    for _ in range(_MOST_ATTEMPTS):
        try:
            await frame.goto("about:blank")
        except Error:
            if frame.is_detached() or frame.page.is_closed():
                return
        if is_web_document(frame.url):
            return
    await close_page(frame.page)
