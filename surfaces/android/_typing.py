"""Commands for a device's shell that type texts."""

from __future__ import annotations

import base64
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

KEYBOARD = "com.android.adbkeyboard/.AdbIME"
"""The keyboard that types texts from broadcasts: ADBKeyBoard (https://github.com/senzhk/ADBKeyBoard)."""
_MOST = 40
"""The most characters that one command types, so that a stop can take effect between two commands."""
_KEYS = {"\n": "KEYCODE_ENTER", "\t": "KEYCODE_TAB"}


def is_plain(text: str) -> bool:
    """Return whether the device's own `input text` can type a text."""
    return all(" " <= letter <= "~" or letter in _KEYS for letter in text)


def typing(text: str) -> tuple[str, ...]:
    """Return the commands that type a text.

    A plain text is typed by `input text`, which takes ``%s`` for a blank and has no escape for ``%s`` itself: such a
    text is split between the two characters. Any other text is sent as base64, only to `KEYBOARD`.
    """
    return tuple(_plain(text) if is_plain(text) else _sent(text))


def _plain(text: str) -> Iterator[str]:
    for part in _pieces(text):
        if part in _KEYS:
            yield f"input keyevent {_KEYS[part]}"
        else:
            yield f"input text {shlex.quote(part.replace(' ', '%s'))}"


def _pieces(text: str) -> Iterator[str]:
    """Split a text at line breaks, at tabs, within ``%s``, by length."""
    piece = ""
    for letter in text:
        ends = letter in _KEYS or len(piece) == _MOST or (letter == "s" and piece.endswith("%"))
        if ends and piece:
            yield piece
            piece = ""
        if letter in _KEYS:
            yield letter
        else:
            piece += letter
    if piece:
        yield piece


def _sent(text: str) -> Iterator[str]:
    package = KEYBOARD.partition("/")[0]
    for start in range(0, len(text), _MOST):
        sent = base64.b64encode(text[start : start + _MOST].encode(errors="replace")).decode()
        yield f"am broadcast -a ADB_INPUT_B64 --es msg {sent} -p {package}"
