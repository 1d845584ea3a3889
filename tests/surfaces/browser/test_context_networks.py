"""Network rules of tabs: no page reaches a host that they refuse, and the model is told."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

import forks
from callboard.config import NetworkSettings
from callboard.messages import SettingsError
from callboard.network import NetworkRules, Refusal
from callboard.surfaces import Stage, ToolError
from callboard.surfaces.browser import BrowserSurface
from callboard.surfaces.browser._context_networks import ContextNetworks, check_address
from callboard.surfaces.browser._launch import BrowserLaunch
from shop import Shop
from support import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator

SANDBOX = os.geteuid() != 0
SHOP_ONLY = NetworkSettings(allow=("127.0.0.1:*",))
HOST = """
import asyncio, os, sys
from pathlib import Path
from callboard.config import NetworkSettings
from callboard.surfaces import Stage
from callboard.surfaces.browser import BrowserSurface

async def main():
    network = NetworkSettings(allow=["127.0.0.1:*"])
    surface = BrowserSurface("chromium", sandbox=os.geteuid() != 0, network=network)
    await surface.open(Stage("browser", Path(sys.argv[1])))
    tab = await surface._browser.new_tab("a conversation")
    await tab.page.goto(sys.argv[2])
    print(tab.id, flush=True)
    os.kill(os.getpid(), 9)

