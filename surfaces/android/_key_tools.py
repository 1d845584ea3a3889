"""Tools for the keyboard and the keys."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import shlex
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from callboard.messages import Effect
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.android._device_actions import ACTION_SECONDS, OFF
from callboard.surfaces.android._hierarchy import FIELD
from callboard.surfaces.android._touch_tools import MOBILE, Answer, Serial

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from callboard.surfaces.android._device_actions import DeviceActions
    from callboard.surfaces.android._keyboards import Keyboards


_KEYBOARD_SECONDS = 5.0
_POLL_SECONDS = 0.1
_KEY_SECONDS = 0.02
"""The time that a device may take for each key that deletes something."""
_MOST_DELETED = 5_000
_ALIASES = {
    "BACKSPACE": "DEL",
    "DELETE": "FORWARD_DEL",
    "DOWN": "DPAD_DOWN",
    "ESC": "ESCAPE",
    "LEFT": "DPAD_LEFT",
    "RECENTS": "APP_SWITCH",
    "RETURN": "ENTER",
    "RIGHT": "DPAD_RIGHT",
    "UP": "DPAD_UP",
}
"""Names of keys on other systems. Android ignores an unknown key without an error."""


class KeyTools:
    """Tools that type, press keys and wait.

    Args:
        actions: Returns the actions of a device, by its serial.
        keyboards: Remembers the original keyboards of devices.
    """

    def __init__(self, actions: Callable[[str], DeviceActions], keyboards: Keyboards) -> None:
        self._actions = actions
        self._keyboards = keyboards

    @tool(effect=Effect.ONCE, agents=MOBILE, seconds=300.0)
    async def type_text(
        self,
        device: Serial,
        text: Annotated[str, Field(min_length=1, max_length=10_000)],
        *,
        control_id: Annotated[str, Field(description="The text field; empty: the one that has the focus.")] = "",
        clear: Annotated[bool, Field(description="Whether to delete the existing text first.")] = False,
    ) -> Answer:
        """Type a text into a field. A line break presses Enter."""
        actions = self._actions(device)
        preparation = await self._preparation(actions, control_id, clear=clear)
        parts, seconds = (preparation, *typing(text)), ACTION_SECONDS + preparation.count("KEYCODE_") * _KEY_SECONDS
        if is_plain(text):
            await actions.act(*parts, seconds=seconds)
        else:
            async with self._keyboard(actions):
                await actions.act(*parts, seconds=seconds)
        return {"typed": len(text)}

    def parts(self, text: str) -> int:
        """Return the number of parts in which `type_text` types a text."""
        return 1 + len(typing(text))

    @tool(effect=Effect.ONCE, agents=MOBILE)
    async def press_key(
        self,
        device: Serial,
        key: Annotated[
            str,
            Field(
                pattern=r"^(?:KEYCODE_)?[A-Za-z0-9_]{1,40}$",
                description="BACK, HOME, ENTER, DEL, TAB, APP_SWITCH, WAKEUP, POWER, VOLUME_UP, …",
            ),
        ],
    ) -> Answer:
        """Press a key of the device."""
        await self._actions(device).act(f"input keyevent {keycode(key)}")
        return {}

    @tool(effect=Effect.READ, agents=MOBILE)
    async def wait(self, device: Serial, seconds: Annotated[float, Field(gt=0, le=50)] = 1.0) -> Answer:
        """Wait, for example until a page is loaded."""
        await asyncio.sleep(seconds)
        self._actions(device).device.screen.drop()
        return {}

    async def _preparation(self, actions: DeviceActions, control_id: str, *, clear: bool) -> str:
        """Return the command that prepares a field for typing."""
        if control_id:
            field = await actions.control(control_id)
        else:
            screen = await actions.device.screen.get()
            if not screen.state.awake:
                raise ToolError(OFF)
            if screen.hierarchy is None:
                return ":"  # the model may see the focus in the picture
            focused_field = screen.hierarchy.focused
            if focused_field is None:
                msg = "no text field has the focus: name the field to type into"
                raise ToolError(msg)
            field = focused_field
        if field.kind != FIELD:
            msg = f"{field.kind} {field.name!r} is not a text field"
            raise ToolError(msg)
        commands = []
        if control_id and field.box is not None and not field.is_("focused"):
            x, y = await actions.point(control_id, None, None)
            commands.append(f"input tap {x} {y}")
        if control_id or clear:
            commands.append("input keyevent KEYCODE_MOVE_END")
        if clear and (size := min(len(field.values.get("text", "")), _MOST_DELETED)):
            # MOVE_END goes to the end of a line, so other lines may follow
            keys = ["KEYCODE_DEL"] * size + ["KEYCODE_FORWARD_DEL"] * size
            commands.append(f"input keyevent {' '.join(keys)}")
        return " && ".join(commands) or ":"

    @contextlib.asynccontextmanager
    async def _keyboard(self, actions: DeviceActions) -> AsyncIterator[None]:
        """Set the keyboard that types any text, and restore the original."""
        device = actions.device
        if KEYBOARD not in (await device.text("ime list -s -a")).split():
            msg = (
                "the device's own commands type only ASCII. For other characters, install ADBKeyBoard on the device "
                "(https://github.com/senzhk/ADBKeyBoard)"
            )
            raise ToolError(msg)
        await self._keyboards.note(device)
        try:
            await device.text(f"ime enable {KEYBOARD} && ime set {KEYBOARD}")
            for _ in range(round(_KEYBOARD_SECONDS / _POLL_SECONDS)):
                if f"mCurMethodId={KEYBOARD}" in await device.text("dumpsys input_method"):
                    break
                await asyncio.sleep(_POLL_SECONDS)
            else:
                msg = "nothing was typed: the device does not switch its keyboard to ADBKeyBoard"
                raise ToolError(msg)
            yield
        finally:
            await self._keyboards.restore(device)


def keycode(key: str) -> str:
    """Return a key's Android name, or its number without leading zeros."""
    if key.isdigit():
        return str(int(key))
    name = key.upper().removeprefix("KEYCODE_")
    return f"KEYCODE_{_ALIASES.get(name, name)}"


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
