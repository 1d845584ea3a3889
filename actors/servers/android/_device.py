"""One Android device: its screen, its facts and its applications, each kept for as long as it is likely to hold."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shlex
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from callboard.actors.servers._server import ToolError
from callboard.actors.servers.android._adb import AdbError
from callboard.actors.servers.android._hierarchy import Hierarchy, HierarchyError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from callboard.actors.servers.android._adb import Adb, Commit, Ran

CONTROLS_SECONDS = 5.0
APPLICATIONS_SECONDS = 300.0
INFORMATION_SECONDS = 60.0
_DUMP_SECONDS = 40.0
"""The longest that a device may take to list what is on its screen: it waits up to 10 s until that is quiet."""
_PICTURE_SECONDS = 30.0
_AWAY_SECONDS = 10.0
_AWAY = ("offline", "not found")
"""What the adb server says of a device that is not there, or not now."""
_POLL_SECONDS = 0.25
_PNG = b"\x89PNG\r\n\x1a\n"
_MOST_WARNING = 2_000
"""The bytes of text that may stand before a picture."""
FOLDER = "${TMPDIR:-/data/local/tmp}"
"""The folder of a device that its shell may write into."""
_DUMP = 'f="{folder}/callboard-{name}.xml"; rm -f "$f"; uiautomator dump "$f" >&2; cat "$f" 2>/dev/null; rm -f "$f"'
_STATE = r"""
dumpsys power | grep -m1 mWakefulness=
dumpsys window policy | grep -E '^ *(showing|mShowingLockscreen|mIsShowing|isKeyguardShowing)='
dumpsys window | grep -E '^ *(mCurrentFocus|mFocusedApp)='
dumpsys input_method | grep -E -m1 'mInputShown='
""".strip()
_INFORMATION = (
    "getprop ro.product.manufacturer; getprop ro.product.model; getprop ro.build.version.release; wm size; wm density"
)
_APPLICATIONS = (
    "cmd package query-activities --brief -a android.intent.action.MAIN -c android.intent.category.LAUNCHER; "
    "echo =; pm list packages 2>/dev/null || pm list packages --user 0"  # a profile of work may be closed to the shell
)
_ACTIVITY = re.compile(r"(?P<package>[\w.]+)/(?P<activity>[\w.$]+)")
_SIZE = re.compile(r"(\d+)x(\d+)")
_MOVING = "something on the screen keeps moving"
_FAULTS = {
    "unauthorized": "the device {serial} has not allowed this computer yet: unlock it, and confirm the question on its "
    "screen",
    "offline": "the device {serial} is offline: unplug it and plug it in again, or connect to it again",
    "no permissions": "this user may not use the device {serial} over USB: see adb's documentation of udev rules",
    "not found": "the device {serial} is not connected",
}
_T = TypeVar("_T")


class Cached(Generic[_T]):
    """Something that is asked for again after some time.

    Args:
        seconds: For how long an answer holds.
        ask: Asks for it.
        clock: Gives the time, in seconds.
    """

    def __init__(self, seconds: float, ask: Callable[[], Awaitable[_T]], clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._ask = ask
        self._clock = clock
        self._turn = asyncio.Lock()
        self._asked = 0.0
        self.last: _T | None = None
        """The last answer, however old."""
        self._holds = False

    async def get(self) -> _T:
        """Give it. Who asks meanwhile waits for the same answer."""
        async with self._turn:
            if self.last is None or not self._holds or self._clock() - self._asked >= self._seconds:
                asked, self._holds = self._clock(), True  # what drops it meanwhile makes the answer hold no longer
                try:
                    self.last, self._asked = await self._ask(), asked
                except BaseException:
                    self._holds = False
                    raise
            return self.last

    def drop(self) -> None:
        """Have it asked for again."""
        self._holds = False


@dataclass(frozen=True)
class DeviceStatus:
    """What a device is doing."""

    awake: bool
    locked: bool
    application: str
    """The activity in front, as ``package/activity``; empty if there is none."""
    keyboard: bool
    """Whether its keyboard is shown."""

    @property
    def package(self) -> str:
        """The application in front."""
        return self.application.partition("/")[0]


@dataclass(frozen=True)
class DeviceScreen:
    """What a device shows."""

    state: DeviceStatus
    hierarchy: Hierarchy | None
    """None where the device does not tell it."""
    why: str = ""
    """The reason for that."""


class UnlistedError(Exception):
    """A device does not tell what is on its screen. The text says why."""


@dataclass(frozen=True)
class Information:
    """What a device is."""

    model: str
    android: str
    width: int
    height: int
    """Its screen upright, in pixels."""
    density: int

    def size(self, screen: DeviceScreen) -> tuple[int, int]:
        """Give the width and height in pixels of a screen as it is held; the larger one for both if not known."""
        if screen.hierarchy is None:
            return (max(self.width, self.height),) * 2
        return (self.height, self.width) if screen.hierarchy.rotation % 2 else (self.width, self.height)


@dataclass(frozen=True)
class Applications:
    """What is installed."""

    startable: tuple[tuple[str, str], ...]
    """The packages that a person can start, each with the activity that starts."""
    packages: tuple[str, ...]

    def component(self, name: str) -> str | None:
        """Find the activity that starts a package, by the package's name or its last part; None if none does."""
        starts = dict(self.startable)
        wanted = name.casefold().replace(" ", "")
        by_part = [package for package in starts if package.rpartition(".")[2].casefold() == wanted]
        package = name if name in starts else by_part[0] if len(by_part) == 1 else ""
        return f"{package}/{starts[package]}" if package else None


