"""The programs that report and set the phone's properties.

They are the lines of `dumpsys` that tools look for, and settings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.testing.phone._fault import argument, fail
from callboard.testing.phone._managers import component
from callboard.testing.phone._phone_screen import HEIGHT, WIDTH

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.testing.phone._phone import Phone

_DENSITY = 420
_LEVEL = 100
_APIS = {13: 33, 14: 34, 15: 35, 16: 36}
_NAMESPACES = ("system", "secure", "global")
_TURNED = ("0", "1", "2", "3")


class Reports:
    """Runs `dumpsys`, `settings`, `ime`, `getprop` and `wm`.

    Args:
        phone: The phone that they ask.
    """

    def __init__(self, phone: Phone) -> None:
        self._phone = phone
        self._services: dict[str, Callable[[list[str]], str]] = {
            "activity": self._activity,
            "battery": self._battery,
            "display": self._display,
            "input": self._input,
            "input_method": self._input_method,
            "power": self._power,
            "window": self._window,
        }

    def dumpsys(self, words: list[str]) -> str:
        """Print the report of a service."""
        if not words or words == ["-l"]:
            return "Currently running services:\n" + "".join(f"  {name}\n" for name in self._services)
        if words[0] not in self._services:
            fail(f"Can't find service: {words[0]}", 0)
        return self._services[words[0]](words[1:])

    def _activity(self, _words: list[str]) -> str:
        return (
            "ACTIVITY MANAGER ACTIVITIES (dumpsys activity activities)\n"
            "Display #0 (activities from top to bottom):\n"
            f"  topResumedActivity={self._record()}\n"
            f"  ResumedActivity: {self._record()}\n"
        )

    def _record(self) -> str:
        return f"ActivityRecord{{4d5e6f u0 {self._front()} t7}}"

    def _front(self) -> str:
        app = self._phone.app
        screen = app.screen()
        if screen.package == app.package:
            return component(app, screen.activity)
        return f"{screen.package}/{screen.activity.removeprefix(screen.package)}"

    def _battery(self, _words: list[str]) -> str:
        facts = ("AC powered: false", "USB powered: true", "status: 5", "health: 2", "present: true")
        lines = (*facts, f"level: {_LEVEL}", "scale: 100", "voltage: 4300", "temperature: 250", "technology: Li-ion")
        return "Current Battery Service state:\n" + "".join(f"  {line}\n" for line in lines)

    def _display(self, _words: list[str]) -> str:
        phone = self._phone
        state = "ON" if phone.awake else "OFF"
        return (
            "DISPLAY MANAGER (dumpsys display)\n"
            f"  mGlobalDisplayState={state}\n"
            f"  mCurrentOrientation={phone.rotation}\n"
            f'  mBaseDisplayInfo=DisplayInfo{{"Built-in Screen", real {WIDTH} x {HEIGHT}, rotation 0, state {state}}}\n'
            f'  mOverrideDisplayInfo=DisplayInfo{{"Built-in Screen", real {phone.width} x {phone.height}, '
            f"rotation {phone.rotation}, density {_DENSITY}, state {state}}}\n"
        )

    def _input(self, _words: list[str]) -> str:
        return f"INPUT MANAGER (dumpsys input)\n      SurfaceOrientation: {self._phone.rotation}\n"

    def _input_method(self, _words: list[str]) -> str:
        return (
            "Current Input Method Manager state:\n"
            f"  mCurMethodId={self._phone.ime}\n"
            f"  mShowRequested={_flag(self._phone.keyboard)} mInputShown={_flag(self._phone.keyboard)}\n"
        )

    def _power(self, _words: list[str]) -> str:
        state = "Awake" if self._phone.awake else "Asleep"
        return f"POWER MANAGER (dumpsys power)\n\nPower Manager State:\n  mWakefulness={state}\n"

    def _window(self, words: list[str]) -> str:
        """Print windows.

        All are printed, or those of the policy, the displays or the windows alone.
        """
        phone = self._phone
        focus = "NotificationShade" if phone.locked or not phone.awake else self._front()
        windows = f"  mCurrentFocus=Window{{1a2b3c u0 {focus}}}\n  mFocusedApp={self._record()}\n"
        if phone.keyboard:
            frame = f"[0,{phone.height - phone.keyboard_height}][{phone.width},{phone.height}]"
            windows += f"    InsetsSource id=3 type=ime frame={frame} visible=true flags= sideHint=BOTTOM\n"
        size = f"{phone.width}x{phone.height}"
        displays = f"  Display: mDisplayId=0\n    init={WIDTH}x{HEIGHT} {_DENSITY}dpi cur={size} app={size}\n"
        parts = {
            "policy": f"WINDOW MANAGER POLICY STATE (dumpsys window policy)\n{self._policy()}",
            "displays": f"WINDOW MANAGER DISPLAY CONTENTS (dumpsys window displays)\n{displays}{windows}",
            "windows": f"WINDOW MANAGER WINDOWS (dumpsys window windows)\n{windows}",
        }
        part = {"p": "policy", "d": "displays", "w": "windows"}.get(words[0], words[0]) if words else ""
        return parts.get(part) or "".join(parts.values())

    def _policy(self) -> str:
        """Print the lock screen's state: ``KeyguardServiceDelegate.dump``."""
        locked, awake = _flag(self._phone.locked), self._phone.awake
        on, interactive = ("ON", "AWAKE") if awake else ("OFF", "SLEEP")
        return (
            "    KeyguardServiceDelegate\n"
            f"      showing={locked}\n"
            f"      inputRestricted={locked}\n"
            "      occluded=false\n"
            "      secure=false\n"
            f"      screenState=SCREEN_STATE_{on}\n"
            f"      interactiveState=INTERACTIVE_STATE_{interactive}\n"
            "      KeyguardStateMonitor\n"
            f"        mIsShowing={locked}\n"
            "        mSimSecure=false\n"
            f"        mInputRestricted={locked}\n"
        )

    def settings(self, words: list[str]) -> str:
        """Get or set a setting: ``SettingsService``."""
        what, namespace = argument(words, 0, "settings"), argument(words, 1, "settings")
        if namespace not in _NAMESPACES:
            fail(f"Invalid namespace '{namespace}'")
        imes = {"default_input_method": self._phone.ime, "enabled_input_methods": ":".join(self._phone.enabled_imes)}
        values = self._phone.settings | {f"secure/{key}": value for key, value in imes.items()}
        if what == "list":
            names = sorted(name.split("/", 1)[1] for name in values if name.startswith(f"{namespace}/"))
            return "".join(f"{name}={values[f'{namespace}/{name}']}\n" for name in names)
        key = f"{namespace}/{argument(words, 2, what)}"
        if what == "get":
            return f"{values.get(key, 'null')}\n"
        if what == "put":
            self._set(key, argument(words, 3, what))
            return ""
        if what == "delete":
            return f"Deleted {int(self._phone.settings.pop(key, None) is not None)} rows\n"
        return fail(f"Invalid command: {what}")

    def _set(self, key: str, value: str) -> None:
        if key == "secure/default_input_method":
            self._phone.ime = value
        elif key == "secure/enabled_input_methods":
            self._phone.enabled_imes = [name for name in value.split(":") if name in self._phone.imes]
        else:
            self._phone.settings[key] = value

    def ime(self, words: list[str]) -> str:
        """List, enable and set keyboards: ``InputMethodManagerService``."""
        phone, what = self._phone, argument(words, 0, "ime")
        if what == "list":
            listed = phone.imes if "-a" in words else phone.enabled_imes
            return "".join(f"{name}\n" if "-s" in words else f"{name}:\n  mId={name}\n" for name in listed)
        if what == "reset":
            phone.ime, phone.enabled_imes = phone.imes[0], phone.imes[:1]
            return f"Reset current and enabled IMEs for user #0\n  Newly selected: {phone.ime}\n"
        if what not in {"enable", "disable", "set"}:
            fail(out=f"Unknown command: {what}")
        return self._change_ime(what, argument(words, len(words) - 1, what))

    def _change_ime(self, what: str, name: str) -> str:
        phone = self._phone
        words = {"enable": "enabled", "disable": "disabled", "set": "selected"}[what]
        choices = phone.enabled_imes if what == "set" else phone.imes
        if name not in choices:
            fail(f"Unknown input method {name} cannot be {words} for user #0")
        if what == "set":
            phone.ime = name
            return f"Input method {name} selected for user #0\n"
        was = name in phone.enabled_imes
        if (what == "enable") != was:
            (phone.enabled_imes.append if what == "enable" else phone.enabled_imes.remove)(name)
        if phone.ime not in phone.enabled_imes:
            phone.ime = phone.imes[0]
        return f"Input method {name}: {'now' if (what == 'enable') != was else 'already'} {words} for user #0\n"

    def getprop(self, words: list[str]) -> str:
        """Print a property."""
        properties = {
            "ro.build.version.release": str(self._phone.android),
            "ro.build.version.sdk": str(_APIS[self._phone.android]),
            "ro.product.manufacturer": "Callboard",
            "ro.product.model": self._phone.model,
            "ro.sf.lcd_density": str(_DENSITY),
            "sys.boot_completed": "1",
        }
        if words:
            return f"{properties.get(words[0]) or ''.join(words[1:2])}\n"
        return "".join(f"[{name}]: [{value}]\n" for name, value in properties.items())

    def wm(self, words: list[str]) -> str:
        """Print the screen's size, unlock or turn it: ``WindowManagerShellCommand``."""
        what = argument(words, 0, "wm")
        if what == "dismiss-keyguard":
            self._phone.locked = False
            return ""
        if what == "user-rotation" and words[1:2] == ["lock"]:
            turns = argument(words, 2, what)
            if turns not in _TURNED:
                fail(f"Error: bad rotation '{turns}'")
            self._phone.rotation = int(turns)
            return ""
        facts = {"size": f"Physical size: {WIDTH}x{HEIGHT}\n", "density": f"Physical density: {_DENSITY}\n"}
        if what not in facts:
            fail(out=f"Unknown command: {what}")
        if words[1:]:
            fail("Error: this phone's screen has one size and one density")
        return facts[what]


def _flag(value: bool) -> str:  # noqa: FBT001 - the one argument
    return "true" if value else "false"
