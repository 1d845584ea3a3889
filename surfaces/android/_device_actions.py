"""Actions on a device, recorded on the device itself for crash recovery.

The device's shell writes the call's id to a file before the action, and again after it. After a crash, the next process
reads from this file whether the action was begun, and whether it was done.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import shlex
from typing import TYPE_CHECKING

from callboard.messages import Probe
from callboard.surfaces import committing, current_call
from callboard.surfaces._tool_function import InDoubtError, ToolError
from callboard.surfaces.android._device import FOLDER

if TYPE_CHECKING:
    from callboard.messages import Box
    from callboard.surfaces.android._adb import Ran
    from callboard.surfaces.android._device import Device
    from callboard.surfaces.android._hierarchy import ScreenNode

OFF = "the screen is off: press the key WAKEUP first"
ACTION_SECONDS = 30.0
_NO_MARK = 97
"""The exit code if the mark could not be written; nothing was done then."""
_ACT = (
    "trap '' HUP; "
    'm="{folder}/callboard-{name}.calls"; echo {begun} >> "$m" || exit {none}; {{ {command}\n}} && echo {done} >> "$m"'
)
"""A part of an action. If the connection is lost, adbd hangs up on the shell, but the shell's command keeps running. So
the shell ignores the hangup, and writes the second mark."""
_KEPT_CALLS = 2_000
"""The lines with calls that stay on a device: enough for all calls that a crash can leave in doubt."""
_TRIM = 'm="{folder}/callboard-{name}.calls"; [ -e "$m" ] && tail -n {kept} "$m" > "$m.new" && mv "$m.new" "$m"'
_REMOVE = 'rm -f "{folder}/callboard-{name}".*'
_LEAVE_SECONDS = 2.0
_FEWEST_PIXELS = 20
"""The height of a control above the keyboard that is enough for a touch."""
_DONE = re.compile(r"([0-9]{1,4}) done")
_INSTALLERS = ("packageinstaller", ".vending", ".fdroid", ".samsungapps")
"""The suffixes of the packages that install and remove applications."""
_POLLS = 50
_POLL_SECONDS = 0.1
_QUIET = 3
"""The equal reads in a row until a mark counts: a request may still be on its way to the device."""


class DeviceActions:
    """Performs actions on one device.

    Args:
        device: The device.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self._done: dict[str, int] = {}
        """The finished parts of calls that a crash interrupted, according to `probe`."""

    async def act(self, *commands: str, seconds: float = ACTION_SECONDS) -> None:
        """Run the parts of an action, except those done before a crash.

        Args:
            commands: The parts, as commands for the device's shell.
            seconds: The time limit of each part.

        Raises:
            ToolError: If a part fails on the device.
            InDoubtError: If the connection was lost meanwhile.
            LeaseVoidError: If the call was stopped; no further part is begun.
        """
        call = current_call().id
        for number, command in list(enumerate(commands))[self._done.pop(call, 0) :]:
            marked = _ACT.format(
                folder=FOLDER,
                name=self.device.name,
                none=_NO_MARK,
                command=command,
                begun=shlex.quote(f"{call} {number} begun"),
                done=shlex.quote(f"{call} {number} done"),
            )
            try:
                ran = await self._run(call, number, marked if call else command, seconds)
            finally:
                self._drop()
            if ran is None:
                continue
            if ran.code == _NO_MARK:
                msg = f"nothing was done: the device can't write to {FOLDER}: {ran.error}"
                raise ToolError(msg)
            if ran.code or "Exception" in ran.error:
                msg = f"the device refused: {ran.error or ran.text.strip() or f'exit code {ran.code}'}"
                raise ToolError(msg)

    async def _run(self, call: str, number: int, command: str, seconds: float) -> Ran | None:
        """Run one part.

        Returns:
            The result; None if the connection was lost, and the mark on the device shows that the part was done.
        """
        try:
            return await self.device.shell(command, seconds, committing)
        except InDoubtError:
            if not call:
                raise
            mark = await self._last_mark(call)
            if mark == f"{number} done":
                return None
            if mark not in {"", f"{number - 1} done"}:
                raise
        return await self.device.shell(command, seconds, committing)  # it was not begun

    def _drop(self) -> None:
        """Invalidate the cached screen; in an installer, the cached applications too."""
        last = self.device.screen.last
        if last is not None and last.hierarchy is not None and last.hierarchy.package.endswith(_INSTALLERS):
            self.device.applications.drop()
        self.device.screen.drop()

    async def probe(self, call: str, parts: int) -> Probe:
        """Read from the device's mark which parts of a call were done.

        Args:
            call: The call's id.
            parts: The number of its parts.
        """
        mark = await self._last_mark(call)
        if not mark:
            return Probe.UNKNOWN if mark is None else Probe.NOT_DONE
        match = _DONE.fullmatch(mark)
        if match is None:
            return Probe.UNKNOWN
        done = int(match[1]) + 1
        if done < parts:
            self._done[call] = done
            return Probe.BEGUN
        return Probe.DONE

    async def _last_mark(self, call: str) -> str | None:
        """Read a call's last mark: a part's number, and ``begun`` or ``done``.

        Returns:
            The mark; empty if there is none, None if the device can't be reached.
        """
        calls = f'"{FOLDER}/callboard-{self.device.name}.calls"'
        read = f"grep -F -- {shlex.quote(f'{call} ')} {calls} 2>/dev/null | tail -n 1"
        line, equal_reads = "", 0
        for _ in range(_POLLS):  # the part may still be running
            try:
                ran = await self.device.shell(read)
            except (ToolError, InDoubtError):
                return None
            equal_reads = equal_reads + 1 if ran.text == line else 0
            line = ran.text
            if equal_reads >= _QUIET and not line.endswith("begun\n"):
                break
            await asyncio.sleep(_POLL_SECONDS)
        return (
            line.removeprefix(f"{call} ").rstrip("\n") if line.startswith(f"{call} ") else ""
        )  # a longer id ends alike

    async def leave(self, *, lasting: bool) -> None:
        """Delete old marks from the device; without a journal, all marks.

        The latest ones stay for the next process on the journal. A device that can't be reached keeps all of them.
        """
        command = (_TRIM if lasting else _REMOVE).format(folder=FOLDER, name=self.device.name, kept=_KEPT_CALLS)
        with contextlib.suppress(ToolError, InDoubtError):
            await self.device.shell(command, _LEAVE_SECONDS, away=0)

    async def control(self, control_id: str) -> ScreenNode:
        """Find a control on the screen.

        Raises:
            ToolError: If it is not on the screen, or is disabled.
        """
        screen = await self.device.screen.get()
        if not screen.state.awake:
            raise ToolError(OFF)
        if screen.hierarchy is None:
            msg = f"the controls are not known: {screen.why}"
            raise ToolError(msg)
        node = screen.hierarchy.node(control_id)
        if node is None or node.box is None:
            msg = f"the control {control_id!r} is no longer on the screen"
            raise ToolError(msg)
        if node.values.get("enabled") == "false":
            msg = f"{node.kind} {node.name!r} does not react to touches: it is disabled"
            raise ToolError(msg)
        return node

    async def visible(self, control_id: str) -> Box:
        """Return the part of a control that the keyboard does not cover.

        The keyboard is hidden if it covers all of the control.

        Raises:
            ToolError: If the control is not on the screen, or the keyboard stays.
        """
        node = await self.control(control_id)
        part = self._above_keyboard(node)
        if part is None:
            await self._hide_keyboard(node)
            node = await self.control(control_id)
            part = self._above_keyboard(node)
        if part is None:
            msg = f"the keyboard covers {node.kind} {node.name!r}: close it first, by the key BACK"
            raise ToolError(msg)
        return part

    def _above_keyboard(self, node: ScreenNode) -> Box | None:
        """Return the part of a control above the keyboard, if any."""
        screen, information, box = self.device.screen.last, self.device.information.last, node.box
        assert box is not None  # noqa: S101 - `control` gives those with a place
        if screen is None or not screen.state.keyboard:
            return box
        keyboard = screen.state.keyboard_box
        top = keyboard.y if keyboard is not None else information.size(screen)[1] // 2 if information is not None else 0
        height = min(box.height, top - box.y)
        return box.model_copy(update={"height": height}) if height >= min(box.height, _FEWEST_PIXELS) else None

    async def _hide_keyboard(self, node: ScreenNode) -> None:
        """Hide the keyboard, which would get the touch of a control.

        Raises:
            ToolError: If it stays.
        """
        self.device.screen.drop()
        if not (await self.device.screen.get()).state.keyboard:
            return  # the key would leave the page
        await self.device.shell("input keyevent KEYCODE_BACK", ACTION_SECONDS, committing)
        for _ in range(_POLLS):
            self.device.screen.drop()
            if not (await self.device.screen.get()).state.keyboard:
                return
            await asyncio.sleep(_POLL_SECONDS)
        msg = f"the keyboard covers {node.kind} {node.name!r}, and can't be hidden"
        raise ToolError(msg)

    async def point(self, control_id: str, x: int | None, y: int | None) -> tuple[int, int]:
        """Return the center of a control, or a given screen point.

        Raises:
            ToolError: If neither or both are given, or the point is not on the screen.
        """
        if control_id and x is None and y is None:
            box = await self.visible(control_id)
            x, y = box.x + box.width // 2, box.y + box.height // 2
        elif control_id or x is None or y is None:
            msg = "give either a control or a point, x and y"
            raise ToolError(msg)
        screen, information = await self.device.screen.get(), await self.device.information.get()
        if not screen.state.awake:
            raise ToolError(OFF)
        width, height = information.size(screen)
        if width and not (0 <= x < width and 0 <= y < height):
            msg = f"({x}, {y}) is outside the screen, which has {width} by {height} pixels"
            raise ToolError(msg)
        return x, y
