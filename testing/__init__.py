"""Test support: surfaces in memory, clocks, faults, a phone, replays, a suite.

The phone is a package of its own, `callboard.testing.phone`. Its names are imported at their first use.
"""

import contextlib
import importlib
from typing import TYPE_CHECKING

from callboard.actors.replay import Difference, Replay, replay_journal
from callboard.actors.runtime import VirtualClock
from callboard.models import FunctionModel, ScriptedModel
from callboard.testing._adb_device import AdbDevice
from callboard.testing._faults import Faults, disk_full, kill_process
from callboard.testing._memory_server import MemoryServer
from callboard.testing._replays import assert_replays
from callboard.testing._stand import SurfaceCall, SurfaceCase
from callboard.testing._suite import SurfaceSuite, surface_suite

with contextlib.suppress(ImportError):  # everything else here works without pytest
    from callboard.testing._replays import replayed

if TYPE_CHECKING:
    from callboard.testing.phone import Contact, Phone, plugged_in

__all__ = [
    "AdbDevice",
    "Contact",
    "Difference",
    "Faults",
    "FunctionModel",
    "MemoryServer",
    "Phone",
    "Replay",
    "ScriptedModel",
    "SurfaceCall",
    "SurfaceCase",
    "SurfaceSuite",
    "VirtualClock",
    "assert_replays",
    "disk_full",
    "kill_process",
    "plugged_in",
    "replay_journal",
    "replayed",
    "surface_suite",
]

_PHONE_NAMES = ("Contact", "Phone", "plugged_in")

if not TYPE_CHECKING:  # a type checker would take any name for one of this module's

    def __getattr__(name: str) -> object:
        """Import a name of the phone at its first use."""
        if name not in _PHONE_NAMES:
            msg = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(msg)
        return globals().setdefault(name, getattr(importlib.import_module("callboard.testing.phone"), name))

    def __dir__() -> list[str]:
        """List the names of the phone, too."""
        return sorted({*globals(), *_PHONE_NAMES})
