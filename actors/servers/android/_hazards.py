"""Telling from what is touched whether a person may want to see it first.

A device does not say what a button does. It is told by the application, by the names that its programmers have given to
the button, and by the words on it, which are English. A rule of the policy says more where that is not enough.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from callboard.messages import Hazard

if TYPE_CHECKING:
    from collections.abc import Iterator

    from callboard.actors.servers.android._hierarchy import Hierarchy, Node

_WORDS = {
    Hazard.SENDS: r"call|dial|send|post|publish|share|reply|forward|submit|upload|video call",
    Hazard.SPENDS: r"buy|pay|purchase|subscribe|order|check ?out|donate|top ?up|transfer|place bid|confirm payment",
    Hazard.INSTALLS: r"install|update|update all|get app",
    Hazard.DELETES: r"delete|remove|erase|uninstall|discard|empty|clear (?:all|data|storage|cache)|reset|factory|wipe",
    Hazard.CONFIGURES: r"allow|don.?t allow|deny|while using the app|only this time|grant|activate|trust",
}
_FIRST_WORDS = {hazard: re.compile(rf"(?:{words})\b", re.IGNORECASE) for hazard, words in _WORDS.items()}
_ID_WORDS = {
    Hazard.SENDS: {"call", "dial", "send", "post", "publish", "share", "reply", "forward", "upload", "dialpad"},
    Hazard.SPENDS: {"buy", "pay", "purchase", "subscribe", "checkout", "donate"},
    Hazard.INSTALLS: {"install"},
    Hazard.DELETES: {"delete", "remove", "erase", "uninstall", "discard", "wipe"},
    Hazard.CONFIGURES: {"allow", "grant", "deny"},
}
_PACKAGES = {
    Hazard.CONFIGURES: (".settings", ".permissioncontroller"),
    Hazard.INSTALLS: (".packageinstaller",),
}
_HARMLESS = frozenset({"list", "text field", "label", "image"})
_SCHEMES = {
    "tel": Hazard.SENDS,
    "sms": Hazard.SENDS,
    "smsto": Hazard.SENDS,
    "mms": Hazard.SENDS,
    "mailto": Hazard.SENDS,
    "market": Hazard.INSTALLS,
    "upi": Hazard.SPENDS,
}
_KEYS = {
    "KEYCODE_CALL": Hazard.SENDS,
    "5": Hazard.SENDS,
    "KEYCODE_POWER": Hazard.CONFIGURES,
    "26": Hazard.CONFIGURES,
}
ENTER = frozenset({"KEYCODE_ENTER", "66", "KEYCODE_NUMPAD_ENTER", "160"})


def of_touch(node: Node) -> set[Hazard]:
    """Tell what a touch of something may do."""
    if node.kind in _HARMLESS and not node.acts:
        return set()
    words = set(re.split(r"[^a-z]+|(?<=[a-z])(?=[A-Z])", node.resource.casefold()))
    found = {hazard for hazard, known in _ID_WORDS.items() if words & known}
    found |= {hazard for hazard, known in _FIRST_WORDS.items() if any(map(known.match, _texts(node)))}
    if node.kind not in _HARMLESS:
        theirs = {hazard for hazard, ends in _PACKAGES.items() if node.package.endswith(ends)}
        found |= {hazard for hazard in theirs if _changes(node, hazard)}
    return found


def of_enter(hierarchy: Hierarchy) -> set[Hazard]:
    """Tell what the key Enter may do: it may press the button that sends what was typed."""
    return {Hazard.SENDS} if any(Hazard.SENDS in of_touch(node) for node in hierarchy.shown() if node.acts) else set()


def of_key(key: str) -> set[Hazard]:
    """Tell what a key may do, by its name as Android has it."""
    return {_KEYS[key]} if key in _KEYS else set()


def of_address(url: str) -> set[Hazard]:
    """Tell what opening an address may do."""
    scheme = url.partition(":")[0].casefold()
    return {_SCHEMES[scheme]} if scheme in _SCHEMES else set()


def _texts(node: Node) -> Iterator[str]:
    yield node.values.get("content-desc", "")
    yield node.text
    if node.acts and not node.is_("scrollable"):
        yield from node.labels()


def _changes(node: Node, hazard: Hazard) -> bool:
    """Return whether a touch may change something there: an entry of the settings only leads to others."""
    return hazard is not Hazard.CONFIGURES or node.kind != "item" or any(map(_is_switch, node.children))


def _is_switch(node: Node) -> bool:
    return node.is_("checkable") or any(map(_is_switch, node.children))
