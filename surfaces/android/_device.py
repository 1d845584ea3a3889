"""One Android device: its screen, facts and applications, each cached."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shlex
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from callboard.messages import Box
from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.android._adb import AdbError
from callboard.surfaces.android._hierarchy import Hierarchy, HierarchyError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from callboard.surfaces.android._adb import Adb, Commit, Ran

CONTROLS_SECONDS = 5.0
APPLICATIONS_SECONDS = 300.0
INFORMATION_SECONDS = 60.0
_DUMP_SECONDS = 40.0
"""The time limit for a dump of the screen: `uiautomator` waits up to 10 s until the screen is quiet."""
_PICTURE_SECONDS = 30.0
_AWAY_SECONDS = 10.0
_AWAY = ("offline", "not found")
"""The adb server's errors about a device that is not connected at the moment."""
_POLL_SECONDS = 0.25
_PNG = b"\x89PNG\r\n\x1a\n"
_MOST_WARNING = 2_000
"""The most bytes of text before a picture."""
FOLDER = "${TMPDIR:-/data/local/tmp}"
"""The folder on a device that its shell may write to."""
_DUMP = 'f="{folder}/callboard-{name}.xml"; rm -f "$f"; uiautomator dump "$f" >&2; cat "$f" 2>/dev/null; rm -f "$f"'
_STATE = r"""
dumpsys power | grep -m1 mWakefulness=
dumpsys window policy | grep -E '^ *(showing|mShowingLockscreen|mIsShowing|isKeyguardShowing)='
dumpsys window | grep -E '^ *(mCurrentFocus|mFocusedApp)=|type=(ITYPE_IME|ime) '
dumpsys input_method | grep -E -m1 'mInputShown='
""".strip()
_INFORMATION = (
    "getprop ro.product.manufacturer; getprop ro.product.model; getprop ro.build.version.release; wm size; wm density"
)
_APPLICATIONS = (
    "cmd package query-activities --brief -a android.intent.action.MAIN -c android.intent.category.LAUNCHER; "
    "echo =; pm list packages 2>/dev/null || pm list packages --user 0"  # a work profile may be closed to the shell
)
_ACTIVITY = re.compile(r"(?P<package>[\w.]+)/(?P<activity>[\w.$]+)")
_KEYBOARD = re.compile(r"type=(?:ITYPE_IME|ime)\b.*?\bframe=\[(\d+),(\d+)\]\[(\d+),(\d+)\].*?\bvisible=true")
_SIZE = re.compile(r"(\d+)x(\d+)")
_MOVING = "something on the screen keeps moving"
_FAULTS = {
    "unauthorized": "the device {serial} has not authorized this computer yet: unlock it, and confirm the question on "
    "its screen",
    "offline": "the device {serial} is offline: unplug it and plug it in again, or connect to it again",
    "no permissions": "this user may not use the device {serial} over USB: see adb's documentation of udev rules",
    "not found": "the device {serial} is not connected",
}
_T = TypeVar("_T")


