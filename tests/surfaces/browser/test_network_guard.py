"""Network policy in a real browser. All addresses are on loopback.

The site is at 127.0.0.2, and a trap on the same port of 127.0.0.1: a request that passes the rules, the proxy or the
checks of addresses gets there.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest
import pytest_asyncio

from callboard.network import NetworkProxy, NetworkRules
from callboard.surfaces.browser._network_guard import (
    DICTIONARY_HOST,
    DISABLED_FEATURE,
    LAUNCH_ARGUMENTS,
    context_options,
    guard_documents,
    is_web_document,
    launch_options,
    missing_arguments,
)
from support import PATIENCE

if TYPE_CHECKING:
    from callboard.network import Refusal

CHROMIUM = shutil.which("chromium")
NUMBERS = itertools.count()

pytestmark = pytest.mark.asyncio(loop_scope="module")

PACKETS, POLICY = (Path(__file__).with_name(name) for name in ("packets.py", "managed_policy.py"))
PAST_PROXY = [["udp", "198.51.100.6", 3478], ["dns", "stun.test"], ["dns", "turn.test"]]
"""Packets that a page makes a browser send that has a proxy, and no other argument of ours."""
OWN_REQUESTS = [["proxy", "accounts.google.com:443"]]
"""The servers that it asks its proxy for."""
DICTIONARY = ["proxy", f"{DICTIONARY_HOST}:443"]
NAMESPACE = ["unshare", "--mount", "--net", "--"]


@pytest.fixture(scope="module")
def requires_chromium():
    """Skip the test where the browser is missing; with ``REQUIRE_BROWSER`` it fails."""
    if CHROMIUM is None:
        missing = "chromium is missing"
        if os.environ.get("REQUIRE_BROWSER"):
            pytest.fail(missing)
        pytest.skip(missing)


@pytest.fixture(scope="module")
def requires_namespaces(requires_chromium):
    """Skip the test where a browser can't have a network or a policy of its own."""
    tools = all(map(shutil.which, ("unshare", "ip", "mount"))) and Path("/etc/chromium").is_dir()
    if not tools or subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user can't make namespaces of networks and mounts, or a tool for it is missing")


async def output_of(program: Path, *arguments: str):
    """Run a program in namespaces of its own, and read the JSON that it writes."""
    command = [*NAMESPACE, sys.executable, program, CHROMIUM, *arguments]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    output, _ = await asyncio.wait_for(process.communicate(), 2 * PATIENCE)
    return json.loads(output)


class Site:
    """A web server that keeps the paths that it was asked for."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.heads: list[bytes] = []
        self.changed = asyncio.Condition()

    async def listen(self, host: str, port: int = 0) -> int:
        self._server = await asyncio.start_server(self._serve, host, port)
        return self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        self._server.close()

    async def _serve(self, reader, writer) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                path = head.split()[1].decode()
                self.paths.append(path)
                self.heads.append(head)
                async with self.changed:
                    self.changed.notify_all()
                writer.write(_answer(path))
                await writer.drain()
        writer.close()


def _answer(path: str) -> bytes:
    status, kind, body = "200 OK", "text/html", f"<title>{path}</title><p>home"
    if path.startswith("/to?"):
        status = f"302 Found\r\nLocation: {unquote(path[4:])}"
    elif path == "/worker.js":
        kind = "text/javascript"
        body = "onmessage = event => fetch(event.data).catch(() => 0)"
    elif path == "/login":
        status = '401 Unauthorized\r\nWWW-Authenticate: Basic realm="site"'
    headers = f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\nCache-Control: no-store"
    return f"HTTP/1.1 {status}\r\n{headers}\r\n\r\n{body}".encode()


@dataclass
class World:
    """The site, the trap, the proxy, and the browser."""

    site: Site
    trap: Site
    port: int
    proxy: NetworkProxy
    browser: object
    addresses: dict[str, list[str]] = field(default_factory=dict)
    """The addresses of names, one for each lookup; the last one stays."""

    @property
    def home(self) -> str:
        return f"http://shop.test:{self.port}/"

    async def resolve(self, name: str) -> list[str]:
        addresses = self.addresses.get(name, ["127.0.0.1"])
        return [addresses.pop(0) if len(addresses) > 1 else addresses[0]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(requires_chromium):
    from playwright.async_api import async_playwright

    site, trap = Site(), Site()
    port = await site.listen("127.0.0.2")
    await trap.listen("127.0.0.1", port)
    opened = World(site, trap, port, None, None, {"shop.test": ["127.0.0.2"], "localhost": ["127.0.0.1"]})
    opened.proxy = NetworkProxy(resolver=opened.resolve)
    await opened.proxy.open()
    async with async_playwright() as playwright:
        options = {"executable_path": CHROMIUM, "chromium_sandbox": os.geteuid() != 0}
        opened.browser = await playwright.chromium.launch(**options, **launch_options(opened.proxy.server))
        yield opened
        await opened.browser.close()
    await opened.proxy.close()
    site.close()
    trap.close()


class Visit:
    """A context with rules, whose documents are guarded, and a page in it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.refusals: list[Refusal] = []
        self.documents: list[str] = []
        self._changed = asyncio.Condition()

    async def open(self, *allow: str, **options) -> Visit:
        allow = allow or (f"shop.test:{self.world.port}", f"127.0.0.2:{self.world.port}")
        self.access = self.world.proxy.admit(NetworkRules(allow), self._refused)
        self.context = await self.world.browser.new_context(**{**context_options(self.access), **options})
        guard_documents(self.context, self._blanked)
        self.page = await self.context.new_page()
        return self

    def _refused(self, refusal: Refusal) -> None:
        self.refusals.append(refusal)
        self._notify()

    def _blanked(self, url: str) -> None:
        self.documents.append(url)
        self._notify()

    def _notify(self) -> None:
        async def notify() -> None:
            async with self._changed:
                self._changed.notify_all()

        self._task = asyncio.ensure_future(notify())

    async def wait_for(self, condition):
        async with self._changed:
            await asyncio.wait_for(self._changed.wait_for(condition), PATIENCE)

    async def refusal(self, host: str) -> Refusal:
        """Wait for the refusal of a host."""
        await self.wait_for(lambda: any(refusal.host == host for refusal in self.refusals))
        return next(refusal for refusal in self.refusals if refusal.host == host)

    async def close(self) -> None:
        await self.context.close()
        await self.world.proxy.withdraw(self.access)


