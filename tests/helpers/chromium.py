"""A browser for tests, in its sandbox; root starts it as another user."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from callboard.surfaces.browser import BrowserSurface
from support import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HOME = "/tmp/callboard-browser-test-"  # noqa: S108 - made with the mode 0700, and a name of its own
NOBODY = 65_534


def need_browser() -> None:
    """Skip the test where the browser is missing; with ``REQUIRE_BROWSER`` it fails."""
    missing = [need.told for need in BrowserSurface.needs({"executable": "chromium"}) if not need.met]
    if missing and os.environ.get("REQUIRE_BROWSER"):
        pytest.fail("; ".join(missing))
    if missing or sys.platform != "linux":
        pytest.skip("; ".join(missing) or "these tests know the browser of Debian")


@contextlib.contextmanager
def running_browser(name: str, flags: Sequence[str] = ()) -> Iterator[str]:
    """Start a browser, and give the address of its debugging port.

    Args:
        name: A part of the name of its home; each process has its own.
        flags: More arguments.
    """
    home = Path(f"{HOME}{name}{os.getpid()}")  # the folders of pytest are closed to other users
    shutil.rmtree(home, ignore_errors=True)  # of a killed run, whose process had the same id
    home.mkdir(mode=0o700)
    as_other: dict[str, Any] = {}
    if os.geteuid() == 0:
        os.chown(home, NOBODY, NOBODY)
        as_other = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    command = ["chromium", "--headless", "--disable-gpu", "--no-first-run", *flags]
    command += ["--remote-debugging-port=0", f"--user-data-dir={home}/profile", "about:blank"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(home)}
    browser = subprocess.Popen(
        command, env=environment, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **as_other
    )
    try:
        port, end = home / "profile" / "DevToolsActivePort", time.monotonic() + PATIENCE
        while not (port.is_file() and len(port.read_text().split()) == 2):
            assert browser.poll() is None, "the browser has ended"
            assert time.monotonic() < end, "the browser does not start"
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port.read_text().split()[0]}"
    finally:
        browser.terminate()
        browser.wait(PATIENCE)
        shutil.rmtree(home, ignore_errors=True)
