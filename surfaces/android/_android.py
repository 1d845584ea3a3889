"""Android server: each device of an adb server is a target."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
import uuid
from typing import TYPE_CHECKING, Any, Literal

from callboard.config import install_command, write_own
from callboard.messages import AgentKind, Control, Hazard, Look, Observation, Probe, Target, TargetKind
from callboard.surfaces._need import Need
from callboard.surfaces._surface import UNKNOWN, Server, SurfaceTool, ToolError, collect
from callboard.surfaces.android import _hazards
from callboard.surfaces.android._adb import PORT, Adb, AdbError, DeviceState, Listed
from callboard.surfaces.android._adb_process import find_adb
from callboard.surfaces.android._application_tools import ApplicationTools
from callboard.surfaces.android._device import Device, explain
from callboard.surfaces.android._device_actions import DeviceActions
from callboard.surfaces.android._key_tools import KeyTools, keycode
from callboard.surfaces.android._keyboards import Keyboards
from callboard.surfaces.android._touch_tools import TouchTools

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from pydantic import JsonValue

    from callboard.messages import Foreseen, Intent, Seconds
    from callboard.surfaces._stage import Stage
    from callboard.surfaces.android._device import DeviceScreen

_MARK = re.compile(r"[0-9a-f]{8}")
_TOUCHES = frozenset({"tap", "click_control", "click_input", "double_tap", "long_press", "drag", "swipe"})


class AndroidSurface(Server):
    """The surface of Android devices.

    Args:
        devices: The serials of the devices that may be used. A serial with a port is connected over the network.
            ``all``: all devices that the adb server knows.
        adb: The program adb. None: taken from ``ANDROID_HOME`` or ``ANDROID_SDK_ROOT``, or from the path.
        port: The adb server's port.
        clock: Returns the time, in seconds. None: the supervisor's clock.
    """

    name = "android"
    pictures = True
    blocks = False
    settles = False  # `uiautomator` itself waits until the screen is quiet
    resource_kinds = ("application", "device")

    def __init__(
        self,
        devices: Sequence[str] | Literal["all"] = "all",
        *,
        adb: Path | None = None,
        port: int = PORT,
        clock: Callable[[], Seconds] | None = None,
    ) -> None:
        self._named = () if devices == "all" else tuple(devices)
        self._adb = Adb(find_adb(adb), port)
        self._configured_clock, self._clock = clock, clock or time.monotonic
        self._mark = ""
        self._lasting = False
        self._keyboards = Keyboards()
        self._actions: dict[str, DeviceActions] = {}
        self._keys = KeyTools(self._of, self._keyboards)
        self._parts = (self._keys, TouchTools(self._of), ApplicationTools(self._of, self.devices))

    @classmethod
    def needs(cls, options: Mapping[str, Any]) -> Sequence[Need]:
        """Require adb, and Pillow for labels in pictures."""
        adb = options.get("adb")
        what = f"the program {str(adb)!r}" if adb else "the program 'adb'"
        return [
            Need.package("PIL", install_command("android")),
            Need(what=what, met=find_adb(adb) is not None, command="apt-get install adb"),
        ]

    async def open(self, stage: Stage) -> None:
        """Start the adb server, connect network devices, and restore their keyboards.

        Raises:
            AdbError: If no adb server runs, and none can be started. A running server is used.
        """
        await self._adb.start()
        mark = stage.folder / "mark"
        if not mark.exists() or not _MARK.fullmatch(mark.read_text(encoding="ascii", errors="replace")):
            write_own(mark, uuid.uuid4().hex[:8])
        self._clock = self._configured_clock or stage.elapsed
        self._lasting, self._mark = stage.lasting, mark.read_text(encoding="ascii")
        self._keyboards.open(stage.folder / "keyboards.json")
        await asyncio.gather(*map(self._connect, self._named))
        lent = set(self._keyboards.lent) & set(self._named or self._keyboards.lent)
        await asyncio.gather(*(self._keyboards.try_to_restore(self._of(serial).device) for serial in lent))

    async def close(self) -> None:
        """Stop the adb server if `open` has started it.

        Without a journal, the marks are removed from the devices.
        """
        actions, self._actions = self._actions, {}
        try:
            await asyncio.gather(*(device_actions.leave(lasting=self._lasting) for device_actions in actions.values()))
        finally:
            await self._adb.stop()

    def tools(self) -> tuple[SurfaceTool, ...]:
        """Return the tools for MobileAgents and HostAgents."""
        return tuple(entry for part in self._parts for entry in collect(part))

    async def targets(self) -> tuple[Target, ...]:  # type: ignore[override]
        """List the devices, also those that can't be used now.

        Observing such a device fails with the reason.
        """
        return tuple(map(self._target, await self.devices()))

    async def observe(self, target: Target, look: Look) -> Observation:  # type: ignore[override]
        """Observe a device: its controls, its picture and its status.

        Raises:
            ToolError: If it can't be reached; the text gives the reason, and explains how to fix it.
        """
        device = self._of(target.id).device
        screen, information, applications = (
            await device.screen.get(),
            await device.information.get(),
            await device.applications.get(),
        )
        facts: dict[str, JsonValue] = {
            "device": information.model,
            "android": information.android,
            "application": screen.state.application,
            "keyboard": "shown" if screen.state.keyboard else "hidden",
            "applications": [package for package, _ in applications.startable],
        }
        notes: list[str] = []
        if not screen.state.awake:
            facts["screen"] = "off"
            notes.append("The screen is off. The key WAKEUP turns it on.")
        if screen.state.locked:
            facts["locked"] = True
            notes.append("The device is locked. A person has to unlock it, unless a swipe up does.")
        controls, omission_notes = tuple[Control, ...](), tuple[str, ...]()
        if screen.hierarchy is not None:
            width, height = information.size(screen)
            facts["orientation"] = "landscape" if width > height else "portrait"
            controls, omission_notes = screen.hierarchy.controls(look.budget)
            if screen.hierarchy.dialog:
                facts["dialog"] = screen.hierarchy.dialog
        elif screen.state.awake:
            notes.append(f"The controls can't be listed: {screen.why}. Points of the picture can be tapped.")
        picture, reason = None, ""
        if {*look.masked} - {control.id for control in controls} and (omission_notes or screen.hierarchy is None):
            reason = "The picture is not shown: a control that holds a secret may be in it, and where is not known."
        elif look.picture and screen.state.awake:
            picture, reason = await self._picture(device, screen)
        return Observation(
            controls=controls,
            window=facts,
            picture=picture,
            fingerprint=_fingerprint(screen),
            notes=(*notes, *omission_notes, *filter(None, (reason,))),
        )

    async def fingerprint(self, target: Target) -> str:  # type: ignore[override]
        """Return the fingerprint of the current screen, without taking a picture.

        The cached screen is not used: it may be some seconds old.
        """
        device = self._of(target.id).device
        device.screen.drop()
        return _fingerprint(await device.screen.get())

    def hazards(
        self,
        target: Target,
        tool: str,
        arguments: Mapping[str, JsonValue],
        made: Collection[str],
    ) -> set[Hazard]:
        """Return a call's hazards, based on the last snapshot of the screen."""
        if tool == "open_url":
            return _hazards.of_address(str(arguments["url"]))
        screen = self._of(target.id).device.screen.last
        hierarchy = screen.hierarchy if screen else None
        if tool == "press_key":
            return _hazards.of_key(keycode(str(arguments["key"])), hierarchy)
        if tool == "type_text":
            return _hazards.of_text(str(arguments["text"]), hierarchy)
        if tool not in _TOUCHES:
            return set()
        if hierarchy is None:
            return {Hazard.UNKNOWN} if tool != "swipe" else set()
        touch_hazards = set[Hazard]()
        for id_, x_argument, y_argument in (("control_id", "x", "y"), ("to", "to_x", "to_y")):
            x, y = arguments.get(x_argument), arguments.get(y_argument)
            node = hierarchy.node(str(arguments.get(id_) or ""))
            if node is None and isinstance(x, int) and isinstance(y, int):
                node = hierarchy.at(x, y)
            touch_hazards |= _hazards.of_touch(node) if node is not None else set()
        return touch_hazards

    def resources(self, target: Target | None, tool: str, arguments: Mapping[str, JsonValue]) -> Collection[str]:
        """Name the application of a call; for a HostAgent's call, the device.

        The forms are ``application:<package>`` and ``device:<serial>``.
        """
        if target is None:
            return (f"device:{arguments['device']}",) if "device" in arguments else ()
        if tool in {"launch_app", "stop_app"}:
            applications = self._of(target.id).device.applications.last
            component = applications.component(str(arguments["application"])) if applications is not None else None
            return (f"application:{component.partition('/')[0]}",) if component else (UNKNOWN,)
        if tool == "wait":
            return ()
        screen = self._of(target.id).device.screen.last
        if screen is None or tool == "open_url":
            return (UNKNOWN,)
        hierarchy_packages = {screen.hierarchy.package} if screen.hierarchy is not None else set()
        packages = sorted({screen.state.package, *hierarchy_packages} - {""})
        return tuple(f"application:{package}" for package in packages) or (UNKNOWN,)

    async def probe(  # type: ignore[override]
        self,
        target: Target | None,
        intent: Intent,
        foreseen: Sequence[Foreseen],
        fingerprint: str,
    ) -> Probe:
        """Read from the marks on the device whether an action was done."""
        if target is None:
            return Probe.UNKNOWN
        parts = self._keys.parts(str(intent.arguments["text"])) if intent.tool == "type_text" else 1
        return await self._of(target.id).probe(intent.call_id, parts)

    async def _picture(self, device: Device, screen: DeviceScreen) -> tuple[bytes | None, str]:
        try:
            return await device.picture(screen), ""
        except ToolError as error:
            return None, str(error)

    async def devices(self) -> tuple[Listed, ...]:
        """List the usable devices, in the order of the settings."""
        devices_by_serial = {device.serial: device for device in await self._adb.devices()}
        missing = Listed("", DeviceState.OTHER, "not connected")
        if self._named:
            return tuple(
                devices_by_serial.get(serial, Listed(serial, missing.state, missing.text)) for serial in self._named
            )
        return tuple(devices_by_serial.values())

    async def _connect(self, serial: str) -> None:
        """Connect to a network device; its listed state shows a failure."""
        if ":" not in serial:
            return
        try:
            await self._adb.connect(serial)
        except AdbError:
            return

    def _target(self, listed: Listed) -> Target:
        state = "" if listed.state is DeviceState.DEVICE else f" ({listed.text})"
        return Target(
            id=listed.serial,
            name=f"{listed.model or listed.serial}{state}",
            kind=TargetKind.DEVICE,
            kinds=(AgentKind.MOBILE,),
            address=f"mobile/{listed.serial}",
            server=self.name,
            binds={"device": listed.serial},
        )

    def _of(self, serial: str) -> DeviceActions:
        if self._named and serial not in self._named:
            raise ToolError(explain(serial, "not found"))
        if serial not in self._actions:
            self._actions[serial] = DeviceActions(Device(self._adb, serial, self._mark, self._clock))
        return self._actions[serial]


def _fingerprint(screen: DeviceScreen) -> str:
    """Return a digest of a device's screen, without pixels and keyboard."""
    state, content = screen.state, screen.hierarchy.fingerprint() if screen.hierarchy is not None else screen.why
    return hashlib.sha256(repr((content, state.awake, state.locked, state.application)).encode()).hexdigest()
