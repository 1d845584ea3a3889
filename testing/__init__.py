"""Test support: surfaces in memory, clocks, faults, a phone, replays, a suite."""

import contextlib

from callboard.actors.replay import Difference, Replay, replay_journal
from callboard.actors.runtime import VirtualClock
from callboard.models import FunctionModel, ScriptedModel
from callboard.testing._adb_device import AdbDevice
from callboard.testing._faults import Faults, disk_full, kill_process
from callboard.testing._memory_server import MemoryServer
from callboard.testing._replays import assert_replays
from callboard.testing._stand import SurfaceCall, SurfaceCase
from callboard.testing._suite import SurfaceSuite, surface_suite
from callboard.testing.phone import Contact, Phone, plugged_in

with contextlib.suppress(ImportError):  # everything else here works without pytest
    from callboard.testing._replays import replayed

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
