"""A small phone: one state, with a screen and touches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.testing.phone._contacts import Contact, Contacts
from callboard.testing.phone._form import Form
from callboard.testing.phone._notebook import Notes
from callboard.testing.phone._painter import MARGIN, paint
from callboard.testing.phone._phone_applications import Browser, Dialler, Home, PhoneApplication, SettingsApplication
from callboard.testing.phone._phone_screen import HEIGHT, WIDTH, PhoneScreen, View, hierarchy
from callboard.testing.phone._phone_shell import PhoneShell

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from callboard.testing.phone._page import Field
    from callboard.testing.phone._phone_screen import Box

LATIN = "com.android.inputmethod.latin/.LatinIME"
ADB_KEYBOARD = "com.android.adbkeyboard/.AdbIME"
_OLDEST, _NEWEST = 13, 16
_TURNS = 4
_STILL = 20
"""The shortest way of a moving finger, in pixels; below it, the finger rests."""
_LONG = 500
"""The shortest long touch, in milliseconds."""


class Phone:
    """A phone for tests.

    It has home, contacts, notes, settings, a form, a browser and a dialler. Its screen does not depend on the time: it
    has no clock, and moves only on commands.

    Args:
        model: The name of its model.
        android: The version of Android whose formats it has: 13 to 16. From 16 on, the hierarchy includes hints.
        keyboard: Whether ADBKeyBoard is installed, which types any letters.
        asks_permission: Whether its contacts ask for a permission first.
        locks: Whether it locks itself when its screen goes off.
        contacts: The people in its contacts.

    Raises:
        ValueError: If that version of Android is not supported.
    """

    def __init__(
        self,
        model: str = "Stand-in",
        *,
        android: int = _NEWEST,
        keyboard: bool = True,
        asks_permission: bool = False,
        locks: bool = False,
        contacts: Iterable[Contact] = (Contact("Grace", "Hopper", "555-0100"), Contact("Alan", "Turing", "555-0101")),
    ) -> None:
        if not _OLDEST <= android <= _NEWEST:
            msg = f"the phone knows the formats of Android {_OLDEST} to {_NEWEST}, not of {android}"
            raise ValueError(msg)
        self.model = model
        self.android = android
        self.asks_permission = asks_permission
        self.locks = locks
        self.awake = True
        self.locked = False
        self.moving = 0
        """The number of times that `uiautomator` finds the screen moving."""
        self.done: list[tuple[str, str]] = []
        """Actions that other people would notice: ``("call", "555-0100")``."""
        self.inputs: list[str] = []
        """The touches, keys and texts that it has received."""
        self.intents: list[str] = []
        """The intents that it was asked to start or to broadcast, as Android writes them."""
        self.ime = LATIN
        """The current keyboard."""
        self.imes = [LATIN, *([ADB_KEYBOARD] if keyboard else [])]
        """The keyboards that are installed."""
        self.enabled_imes = [LATIN]
        self.settings = {
            "global/wifi_on": "1",
            "secure/ui_night_mode": "1",
            "system/accelerometer_rotation": "0",
            "system/user_rotation": "0",
        }
        """The settings, by namespace and key."""
        self.field: Field | None = None
        """The text field that has the focus."""
        self.cursor = 0
        """The place in its text where the next letter goes."""
        self.reveals = False
        """True if the page has to be scrolled to the field."""
        self.contacts = Contacts(self, contacts)
        self.notes = Notes(self)
        self.form = Form(self)
        self.browser = Browser(self)
        self.dialler = Dialler(self)
        apps = (Home(self), self.contacts, self.notes, SettingsApplication(self), self.form, self.browser, self.dialler)
        self.apps: dict[str, PhoneApplication] = {app.package: app for app in apps}
        """The applications, by package."""
        self.others = ["android", "com.android.systemui", *(["com.android.adbkeyboard"] if keyboard else [])]
        """Packages without an activity to start."""
        self.installed: list[str] = ["com.android.adbkeyboard"] if keyboard else []
        """Packages that were installed later."""
        self._stack = [Home.package]
        self._shell = PhoneShell(self)

    @property
    def app(self) -> PhoneApplication:
        """The application in front."""
        return self.apps[self._stack[-1]]

    @property
    def running(self) -> list[PhoneApplication]:
        """The applications that were started, without home.

        The last one is in front, or was.
        """
        return [self.apps[name] for name in self._stack if name != Home.package]

    @property
    def packages(self) -> list[str]:
        """All packages."""
        return [*self.apps, *self.others]

    @property
    def rotation(self) -> int:
        """The orientation: turns of 90 degrees, from 0 to 3.

        It is kept in the settings; auto-rotate holds it upright.
        """
        turns = self.settings.get("system/user_rotation", "")
        fixed = self.settings.get("system/accelerometer_rotation") != "1"
        return int(turns) if fixed and turns in ("1", "2", "3") else 0

    @rotation.setter
    def rotation(self, turns: int) -> None:
        if turns not in range(_TURNS):
            msg = f"a phone is turned 0 to 3 times by 90 degrees, not {turns!r} times"
            raise ValueError(msg)
        self.settings |= {"system/accelerometer_rotation": "0", "system/user_rotation": str(turns)}

    @property
    def width(self) -> int:
        """The width of its screen in the present orientation, in pixels."""
        return HEIGHT if self.rotation % 2 else WIDTH

    @property
    def height(self) -> int:
        """The height of its screen in the present orientation, in pixels."""
        return WIDTH if self.rotation % 2 else HEIGHT

    @property
    def keyboard(self) -> bool:
        """True if its keyboard is shown. ADBKeyBoard shows nothing."""
        return self.field is not None and self.awake and not self.locked and self.ime != ADB_KEYBOARD

    @property
    def keyboard_height(self) -> int:
        """The height of its keyboard, in pixels.

        0 if it is not shown.
        """
        return (480 if self.rotation % 2 else 800) if self.keyboard else 0

    # Display

    def screen(self) -> PhoneScreen:
        """Make the screen in front."""
        if not self.locked:
            return self.app.screen()
        clock = View("TextView", (0, 400, self.width, 600), "12:00", "clock")
        hint = View("TextView", (0, 600, self.width, 750), "Swipe up to unlock", "keyguard_indication_text")
        return PhoneScreen("com.android.systemui", "", [clock, hint])

    def hierarchy(self) -> str:
        """Return the screen's hierarchy, as `uiautomator dump` does."""
        return hierarchy(self.screen(), (self.width, self.height), self.rotation, self.android)

    def picture(self) -> bytes:
        """Draw the screen, as PNG; black if it is off."""
        return paint(self.screen(), (self.width, self.height), self.keyboard_height, awake=self.awake)

    # Input

    def tap(self, x: int, y: int, *, long: bool = False) -> None:
        """Touch a point.

        No effect on a screen that is off or locked. The keyboard does not react to touches.
        """
        if not self._reached(x, y):
            return
        screen = self.screen()
        hit = screen.at(x, y, lambda view: view.reacts)
        if hit is None:
            if screen.behind and not screen.covers and screen.at(x, y, lambda _: True) is None:
                self.app.back()
            return
        view, box = hit
        if not view.enabled:
            return
        act = view.hold if long and view.hold is not None else view.tap
        if view.slide is not None:
            view.slide(_share(x, box))
        elif act is not None:
            act()

    def swipe(self, x: int, y: int, to_x: int, to_y: int, *, milliseconds: int = 300) -> None:
        """Move a finger: scroll, move a slider, or unlock the phone.

        The contents scroll by the length of the move. A move without a length is a touch, from half a second on a long
        one.
        """
        if abs(to_x - x) + abs(to_y - y) < _STILL:
            self.tap(x, y, long=milliseconds >= _LONG)
        elif self.awake and self.locked:
            self.locked = to_y >= y
        elif self._reached(x, y):
            screen = self.screen()
            slider = screen.at(x, y, lambda view: view.slide)
            list_ = screen.at(x, y, lambda view: view.scroll)
            if slider is not None and slider[0].slide is not None:
                slider[0].slide(_share(to_x, slider[1]))
            elif list_ is not None and list_[0].scroll is not None:
                list_[0].scroll.by(y - to_y)

    def drag(self, x: int, y: int, to_x: int, to_y: int) -> None:
        """Hold the view at a point, and drop it at another one."""
        if self._reached(x, y):
            screen = self.screen()
            source = screen.at(x, y, lambda view: view.drop)
            target = screen.at(to_x, to_y, lambda view: view.drop)
            if source is not None and target is not None and source[0].drop is not None:
                source[0].drop(target[0])

    def focus(self, field: Field | None) -> None:
        """Give a text field the focus; the cursor is at its end."""
        self.field, self.cursor = field, len(field.text) if field is not None else 0
        self.reveals = field is not None

    def type(self, text: str) -> None:
        """Insert a text at the cursor."""
        if self.field is not None and self.awake and not self.locked:
            now, at = self.field.text, self.cursor
            self.field.text, self.cursor = now[:at] + text + now[at:], at + len(text)

    def erase(self, before: int = 1, after: int = 0) -> None:
        """Delete characters before and after the cursor."""
        if self.field is not None and self.awake and not self.locked:
            now, start = self.field.text, max(0, self.cursor - before)
            self.field.text, self.cursor = now[:start] + now[self.cursor + after :], start

    def next_field(self) -> bool:
        """Move the focus to the page's next field.

        After the last, no field has it. False if no field had it.
        """
        if self.field is None:
            return False
        fields = self.app.fields()
        position = fields.index(self.field) + 1 if self.field in fields else len(fields)
        self.focus(fields[position] if position < len(fields) else None)
        return True

    def start(self, package: str, url: str = "") -> None:
        """Bring an application to the front.

        Raises:
            ValueError: If there is no application of this package.
        """
        if package not in self.apps:
            msg = f"the phone has no application {package!r}, but {', '.join(self.apps)}"
            raise ValueError(msg)
        self.focus(None)
        if package == Home.package:
            self.apps[package].reset()
            self._stack.remove(package)
        else:
            self._stack = [Home.package, *(app.package for app in self.running if app.package != package)]
        self._stack.append(package)
        if url:
            self.app.open(url)

    def end(self, package: str) -> None:
        """End an application; its unsaved state is lost."""
        if package in self._stack and package != Home.package:
            self._stack.remove(package)
        self.focus(None)
        self.apps[package].reset()

    def forget(self, package: str) -> None:
        """Remove an installed package, and its keyboard."""
        self.others.remove(package)
        self.installed.remove(package)
        for keyboards in (self.imes, self.enabled_imes):
            keyboards[:] = [keyboard for keyboard in keyboards if not keyboard.startswith(f"{package}/")]
        if self.ime not in self.imes:
            self.ime = LATIN

    def back(self) -> None:
        """Hide the keyboard, or return to the page before."""
        if self.keyboard:
            self.focus(None)
        elif not self.app.back() and self.app.package != Home.package:
            self.start(Home.package)

    def show_recents(self) -> None:
        """Show the running applications."""
        self.start(Home.package)
        if self.app.page != "recents":
            self.app.go("recents")

    def sleep(self) -> None:
        """Turn the screen off."""
        self.awake = False
        self.locked = self.locked or self.locks

    def _reached(self, x: int, y: int) -> bool:
        """Return whether a touch reaches the screen in front."""
        on_screen = 0 <= x < self.width and 0 <= y < self.height - self.keyboard_height
        return on_screen and self.awake and not self.locked

    # Its shell

    @property
    def programs(self) -> Path:
        """The folder of its shell's programs, while it is open.

        Put it first on a path.

        Raises:
            RuntimeError: If it is not open.
        """
        return self._shell.programs

    def place(self, path: str) -> Path | None:
        """Return the file of this machine for a path of the phone.

        None where the phone's shell may not write.

        Raises:
            RuntimeError: If it is not open.
        """
        return self._shell.place(path)

    async def run(self, command: str, data: bytes | asyncio.StreamReader = b"") -> tuple[int, bytes, bytes]:
        """Run a command in its shell.

        It is `sh` of this machine, with the phone's programs first. ``/data/local/tmp`` and ``/sdcard`` in it stand for
        folders of the phone's own. This is no sandbox: a client that sends commands has the rights of this user.

        Args:
            command: One line, or several.
            data: What it reads.

        Returns:
            The exit code, and both outputs.

        Raises:
            RuntimeError: If it is not open.
        """
        return await self._shell.run(command, data)

    def opened(self) -> AbstractAsyncContextManager[Phone]:
        """Open its shell.

        The programs are in a folder that only this user can read. They connect to the phone on loopback, with a secret.

        Raises:
            RuntimeError: If it is open already, or if there is no `bash` for its programs.
        """
        return self._shell.opened()


def _share(x: int, slider: Box) -> float:
    """Return the place of a touch on a slider.

    It is from 0 to 1.
    """
    left, _, right, _ = slider
    return max(0.0, min(1.0, (x - left - MARGIN) / (right - left - 2 * MARGIN)))