@pytest_asyncio.fixture(loop_scope="module")
async def visit(world):
    visits = []

    async def opened(*allow, **options):
        visits.append(Visit(world))
        return await visits[-1].open(*allow, **options)

    yield opened
    for each in visits:
        await each.close()
    assert world.trap.paths == []


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(world):
    shop = await Visit(world).open()
    yield shop
    await shop.close()
    assert world.trap.paths == []


@pytest_asyncio.fixture(loop_scope="module")
async def page(shared, world):
    """Give a page of the site, in a context that tests share."""
    opened = await shared.context.new_page()
    await opened.goto(world.home)
    shared.documents.clear()
    yield opened
    await opened.close()


WAYS = {
    "link": "u => { const a = document.createElement('a'); a.href = u; document.body.append(a); a.click() }",
    "redirect": "u => { location.href = '/to?' + encodeURIComponent(u) }",
    "script": "u => { location.href = u }",
    "new tab": "u => { window.open(u) }",
    "meta refresh": "u => { document.head.innerHTML = `<meta http-equiv=refresh content='0;url=${u}'>` }",
    "form": "u => { document.body.innerHTML = `<form method=post action='${u}'>`; document.forms[0].submit() }",
    "frame": "u => { document.body.innerHTML = `<iframe src='${u}'></iframe>` }",
    "redirected frame": "u => { document.body.innerHTML = `<iframe src='/to?${encodeURIComponent(u)}'></iframe>` }",
    "object": "u => { document.body.innerHTML = `<object data='${u}'></object>` }",
    "image": "u => { document.body.innerHTML = `<img src='${u}'>` }",
    "style": "u => { document.head.innerHTML = `<link rel=stylesheet href='${u}'>` }",
    "prefetch": "u => { document.head.innerHTML = `<link rel=prefetch href='${u}'>` }",
    "preload": "u => { document.head.innerHTML = `<link rel=preload as=fetch href='${u}'>` }",
    "frame of text": "u => { document.body.innerHTML = `<iframe srcdoc=\"<img src='${u}'>\"></iframe>` }",
    "fetch": "u => { fetch(u).catch(() => 0) }",
    "redirected fetch": "u => { fetch('/to?' + encodeURIComponent(u), {mode: 'no-cors'}).catch(() => 0) }",
    "beacon": "u => { navigator.sendBeacon(u, 'x') }",
    "worker": "u => { new Worker(URL.createObjectURL(new Blob([`fetch('${u}').catch(() => 0)`]))) }",
    "WebSocket": "u => { new WebSocket(u.replace('http', 'ws')) }",
    "encrypted WebSocket": "u => { new WebSocket(u.replace('http', 'wss')) }",
    "encrypted link": "u => { location.href = u.replace('http', 'https') }",
    "encrypted fetch": "u => { fetch(u.replace('http', 'https')).catch(() => 0) }",
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
async def test_other_host_is_refused(shared, page, world, way):
    host = f"other{next(NUMBERS)}.test"
    with contextlib.suppress(Exception):  # the page may be gone with the script's answer
        await page.evaluate(WAYS[way], f"http://{host}:{world.port}/")
    refused = await shared.refusal(host)
    assert str(refused) == f"{host}:{world.port} is refused: no rule allows it"


async def test_service_worker_is_blocked_and_else_refused_as_pages_are(visit, world):
    local = (f"127.0.0.2:{world.port}",)
    register = "() => navigator.serviceWorker.register('/worker.js').then(() => navigator.serviceWorker.ready)"
    blocked = await visit(*local)
    await blocked.page.goto(f"http://127.0.0.2:{world.port}/")
    assert "/worker.js" not in world.site.paths
    await blocked.page.evaluate("() => { navigator.serviceWorker.register('/worker.js').catch(() => 0) }")
    allowed = await visit(*local, service_workers="allow")
    await allowed.page.goto(f"http://127.0.0.2:{world.port}/")
    assert "/worker.js" not in world.site.paths
    await allowed.page.evaluate(register + f".then(r => {{ r.active.postMessage('http://sw.test:{world.port}/') }})")
    assert (await allowed.refusal("sw.test")).rule == "no rule allows it"


async def test_refusal_is_a_page_of_text(visit, world):
    shop = await visit()
    response = await shop.page.goto(f"http://other.test:{world.port}/<b>bold</b>")
    assert response.status == 403
    assert await shop.page.inner_text("body") == (
        f"Refused by the network rules.\n\nother.test:{world.port} is refused: no rule allows it\n"
    )
    assert await shop.page.query_selector("b") is None


async def test_allowed_site_is_reached_with_websockets_and_forms(visit, world):
    shop = await visit()
    assert (await shop.page.goto(f"{world.home}first")).status == 200
    await shop.page.evaluate("() => { new WebSocket(location.href.replace('http', 'ws').replace('first', 'socket')) }")
    async with world.site.changed:
        await asyncio.wait_for(world.site.changed.wait_for(lambda: "/socket" in world.site.paths), PATIENCE)
    assert shop.refusals == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::ffff:7f00:1]", "sub.localhost"])
