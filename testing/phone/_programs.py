"""The programs of the phone's shell, with what those of Android 16 answer."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from callboard.testing.phone._applications import Application, Home
from callboard.testing.phone._screen import HEIGHT, WIDTH

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from callboard.testing.phone._phone import Phone

_KEYBOARD = "com.android.adbkeyboard/.AdbIME"
_NUMBERS = {
    "3": "HOME",
    "4": "BACK",
    "26": "POWER",
    "61": "TAB",
    "66": "ENTER",
    "67": "DEL",
    "122": "MOVE_HOME",
    "123": "MOVE_END",
    "187": "APP_SWITCH",
    "223": "SLEEP",
    "224": "WAKEUP",
}
_SCHEMES = {"http": "org.callboard.browser", "https": "org.callboard.browser", "tel": "com.android.dialer"}
_NULL = """java.lang.NullPointerException: Attempt to get length of null array
\tat com.android.commands.input.Input.sendText(Input.java:140)"""


class FaultError(Exception):
    """A program ends with an exit code, an output and an error."""

    def __init__(self, code: int, out: str, error: str) -> None:
        super().__init__(error)
        self.code = code
        self.out = out


def _fail(error: str, code: int = 255, out: str = "") -> NoReturn:
    raise FaultError(code, out, error)


class Programs:
    """Runs programs.

    Args:
        phone: The phone that they ask.
    """

    def __init__(self, phone: Phone) -> None:
        self._phone = phone

    def run(self, name: str, words: Sequence[str]) -> tuple[int, bytes, bytes]:
        """Run one, and give its exit code and both outputs."""
        try:
            if name == "screencap":
                return 0, self._phone.picture(), b""
            told = PROGRAMS[name](self, *words)
        except FaultError as fault:
            return fault.code, fault.out.encode(), f"{fault}\n".encode()
        except (TypeError, ValueError, IndexError, KeyError) as error:
            return 255, b"", f"Error: {name} {' '.join(words)}: {error!r}\n".encode(errors="replace")
        return 0, told.encode(errors="surrogatepass"), b""

    def uiautomator(self, what: str, file: str) -> str:
        """List what is on the screen."""
        if what != "dump":
            msg = f"unsupported command: {what}"
            raise ValueError(msg)
        if self._phone.moving:
            self._phone.moving -= 1
            _fail("ERROR: could not get idle state.", 0)
        Path(file).write_text(self._phone.hierarchy(), encoding="utf-8")
        return f"UI hierchary dumped to: {file}\n"

    def input(self, what: str, *words: str) -> str:
        """Touch, type and press keys."""
        phone = self._phone
        phone.inputs.append(" ".join((what, *words)))
        if what == "tap":
            phone.tap(*map(round, map(float, words)))
        elif what in {"swipe", "draganddrop"}:
            x, y, to_x, to_y, *rest = map(round, map(float, words))
            phone.swipe(x, y, to_x, to_y, milliseconds=rest[0] if rest else 300)
        elif what == "text":
            self._text(*words)
        elif what == "keyevent":
            for word in words:
                self._key(_NUMBERS.get(word, word).removeprefix("KEYCODE_"))
        else:
            _fail(f"Error: Unknown command: {what}")
        return ""

    def _text(self, text: str) -> None:
        if not all(" " <= letter <= "~" for letter in text):
            _fail(_NULL)
        self._phone.type(text.replace("%s", " "))

    def _key(self, key: str) -> None:
        phone = self._phone
        if key in {"WAKEUP", "SLEEP", "POWER"}:
            phone.awake = key == "WAKEUP" or (key == "POWER" and not phone.awake)
        elif phone.awake and not phone.locked:
            acts: dict[str, Callable[[], None]] = {
                "HOME": lambda: phone.start(Home.package),
                "BACK": phone.back,
                "DEL": phone.erase,
                "ENTER": lambda: phone.type("\n"),
                "TAB": lambda: phone.type("\t"),
                "MOVE_END": lambda: setattr(phone, "cursor", len(phone.field.text) if phone.field else 0),
                "MOVE_HOME": lambda: setattr(phone, "cursor", 0),
            }
            acts.get(key, lambda: None)()

    def am(self, what: str, *words: str) -> str:
        """Start and end applications, and send what a keyboard types."""
        phone, given = self._phone, list(words)
        named = {given[at]: given[at + 1] for at in range(len(given) - 1) if given[at].startswith("-")}
        if what == "force-stop":
            if words[-1] in phone.apps:
                phone.end(words[-1])
            return ""
        if what == "broadcast":
            typed = named.get("-a") == "ADB_INPUT_B64" and phone.ime == _KEYBOARD
            if typed and named.get("-p", "com.android.adbkeyboard") == "com.android.adbkeyboard":
                phone.inputs.append("broadcast")
                phone.type(base64.b64decode(given[given.index("msg") + 1]).decode())
            return f"Broadcasting: Intent {{ act={named.get('-a')} flg=0x400000 }}\nBroadcast completed: result=0\n"
        if what != "start":
            _fail(f"Unknown command: {what}")
        return self._start(named.get("-n", ""), named.get("-d", ""))

    def _start(self, component: str, url: str) -> str:
        package = component.partition("/")[0] if component else _SCHEMES.get(url.partition(":")[0], "")
        wanted = f"cmp={component}" if component else f"act=android.intent.action.VIEW dat={url}"
        shown = f"Starting: Intent {{ {wanted} }}\n"
        if package not in self._phone.apps:
            missing = f"Error type 3\nError: Activity class {{{component}}} does not exist."
            unknown = f"Error: Activity not started, unable to resolve Intent {{ {wanted} }}"
            _fail(missing if component else unknown, 1, shown)
        if self._phone.app.package == package and not url:
            return f"{shown}Warning: Activity not started, intent has been delivered to currently running instance.\n"
        self._phone.start(package, url)
        return f"{shown}Status: ok\nLaunchState: COLD\nActivity: {_component(self._phone.app)}\nComplete\n"

    def cmd(self, service: str, what: str, *words: str) -> str:
        """Ask the package manager."""
        if (service, what) == ("package", "query-activities"):
            apps = [app for app in self._phone.apps.values() if not isinstance(app, Home)]
            return "".join(f"  priority=0 match=0x108000\n{_component(app)}\n" for app in apps)
        if (service, what) == ("package", "resolve-activity"):
            app = self._phone.apps.get(words[-1])
            return f"priority=0 match=0x108000\n{_component(app)}\n" if app is not None else "No activity found\n"
        _fail(f"cmd: Can't find service: {service}")

    def pm(self, what: str, *words: str) -> str:
        """List, add and remove packages."""
        phone = self._phone
        if (what, *words[:1]) == ("list", "packages"):
            return "".join(f"package:{each}\n" for each in sorted((*phone.apps, *phone.others)))
        if what == "install":
            phone.others.append(Path(words[-1]).stem)
            return "Success\n"
        if what == "uninstall" and words[-1] in phone.others:
            phone.others.remove(words[-1])
            return "Success\n"
        _fail(f"Failure [not installed for {words[-1:]}]", 1)

    def dumpsys(self, service: str, *words: str) -> str:
        """Tell what a service knows: the lines alone that tools look for."""
        phone = self._phone
        front = _component(phone.app) if not phone.locked else ""
        if service == "power":
            return f"POWER MANAGER (dumpsys power)\n  mWakefulness={'Awake' if phone.awake else 'Asleep'}\n"
        if service == "input_method":
            shown = "true" if phone.keyboard else "false"
            return f"Current Input Method Manager state:\n  mCurMethodId={phone.ime}\n  mInputShown={shown}\n"
        if service == "window" and words[:1] == ("policy",):
            return f"  KeyguardServiceDelegate\n    showing={'true' if phone.locked else 'false'}\n"
        if service == "window":
            focus = f"Window{{1a2b3c u0 {front or 'NotificationShade'}}}"
            return f"  mCurrentFocus={focus}\n  mFocusedApp=ActivityRecord{{4d5e6f u0 {_component(phone.app)} t7}}\n"
        if service == "battery":
            return "Current Battery Service state:\n  level: 80\n"
        _fail(f"Can't find service: {service}")

    def settings(self, what: str, namespace: str, key: str, value: str = "") -> str:
        """Give or set a setting."""
        phone = self._phone
        if key == "default_input_method":
            phone.ime = value if what == "put" else phone.ime
            return f"{phone.ime}\n" if what == "get" else ""
        if what == "put":
            phone.settings[f"{namespace}/{key}"] = value
            return ""
        return f"{phone.settings.get(f'{namespace}/{key}', 'null')}\n"

    def ime(self, what: str, *words: str) -> str:
        """List, enable and set keyboards."""
        phone = self._phone
        if what == "list":
            return "".join(f"{each}\n" for each in phone.imes)
        if what == "reset":
            phone.ime = phone.imes[0]
            return "Reset current and enabled IMEs for user #0\n"
        if words[0] not in phone.imes:
            _fail(f"Unknown input method {words[0]} cannot be {what} for user #0")
        if what == "set":
            phone.ime = words[0]
        return f"Input method {words[0]} {'selected' if what == 'set' else 'now enabled'} for user #0\n"

    def getprop(self, key: str = "") -> str:
        """Tell a property."""
        known = {
            "ro.product.manufacturer": "Callboard",
            "ro.product.model": self._phone.model,
            "ro.build.version.release": "16",
            "ro.build.version.sdk": "36",
        }
        return f"{known.get(key, '')}\n" if key else "".join(f"[{name}]: [{value}]\n" for name, value in known.items())

    def wm(self, what: str) -> str:
        """Tell the screen's size."""
        if what == "dismiss-keyguard":
            self._phone.locked = False
            return ""
        return f"Physical size: {WIDTH}x{HEIGHT}\n" if what == "size" else "Physical density: 420\n"


def _component(app: Application) -> str:
    return f"{app.package}/{app.activity}"


PROGRAMS: dict[str, Callable[..., str]] = {
    name: getattr(Programs, name)
    for name in ("uiautomator", "input", "am", "cmd", "pm", "dumpsys", "settings", "ime", "getprop", "wm")
} | {"screencap": Programs.uiautomator}
"""What there is, by name."""
