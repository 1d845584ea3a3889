"""The programs of the phone's shell.

Their answers are those of Android 13 to 16.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.testing.phone._fault import ProgramError, argument, fail, thrown
from callboard.testing.phone._managers import Managers
from callboard.testing.phone._phone_applications import Dialler, Home
from callboard.testing.phone._reports import Reports

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from callboard.testing.phone._phone import Phone

_LETTERS = {29 + index: letter for index, letter in enumerate("abcdefghijklmnopqrstuvwxyz")}
_DIGITS = {7 + index: digit for index, digit in enumerate("0123456789")}
_NAMES = {
    3: "HOME", 4: "BACK", 5: "CALL", 6: "ENDCALL", 19: "DPAD_UP", 20: "DPAD_DOWN", 21: "DPAD_LEFT", 22: "DPAD_RIGHT",
    23: "DPAD_CENTER", 24: "VOLUME_UP", 25: "VOLUME_DOWN", 26: "POWER", 61: "TAB", 62: "SPACE", 66: "ENTER", 67: "DEL",
    82: "MENU", 111: "ESCAPE", 112: "FORWARD_DEL", 122: "MOVE_HOME", 123: "MOVE_END", 160: "NUMPAD_ENTER",
    187: "APP_SWITCH", 223: "SLEEP", 224: "WAKEUP",
    **{number: letter.upper() for number, letter in (_LETTERS | _DIGITS).items()},
}  # fmt: skip
"""Keys by their numbers, as in ``android.view.KeyEvent``."""
_TYPED = {_NAMES[number]: text for number, text in (_LETTERS | _DIGITS | {62: " "}).items()}
_SOURCES = frozenset(("keyboard", "dpad", "gamepad", "touchscreen", "mouse", "stylus", "trackball", "touchpad"))
_NULL = """java.lang.NullPointerException: Attempt to get length of null array
\tat com.android.server.input.InputShellCommand.sendText(InputShellCommand.java:387)
\tat com.android.server.input.InputShellCommand.onCommand(InputShellCommand.java:166)
\tat com.android.modules.utils.BasicShellCommandHandler.exec(BasicShellCommandHandler.java:97)
\tat android.os.ShellCommand.exec(ShellCommand.java:38)"""


class PhonePrograms:
    """Runs programs.

    Args:
        phone: The phone that they ask.
        place: Returns the file for one of the device's paths; None for one that its shell may not write.
    """

    def __init__(self, phone: Phone, local_path: Callable[[str], Path | None]) -> None:
        self._phone = phone
        self._local_path = local_path
        managers, reports = Managers(phone, local_path), Reports(phone)
        self._commands: dict[str, Callable[[list[str]], str]] = {
            "am": managers.am,
            "cmd": managers.cmd,
            "dumpsys": reports.dumpsys,
            "getprop": reports.getprop,
            "ime": reports.ime,
            "input": self._input,
            "monkey": managers.monkey,
            "pm": managers.pm,
            "settings": reports.settings,
            "uiautomator": self._uiautomator,
            "wm": reports.wm,
        }

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all programs."""
        return (*self._commands, "screencap")

    def run(self, name: str, words: list[str]) -> tuple[int, bytes, bytes]:
        """Run a program, and return its exit code and both outputs."""
        try:
            if name == "screencap":
                return 0, self._screencap(words), b""
            return 0, self._commands[name](words).encode(errors="surrogatepass"), b""
        except ProgramError as error:
            return error.code, error.out.encode(errors="replace"), error.err.encode(errors="replace")

    def _screencap(self, words: list[str]) -> bytes:
        files = [word for word in words if not word.startswith("-")]
        try:
            picture = self._phone.picture()
        except RuntimeError as error:
            fail(str(error), 1)
        if not files:
            return picture
        self._write(files[-1], picture, f"Error opening file: {files[-1]} (Permission denied)")
        return b""

    def _uiautomator(self, words: list[str]) -> str:
        """List the views on the screen.

        This is ``DumpCommand``, whose faults have exit code 0.
        """
        if words[:1] != ["dump"]:
            fail(f"Error: unsupported command: {words[0] if words else ''}", 1)
        files = [word for word in words[1:] if not word.startswith("--")]
        file = files[0] if files else "/sdcard/window_dump.xml"
        if self._phone.moving:
            self._phone.moving -= 1
            fail("ERROR: could not get idle state.", 0)
        if not self._phone.awake:
            fail("ERROR: null root node returned by UiTestAutomationBridge.", 0)
        document = self._phone.hierarchy()
        if file == "/dev/tty":
            return f"{document}UI hierchary dumped to: {file}\n"
        self._write(
            file, document.encode(), f"java.io.FileNotFoundException: {file}: open failed: EACCES (Permission denied)"
        )
        return f"UI hierchary dumped to: {file}\n"

    def _write(self, file: str, data: bytes, refused: str) -> None:
        path = self._local_path(file)
        if path is None:
            fail(refused, 1)
        try:
            path.write_bytes(data)
        except OSError:
            fail(refused, 1)

    def _input(self, words: list[str]) -> str:
        """Touch, type and press keys: ``InputShellCommand``."""
        arguments = words[1:] if words and words[0] in _SOURCES else list(words)
        if arguments[:1] == ["-d"]:
            arguments = arguments[2:]
        what, parameters = (arguments[0], arguments[1:]) if arguments else ("", [])
        acts = {
            "tap": self._tap,
            "swipe": self._swipe,
            "draganddrop": self._swipe,
            "text": self._text,
            "keyevent": self._keys,
        }
        if what not in acts:
            fail(out=f"Unknown command: {what}", code=0)
        self._phone.inputs.append(" ".join(arguments))
        try:
            acts[what](what, parameters)
        except (ValueError, OverflowError):
            thrown(what, f"java.lang.IllegalArgumentException: Error: Invalid arguments for command: {what}")
        return ""

    def _tap(self, what: str, words: list[str]) -> None:
        x, y = (round(float(argument(words, index, what))) for index in range(2))
        self._phone.tap(x, y)

    def _swipe(self, what: str, words: list[str]) -> None:
        x, y, to_x, to_y = (round(float(argument(words, index, what))) for index in range(4))
        if what == "draganddrop":
            self._phone.drag(x, y, to_x, to_y)
        else:
            self._phone.swipe(x, y, to_x, to_y, milliseconds=int(words[4]) if words[4:] else 300)

    def _text(self, what: str, words: list[str]) -> None:
        """Type ASCII letters; with any other letter, nothing is typed.

        Others are not on the key map of a keyboard.
        """
        text = argument(words, 0, what)
        if not all(" " <= letter <= "~" for letter in text):
            thrown(what, _NULL)
        self._phone.type(text.replace("%s", " "))

    def _keys(self, what: str, words: list[str]) -> None:
        keys = list(words)
        while keys and keys[0].startswith("--"):
            del keys[: 2 if keys[0] == "--delay" else 1]
        argument(keys, 0, what)
        for key in keys:
            number = int(key) if key.isdigit() else -1
            self._key(_NAMES.get(number, key).upper().removeprefix("KEYCODE_"))

    def _key(self, key: str) -> None:
        phone = self._phone
        if key == "WAKEUP" or (key == "POWER" and not phone.awake):
            phone.awake = True
        elif key in {"SLEEP", "POWER"}:
            phone.sleep()
        elif phone.awake and phone.locked:
            phone.locked = key != "MENU"
        elif phone.awake and key in _TYPED:
            phone.type(_TYPED[key])
        elif phone.awake and key in _ACTS:
            _ACTS[key](phone)


