"""Original keyboards of devices, kept on the disk until they are restored."""

from __future__ import annotations

import contextlib
import json
import shlex
from typing import TYPE_CHECKING

from callboard.config import write_own
from callboard.surfaces._tool_function import InDoubtError, ToolError

if TYPE_CHECKING:
    from pathlib import Path

    from callboard.surfaces.android._device import Device

_SET = "settings get secure default_input_method"


class Keyboards:
    """Remembers the keyboards of devices, and restores them."""

    def __init__(self) -> None:
        self._file: Path | None = None
        self._had: dict[str, str] = {}

    @property
    def lent(self) -> tuple[str, ...]:
        """The serials of the devices whose keyboard is not restored yet."""
        return tuple(self._had)

    def open(self, file: Path) -> None:
        """Read an earlier process's notes; an invalid file counts as empty."""
        self._file = file
        with contextlib.suppress(FileNotFoundError, ValueError):
            noted = json.loads(file.read_text(encoding="utf-8"))
            self._had = {str(key): str(value) for key, value in noted.items()} if isinstance(noted, dict) else {}

    async def note(self, device: Device) -> None:
        """Note the keyboard of a device.

        A note that is not restored yet is kept: the keyboard that is set now is not the user's.
        """
        if device.serial not in self._had:
            had = (await device.text(_SET)).strip()
            self._had[device.serial] = "" if had == "null" else had
            self._keep()

    async def restore(self, device: Device) -> None:
        """Set a device's noted keyboard again.

        Raises:
            ToolError: If the device refuses, or is not connected; the note is kept.
            InDoubtError: As `Adb.shell`.
        """
        had = self._had.get(device.serial)
        if had is not None:
            await device.text(f"ime set {shlex.quote(had)}" if had else "ime reset")
            del self._had[device.serial]
            self._keep()

    async def try_to_restore(self, device: Device) -> None:
        """Restore the keyboard now, or leave it to the next process.

        The note is kept if the device is not connected.
        """
        with contextlib.suppress(ToolError, InDoubtError):
            await self.restore(device)

    def _keep(self) -> None:
        if self._file is not None:
            write_own(self._file, json.dumps(self._had))  # a crash leaves the old file or the new one
