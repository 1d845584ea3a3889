"""Synthetic pointer and keyboard input by the XTest extension."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from Xlib import XK, X
from Xlib.ext import xtest

from callboard.surfaces._tool_function import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from callboard.surfaces.desktop._xscreen import XScreen

Button = Literal["left", "middle", "right"]
_BUTTONS: dict[str, int] = {"left": 1, "middle": 2, "right": 3, "up": 4, "down": 5, "back": 6, "forth": 7}
_MODIFIERS = {
    "shift": "Shift_L",
    "ctrl": "Control_L",
    "control": "Control_L",
    "alt": "Alt_L",
    "super": "Super_L",
    "meta": "Super_L",
    "win": "Super_L",
}
_NAMES = {
    "enter": "Return",
    "esc": "Escape",
    "del": "Delete",
    "ins": "Insert",
    "pageup": "Prior",
    "pagedown": "Next",
    "backspace": "BackSpace",
    "space": "space",
    "spacebar": "space",
}
_CONTROLS = {"\n": "Return", "\t": "Tab", "\r": "Return", "\b": "BackSpace"}
_REMAPPED_SECONDS = 0.1
"""The time for programs to notice a changed key mapping."""
_STEP_SECONDS = 0.002
"""The pause between two characters: some programs lose faster keys."""
_DRAG_STEPS = 10
_DRAG_SECONDS = 0.01
_DOUBLE_SECONDS = 0.05
_FIRST_BUTTON = 8
"""The bit of the first button in the state of the pointer."""
_LAYOUT = 3 << 13
"""The bits of the keyboard's layout in the state of the pointer, 0 for the first one."""
_UNICODE = 0x01000000
"""Added to a code point beyond Latin 1, this gives the number of its key symbol."""
_LATIN, _FUNCTIONS = 0xA0, 0xFD00
"""The first key symbols beyond ASCII, and of keys that produce no characters."""


_ENTERS = {XK.string_to_keysym(name) for name in ("Return", "KP_Enter", "Linefeed", "3270_Enter")} - {0}
_SPACES = {XK.string_to_keysym(name) for name in ("space", "KP_Space")}
_SHIFT = XK.string_to_keysym("Shift_L")
_EDGE = 0xFE00
"""The first key symbol of keys that move the focus or the cursor, and of other keys without a character."""


@dataclass(frozen=True)
class KeyPress:
    """One press of a key."""

    symbol: int
    modified: bool = False
    """True if a modifier key other than Shift is down."""

    @property
    def enters(self) -> bool:
        """True for Return and the like, which may press the default button."""
        return self.symbol in _ENTERS

    @property
    def spaces(self) -> bool:
        """True for the space bar, which presses the focused button."""
        return self.symbol in _SPACES

    @property
    def moves(self) -> bool:
        """True for a key that may move the focus."""
        return _EDGE <= self.symbol < _UNICODE and not self.enters

    @property
    def letter(self) -> str:
        """Its character, in lower case; empty for other keys."""
        code = self.symbol - _UNICODE if self.symbol > _UNICODE else self.symbol
        return "" if self.moves or self.enters or self.spaces else chr(code).casefold()


