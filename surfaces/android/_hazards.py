"""Hazards of touches, keys and addresses on a device.

A device does not describe the effect of a button. It is inferred from the application, from the button's resource id,
from its label, and for an answer from the question. Where that is not enough, the policy needs a rule.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from callboard.messages import Hazard
from callboard.surfaces._hazard_words import of_answer, of_beginning, of_name
from callboard.surfaces.android._hierarchy import FIELD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from callboard.surfaces.android._hierarchy import Hierarchy, ScreenNode

_WORDS = {
    Hazard.SENDS: r"call|dial|emergency|sos|answer|(?:video|voice|start|make) call",
    Hazard.SPENDS: r"top ?up"
    r"|(?:place|confirm|complete|make|submit|proceed to|continue to|slide to|swipe to)(?: \w+)? "
    r"(?:bid|order|payment|purchase|pay|check ?out)|start (?:free )?trial",
    Hazard.INSTALLS: r"update|update all|get app",
    Hazard.DELETES: r"factory",
    Hazard.CONFIGURES: r"allow|don.?t allow|deny|while using the app|only this time|grant|activate|trust",
}
"""The words that phones use, in addition to the common ones."""
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
_BUTTONS = frozenset({"button", "switch", "check box", "radio button"})
_DIALOG_PARTS = frozenset({"alertTitle", "parentPanel", "buttonPanel", "button1", "message"})
"""The resource ids of Android's own dialogs."""
_FEWEST_ANSWERS, _MOST_ANSWERS = 2, 4
"""The numbers of controls in a dialog of an application's own design."""
_SCHEMES = {
    "tel": Hazard.SENDS,
    "sms": Hazard.SENDS,
    "smsto": Hazard.SENDS,
    "mms": Hazard.SENDS,
    "mailto": Hazard.SENDS,
    "market": Hazard.INSTALLS,
    "xmpp": Hazard.SENDS,
    "sip": Hazard.SENDS,
    "upi": Hazard.SPENDS,
    "bitcoin": Hazard.SPENDS,
}
_PAGES = frozenset({"http", "https", "geo", "about"})
"""The schemes of addresses that only show something. An address of any other scheme may start any action."""
_KEYS = {
    "KEYCODE_CALL": Hazard.SENDS,
    "KEYCODE_HEADSETHOOK": Hazard.SENDS,
    "KEYCODE_POWER": Hazard.CONFIGURES,
}
PRESSES = frozenset(
    {"KEYCODE_ENTER", "KEYCODE_NUMPAD_ENTER", "KEYCODE_DPAD_CENTER", "KEYCODE_SPACE", "KEYCODE_BUTTON_A"}
)
"""The keys that press the focused control."""
_NUMBERS = {
    "5": "KEYCODE_CALL",
    "23": "KEYCODE_DPAD_CENTER",
    "26": "KEYCODE_POWER",
    "62": "KEYCODE_SPACE",
    "66": "KEYCODE_ENTER",
    "79": "KEYCODE_HEADSETHOOK",
    "96": "KEYCODE_BUTTON_A",
    "160": "KEYCODE_NUMPAD_ENTER",
}


def of_touch(node: ScreenNode) -> set[Hazard]:
    """Return the hazards of a touch of a control."""
    if node.kind in _HARMLESS and not node.acts:
        return set()
    words = {word.casefold() for word in re.split(r"[^A-Za-z]+|(?<=[a-z])(?=[A-Z])", node.resource)}
    hazards = {hazard for hazard, id_words in _ID_WORDS.items() if words & id_words}
    hazards |= {hazard for hazard, pattern in _FIRST_WORDS.items() if any(map(pattern.match, _texts(node)))}
    hazards |= set().union(*(_of_text(node, text) for text in _texts(node)))
    if node.kind not in _HARMLESS:
        of_package = {hazard for hazard, ends in _PACKAGES.items() if node.package.endswith(ends)}
        hazards |= {hazard for hazard in of_package if _changes(node, hazard)}
    return hazards


def of_key(key: str, hierarchy: Hierarchy | None) -> set[Hazard]:
    """Return the hazards of a key.

    Enter and similar keys press the focused control, or the button that sends the typed text.

    Args:
        key: The key's Android name, or its number.
        hierarchy: The hierarchy on the screen; None if it is not known.
    """
    name = _NUMBERS.get(key, key)
    if name not in PRESSES:
        return {_KEYS[name]} if name in _KEYS else set()
    if hierarchy is None:
        return {Hazard.UNKNOWN}
    acting = [(node, of_touch(node)) for node in hierarchy.reported_nodes() if node.acts]
    focused = set().union(*(hazards for node, hazards in acting if node.is_("focused")))
    sends = name.endswith("ENTER") and any(Hazard.SENDS in hazards for _, hazards in acting)
    return focused | ({Hazard.SENDS} if sends else set())


def of_text(text: str, hierarchy: Hierarchy | None) -> set[Hazard]:
    """Return the hazards of typing a text, whose line breaks press Enter.

    After a tab, any control may have the focus.
    """
    head, tab, tail = text.partition("\t")
    hazards = of_key("KEYCODE_ENTER", hierarchy) if re.search(r"[\r\n]", head) else set()
    if not tab or not re.search(r"[\s]", tail):
        return hazards
    return {Hazard.UNKNOWN} if hierarchy is None else hazards.union(*map(of_touch, hierarchy.reported_nodes()))


def of_address(url: str) -> set[Hazard]:
    """Return the hazards of opening an address."""
    scheme = url.partition(":")[0].casefold()
    return set() if scheme in _PAGES else {_SCHEMES.get(scheme, Hazard.UNKNOWN)}


def _of_text(node: ScreenNode, text: str) -> set[Hazard]:
    """Return the hazards of a control with a text.

    An entry of a list may have any text, so only its beginning counts.
    """
    if node.kind not in _BUTTONS:
        return of_beginning(text)
    return of_name(text) | of_answer(text, _question(node))


def _question(node: ScreenNode) -> list[str]:
    """Return the texts of the dialog that a button answers, if any."""
    top = node
    while top.parent is not None:
        top = top.parent
    parts = list(_descendants(top))
    acting = [part for part in parts if part.acts]
    named = any(part.resource in _DIALOG_PARTS for part in parts)
    small = len(acting) <= _MOST_ANSWERS and all(part.kind != FIELD for part in acting)
    if len(acting) < _FEWEST_ANSWERS or not (named or small):
        return []
    return [part.text or part.values.get("content-desc", "") for part in parts if not part.acts]


def _descendants(node: ScreenNode) -> Iterator[ScreenNode]:
    for child in node.children:
        yield child
        yield from _descendants(child)


def _texts(node: ScreenNode) -> Iterator[str]:
    yield node.values.get("content-desc", "")
    yield node.text
    if node.acts and not node.is_("scrollable"):
        yield from node.labels()


def _changes(node: ScreenNode, hazard: Hazard) -> bool:
    """Return whether a touch may change something.

    An entry of the settings without a switch only opens another page.
    """
    return hazard is not Hazard.CONFIGURES or node.kind != "item" or any(map(_is_switch, node.children))


def _is_switch(node: ScreenNode) -> bool:
    return node.is_("checkable") or any(map(_is_switch, node.children))