async def test_loopback_does_not_bypass_the_proxy(visit, world, host):
    shop = await visit("*", "*:*")
    response = await shop.page.goto(f"http://{host}:{world.port}/")
    assert response.status == 403
    assert "its address is loopback, and no rule names it" in await shop.page.inner_text("body")


async def test_name_that_changes_to_loopback_is_refused(visit, world):
    """DNS rebinding: the page of the first address asks its own origin, which has another address by now."""
    world.addresses["rebind.test"] = ["127.0.0.2", "127.0.0.1"]
    shop = await visit(f"rebind.test:{world.port}", f"127.0.0.2:{world.port}")
    assert (await shop.page.goto(f"http://rebind.test:{world.port}/")).status == 200
    assert await shop.page.evaluate("() => fetch('/secret').then(r => r.status)") == 403
    assert shop.refusals[0].address == "127.0.0.1"
    assert (await shop.page.goto(f"http://rebind.test:{world.port}/")).status == 403


async def test_credentials_are_not_given_to_sites(visit, world):
    shop = await visit()
    with pytest.raises(Exception, match="ERR_INVALID_AUTH_CREDENTIALS"):
        await shop.page.goto(f"{world.home}login")
    assert world.site.paths[-1] == "/login"
    assert b"uthorization" not in b"".join(world.site.heads)


async def test_each_context_has_its_own_rules_and_loses_them(visit, world):
    shop, none = await visit(), await visit(f"nothing.test:{world.port}")
    assert (await shop.page.goto(world.home)).status == 200
    assert (await none.page.goto(world.home)).status == 403
    await world.proxy.withdraw(shop.access)
    assert (await shop.page.goto(world.home)).status == 407


async def test_context_without_credentials_reaches_nothing(visit, world):
    context = await world.browser.new_context()
    page = await context.new_page()
    with pytest.raises(Exception, match="ERR_"):
        await page.goto(world.home)
    await context.close()


PAST_THE_PROXY = ["file:///etc/passwd", "file:///etc/", "view-source:file:///etc/passwd", "chrome://version/",
                  "devtools://devtools/bundled/inspector.html", "data:text/html,<title>x</title>hello"]  # fmt: skip


