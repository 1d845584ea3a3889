"""Canonical forms of hosts, and the kinds of IP addresses.

A host is a name or an address. Resolvers and browsers take an IPv4 address in many forms (``2130706433``, ``0x7f.1``,
``0177.0.0.1``), and IPv6 has several that contain an IPv4 address. All of them are recognized here, so that a rule for
an address holds for each of its forms. This module does no I/O.
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+")
_MOST_CHARACTERS = 253
"""The longest name in the DNS."""

_UNICAST = IPv6Network("2000::/3")
"""The only part of IPv6 that is routed on the internet."""
_NAT64 = IPv6Network("64:ff9b::/96")
_COMPATIBLE = IPv6Network("::/96")
_SPECIAL: tuple[tuple[Network, str], ...] = (
    (IPv4Network("100.64.0.0/10"), "of a carrier's own network"),
    (IPv4Network("168.63.129.16/32"), "of the cloud's own services"),  # Azure's, though it is a public address
    (IPv4Network("192.0.0.0/24"), "reserved"),  # from here on: `ipaddress` knows them in newer versions only
    (IPv4Network("192.88.99.0/24"), "reserved"),
    (IPv6Network("3fff::/20"), "reserved"),
)


def canonical_host(text: str) -> Address | str:
    """Return the canonical form of a host.

    It is an address, or a name in small letters without its last dot.

    Raises:
        ValueError: If it is neither; the text gives the reason.
    """
    host = text.lower()
    if host.startswith("[") and host.endswith("]"):
        return _ipv6(host[1:-1])
    if ":" in host:
        return _ipv6(host)
    name = host.removesuffix(".")
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):  # as in a browser: a name that ends in a number is an address, or invalid
        return _ipv4(name)
    if len(name) > _MOST_CHARACTERS or not all(map(_LABEL.fullmatch, labels)):
        msg = f"{text[:_MOST_CHARACTERS]!r} is no host: names consist of ASCII letters, digits, dots and hyphens"
        raise ValueError(msg)
    return name


def _ipv6(text: str) -> Address:
    if "%" in text:
        msg = f"{text!r} has a zone, which means something on this machine only"
        raise ValueError(msg)
    return IPv6Address(text)


def _ipv4(text: str) -> Address:
    """Parse an address as browsers do.

    Source: the URL standard, "IPv4 parser". C libraries differ from each other, and take what follows a space.

    Raises:
        ValueError: If it is none.
    """
    parts = text.split(".")
    if len(parts) <= 4 and all(map(_NUMBER.fullmatch, parts)):
        with contextlib.suppress(ValueError):  # 8 and 9 are no octal digits
            *firsts, last = [
                int(part[2:] or "0", 16) if part[1:2] == "x" else int(part, 8 if part[0] == "0" else 10)
                for part in parts
            ]
            if all(first < 256 for first in firsts) and last < 256 ** (4 - len(firsts)):
                return IPv4Address(sum(first << (24 - 8 * index) for index, first in enumerate(firsts)) + last)
    msg = f"{text[:_MOST_CHARACTERS]!r} is no IPv4 address"
    raise ValueError(msg)


def embedded_address(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address contains, or the address."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address in _NAT64 or (address in _COMPATIBLE and int(address) > 1):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def private_kind(address: Address) -> str | None:
    """Return the kind of a private address; None if it is public."""
    inner = embedded_address(address)
    special = next((kind for network, kind in _SPECIAL if inner in network), None)
    if special is not None:
        return special
    if inner.is_unspecified:
        return "of this machine"
    if inner.is_loopback:
        return "loopback"
    if inner.is_link_local:
        return "link-local"
    if inner.is_multicast:
        return "multicast"
    if isinstance(inner, IPv6Address) and inner not in _UNICAST:
        return "private" if inner.is_private else "reserved"
    if not inner.is_global or inner.is_reserved:
        return "private" if inner.is_private and not inner.is_reserved else "reserved"
    return None


def parse_network(text: str) -> Network | None:
    """Parse an address, or a network such as ``10.0.0.0/8``.

    None if it is a name.

    Raises:
        ValueError: If it is neither a network nor a host.
    """
    if "/" in text:
        return ipaddress.ip_network(text.replace("[", "").replace("]", ""))
    host = canonical_host(text)
    return None if isinstance(host, str) else ipaddress.ip_network(embedded_address(host))
