"""Names of keys, and the parts of a page that they press."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.browser._page_snapshot import BUTTONS, ENTERED

if TYPE_CHECKING:
    from callboard.surfaces.browser._page_snapshot import PageNode

_KEYS = {
    "alt": "Alt",
    "backspace": "Backspace",
    "ctrl": "Control",
    "control": "Control",
    "del": "Delete",
    "delete": "Delete",
    "down": "ArrowDown",
    "end": "End",
    "enter": "Enter",
    "esc": "Escape",
    "escape": "Escape",
    "home": "Home",
    "insert": "Insert",
    "left": "ArrowLeft",
    "meta": "Meta",
    "page_down": "PageDown",
    "page_up": "PageUp",
    "pagedown": "PageDown",
    "pageup": "PageUp",
    "return": "Enter",
    "right": "ArrowRight",
    "shift": "Shift",
    "space": "Space",
    "tab": "Tab",
    "up": "ArrowUp",
    " ": "Space",
    "\n": "Enter",
    "\r": "Enter",
    "\t": "Tab",
    **{name.casefold(): name for name in ("ArrowDown", "ArrowLeft", "ArrowRight", "ArrowUp", "NumpadEnter")},
    **{f"f{number}": f"F{number}" for number in range(1, 13)},
}
_PRESSING = frozenset({"Enter", "NumpadEnter", "Space"})
"""The keys that press the focused control."""


def key_names(keys: str) -> str:
    """Return keys in the browser's spelling.

    Raises:
        ToolError: If there is no such key: one by another name could press a control without a ruling.

    >>> key_names("ctrl+a")
    'Control+a'
    """
    head, plus, last = keys.rpartition("+")
    names = [*(head.removesuffix("+").split("+") if head else []), last or "+"] if plus else [keys]
    unknown = [name for name in names if name.casefold() not in _KEYS and not (len(name) == 1 and name.isprintable())]
    if unknown:
        named = ", ".join(sorted(name for name in _KEYS if name.isprintable() and name != " "))
        msg = f"there is no key {unknown[0]!r}; there are letters, digits, signs, and {named}"
        raise ToolError(msg)
    return "+".join(_KEYS.get(name.casefold(), name) for name in names)


def presses(keys: str) -> bool:
    """Return whether keys press the focused control."""
    return key_names(keys).rpartition("+")[2] in _PRESSING


def pressed_by(focused: PageNode | None, keys: str) -> tuple[PageNode | None, bool]:
    """Return the part that keys press, and whether as a field.

    Enter in a field submits its form.
    """
    if focused is None or not presses(keys):
        return None, False
    is_enter = key_names(keys).endswith("Enter")
    if focused.role in ENTERED:
        return (focused, True) if is_enter else (None, False)
    return (focused, False) if focused.role in BUTTONS or focused.is_clickable else (None, False)