@pytest.mark.parametrize("url", PAST_THE_PROXY)
async def test_page_of_another_scheme_is_blanked(shared, page, url):
    with contextlib.suppress(Exception):  # the blank page interrupts the navigation
        await page.goto(url)
    await shared.wait_for(lambda: shared.documents)
    await page.wait_for_url("about:blank")
    assert is_web_document(page.url)
    assert not is_web_document(url)
    assert shared.documents == [url.removeprefix("view-source:")]


@pytest.mark.parametrize("url", PAST_THE_PROXY)
async def test_pages_open_no_other_scheme(page, world, url):
    for way in ("link", "script", "meta refresh"):
        with contextlib.suppress(Exception):  # the script's page may be gone
            async with page.expect_console_message(lambda message: "Not allowed to" in message.text):
                await page.evaluate(WAYS[way], url)
        assert page.url == world.home
    with pytest.raises(Exception, match=r"ERR_UNSAFE_REDIRECT|ERR_ABORTED"):
        await page.goto(f"{world.home}to?{url}")


@pytest.mark.parametrize("url", PAST_THE_PROXY)
@pytest.mark.parametrize("way", ["frame", "redirected frame", "object"])
async def test_frame_of_another_scheme_is_empty(shared, page, url, way):
    if way == "redirected frame":
        async with page.expect_event("requestfailed"):
            await page.evaluate(WAYS[way], url)
    elif url.startswith("data:"):
        await page.evaluate(WAYS[way], url)
        await shared.wait_for(lambda: shared.documents == [url])
        await page.frames[1].wait_for_url("about:blank")
    else:
        async with page.expect_console_message(lambda message: "Not allowed to load" in message.text):
            await page.evaluate(WAYS[way], url)
    assert all(is_web_document(frame.url) for frame in page.frames)


async def test_page_that_shows_refused_frames_for_ever_is_closed(shared, page):
    async with page.expect_event("close"):
        await page.evaluate(
            "() => { const f = document.createElement('iframe'); f.src = 'data:text/html,x';"
            " f.onload = () => { f.src = 'data:text/html,' + Math.random() }; document.body.append(f) }"
        )
    assert shared.documents[0] == "data:text/html,x"


@pytest.mark.parametrize(
    ("url", "is_shown"),
    [
        ("https://example.org/", True),
        ("about:blank", True),
        ("about:srcdoc", True),
        ("blob:https://example.org/1", True),
        ("chrome-error://chromewebdata/", True),
        ("chrome-extension://mhjfbmdgcfjbbpaeojofohoefgiehjai/index.html", True),
        ("chrome-extension://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/index.html", False),
        ("blob:null/1", False),
        ("blob:file:///1", False),
        ("about:version", False),
        ("javascript:1", False),
        ("filesystem:http://example.org/", False),
        *((url, False) for url in PAST_THE_PROXY),
    ],
)
async def test_documents_of_the_web_are_shown(url, is_shown):
    assert is_web_document(url) is is_shown


@pytest.mark.parametrize("leaks", [[], PAST_PROXY + OWN_REQUESTS], ids=["guarded", "unguarded"])
async def test_browser_sends_packets_to_the_proxy_alone(requires_namespaces, leaks):
    """In a network of its own, in which every address answers, all packets of the browser are seen.

    The proxy is asked for nothing but what the page asks for, and refuses the browser's dictionary.
    """
    packets = await output_of(PACKETS, json.dumps(leaks))
    assert all(packet in packets for packet in leaks)
    assert leaks or [packet for packet in packets if packet != DICTIONARY] == []


async def test_managed_policy_blocks_other_schemes(requires_namespaces):
    errors = await output_of(POLICY, *PAST_THE_PROXY)
    frames = {name: url for name, url in errors.items() if name.startswith("frame of data:")}
    assert set(frames.values()) == {"chrome-error://chromewebdata/"}
    pages = {url: error for url, error in errors.items() if url not in frames}
    assert pages == dict.fromkeys(PAST_THE_PROXY, "Page.goto: net::ERR_BLOCKED_BY_ADMINISTRATOR")


async def test_missing_arguments_of_a_running_browser_are_named(world):
    assert await missing_arguments(world.browser) == ()  # Playwright disables the feature
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("callboard.surfaces.browser._network_guard.DISABLED_FEATURE", "Another")
        assert await missing_arguments(world.browser) == ("--disable-features=Another",)
    assert DISABLED_FEATURE not in "".join(LAUNCH_ARGUMENTS)  # the list would replace Playwright's


async def test_arguments_of_a_start_hold_for_every_context(world):
    assert set(LAUNCH_ARGUMENTS) <= set(launch_options(world.proxy.server)["args"])
