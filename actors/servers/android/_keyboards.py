"""The keyboards that devices had before this program set another one, kept on the disk until they are given back."""

from __future__ import annotations

import contextlib
import json
import shlex
from typing import TYPE_CHECKING

from callboard.actors.servers._server import InDoubtError, ToolError

if TYPE_CHECKING:
    from pathlib import Path

    from callboard.actors.servers.android._device import Device

_SET = "settings get secure default_input_method"


class Keyboards:
    """Remembers and gives back keyboards."""

    def __init__(self) -> None:
        self._file: Path | None = None
        self._had: dict[str, str] = {}

    @property
    def lent(self) -> tuple[str, ...]:
        """The serials of the devices whose keyboard was not given back yet."""
        return tuple(self._had)

    def open(self, file: Path) -> None:
        """Read what a process before has noted; what is no such file is taken for an empty one."""
        self._file = file
        with contextlib.suppress(FileNotFoundError, ValueError):
            noted = json.loads(file.read_text(encoding="utf-8"))
            self._had = {str(key): str(value) for key, value in noted.items()} if isinstance(noted, dict) else {}

    async def note(self, device: Device) -> None:
        """Note the keyboard of a device. What was noted and not given back stays: what is set now is not the user's."""
        if device.serial not in self._had:
            had = (await device.text(_SET)).strip()
            self._had[device.serial] = "" if had == "null" else had
            self._keep()

    async def give_back(self, device: Device) -> None:
        """Have a device use the keyboard again that it had.

        Raises:
            ToolError: If the device refuses, or is not there; the keyboard stays noted.
            InDoubtError: As `Adb.shell`.
        """
        had = self._had.get(device.serial)
        if had is not None:
            await device.text(f"ime set {shlex.quote(had)}" if had else "ime reset")
            del self._had[device.serial]
            self._keep()

    async def try_to_give_back(self, device: Device) -> None:
        """Give it back if the device is there; if not, the next process tries again."""
        with contextlib.suppress(ToolError, InDoubtError):
            await self.give_back(device)

    def _keep(self) -> None:
        if self._file is not None:
            new = self._file.with_suffix(".new")
            new.write_text(json.dumps(self._had), encoding="utf-8")
            new.replace(self._file)  # a crash leaves the old one or the new one