def told(serial: str, error: str) -> str:
    """Say in plain words why a device can't be used, and what to do."""
    for sign, words in _FAULTS.items():
        if sign in error:
            return words.format(serial=serial)
    return f"the device {serial} can't be used: {error}"


class Device:
    """A device that an adb server reaches.

    Args:
        adb: The server.
        serial: The device's serial.
        name: A name for files on the device, of letters and digits; no other program uses it.
        clock: Gives the time, in seconds.
    """

    def __init__(self, adb: Adb, serial: str, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._adb = adb
        self.serial = serial
        self.name = name
        self.screen = Cached(CONTROLS_SECONDS, self._look, clock)
        """What it shows. An action drops it."""
        self._was_there = False
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
        """Run a command on the device; the other arguments are those of `Adb.shell`.

        Args:
            command: For the device's shell.
            seconds: The time limit, once the device has it.
            commit: Gives the context in which the command is sent.
            away: The seconds for which a device is waited for that was there before: a cable, or a network, may be
                lost for a moment.

        Raises:
            ToolError: If the device can't be used; the text says what to do.
            InDoubtError: As `Adb.shell`.
        """
        end = time.monotonic() + (away if self._was_there else 0)
        connected = False
        while True:
            try:
                ran = await self._adb.shell(self.serial, command, seconds=seconds, commit=commit)
            except AdbError as error:
                late = time.monotonic() >= end
                if not any(sign in str(error) for sign in _AWAY) or (late and (connected or ":" not in self.serial)):
                    raise AdbError(told(self.serial, str(error))) from error
            else:
                self._was_there = True
                return ran
            await self._connect_again()
            connected = True

    async def _connect_again(self) -> None:
        """Connect to a device over the network that was lost, or give one on a cable a moment."""
        if ":" not in self.serial:
            await asyncio.sleep(_POLL_SECONDS)
            return
        try:
            await self._adb.connect(self.serial)
        except AdbError:
            await asyncio.sleep(_POLL_SECONDS)

    async def text(self, command: str, seconds: float = 30.0) -> str:
        """Run a command that has to succeed, and give its output.

        Raises:
            ToolError: If it fails; the text is what the device has told.
        """
        ran = await self.shell(command, seconds)
        if ran.code:
            msg = ran.error or f"{shlex.split(command)[0]!r} failed on the device with exit code {ran.code}"
            raise ToolError(msg)
        return ran.text

    async def picture(self, screen: DeviceScreen) -> bytes:
        """Take a screenshot, as PNG, in whose pixels the places of a screen's controls are.

        Raises:
            ToolError: If the device gives none: some applications forbid it. Or if it has another size than the screen.
        """
        ran = await self.shell("screencap -p", _PICTURE_SECONDS)
        start = ran.out.find(_PNG, 0, _MOST_WARNING)  # a device with several displays may warn before it
        if start < 0:
            msg = f"the device gives no screenshot: {ran.error or ran.text[:200] or 'it answered nothing'}"
            raise ToolError(msg)
        picture = ran.out[start:]
        size = int.from_bytes(picture[16:20], "big"), int.from_bytes(picture[20:24], "big")
        if screen.hierarchy is not None and size != (await self.information.get()).size(screen):
            self.information.drop()  # it was folded or unfolded since
            expected = (await self.information.get()).size(screen)
            if size != expected:
                msg = (
                    f"the picture has {size[0]} by {size[1]} pixels, the screen {expected[0]} by {expected[1]}: where "
                    "its controls are in it is not known. `wm size reset` may help"
                )
                raise ToolError(msg)
        return picture

    async def _look(self) -> DeviceScreen:
        """Ask what it shows.

        Raises:
            ToolError: If it can't be reached.
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
        told = [line.strip().partition("=")[::2] for line in ran.text.splitlines() if "=" in line]
        lines = dict(reversed(told))
        # each display tells both, in order; that of one that shows nothing is null
        focused = (value for wanted in ("mCurrentFocus", "mFocusedApp") for name, value in told if name == wanted)
        front = next(filter(None, map(_ACTIVITY.search, focused)), None)
        locks = ("showing", "mShowingLockscreen", "mIsShowing", "isKeyguardShowing")
        return DeviceStatus(
            awake=lines.get("mWakefulness", "Awake") == "Awake",
            locked=any(lines.get(each, "").startswith("true") for each in locks),
            application=front[0] if front else "",
            keyboard="mInputShown=true" in ran.text,
        )

    async def _dump(self) -> Hierarchy:
        ran = await self.shell(_DUMP.format(folder=FOLDER, name=self.name), _DUMP_SECONDS)
        if not ran.text.strip():
            why = ran.error or "it answered nothing"
            if "idle state" in why:
                why = _MOVING
            elif "already registered" in why:
                why = "another program on the device uses uiautomator: end it"
            raise UnlistedError(why)
        try:
            return Hierarchy(ran.text.strip())
        except HierarchyError as error:
            raise UnlistedError(str(error)) from error

    async def _inform(self) -> Information:
        lines = (await self.text(_INFORMATION)).splitlines()
        maker, model, android, *rest = (*lines, "", "", "")
        sizes = _SIZE.findall("\n".join(rest))
        width, height = map(int, sizes[-1]) if sizes else (0, 0)  # one that was set stands after that of the screen
        density = re.findall(r"density: (\d+)", "\n".join(rest))
        name = model if model.casefold().startswith(maker.casefold()) else f"{maker} {model}"
        return Information(name.strip(), android, width, height, int(density[-1]) if density else 0)

    async def _list_applications(self) -> Applications:
        startable, _, packages = (await self.text(_APPLICATIONS)).partition("=\n")
        activities = reversed(list(_ACTIVITY.finditer(startable)))  # the first of a package is the one that starts
        found = {match["package"]: match["activity"] for match in activities}
        names = [line.removeprefix("package:").strip() for line in packages.splitlines() if line.startswith("package:")]
        return Applications(tuple(sorted(found.items())), tuple(sorted(names)))
