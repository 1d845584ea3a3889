"""Options of a browser's start and contexts, decided in one place."""

from __future__ import annotations

import ipaddress
import os
import shlex
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from callboard.messages import SettingsError
from callboard.network import NetworkRules
from callboard.surfaces.browser._network_guard import LAUNCH_ARGUMENTS, NO_BYPASS, missing_arguments

if TYPE_CHECKING:
    from collections.abc import Collection

    from playwright.async_api import Browser

SHARED: Literal["shared"] = "shared"
PLAYWRIGHT = "playwright"
"""The name of Playwright's own browser in the settings."""
_ARGUMENTS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--no-default-browser-check",
    "--no-first-run",
)
"""No traffic but that of the pages."""
_UNGUARDED = "or set `browser.network: unguarded`, with which pages reach this machine's own network, too"


@dataclass(frozen=True, kw_only=True)
class BrowserLaunch:
    """The way in which a browser is started, or connected to."""

    executable: str | None = None
    cdp_url: str | None = None
    cdp_hosts: tuple[str, ...] = ()
    profile: Literal["shared"] | Path | None = None
    sandbox: bool = True
    headless: bool = True
    viewport: str = "1280x800"
    network: NetworkRules | None = field(default_factory=NetworkRules)
    """The hosts that pages may reach; None for all, private ones too."""

    @property
    def shares_context(self) -> bool:
        """True if all tasks have one context: that of a profile."""
        return self.profile is not None

    def check(self) -> None:
        """Check that the browser may be used in this way.

        Raises:
            SettingsError: If it may not; the text gives the reason, and explains how to fix it.
        """
        if self.cdp_url is not None:
            check_cdp_url(self.cdp_url, self.cdp_hosts)
            if self.profile == SHARED and self.network is not None:
                msg = (
                    "browser.profile: pages of a running browser's own profile can't be kept to the hosts in "
                    f"`browser.network`: leave `profile` out, {_UNGUARDED}"
                )
                raise SettingsError(msg)
        elif isinstance(self.profile, Path) and self.profile.exists() and not self.profile.is_dir():
            msg = f"browser.profile: {str(self.profile)!r} is no folder: name one, which is made if it is missing"
            raise SettingsError(msg)
        elif self.sandbox and os.geteuid() == 0:
            msg = (
                "the browser's sandbox does not work as root, and without it a page may control this machine: run as "
                "another user, or set `browser.sandbox: false` where nothing is lost, as in a container of its own"
            )
            raise SettingsError(msg)

    async def check_running(self, browser: Browser) -> None:
        """Check that a running browser was started as a guarded one is.

        Raises:
            SettingsError: If it was not; the text names the missing arguments.
        """
        missing = await missing_arguments(browser) if self.network is not None else ()
        if missing:
            msg = (
                "browser.cdp_url: pages of this browser could reach hosts that `browser.network` refuses: start it "
                f"with {shlex.join(missing)}, {_UNGUARDED}"
            )
            raise SettingsError(msg)

    def launch_options(self) -> dict[str, Any]:
        """Return the options of a start for a browser's holder, as JSON."""
        program = find_browser(self.executable)
        arguments = [*_ARGUMENTS, *(["--disable-gpu"] if self.headless else [])]
        options: dict[str, Any] = {
            "args": arguments,
            "headless": self.headless,
            "chromium_sandbox": self.sandbox,
            "handle_sighup": False,
            "handle_sigint": False,
            "handle_sigterm": False,
        }
        if self.network is not None:
            arguments += LAUNCH_ARGUMENTS
            options |= {
                "network": {"allow": self.network.allow, "deny": self.network.deny},
                "proxy": {"bypass": NO_BYPASS},  # its address is known when it is open
            }
        if program is not None:
            options["executable_path"] = str(program)
        if isinstance(self.profile, Path):
            options |= {"user_data_dir": str(self.profile), **self.context_options()}
        return options

    def context_options(self) -> dict[str, Any]:
        """Return Playwright's options for a new context, as JSON."""
        width, height = map(int, self.viewport.split("x"))
        return {
            "viewport": {"width": width, "height": height},
            "accept_downloads": True,
            "service_workers": "block",  # their requests would pass the rules for pages
        }


def find_browser(executable: str | None) -> Path | None:
    """Find the browser's program; None if it is missing."""
    if executable is None:
        return None
    if executable == PLAYWRIGHT:
        return next(iter(sorted(_playwright_folder().glob("chromium-*/chrome-linux*/chrome"))), None)
    path = shutil.which(os.path.expanduser(executable))  # noqa: PTH111 - a name without a folder stays one
    return Path(path).absolute() if path else None


def _playwright_folder() -> Path:
    """Return the folder with the browsers that Playwright has downloaded."""
    return Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / ".cache" / "ms-playwright")


def check_cdp_url(url: str, hosts: Collection[str]) -> None:
    """Check that a debugging port is on an allowed host.

    Allowed are this machine and the named hosts.

    Raises:
        SettingsError: If it is not.
    """
    host = urlsplit(url).hostname or ""
    try:
        is_local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_local = host == "localhost"
    if not is_local and host not in hosts:
        msg = (
            f"browser.cdp_url: {host!r} is another machine, which would control the browser, and see all that is typed "
            "into it: name it in `browser.cdp_hosts` if that is intended"
        )
        raise SettingsError(msg)
