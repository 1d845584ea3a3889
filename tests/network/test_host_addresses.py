"""Hosts in one form, and the kinds of addresses."""

from __future__ import annotations

import ipaddress
import socket
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.network._host_addresses import canonical_host, embedded_address, parse_network, private_kind

IPV4 = st.integers(0, 2**32 - 1).map(IPv4Address)


def forms_of(address: IPv4Address) -> list[str]:
    """List the forms of an address that resolvers take."""
    a, b, c, d = address.packed
    number = int(address)
    return [
        str(address),
        f"{address}.",
        str(number),
        hex(number),
        f"0{number:o}",
        f"{a:#x}.{b:#X}.0{c:o}.{d}",
        f"{a}.{b}.{c * 256 + d}",
        f"{a}.{number & 0xFFFFFF}",
    ]


def containers_of(address: IPv4Address) -> list[IPv6Address]:
    """List the IPv6 addresses that stand for an IPv4 address."""
    number = int(address)
    mapped, nat64, sixtofour = (int(IPv6Address(text)) for text in ("::ffff:0:0", "64:ff9b::", "2002::"))
    return [IPv6Address(mapped | number), IPv6Address(nat64 | number), IPv6Address(sixtofour | number << 80)]


@given(IPV4)
def test_all_forms_of_an_address_are_the_same_host(address):
    assert {canonical_host(form) for form in forms_of(address)} == {address}


@given(IPV4)
def test_an_address_within_an_address_has_its_kind(address):
    for container in containers_of(address):
        assert embedded_address(canonical_host(f"[{container}]")) == address
        assert private_kind(container) == private_kind(address)


@given(st.from_regex(r"(0x)?[0-9a-fA-Fx.]{1,20}", fullmatch=True))
def test_host_that_a_resolver_takes_as_an_address_is_no_name(text):
    try:
        expected = IPv4Address(socket.inet_aton(text))
    except OSError:
        return
    assert canonical_host(text) == expected


@given(st.text(max_size=40))
def test_any_text_has_one_form_or_is_refused(text):
    try:
        host = canonical_host(text)
    except ValueError:
        return
    assert canonical_host(str(host)) == host


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("0.0.0.0", "of this machine"),  # noqa: S104 - nothing is bound
        ("::", "of this machine"),
        ("127.8.9.1", "loopback"),
        ("::1", "loopback"),
        ("::127.0.0.1", "loopback"),
        ("10.1.2.3", "private"),
        ("172.31.0.1", "private"),
        ("192.168.0.1", "private"),
        ("198.18.0.1", "private"),
        ("203.0.113.1", "private"),
        ("fd00:ec2::254", "private"),
        ("2001:db8::1", "private"),
        ("2001::1", "private"),
        ("169.254.169.254", "link-local"),
        ("fe80::1", "link-local"),
        ("100.100.100.200", "of a carrier's own network"),
        ("168.63.129.16", "of the cloud's own services"),
        ("192.0.0.192", "reserved"),
        ("192.88.99.1", "reserved"),
        ("240.0.0.1", "reserved"),
        ("255.255.255.255", "reserved"),
        ("64:ff9b:1::1", "reserved"),
        ("fec0::1", "reserved"),
        ("4000::1", "reserved"),
        ("3fff::1", "reserved"),
        ("::ffff:0:127.0.0.1", "reserved"),
        ("224.0.0.251", "multicast"),
        ("ff02::fb", "multicast"),
        ("9.9.9.9", None),
        ("2620:fe::fe", None),
        ("64:ff9b::9.9.9.9", None),
    ],
)
def test_kind_of_an_address(address, kind):
    assert private_kind(ipaddress.ip_address(address)) == kind


@given(IPV4 | st.integers(0, 2**128 - 1).map(IPv6Address))
def test_address_without_a_kind_is_global_unicast(address):
    if private_kind(address) is None:
        inner = embedded_address(address)
        assert inner.is_global
        assert not inner.is_multicast


@pytest.mark.parametrize(
    "text",
    ["", ".", "a..b", "-a.org", "a b", "a\n", "bücher.de", "a/b", "a@b", "1.2.3.4.5", "256.1.1.1", "08.1.1.1", "a.0x1",
     "fe80::1%eth0", "[fe80::1%25eth0]", "[::1", "a:b", "x" * 64 + ".org", "a." * 130 + "org"],
)  # fmt: skip
def test_host_that_is_malformed_is_refused(text):
    with pytest.raises(ValueError, match=r"host|address|zone|IPv|Expected|permitted|colons|parts"):
        canonical_host(text)


def test_name_has_small_letters_and_no_last_dot():
    assert canonical_host("WWW.Example.ORG.") == "www.example.org"


def test_network_is_parsed_and_a_name_is_none():
    assert parse_network("10.0.0.0/8") == ipaddress.ip_network("10.0.0.0/8")
    assert parse_network("[fd00::]/8") == ipaddress.ip_network("fd00::/8")
    assert parse_network("::ffff:10.0.0.1") == ipaddress.ip_network("10.0.0.1")
    assert parse_network("example.org") is None
    with pytest.raises(ValueError, match="host bits"):
        parse_network("10.0.0.1/8")
