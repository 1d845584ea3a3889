"""Proxy for the contexts of one browser, by their names."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from callboard.network._network_proxy import NetworkProxy

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.network._network_proxy import ProxyAccess
    from callboard.network._network_rules import NetworkRules, Refusal
    from callboard.network._proxy_credentials import ProxyCredentials


class ContextProxy:
    """A proxy, and the contexts that it admits.

    Args:
        on_refusal: Called on the event loop with a context's name, and a request of it that was refused.
    """

    def __init__(self, on_refusal: Callable[[str, Refusal], None]) -> None:
        self._on_refusal = on_refusal
        self._proxy = NetworkProxy()
        self._accesses: dict[str, ProxyAccess] = {}

    @property
    def server(self) -> str:
        """The proxy's address; `open` must have been called."""
        return self._proxy.server

    async def open(self) -> None:
        """Listen on a free port of loopback.

        Raises:
            OSError: If there is none.
        """
        await self._proxy.open()

    async def close(self) -> None:
        """Stop listening, and cut all connections."""
        await self._proxy.close()

    async def admit(self, name: str, rules: NetworkRules) -> ProxyCredentials:
        """Return the credentials of a context.

        One that is admitted already keeps its credentials, and gets the rules.
        """
        access = self._accesses.get(name)
        if access is None:
            access = self._accesses[name] = self._proxy.admit(rules, partial(self._on_refusal, name))
        access.rules = rules
        return access

    async def withdraw(self, name: str) -> None:
        """Void the credentials of a context, and cut its connections."""
        access = self._accesses.pop(name, None)
        if access is not None:
            await self._proxy.withdraw(access)