class Cached(Generic[_T]):
    """A cached value that is fetched again after some time.

    Args:
        seconds: The time for which a value is valid.
        ask: Fetches the value.
        clock: Returns the time, in seconds.
    """

    def __init__(self, seconds: float, ask: Callable[[], Awaitable[_T]], clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._ask = ask
        self._clock = clock
        self._turn = asyncio.Lock()
        self._fetch_time = 0.0
        self.last: _T | None = None
        """The last value, however old."""
        self._valid = False

    async def get(self) -> _T:
        """Return the value. Concurrent callers share one fetch."""
        async with self._turn:
            if self.last is None or not self._valid or self._clock() - self._fetch_time >= self._seconds:
                start, self._valid = self._clock(), True  # a `drop` during the fetch invalidates the new value too
                try:
                    self.last, self._fetch_time = await self._ask(), start
                except BaseException:
                    self._valid = False
                    raise
            return self.last

    def drop(self) -> None:
        """Invalidate the value."""
        self._valid = False


@dataclass(frozen=True)
class DeviceStatus:
    """The current status of a device."""

    awake: bool
    locked: bool
    application: str
    """The activity in the foreground, as ``package/activity``; empty if there is none."""
    keyboard: bool
    """Whether its keyboard is shown."""
    keyboard_box: Box | None = None
    """The bounds of its keyboard; None if it is hidden, or the device does not report it (before Android 11)."""

    @property
    def package(self) -> str:
        """The package of the foreground application."""
        return self.application.partition("/")[0]


@dataclass(frozen=True)
class DeviceScreen:
    """A snapshot of a device's screen."""

    state: DeviceStatus
    hierarchy: Hierarchy | None
    """The hierarchy; None if the device does not provide it."""
    why: str = ""
    """The reason why there is no hierarchy."""


class UnlistedError(Exception):
    """A device does not provide a hierarchy. The text gives the reason."""


@dataclass(frozen=True)
class Information:
    """Facts about a device."""

    model: str
    android: str
    width: int
    height: int
    """The size of its upright screen, in pixels."""
    density: int

    def size(self, screen: DeviceScreen) -> tuple[int, int]:
        """Return a screen's current width and height, in pixels.

        Without a hierarchy the rotation is not known: both are then the larger one.
        """
        if screen.hierarchy is None:
            return (max(self.width, self.height),) * 2
        return (self.height, self.width) if screen.hierarchy.rotation % 2 else (self.width, self.height)


@dataclass(frozen=True)
class Applications:
    """The applications on a device."""

    startable: tuple[tuple[str, str], ...]
    """The packages with a launcher entry, each with the activity that it starts."""
    packages: tuple[str, ...]

    def component(self, name: str) -> str | None:
        """Find the launcher activity of a package; None if there is none.

        Args:
            name: The package, or its last part.
        """
        starts = dict(self.startable)
        folded_name = name.casefold().replace(" ", "")
        by_part = [package for package in starts if package.rpartition(".")[2].casefold() == folded_name]
        package = name if name in starts else by_part[0] if len(by_part) == 1 else ""
        return f"{package}/{starts[package]}" if package else None


def explain(serial: str, error: str) -> str:
    """Turn an error of the adb server into an actionable message."""
    for sign, words in _FAULTS.items():
        if sign in error:
            return words.format(serial=serial)
    return f"the device {serial} can't be used: {error}"


def _keyboard_box(text: str) -> Box | None:
    """Find the bounds of the keyboard in the window manager's report."""
    for match in _KEYBOARD.finditer(text):
        left, top, right, bottom = map(int, match.groups())
        if right > left and bottom > top:
            return Box(x=left, y=top, width=right - left, height=bottom - top)
    return None


class Device:
    """A device behind an adb server.

    Args:
        adb: The server.
        serial: The device's serial.
        name: A unique name for files on the device, of letters and digits.
        clock: Returns the time, in seconds.
    """

    def __init__(self, adb: Adb, serial: str, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._adb = adb
        self.serial = serial
        self.name = name
        self.screen = Cached(CONTROLS_SECONDS, self._look, clock)
        """The screen; every action invalidates it."""
        self._was_connected = False
        self.applications = Cached(APPLICATIONS_SECONDS, self._list_applications, clock)
        self.information = Cached(INFORMATION_SECONDS, self._inform, clock)

    async def shell(
        self,
        command: str,
        seconds: float = 30.0,
        commit: Commit = contextlib.nullcontext,
        *,
        away: float = _AWAY_SECONDS,
    ) -> Ran:
        """Run a command on the device, as `Adb.shell` does, without input.

        Args:
            command: The command for the device's shell.
            seconds: The time limit, counted from the moment when the device has the command.
            commit: Returns the context manager in which the command is sent.
            away: The seconds to wait for a device that was connected before: a cable, or a network, may be lost for a
                moment.

        Raises:
            ToolError: If the device can't be used; the text explains how to fix that.
            InDoubtError: As `Adb.shell`.
        """
        end = time.monotonic() + (away if self._was_connected else 0)
        connected = False
        while True:
            try:
                ran = await self._adb.shell(self.serial, command, seconds=seconds, commit=commit)
            except AdbError as error:
                timed_out = time.monotonic() >= end
                if not any(sign in str(error) for sign in _AWAY) or (
                    timed_out and (connected or ":" not in self.serial)
                ):
                    raise AdbError(explain(self.serial, str(error))) from error
            else:
                self._was_connected = True
                return ran
            await self._connect_again()
            connected = True

    async def _connect_again(self) -> None:
        """Reconnect a network device; for a device on a cable, only wait."""
        if ":" not in self.serial:
            await asyncio.sleep(_POLL_SECONDS)
            return
        try:
            await self._adb.connect(self.serial)
        except AdbError:
            await asyncio.sleep(_POLL_SECONDS)

    async def text(self, command: str, seconds: float = 30.0) -> str:
        """Run a command that has to succeed, and return its output.

        Raises:
            ToolError: If it fails; the text is the device's error.
        """
        ran = await self.shell(command, seconds)
        if ran.code:
            msg = ran.error or f"{shlex.split(command)[0]!r} failed on the device with exit code {ran.code}"
            raise ToolError(msg)
        return ran.text

    async def picture(self, screen: DeviceScreen) -> bytes:
        """Take a screenshot, as PNG, that matches a snapshot of the screen.

        The boxes of the snapshot's controls are in pixels of this picture.

        Raises:
            ToolError: If the device makes no screenshot, which some applications forbid. Or if the size of the picture
                differs from the screen's.
        """
        ran = await self.shell("screencap -p", _PICTURE_SECONDS)
        start = ran.out.find(_PNG, 0, _MOST_WARNING)  # a device with several displays may print a warning first
        if start < 0:
            msg = f"the device gives no screenshot: {ran.error or ran.text[:200] or 'the answer is empty'}"
            raise ToolError(msg)
        picture = ran.out[start:]
        size = int.from_bytes(picture[16:20], "big"), int.from_bytes(picture[20:24], "big")
        if screen.hierarchy is not None and size != (await self.information.get()).size(screen):
            self.information.drop()  # the device may have been folded or unfolded since
            expected = (await self.information.get()).size(screen)
            if size != expected:
                msg = (
                    f"the picture has {size[0]} by {size[1]} pixels, the screen {expected[0]} by {expected[1]}: the "
                    "places of the controls in it are unknown. `wm size reset` may help"
                )
                raise ToolError(msg)
        return picture

    async def _look(self) -> DeviceScreen:
        """Fetch the screen's hierarchy and the device's status.

        Raises:
            ToolError: If the device can't be reached.
        """
        hierarchy, state = await asyncio.gather(self._dump(), self._state(), return_exceptions=True)
        if isinstance(state, BaseException):
            raise state
        if isinstance(hierarchy, UnlistedError):
            return DeviceScreen(state, None, str(hierarchy))
        if isinstance(hierarchy, BaseException):
            raise hierarchy
        return DeviceScreen(state, hierarchy)

    async def _state(self) -> DeviceStatus:
        ran = await self.shell(_STATE)
        entries = [line.strip().partition("=")[::2] for line in ran.text.splitlines() if "=" in line]
        lines = dict(reversed(entries))
        # every display lists both, in order; both are null for a display that shows nothing
        focused = (
            value for focus_name in ("mCurrentFocus", "mFocusedApp") for name, value in entries if name == focus_name
        )
        front = next(filter(None, map(_ACTIVITY.search, focused)), None)
        locks = ("showing", "mShowingLockscreen", "mIsShowing", "isKeyguardShowing")
        return DeviceStatus(
            awake=lines.get("mWakefulness", "Awake") == "Awake",
            locked=any(lines.get(lock, "").startswith("true") for lock in locks),
            application=front[0] if front else "",
            keyboard="mInputShown=true" in ran.text,
            keyboard_box=_keyboard_box(ran.text),
        )

    async def _dump(self) -> Hierarchy:
        ran = await self.shell(_DUMP.format(folder=FOLDER, name=self.name), _DUMP_SECONDS)
        if not ran.text.strip():
            reason = ran.error or "the answer is empty"
            if "idle state" in reason:
                reason = _MOVING
            elif "already registered" in reason:
                reason = "another program on the device uses uiautomator: end it"
            raise UnlistedError(reason)
        try:
            return Hierarchy(ran.text.strip())
        except HierarchyError as error:
            raise UnlistedError(str(error)) from error

    async def _inform(self) -> Information:
        lines = (await self.text(_INFORMATION)).splitlines()
        maker, model, android, *size_lines = (*lines, "", "", "")
        sizes = _SIZE.findall("\n".join(size_lines))
        width, height = map(int, sizes[-1]) if sizes else (0, 0)  # an override is listed after the physical size
        density = re.findall(r"density: (\d+)", "\n".join(size_lines))
        name = model if model.casefold().startswith(maker.casefold()) else f"{maker} {model}"
        return Information(name.strip(), android, width, height, int(density[-1]) if density else 0)

    async def _list_applications(self) -> Applications:
        startable, _, packages = (await self.text(_APPLICATIONS)).partition("=\n")
        activities = reversed(
            list(_ACTIVITY.finditer(startable))
        )  # the first activity of a package is the one that starts
        first_activities = {match["package"]: match["activity"] for match in activities}
        names = [line.removeprefix("package:").strip() for line in packages.splitlines() if line.startswith("package:")]
        return Applications(tuple(sorted(first_activities.items())), tuple(sorted(names)))
