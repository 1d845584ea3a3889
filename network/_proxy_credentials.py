"""Credentials of a browser context at the proxy."""

from __future__ import annotations

from dataclasses import dataclass, field

AGENTS_PROXY = "callboard-agents"
"""The name in the header Via of requests to private servers; a console refuses them."""


@dataclass(eq=False, kw_only=True)
class ProxyCredentials:
    """The proxy's address, and the name and password of a context."""

    server: str
    username: str
    password: str = field(repr=False)
