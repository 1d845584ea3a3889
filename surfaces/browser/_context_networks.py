"""Network of a browser's contexts: credentials at the proxy, refused addresses."""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from callboard import network
from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.browser._network_guard import context_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.network import NetworkRules
    from callboard.surfaces.browser._held_browser import HeldBrowser

_MOST_HOSTS = 1_000
"""The hosts of a context that are kept; there are no notes about further ones."""
_PORTS = {"http": network.HTTP_PORT, "https": network.HTTPS_PORT}


class ContextNetworks:
    """The networks of a browser's contexts, by their names.

    Args:
        rules: The hosts that pages may reach; None for all, without a proxy.
        held: The browser whose holder has the proxy; None for a running browser, whose proxy runs in this process.
        on_note: Called with a context's name, and a note about a refused host.
    """

    def __init__(
        self, rules: NetworkRules | None, held: HeldBrowser | None, on_note: Callable[[str, str], None]
    ) -> None:
        self._rules = rules
        self._held = held
        self._on_note = on_note
        self._proxy: network.ContextProxy | None = None
        self._uses: Counter[str] = Counter()
        self._asked: dict[str, set[str]] = defaultdict(set)
        """The hosts that the pages of contexts have asked for."""
        self._refusals: dict[str, dict[str, str]] = defaultdict(dict)
        """Notes about hosts that no page is known to have asked for: the browser itself may have."""

    async def open(self) -> None:
        """Begin with a new browser, and open the proxy."""
        self._uses.clear()
        if self._rules is not None and self._held is None:
            self._proxy = network.ContextProxy(self.refused)
            await self._proxy.open()

    async def close(self) -> None:
        """Close the proxy, unless a holder has it."""
        if self._proxy is not None:
            await self._proxy.close()

    def asked(self, name: str, url: str) -> None:
        """Take a request of a context's page."""
        host, hosts = urlsplit(url).hostname or "", self._asked[name]
        if len(hosts) < _MOST_HOSTS:
            hosts.add(host)
        if note := self._refusals[name].pop(host, ""):
            self._on_note(name, note)

    def refused(self, name: str, refusal: network.Refusal) -> None:
        """Note a refused host once a page has asked for it."""
        note = f"The page may not reach {refusal.host} ({refusal.rule})."
        if refusal.host in self._asked[name]:
            self._on_note(name, note)
        elif len(self._refusals[name]) < _MOST_HOSTS:
            self._refusals[name][refusal.host] = note

    async def admit(self, name: str) -> dict[str, Any]:
        """Return Playwright's options for a context.

        Raises:
            ToolError: If the browser has ended.
        """
        proxy = self._held or self._proxy
        if self._rules is None or proxy is None:
            return {}
        self._uses[name] += 1
        try:
            return context_options(await proxy.admit(name, self._rules))
        except OSError as error:
            self._uses[name] -= 1
            raise ToolError(str(error) or "the browser does not answer") from error

    async def release(self, name: str) -> None:
        """Void a closed context's credentials if no other has its name."""
        proxy = self._held or self._proxy
        self._uses[name] -= 1
        if self._rules is not None and proxy is not None and self._uses[name] <= 0:
            for names in (self._uses, self._asked, self._refusals):
                names.pop(name, None)
            with contextlib.suppress(OSError):  # the browser has ended, and with it the proxy
                await proxy.withdraw(name)


def check_address(rules: NetworkRules | None, url: str) -> None:
    """Check that the rules allow the host of a page.

    Raises:
        ToolError: If they refuse it; the text names the rule.
    """
    parts = urlsplit(url)
    default_port = _PORTS.get(parts.scheme)
    if rules is None or default_port is None:
        return
    try:
        host, port = network.canonical_host(parts.hostname or ""), parts.port or default_port
    except ValueError as error:
        msg = f"{url} can't be opened: {error}"
        raise ToolError(msg) from error
    refusal = rules.refuse_host(host, port, default_ports=(default_port,))
    if refusal is not None:
        msg = f"{url} is not opened: {refusal}"
        raise ToolError(msg)
