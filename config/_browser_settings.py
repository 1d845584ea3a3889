"""The browser's section of the settings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from callboard.config._section import NamedPath, Section, Span
from callboard.network import EVERY_HOST, HostRule


class NetworkSettings(Section):
    """The hosts that pages may reach.

    Private addresses are refused unless `allow` names them.
    """

    guarded: bool = True
    """Whether each request is checked by a proxy. `network: unguarded` is short for `false`: pages reach all hosts,
    private ones too. The profile of a running browser needs that, and a running browser that was not started with the
    arguments of a guarded one."""
    allow: tuple[str, ...] = (EVERY_HOST,)
    """The hosts: `example.org`, `*.example.org` (all names below it), `*` (every name and public address), an address
    or a network such as `10.0.0.0/8`, each for http on port 80 and https on 443, or with a port: `localhost:8080`, or
    `:*` for every port."""
    deny: tuple[str, ...] = ()
    """Hosts that are refused even if `allow` names them; without a port, on all of them."""

    @field_validator("allow", "deny")
    @classmethod
    def _are_rules(cls, entries: tuple[str, ...]) -> tuple[str, ...]:
        for entry in entries:
            HostRule.parse(entry)
        return entries


def _as_network(value: object) -> object:
    if isinstance(value, str) and value != "unguarded":
        msg = "write the rules (`allow: [...]`, `deny: [...]`), or `unguarded`"
        raise ValueError(msg)
    return {"guarded": False} if value == "unguarded" else value


def _as_viewport(value: str) -> str:
    if re.fullmatch(r"[1-9]\d{2,3}x[1-9]\d{2,3}", value) is None:
        msg = "write a width and a height of 100 to 9999 pixels, such as 1280x800"
        raise ValueError(msg)
    return value


class BrowserSettings(Section):
    """The browser: tabs of Chromium or Chrome."""

    executable: str | None = None
    """The program: a path, a name on the path such as `chromium`, or `playwright` for Playwright's own. None: no
    browser, unless `cdp_url` names a running one."""
    cdp_url: str | None = Field(default=None, pattern=r"^(https?|wss?)://[^\s@]+$")
    """The address of a running browser's debugging port, such as `http://127.0.0.1:9222`. It has to be on this machine,
    unless `cdp_hosts` names its host."""
    cdp_hosts: tuple[str, ...] = ()
    """Hosts other than this machine that `cdp_url` may name. A program that controls the port controls the browser."""
    profile: Literal["shared"] | NamedPath | None = None
    """A folder with a profile, whose logins all tasks have, and in which they take turns. `shared`: the profile of the
    browser at `cdp_url`, with its open tabs. None: each conversation has an empty profile of its own."""
    sandbox: bool = True
    """Whether the browser isolates pages from this machine. It can't as root: run as another user instead."""
    headless: bool = True
    """Whether the browser has no windows."""
    viewport: Annotated[str, AfterValidator(_as_viewport)] = "1280x800"
    """The width and height of pages, in pixels."""
    network: Annotated[
        NetworkSettings, BeforeValidator(_as_network, json_schema_input_type=Literal["unguarded"] | NetworkSettings)
    ] = NetworkSettings()
    """The hosts that pages may reach, checked by a proxy for each request; `unguarded`: all of them."""
    grace: Span = 60.0
    """The time that the browser and its tabs survive a killed program, so that the next one can take them over. Tabs
    opened by a task are closed after the same time, from the end of their conversation's last task."""
    workspace: NamedPath | None = None
    """The folder from which files may be uploaded. None: that of the documents surface; without one, none."""

    @property
    def wanted(self) -> bool:
        """True if this surface is configured."""
        return self.executable is not None or self.cdp_url is not None

    @model_validator(mode="after")
    def _names_one_browser(self) -> Self:
        if self.executable is not None and self.cdp_url is not None:
            msg = "names two browsers: give either `executable` or `cdp_url`"
            raise ValueError(msg)
        if self.profile == "shared" and self.cdp_url is None:
            msg = "`profile: shared` is that of a running browser: give its `cdp_url`"
            raise ValueError(msg)
        if isinstance(self.profile, Path) and self.cdp_url is not None:
            msg = "a running browser has its profile already: give `profile: shared`, or none"
            raise ValueError(msg)
        return self
