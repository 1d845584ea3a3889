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
_PNG = b"\x89PNG\r\n\x1a\n"
FOLDER = "${TMPDIR:-/data/local/tmp}"
"""The folder of a device that its shell may write into."""
_DUMP = 'f="{folder}/callboard-{name}.xml"; rm -f "$f"; uiautomator dump "$f" >&2; cat "$f" 2>/dev/null; rm -f "$f"'
_STATE = r"""
dumpsys power | grep -m1 mWakefulness=
dumpsys window policy | grep -E '^ *(showing|mShowingLockscreen|mIsShowing|isKeyguardShowing)='
dumpsys window | grep -E 'mCurrentFocus=|mFocusedApp='
dumpsys input_method | grep -E -m1 'mInputShown='
""".strip()
_INFORMATION = (
    "getprop ro.product.manufacturer; getprop ro.product.model; getprop ro.build.version.release; wm size; wm density"
)
_APPLICATIONS = (
    "cmd package query-activities --brief -a android.intent.action.MAIN -c android.intent.category.LAUNCHER; "
    "echo =; pm list packages"
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


class Kept(Generic[_T]):
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
                asked = self._clock()
                self.last, self._asked, self._holds = await self._ask(), asked, True
            return self.last

    def drop(self) -> None:
        """Have it asked for again."""
        self._holds = False


@dataclass(frozen=True)
class State:
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
class Screen:
    """What a device shows."""

    state: State
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

    def size(self, screen: Screen) -> tuple[int, int]:
        """Give the width and height of a screen as it is held; the larger one for both where that is not known."""
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
        self.screen = Kept(CONTROLS_SECONDS, self._look, clock)
        """What it shows. An action drops it."""
        self.applications = Kept(APPLICATIONS_SECONDS, self._list_applications, clock)
        self.information = Kept(INFORMATION_SECONDS, self._inform, clock)

    async def shell(self, command: str, seconds: float = 30.0, commit: Commit = contextlib.nullcontext) -> Ran:
        """Run a command on the device; the arguments are those of `Adb.shell`.

        Raises:
            ToolError: If the device can't be used; the text says what to do.
            InDoubtError: As `Adb.shell`.
        """
        try:
            return await self._adb.shell(self.serial, command, seconds=seconds, commit=commit)
        except AdbError as error:
            raise AdbError(told(self.serial, str(error))) from error

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

    async def picture(self) -> bytes:
        """Take a screenshot, as PNG.

        Raises:
            ToolError: If the device gives none: some applications forbid it.
        """
        ran = await self.shell("screencap -p", _PICTURE_SECONDS)
        if not ran.out.startswith(_PNG):
            msg = f"the device gives no screenshot: {ran.error or ran.text[:200] or 'it answered nothing'}"
            raise ToolError(msg)
        return ran.out

    async def _look(self) -> Screen:
        """Ask what it shows.

        Raises:
            ToolError: If it can't be reached.
        """
        hierarchy, state = await asyncio.gather(self._dump(), self._state(), return_exceptions=True)
        if isinstance(state, BaseException):
            raise state
        if isinstance(hierarchy, UnlistedError):
            return Screen(state, None, str(hierarchy))
        if isinstance(hierarchy, BaseException):
            raise hierarchy
        return Screen(state, hierarchy)

    async def _state(self) -> State:
        ran = await self.shell(_STATE)
        lines = dict(line.strip().partition("=")[::2] for line in reversed(ran.text.splitlines()) if "=" in line)
        front = _ACTIVITY.search(lines.get("mCurrentFocus", "")) or _ACTIVITY.search(lines.get("mFocusedApp", ""))
        locks = ("showing", "mShowingLockscreen", "mIsShowing", "isKeyguardShowing")
        return State(
            awake=lines.get("mWakefulness", "Awake") == "Awake",
            locked=any(lines.get(each, "").startswith("true") for each in locks),
            application=front[0] if front else "",
            keyboard="mInputShown=true" in ran.text,
        )

    async def _dump(self) -> Hierarchy:
        ran = await self.shell(_DUMP.format(folder=FOLDER, name=self.name), _DUMP_SECONDS)
        if not ran.text.strip():
            told = ran.error
            raise UnlistedError(_MOVING if "idle state" in told else told or "it answered nothing")
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
        found = {match["package"]: match["activity"] for match in _ACTIVITY.finditer(startable)}
        names = [line.removeprefix("package:").strip() for line in packages.splitlines() if line.startswith("package:")]
        return Applications(tuple(sorted(found.items())), tuple(sorted(names)))
