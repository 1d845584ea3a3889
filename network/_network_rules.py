"""Rules for the hosts that pages may reach.

Decisions are pure. `NetworkRules.refuse_host` is asked before a name is resolved, and `NetworkRules.refuse_address` for
each address that it resolves to. The caller connects to exactly the addresses that were checked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

from callboard.network._host_addresses import (
    canonical_host,
    embedded_address,
    parse_network,
    private_kind,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from callboard.network._host_addresses import Address, Network

EVERY_HOST = "*"
_PORT = re.compile(r"(?P<host>.*[^:]|\[.*\](?:/\d+)?):(?P<port>\d{1,5}|\*)")
HTTP_PORT, HTTPS_PORT = 80, 443
_MOST_PORT = 65_535


@dataclass(frozen=True)
class HostRule:
    """One entry of a list of hosts.

    The forms are ``example.org``, ``*.example.org`` (all names below it), ``*`` (every name and public address),
    ``192.0.2.7``, ``10.0.0.0/8``, ``[::1]``; each may end in a port, as in ``localhost:8080``, or in ``:*``.
    """

    text: str
    name: str = ""
    """A name, a pattern of names, or empty."""
    network: Network | None = None
    port: int | None = None
    every_port: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse an entry.

        Raises:
            ValueError: If it is invalid; the text gives the reason.
        """
        host, port, every_port = text.strip().lower(), None, False
        match = _PORT.fullmatch(host) if host.count(":") == 1 or host.startswith("[") else None
        if match is not None:
            host, every_port = match["host"], match["port"] == "*"
            port = None if every_port else int(match["port"])
        if port is not None and not 0 < port <= _MOST_PORT:
            msg = f"{text!r}: {port} is no port"
            raise ValueError(msg)
        if host == EVERY_HOST:
            return cls(text, EVERY_HOST, None, port, every_port)
        pattern = host.startswith("*.")
        try:
            network = parse_network(host.removeprefix("*."))
            name = "" if network is not None else str(canonical_host(host.removeprefix("*.")))
        except ValueError as error:
            msg = (
                f"{text!r} is no host, pattern such as *.example.org, address or network, with or without a port"
                f" ({error}); write a name with other letters as its browser does, xn--…"
            )
            raise ValueError(msg) from error
        if pattern and network is not None:
            msg = f"{text!r}: an address has no names below it"
            raise ValueError(msg)
        return cls(text, f"*.{name}" if pattern else name, network, port, every_port)

    def names(self, host: Address | str) -> bool:
        """Return whether this entry is about a host, whatever its port.

        An address that contains another one is that one: see `embedded_address`.
        """
        if self.name == EVERY_HOST:
            return isinstance(host, str) or private_kind(host) is None
        if not isinstance(host, str):
            return self.network is not None and host in self.network
        return host.endswith(self.name[1:]) if self.name.startswith("*.") else host == self.name

    def allows_port(self, port: int, default_ports: Sequence[int]) -> bool:
        """Return whether an entry that allows hosts is about a port."""
        return self.every_port or port == self.port or (self.port is None and port in default_ports)

    def denies_port(self, port: int) -> bool:
        """Return whether an entry that denies hosts is about a port."""
        return self.port in {None, port}


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A request that the rules refuse."""

    host: str
    port: int
    address: str
    """The address to which the host resolved; empty if the host itself is refused."""
    rule: str
    """The entry, or the rule without one, for people to read."""

    def __str__(self) -> str:
        target = f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"
        resolved = f" ({self.address})" if self.address and self.address != self.host else ""
        return f"{target}{resolved} is refused: {self.rule}"


@dataclass(frozen=True)
class NetworkRules:
    """The hosts that pages may reach.

    A host must be allowed, and neither it nor one of its addresses denied. An entry without a port allows 80 for
    http and 443 for https. Private addresses are refused unless an entry of `allow` names them, and the page's address
    has either this IP address or a name that `allow` names in full: so a name that some page's owner has made point to
    a private address reaches nothing. ``localhost`` names the loopback addresses.

    Args:
        allow: The entries of hosts to allow.
        deny: The entries of hosts to deny, even if they are allowed.

    Raises:
        ValueError: If an entry is invalid.
    """

    allow: tuple[str, ...] = (EVERY_HOST,)
    deny: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _ = self._allowed, self._denied

    @cached_property
    def _allowed(self) -> tuple[HostRule, ...]:
        return tuple(map(HostRule.parse, self.allow))

    @cached_property
    def _denied(self) -> tuple[HostRule, ...]:
        return tuple(map(HostRule.parse, self.deny))

    def refuse_host(self, host: Address | str, port: int, *, default_ports: Sequence[int]) -> Refusal | None:
        """Decide about a host before it is resolved; None allows it.

        Args:
            host: The host in its one form.
            port: The port.
            default_ports: The ports that an entry without a port allows.
        """
        rule = self._denied_by(host, port)
        if rule is None:
            form = host if isinstance(host, str) else embedded_address(host)
            rules = [rule for rule in self._allowed if rule.names(form)]
            if any(rule.allows_port(port, default_ports) for rule in rules):
                return None
            if rules:
                rule = f"no rule names its port {port}"
            elif not isinstance(host, str) and (kind := private_kind(host)) is not None:
                rule = _private(kind)
            else:
                rule = "no rule allows it"
        address = "" if isinstance(host, str) else str(host)
        return Refusal(host=str(host), port=port, address=address, rule=rule)

    def refuse_address(
        self, host: Address | str, address: Address, port: int, *, default_ports: Sequence[int]
    ) -> Refusal | None:
        """Decide about an address of an allowed host; None allows it."""
        rule, kind = self._denied_by(address, port), private_kind(address)
        if rule is None and (kind is None or self._names_private(host, embedded_address(address), port, default_ports)):
            return None
        return Refusal(host=str(host), port=port, address=str(address), rule=rule or _private(str(kind)))

    def _denied_by(self, host: Address | str, port: int) -> str | None:
        forms = {host} if isinstance(host, str) else {host, embedded_address(host)}
        denials = (rule for rule in self._denied if rule.denies_port(port) and any(map(rule.names, forms)))
        return next((f"denied by {rule.text!r}" for rule in denials), None)

    def _names_private(self, host: Address | str, address: Address, port: int, default_ports: Sequence[int]) -> bool:
        rules = [rule for rule in self._allowed if rule.allows_port(port, default_ports)]
        if isinstance(host, str) and not any(rule.name == host for rule in rules):
            return False
        is_local = host == "localhost" and address.is_loopback
        return is_local or any(rule.names(address) for rule in rules)


def _private(kind: str) -> str:
    return f"its address is {kind}, and no rule names it"