def _enter(phone: Phone) -> None:
    if phone.field is not None and phone.field.lines > 1:
        phone.type("\n")
    else:
        phone.next_field()


def _tab(phone: Phone) -> None:
    if phone.field is not None and phone.field.lines > 1:
        phone.type("\t")
    else:
        phone.next_field()


def _move(phone: Phone, way: int) -> None:
    if phone.field is not None:
        phone.cursor = max(0, min(phone.cursor + way, len(phone.field.text)))


def _call(phone: Phone) -> None:
    if isinstance(phone.app, Dialler):
        phone.app.call()


_ACTS: dict[str, Callable[[Phone], object]] = {
    "HOME": lambda phone: phone.start(Home.package),
    "BACK": lambda phone: phone.back(),
    "ESCAPE": lambda phone: phone.back(),
    "APP_SWITCH": lambda phone: phone.show_recents(),
    "CALL": _call,
    "DEL": lambda phone: phone.erase(),
    "FORWARD_DEL": lambda phone: phone.erase(0, 1),
    "ENTER": _enter,
    "NUMPAD_ENTER": _enter,
    "TAB": _tab,
    "DPAD_LEFT": lambda phone: _move(phone, -1),
    "DPAD_RIGHT": lambda phone: _move(phone, 1),
    "MOVE_HOME": lambda phone: _move(phone, -len(phone.field.text) if phone.field else 0),
    "MOVE_END": lambda phone: _move(phone, len(phone.field.text) if phone.field else 0),
}
