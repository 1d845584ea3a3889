"""Callers of the MCP server: their names, tokens and rights."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import re
import secrets
import threading
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.config import CallerRights
from callboard.messages import SettingsError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from callboard.config import McpService

LOCAL = "local"
"""The caller over stdio, unless the command names another one."""
LABEL = "mcp_caller"
"""The label of a caller's tasks. Its value is the caller's name."""
_PREFIX = "callboard_"
_TOKEN = re.compile(r"callboard_[A-Za-z0-9_-]{43}")
"""Only tokens that `new_token` makes are accepted: one that a person chose could be guessed from its hash."""


@dataclass(frozen=True)
class Caller:
    """A program that gives tasks, as the settings know it."""

    name: str
    rights: CallerRights


class TooManyRequestsError(Exception):
    """A caller has too many open requests."""


class Callers:
    """The callers of a server, and the number of their open requests."""

    def __init__(self, service: McpService) -> None:
        self._callers = {name: Caller(name, rights) for name, rights in service.callers.items()}
        self._open: Counter[str] = Counter()
        self._counting = threading.Lock()

    def with_tokens(self) -> tuple[Caller, ...]:
        """Return the callers that can call over HTTP."""
        return tuple(caller for caller in self._callers.values() if caller.rights.token is not None)

    def named(self, name: str) -> Caller:
        """Return a caller over stdio.

        Raises:
            SettingsError: If the settings have no such caller.
        """
        if name == LOCAL:
            return self._callers.get(LOCAL, Caller(LOCAL, CallerRights()))
        if name not in self._callers:
            msg = f"mcp_server.callers has no caller {name!r}{did_you_mean(name, [*self._callers, LOCAL])}"
            raise SettingsError(msg)
        return self._callers[name]

    def with_token(self, token: str) -> Caller | None:
        """Return the caller of a bearer token; None without one.

        It takes the same time for each token of the right form.
        """
        if _TOKEN.fullmatch(token) is None:
            return None
        digest = hash_of(token)
        owners = [caller for caller in self._callers.values() if hmac.compare_digest(caller.rights.token or "", digest)]
        return owners[0] if len(owners) == 1 else None

    @contextlib.contextmanager
    def request_of(self, caller: Caller) -> Iterator[None]:
        """Count a request of a caller as open during a block.

        Raises:
            TooManyRequestsError: If it has `requests` open ones; this one is not queued.
        """
        with self._counting:
            if self._open[caller.name] >= caller.rights.requests:
                msg = (
                    f"{caller.rights.requests} requests of {caller.name} are open, which is the most "
                    "(mcp_server.callers): wait until one is answered"
                )
                raise TooManyRequestsError(msg)
            self._open[caller.name] += 1
        try:
            yield
        finally:
            with self._counting:
                self._open[caller.name] -= 1


def new_token() -> str:
    """Make a bearer token of 256 random bits."""
    return f"{_PREFIX}{secrets.token_urlsafe(32)}"


def hash_of(token: str) -> str:
    """Return the form of a token for the settings."""
    return f"sha256:{hashlib.sha256(token.encode()).hexdigest()}"