asyncio.run(main())
"""
WAYS = {
    "link": "document.body.innerHTML = `<a href='${url}'>x</a>`; document.querySelector('a').click()",
    "frame": "document.body.innerHTML = `<iframe src='${url}'></iframe>`",
    "image": "document.body.innerHTML = `<img src='${url}'>`",
    "fetch": "fetch(url, {mode: 'no-cors'}).catch(() => 0)",
    "form": "document.body.innerHTML = `<form action='${url}'></form>`; document.forms[0].submit()",
    "window": "open(url)",
    "socket": "new WebSocket(url.replace('http', 'ws'))",
}
"""The ways in which a page reaches a host."""


@pytest.fixture(scope="module", autouse=True)
def programs(requires_browser):
    pass


@pytest.fixture(scope="module")
def other() -> Iterator[Shop]:
    """Give a shop that the rules refuse, by its name `localhost`."""
    with Shop() as opened:
        yield opened


@pytest.fixture(scope="module", params=["held", "running"])
def go(request, shop, opened, open_in, debugging_port):
    """Give the function that opens the shop in a browser that is held, or one that was running."""
    options = {"executable": "chromium", "sandbox": SANDBOX} if request.param == "held" else {"cdp_url": debugging_port}
    with opened(**options, network=SHOP_ONLY) as surface:
        yield lambda url=shop.url: open_in(surface, url)


def note_about(tab: Any, text: str) -> str:
    """Wait for a note of a tab, as a model gets it."""
    end = time.monotonic() + PATIENCE
    notes: list[str] = []
    while time.monotonic() < end:
        notes += tab.look().notes
        if any(text in note for note in notes):
            return next(note for note in notes if text in note)
        time.sleep(0.02)
    raise AssertionError(notes)


IN_GATE = ("link", "fetch", "socket")
"""Those that always run; test_network_guard.py tries all ways with the proxy alone."""


@pytest.mark.parametrize("way", [pytest.param(way, marks=() if way in IN_GATE else pytest.mark.slow) for way in WAYS])
def test_page_reaches_no_refused_host_and_the_model_is_told(go, other, way):
    tab = go()
    tab.wait_for(text="The shop")
    tab.script(f"() => {{ const url = '{other.other_url}/{way}'; {WAYS[way]} }}")
    assert note_about(tab, "localhost") == "The page may not reach localhost (no rule allows it)."
    assert other.paths == []


def test_redirect_to_a_refused_host_is_not_followed(go, other, shop):
    tab = go()
    shop.redirects["/away"] = f"{other.other_url}/redirected"
    with pytest.raises(ToolError, match=r"can't be opened: Refused by the network rules.*no rule allows it"):
        tab.do("open", address=f"{shop.url}/away")
    assert note_about(tab, "localhost") == "The page may not reach localhost (no rule allows it)."
    assert "Refused by the network rules." in tab.do("read")["text"]
    assert other.paths == []


def test_refused_address_is_not_opened(go, other, shop):
    tab = go()
    with pytest.raises(ToolError, match=r"localhost:\d+ is refused: no rule allows it"):
        tab.do("open", address=other.other_url)
    assert tab.look().window["url"] == f"{shop.url}/"
    with pytest.raises(ToolError, match="no rule allows it"):
        go(other.other_url)
    assert other.paths == []


def test_tab_of_a_killed_program_keeps_its_rules(shop, other, opened, tabs_of, tmp_path):
    journal = tmp_path / "journal.db"
    program = forks.run([sys.executable, "-c", HOST, journal, shop.url], timeout=PATIENCE)
    assert program.returncode == -signal.SIGKILL, program.stderr
    with opened(journal, executable="chromium", sandbox=SANDBOX, network=SHOP_ONLY) as surface:
        (tab,) = tabs_of(surface)
        assert (tab.target.id, surface._browser._held.adopted) == (program.stdout.strip(), True)
        tab.do("open", address=f"{shop.url}/order?item=cup")
        assert tab.control("Send the order")
        tab.script(f"() => {{ location = '{other.other_url}/adopted' }}")
        assert note_about(tab, "localhost") == "The page may not reach localhost (no rule allows it)."
        another = tab.run(surface._browser.new_tab("another conversation"))
        tab.run(another.page.goto(shop.url))
    assert other.paths == []


def test_guarded_browser_is_not_taken_over_without_rules(shop, opened, tabs_of, tmp_path):
    journal = tmp_path / "journal.db"
    program = forks.run([sys.executable, "-c", HOST, journal, shop.url], timeout=PATIENCE)
    with opened(journal, executable="chromium", sandbox=SANDBOX, network=NetworkSettings(guarded=False)) as surface:
        (tab,) = tabs_of(surface)
        assert (tab.target.id, surface._browser._held.adopted) == (program.stdout.strip(), False)
        tab.wait_for(address=f"{shop.url}/")


def test_profile_has_the_rules_too(shop, other, opened, run, tabs_of, tmp_path):
    options = {"executable": "chromium", "sandbox": SANDBOX, "profile": tmp_path / "profile", "network": SHOP_ONLY}
    with opened(**options) as surface:
        run(run(surface._browser.new_tab("x")).page.goto(shop.url))
        tab = next(tab for tab in tabs_of(surface) if tab.target.owner == "x")
        tab.script(f"() => {{ location = '{other.other_url}/profile' }}")
        assert note_about(tab, "localhost")
    assert other.paths == []


def test_shared_profile_needs_an_unguarded_network():
    launch = BrowserLaunch(cdp_url="http://127.0.0.1:9222", profile="shared")
    with pytest.raises(SettingsError, match=r"browser\.profile: .*`browser\.network: unguarded`"):
        launch.check()
    BrowserLaunch(cdp_url="http://127.0.0.1:9222", profile="shared", network=None).check()


def test_running_browser_needs_the_arguments_of_a_guarded_one(run, monkeypatch, debugging_port):
    async def one_missing(browser):
        return ("--disable-quic",)

    monkeypatch.setattr("callboard.surfaces.browser._launch.missing_arguments", one_missing)
    surface = BrowserSurface(cdp_url=debugging_port)
    with pytest.raises(SettingsError, match=r"browser\.cdp_url: .*start it with --disable-quic, or set"):
        run(surface.open(Stage("browser")))
    run(surface.close())


@pytest.mark.parametrize("url", ["https://a.example/", "https://a.example:443/x", "about:blank"])
def test_allowed_addresses_are_opened(url):
    check_address(NetworkRules(("a.example",)), url)


@pytest.mark.parametrize("url", ["https://b.example/", "https://a.example:8443/", "http://127.0.0.1/", "http://[::1]/"])
def test_other_addresses_are_refused_with_the_rule(url):
    check_address(None, url)
    with pytest.raises(ToolError, match="is refused: "):
        check_address(NetworkRules(("a.example",)), url)


def test_dictionaries_of_the_browser_are_refused():
    surface = BrowserSurface(network=NetworkSettings(allow=("*",)))
    with pytest.raises(ToolError, match="is refused: "):
        check_address(surface._launch.network, "https://redirector.gvt1.com/edgedl/chrome/dict/en-us-10-1.bdic")


def test_host_that_no_page_has_asked_for_is_not_noted():
    notes = []
    networks = ContextNetworks(NetworkRules(), None, lambda name, text: notes.append((name, text)))
    for host in ("service.example", "a.example"):
        networks.refused("task", Refusal(host=host, port=443, address="", rule="no rule allows it"))
    networks.asked("another task", "https://service.example/")
    assert notes == []
    networks.asked("task", "https://a.example/x")
    assert notes == [("task", "The page may not reach a.example (no rule allows it).")]
