"""A browser that a separate program holds: it outlives a killed program for a while, and leaves nothing when it ends.

Root runs these without the sandbox: the program that holds a browser runs as the same user as the tests, and Chromium's
sandbox does not work as root. test_browser.py has pages in a sandbox.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

import forks
from callboard.messages import SettingsError
from callboard.surfaces import Stage
from callboard.surfaces.browser import BrowserSurface
from callboard.surfaces.browser._launch import BrowserLaunch, check_cdp_url
from support import PATIENCE

SANDBOX = os.geteuid() != 0
HOST = """
import asyncio, os, sys
from pathlib import Path
from callboard.surfaces import Stage
from callboard.config import NetworkSettings
from callboard.surfaces.browser import BrowserSurface

async def main():
    surface = BrowserSurface("chromium", sandbox=os.geteuid() != 0, network=NetworkSettings(allow=["127.0.0.1:*"]))
    await surface.open(Stage("browser", Path(sys.argv[1])))
    browser = surface._browser
    tab = await browser.new_tab("a conversation")
    await tab.page.goto(sys.argv[2])
    await tab.page.locator("input").first.fill("typed before")
    print(tab.id, browser._held.endpoint, flush=True)
    os.kill(os.getpid(), 9)

asyncio.run(main())
"""


@pytest.fixture(scope="module", autouse=True)
def programs(requires_browser):
    pass


def killed_program(journal: Path, url: str) -> tuple[str, Path]:
    """Run a program that opens a tab, and is killed; give the tab's id, and the folder of its browser's program."""
    program = forks.run([sys.executable, "-c", HOST, journal, url], timeout=PATIENCE)
    assert program.returncode == -signal.SIGKILL, program.stderr
    tab_id, endpoint = program.stdout.split()
    return tab_id, Path(endpoint).parents[1]


def ended(folder: Path) -> bool:
    """Wait until the program of a browser has ended, and with it its folder."""
    end = time.monotonic() + PATIENCE
    while folder.exists() and time.monotonic() < end:
        time.sleep(0.02)
    return not folder.exists()


def test_a_browser_is_taken_over_with_its_tabs_and_then_ends(shop, opened, tabs_of, tmp_path):
    tab_id, runtime = killed_program(tmp_path / "journal.db", shop.url)
    with opened(tmp_path / "journal.db", executable="chromium", sandbox=SANDBOX) as surface:
        (tab,) = tabs_of(surface)
        assert (tab.target.id, tab.target.owner) == (tab_id, "a conversation")
        assert tab.control("Search", "textbox").detail["value"] == "typed before"
        tab.do("click", tab.control("Search", "button"))
        tab.wait_for(text="You searched for typed before")
    assert ended(runtime)


def test_record_of_tabs_is_readable_by_its_user_alone(shop, opened, run, tmp_path):
    record = tmp_path / "journal.db.surfaces" / "browser" / "tabs.json"
    with opened(tmp_path / "journal.db", executable="chromium", sandbox=SANDBOX) as surface:
        tab = run(surface._browser.new_tab("a conversation"))
        run(tab.page.goto(f"{shop.url}/order?item=cup"))
        assert "item=cup" in record.read_text()
        assert record.stat().st_mode & 0o777 == 0o600
        run(tab.page.close())
        assert "item=cup" not in record.read_text()


def test_the_addresses_of_a_lost_browser_are_opened_again(shop, opened, tabs_of, tmp_path):
    tab_id, runtime = killed_program(tmp_path / "journal.db", f"{shop.url}/order?item=cup")
    facts = json.loads((tmp_path / "journal.db.surfaces" / "browser" / "browser.json").read_text())
    os.kill(facts["pid"], signal.SIGKILL)
    with opened(tmp_path / "journal.db", executable="chromium", sandbox=SANDBOX) as surface:
        (tab,) = tabs_of(surface)
        assert (tab.target.id, tab.target.owner) == (tab_id, "a conversation")
        tab.wait_for(address="*/order?item=cup", control="Send the order")
        assert "value" not in tab.control("Name").detail
    assert not runtime.exists()


@pytest.mark.slow  # the next test has this, too
def test_a_browser_that_ends_while_it_is_used_is_started_again(shop, opened, run, tabs_of, tmp_path):
    with opened(tmp_path / "journal.db", executable="chromium", sandbox=SANDBOX) as surface:
        tab = run(surface._browser.new_tab("a conversation"))
        run(tab.page.goto(f"{shop.url}/order?item=cup"))
        os.kill(surface._browser._held._holder.pid, signal.SIGKILL)
        while surface._browser._browser.is_connected():
            pass
        again = next(each for each in tabs_of(surface) if each.target.id == tab.id)
        again.wait_for(address="*/order?item=cup", control="Send the order")


def test_a_page_that_was_paid_is_not_opened_again_after_its_browser_ends(shop, opened, run, tabs_of, tmp_path):
    form = "<form action=/paid{}><input autocomplete=cc-number name=c value=4111><button>{}</button></form>"
    shop.pages["/pay"] = form.format("", "Pay") + form.format(" target=_blank", "Pay there")
    shop.pages["/paid"] = "<p>Paid</p>"
    with opened(tmp_path / "journal.db", executable="chromium", sandbox=SANDBOX) as surface:
        for _ in range(2):
            run(surface._browser.new_tab("a conversation"))
        clean, tab = tabs_of(surface)
        clean.do("open", address=f"{shop.url}/pay")
        tab.do("open", address=f"{shop.url}/pay")
        for name in ("Pay there", "Pay"):
            assert "spends" in tab.hazards("click", name)
            tab.do("click", name)
        tab.wait_for(text="Paid")
        popup = tabs_of(surface)[2]
        popup.wait_for(text="Paid")
        assert "4111" not in (tmp_path / "journal.db.surfaces" / "browser" / "tabs.json").read_text()
        count = sum("/paid" in path for path in shop.paths)
        os.kill(surface._browser._held._holder.pid, signal.SIGKILL)
        while surface._browser._browser.is_connected():
            pass
        for lost in (tab, popup):
            look = lost.look()
            assert (look.window["url"], len(look.notes)) == ("about:blank", 1)
            assert f"the page {shop.url}/paid of this tab" in look.notes[0]
        clean.wait_for(address="*/pay", control="Pay")
        assert sum("/paid" in path for path in shop.paths) == count
        tab.do("open", address=f"{shop.url}/pay")
        assert tab.tab.is_repeatable


def test_a_profile_keeps_its_logins_and_serves_one_program(shop, opened, run, tmp_path):
    options = {"executable": "chromium", "sandbox": SANDBOX, "profile": tmp_path / "profile"}
    with opened(**options) as surface:
        assert [target.id for target in run(surface.targets())] == ["browser"]  # not the tab that it opens with
        tab = run(surface._browser.new_tab("x"))
        run(tab.page.goto(shop.url))
        run(tab.page.evaluate("() => { document.cookie = 'login=ada; max-age=3600' }"))
        targets = [target for target in run(surface.targets()) if target.binds]
        assert {target.group for target in targets} == {"browser:profile"}
        with pytest.raises(RuntimeError, match="profile"), opened(**options):
            pass
    with opened(**options) as surface:
        tab = run(surface._browser.new_tab("y"))
        run(tab.page.goto(shop.url))
        assert run(tab.page.evaluate("() => document.cookie")) == "login=ada"


@pytest.mark.skipif(SANDBOX, reason="only root is refused")
def test_root_is_refused_a_browser_with_its_sandbox(run):
    with pytest.raises(SettingsError, match=r"does not work as root.*browser\.sandbox: false"):
        run(BrowserSurface("chromium").open(Stage("browser")))


def test_a_browser_that_does_not_start_is_an_error(run, tmp_path):
    program = tmp_path / "chromium"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    surface = BrowserSurface(str(program), sandbox=SANDBOX)
    with pytest.raises(RuntimeError, match="the browser does not start: "):
        run(surface.open(Stage("browser")))
    run(surface.close())


@pytest.mark.parametrize("url", ["http://127.0.0.1:9222", "ws://[::1]:9222/x", "http://localhost:9222"])
def test_a_debugging_port_of_this_machine_is_used(url):
    check_cdp_url(url, ())


@pytest.mark.parametrize("url", ["http://10.0.0.1:9222", "http://example.com", "ws://127.0.0.1.example.com:1"])
def test_a_debugging_port_of_another_machine_has_to_be_named(url):
    with pytest.raises(SettingsError, match="another machine"):
        BrowserLaunch(cdp_url=url).check()
    host = url.split("/")[2].partition(":")[0]
    BrowserLaunch(cdp_url=url, cdp_hosts=(host,)).check()


def test_a_holder_without_clients_ends_after_its_grace():
    from callboard.surfaces.browser import _browser_holder

    options = BrowserLaunch(executable="chromium", sandbox=SANDBOX).launch_options()
    runtime = Path(tempfile.mkdtemp(prefix="cb-", dir="/tmp"))  # a short name, for sockets
    command = [sys.executable, "-P", _browser_holder.__file__, str(runtime), "0.1"]
    environment = os.environ | dict.fromkeys(("TMPDIR", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"), str(runtime))
    ran = subprocess.run(command, input=json.dumps(options), capture_output=True, text=True, timeout=PATIENCE,
                         env=environment, check=True)  # fmt: skip
    assert ran.stdout.endswith(".sock\n")
    assert not runtime.exists()