class XKeyboard:
    """The keyboard of a display.

    Characters that no key produces are mapped to unused keys.

    Args:
        screen: The display's screen.
    """

    def __init__(self, screen: XScreen) -> None:
        self._screen = screen
        self._display = screen.display
        first = self._display.display.info.min_keycode
        count = self._display.display.info.max_keycode - first + 1
        rows = self._display.get_keyboard_mapping(first, count)
        self._keys: dict[int, tuple[int, bool]] = {}
        spare = [keycode for keycode, row in enumerate(rows, first) if not any(row) or _was_mapped(row)]
        for keycode, row in enumerate(rows, first):
            for level in (1, 0) if keycode not in spare else ():
                if len(row) > level and row[level]:
                    self._keys[row[level]] = (keycode, bool(level))
        self._spare = [keycode for keycode in spare if keycode != first]
        self._mapped: dict[int, int] = {}

    def symbols(self, keys: str) -> list[int]:
        """Parse a combination of keys such as ``ctrl+shift+s`` or ``Return``.

        Raises:
            ToolError: If there is no such key.
        """
        plus = keys == "+" or keys.endswith("++")
        *modifiers, last = [key.strip() for key in (keys[:-2] if plus else keys).split("+")]
        if plus:
            modifiers, last = [*modifiers, last] if last else [], "+"
        return [self._modifier(modifier) for modifier in modifiers] + [self._symbol(last)]

    def presses(self, keys: str, text: str = "") -> list[KeyPress]:
        """Return the single presses of a combination and a typed text.

        Raises:
            ToolError: If there is no such key, or a character can't be typed.
        """
        *modifiers, last = self.symbols(keys) if keys else [0]
        first = [KeyPress(last, modified=any(modifier != _SHIFT for modifier in modifiers))] if keys else []
        return [*first, *(KeyPress(self._of_character(character)) for character in text)]

    def press(self, symbols: Sequence[int]) -> None:
        """Press keys in order, and release them in reverse order."""
        codes = [self._key(symbol) for symbol in symbols]
        shift = self._keys[XK.string_to_keysym("Shift_L")][0]
        down = [code for code, _ in codes]
        if codes[-1][1] and shift not in down:
            down.insert(0, shift)
        with self._screen.lock:
            for code in down:
                xtest.fake_input(self._display, X.KeyPress, code)
            for code in reversed(down):
                xtest.fake_input(self._display, X.KeyRelease, code)
            self._display.sync()

    def hold(self, modifiers: Iterable[str], action: Callable[[], None]) -> None:
        """Perform an action while modifier keys are down."""
        codes = [self._key(self._modifier(modifier))[0] for modifier in modifiers]
        try:
            for code in codes:
                xtest.fake_input(self._display, X.KeyPress, code)
            action()
        finally:
            for code in reversed(codes):
                xtest.fake_input(self._display, X.KeyRelease, code)
            self._display.sync()

    def type(self, text: str, press: Callable[[int], None]) -> None:
        """Type a text.

        Args:
            text: The text.
            press: Presses the key of one character; raises if it must not be pressed.

        Raises:
            ToolError: If a character can't be typed; nothing is typed then.
        """
        symbols = [self._of_character(character) for character in text]
        typed_count = 0
        while typed_count < len(symbols):
            part = self._fitting(symbols[typed_count:])
            self._map(part)
            for symbol in part:
                press(symbol)
                time.sleep(_STEP_SECONDS)
            typed_count += len(part)

    def restore(self) -> None:
        """Remove the mappings from unused keys."""
        if self._mapped:
            time.sleep(_REMAPPED_SECONDS)  # the last keys may not be handled yet
            with self._screen.lock:
                for keycode in self._mapped.values():
                    self._display.change_keyboard_mapping(keycode, [(X.NoSymbol, X.NoSymbol)])
                self._display.sync()
            self._mapped.clear()

    def release_all(self) -> None:
        """Release the keys and buttons that a killed program left down.

        Those that a person holds down are not affected.
        """
        down = self._display.query_keymap()
        buttons = self._screen.root.query_pointer().mask >> _FIRST_BUTTON
        with self._screen.lock:
            for keycode in range(8 * len(down)):
                if down[keycode // 8] >> keycode % 8 & 1:
                    xtest.fake_input(self._display, X.KeyRelease, keycode)
            for button in range(1, 6):
                if buttons >> (button - 1) & 1:
                    xtest.fake_input(self._display, X.ButtonRelease, button)
            self._display.sync()

    def held(self) -> str:
        """Return the name of a pressed modifier key; empty without one."""
        mask = self._screen.root.query_pointer().mask
        held = {"Shift": X.ShiftMask, "Ctrl": X.ControlMask, "Alt": X.Mod1Mask, "Super": X.Mod4Mask}
        return next((name for name, bit in held.items() if mask & bit), "")

    def locked(self) -> str:
        """Return a message about an active keyboard lock; empty without one."""
        mask = self._screen.root.query_pointer().mask
        if mask & X.LockMask:
            return "Caps Lock is on"
        return "another keyboard layout is in use" if mask & _LAYOUT else ""

    def unlock(self) -> None:
        """Switch Caps Lock off."""
        if self._screen.root.query_pointer().mask & X.LockMask:
            self.press([int(XK.string_to_keysym("Caps_Lock"))])

    def _fitting(self, symbols: list[int]) -> list[int]:
        """Return the longest prefix of the symbols for which there are keys."""
        needed: set[int] = set()
        for index, symbol in enumerate(symbols):
            if symbol not in self._keys:
                needed.add(symbol)
            if not self._spare and needed:
                msg = "this display has no keys for the text, and no unused keys"
                raise ToolError(msg)
            if len(needed) > len(self._spare):
                return symbols[:index]
        return symbols

    def _map(self, symbols: Sequence[int]) -> None:
        """Map symbols to unused keys."""
        foreign = [symbol for symbol in dict.fromkeys(symbols) if symbol not in self._keys]
        unmapped = [symbol for symbol in foreign if symbol not in self._mapped]
        if not unmapped:
            return
        unused = [keycode for keycode in self._spare if keycode not in self._mapped.values()]
        used = {keycode: symbol for symbol, keycode in self._mapped.items() if symbol not in foreign}
        if len(unmapped) > len(unused):
            time.sleep(_REMAPPED_SECONDS)  # the last keys may not be handled yet
        with self._screen.lock:
            for symbol, keycode in zip(unmapped, [*unused, *used], strict=False):
                self._display.change_keyboard_mapping(keycode, [(symbol, symbol)])  # a window manager takes 40 ms
                if keycode in used:
                    del self._mapped[used[keycode]]
                self._mapped[symbol] = keycode
            self._display.sync()
        time.sleep(_REMAPPED_SECONDS)

    def _key(self, symbol: int) -> tuple[int, bool]:
        """Return the key of a symbol, and whether it needs Shift."""
        if symbol in self._keys:
            return self._keys[symbol]
        self._map([symbol])
        return self._mapped[symbol], False

    def _modifier(self, name: str) -> int:
        key_name = _MODIFIERS.get(name.lower())
        if key_name is None:
            msg = f"{name!r} is not a modifier key; there are: {', '.join(_MODIFIERS)}"
            raise ToolError(msg)
        return int(XK.string_to_keysym(key_name))

    def _symbol(self, name: str) -> int:
        if len(name) == 1:
            return self._of_character(name)
        for spelling in (_NAMES.get(name.lower(), name), name.capitalize(), name.upper()):
            symbol = int(XK.string_to_keysym(spelling))
            if symbol:
                return symbol
        if name.lower() in _MODIFIERS:
            return self._modifier(name)
        msg = f"there is no key {name!r}; write keys as in Return, Escape, Tab, F5, Down, ctrl+s or shift+Tab"
        raise ToolError(msg)

    def _of_character(self, character: str) -> int:
        if character in _CONTROLS:
            return int(XK.string_to_keysym(_CONTROLS[character]))
        code = ord(character)
        if not character.isprintable():
            msg = f"the character U+{code:04X} can't be typed"
            raise ToolError(msg)
        return code if code < 0x100 else _UNICODE + code  # Latin 1


def _was_mapped(row: Sequence[int]) -> bool:
    """Return whether a killed program has left its mapping on a key.

    Such a key has the same character with Shift and without.
    """
    symbol = row[0]
    is_foreign = _LATIN <= symbol < _FUNCTIONS or symbol > _UNICODE
    return is_foreign and {*row} <= {symbol, X.NoSymbol} and len(row) > 1 and row[1] == symbol


class Pointer:
    """The pointer of a display."""

    def __init__(self, screen: XScreen) -> None:
        self._screen = screen
        self._display = screen.display

    def move(self, x: int, y: int) -> None:
        """Move the pointer to a point of the screen."""
        with self._screen.lock:
            xtest.fake_input(self._display, X.MotionNotify, x=x, y=y)
            self._display.sync()

    def click(self, x: int, y: int, button: str = "left", count: int = 1) -> None:
        """Click at a point of the screen.

        The wheel's steps are buttons, too: ``up``, ``down``, ``back``, ``forth``.
        """
        self.move(x, y)
        for number in range(count):
            if number:
                time.sleep(_DOUBLE_SECONDS)
            self._button(X.ButtonPress, button)
            self._button(X.ButtonRelease, button)

    def drag(self, start: tuple[int, int], end: tuple[int, int], button: str = "left") -> None:
        """Press a button at one point, and release it at another."""
        self.move(*start)
        self._button(X.ButtonPress, button)
        try:
            for step in range(1, _DRAG_STEPS + 1):
                time.sleep(_DRAG_SECONDS)
                self.move(*(a + (b - a) * step // _DRAG_STEPS for a, b in zip(start, end, strict=True)))
        finally:
            self._button(X.ButtonRelease, button)

    def _button(self, event: int, button: str) -> None:
        with self._screen.lock:
            xtest.fake_input(self._display, event, _BUTTONS[button])
            self._display.sync()
