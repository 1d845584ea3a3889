"""Decisions about hosts and their addresses."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.network._host_addresses import canonical_host, private_kind
from callboard.network._network_rules import HostRule, NetworkRules

ADDRESSES = st.ip_addresses()
NAMES = st.from_regex(r"[a-z]{1,8}(\.[a-z]{1,8}){0,2}\.(org|test)", fullmatch=True)
PORTS = st.integers(1, 65_535)
PUBLIC, LOOPBACK, METADATA = "9.9.9.9", "127.0.0.1", "169.254.169.254"


def refusal(rules, host, *addresses, port=443, default_ports=(443,)):
    """Decide about a host as the proxy does; give the first refusal."""
    form = canonical_host(host)
    refused = rules.refuse_host(form, port, default_ports=default_ports)
    if refused is not None:
        return refused
    resolved = [ipaddress.ip_address(text) for text in addresses] if isinstance(form, str) else [form]
    verdicts = (rules.refuse_address(form, address, port, default_ports=default_ports) for address in resolved)
    return next(filter(None, verdicts), None)


@pytest.mark.parametrize(
    ("allow", "host", "is_allowed"),
    [
        ("example.org", "example.org", True),
        ("example.org", "EXAMPLE.org.", True),
        ("EXAMPLE.org.", "example.org", True),
        ("example.org", "www.example.org", False),
        ("example.org", "badexample.org", False),
        ("example.org", "example.org.evil.test", False),
        ("*.example.org", "www.example.org", True),
        ("*.example.org", "a.b.example.org", True),
        ("*.example.org", "example.org", False),
        ("*.example.org", "badexample.org", False),
        ("*", "example.org", True),
        ("*", PUBLIC, True),
        ("9.9.9.0/24", PUBLIC, True),
        ("9.9.9.9", "[::ffff:9.9.9.9]", True),
        ("9.9.9.9", "151587081", True),
        ("9.9.9.8", PUBLIC, False),
        ("9.9.9.9", "example.org", False),
        ("[2620:fe::fe]", "[2620:FE:0::fe]", True),
        ("2620:fe::/32", "[2620:fe::1]", True),
    ],
)
def test_host_is_allowed_by_its_entry(allow, host, is_allowed):
    assert (refusal(NetworkRules((allow,)), host, PUBLIC) is None) is is_allowed


@pytest.mark.parametrize(
    ("allow", "port", "is_allowed"),
    [
        ("example.org", 443, True),
        ("example.org", 22, False),
        ("example.org:8443", 8443, True),
        ("example.org:8443", 443, False),
        ("example.org:*", 22, True),
        ("*:8080", 8080, True),
        ("*.org:8443", 8443, True),
        ("*", 25, False),
    ],
)
def test_port_is_allowed_by_its_entry(allow, port, is_allowed):
    assert (refusal(NetworkRules((allow,)), "example.org", PUBLIC, port=port) is None) is is_allowed


def test_port_of_http_is_allowed_for_http_only():
    rules = NetworkRules(("*",))
    assert refusal(rules, "example.org", PUBLIC, port=80, default_ports=(80,)) is None
    assert refusal(rules, "example.org", PUBLIC, port=80) is not None


@pytest.mark.parametrize(
    ("deny", "host", "addresses"),
    [
        ("example.org", "example.org", [PUBLIC]),
        ("*.org", "example.org", [PUBLIC]),
        ("9.9.9.0/24", "example.org", [PUBLIC]),
        ("9.9.9.9", "[64:ff9b::909:909]", []),
        ("64:ff9b::/96", "[64:ff9b::909:909]", []),
        ("9.9.9.9", "example.org", ["1.1.1.1", "::ffff:9.9.9.9"]),
        ("example.org:443", "example.org", [PUBLIC]),
        ("*", "example.org", [PUBLIC]),
    ],
)
def test_denied_host_is_refused_though_it_is_allowed(deny, host, addresses):
    assert refusal(NetworkRules(("*", host), (deny,)), host, *addresses).rule == f"denied by {deny!r}"


def test_denied_port_leaves_the_others():
    rules = NetworkRules(("*", "*:8080"), ("example.org:8080",))
    assert refusal(rules, "example.org", PUBLIC, port=8080) is not None
    assert refusal(rules, "example.org", PUBLIC) is None


@pytest.mark.parametrize("address", [LOOPBACK, METADATA, "10.0.0.1", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"])
def test_private_address_is_refused_under_any_name(address):
    host = f"[{address}]" if ":" in address else address
    assert refusal(NetworkRules(("*",)), host) is not None
    assert refusal(NetworkRules(("*", "example.org")), "example.org", address) is not None
    assert refusal(NetworkRules(("*",)), "example.org", PUBLIC, address) is not None
    assert refusal(NetworkRules(("*",)), "localhost", address) is not None


def test_private_address_is_allowed_where_it_is_named():
    rules = NetworkRules(("*", "127.0.0.1:8080", "10.0.0.0/8"))
    assert refusal(rules, LOOPBACK, port=8080) is None
    assert refusal(rules, "2130706433", port=8080) is None
    assert refusal(rules, "[::ffff:127.0.0.1]", port=8080) is None
    assert refusal(rules, "10.1.2.3") is None
    assert refusal(rules, LOOPBACK).rule == "no rule names its port 443"
    assert refusal(rules, "192.168.0.1").rule == "its address is private, and no rule names it"


def test_name_reaches_a_private_address_only_if_both_are_named():
    rules = NetworkRules(("*", "*.example.org", "wiki.corp", "10.0.0.0/8"))
    assert refusal(rules, "wiki.corp", "10.1.2.3") is None
    assert refusal(rules, "wiki.corp", LOOPBACK) is not None
    assert refusal(rules, "evil.test", "10.1.2.3") is not None
    assert refusal(rules, "evil.example.org", "10.1.2.3") is not None
    assert refusal(NetworkRules(("wiki.corp:8080", "10.0.0.0/8")), "wiki.corp", "10.1.2.3", port=8080) is not None
    assert (
        refusal(NetworkRules(("wiki.corp", "wiki.corp:8080", "10.0.0.0/8:8080")), "wiki.corp", "10.1.2.3") is not None
    )


def test_localhost_names_the_loopback_addresses_on_its_port():
    rules = NetworkRules(("localhost:8080",))
    assert refusal(rules, "localhost", LOOPBACK, "::1", port=8080) is None
    assert refusal(rules, "localhost", "10.0.0.1", port=8080) is not None
    assert refusal(rules, "localhost", LOOPBACK, port=8081) is not None
    assert refusal(rules, LOOPBACK, port=8080) is not None


@given(NAMES, st.lists(ADDRESSES, min_size=1, max_size=3), PORTS)
def test_a_name_reaches_public_addresses_only(name, addresses, port):
    rules = NetworkRules(("*:*", "*.org:*"))
    is_private = any(private_kind(address) is not None for address in addresses)
    assert (refusal(rules, name, *map(str, addresses), port=port) is not None) is is_private


@given(NAMES | ADDRESSES.map(str), ADDRESSES, PORTS, st.lists(NAMES, max_size=3))
def test_a_denial_always_wins(host, address, port, allow):
    form = f"[{host}]" if ":" in host else host
    rules = NetworkRules(("*:*", f"{form}:*", "0.0.0.0/0:*", "[::]/0:*", *allow), (form,))
    assert refusal(rules, form, str(address), port=port) is not None


@given(NAMES | ADDRESSES.map(str), PORTS)
def test_host_without_an_entry_is_refused(host, port):
    assert refusal(NetworkRules(()), f"[{host}]" if ":" in host else host, PUBLIC, port=port) is not None


@pytest.mark.parametrize(
    "text",
    ["", "http://example.org", "example.org/path", "*.*", "w*.org", "*.9.9.9.9", "a b", "example.org:0", "bücher.de",
     "example.org:70000", "10.0.0.1/8", "[::1", "a@b", "example.org:http", "[::1]:", "**", "*.org:443:443"],
)  # fmt: skip
def test_invalid_entry_is_refused_with_the_reason(text):
    with pytest.raises(ValueError, match=r"is no host|is no port|has no names"):
        NetworkRules((text,))
    with pytest.raises(ValueError, match=r"is no host|is no port|has no names"):
        NetworkRules((), (text,))


@pytest.mark.parametrize(
    ("text", "name", "network", "port"),
    [
        ("[::1]:8080", "", "::1/128", 8080),
        ("::1", "", "::1/128", None),
        ("fd00::/8", "", "fd00::/8", None),
        ("[fd00::]/8:443", "", "fd00::/8", 443),
        ("10.0.0.0/8:443", "", "10.0.0.0/8", 443),
        ("*.Example.org:8080", "*.example.org", None, 8080),
    ],
)
def test_entry_is_read_with_its_port(text, name, network, port):
    rule = HostRule.parse(text)
    assert (rule.name, rule.network and str(rule.network), rule.port) == (name, network, port)


def test_refusal_names_host_address_and_rule():
    refused = refusal(NetworkRules(("*",)), "example.org", LOOPBACK)
    assert str(refused) == "example.org:443 (127.0.0.1) is refused: its address is loopback, and no rule names it"
    assert (
        str(refusal(NetworkRules(()), "[::1]")) == "[::1]:443 is refused: its address is loopback, and no rule names it"
    )
