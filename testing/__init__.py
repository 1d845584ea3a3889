"""Test support: surfaces in memory, clocks, faults, a phone, replays, a suite.

The phone is a package of its own, `callboard.testing.phone`. Each name is imported at its first use: most programs need
`MemoryServer` alone, and the replays and the suite need pytest.
"""

from typing import TYPE_CHECKING

from callboard._lazy_names import lazy_names

if TYPE_CHECKING:
    from callboard.actors.replay import Difference, Replay, replay_journal
    from callboard.actors.runtime import VirtualClock
    from callboard.fleet import MemoryEngine, MemoryHub
    from callboard.models import FunctionModel, ScriptedModel
    from callboard.testing._adb_device import AdbDevice
    from callboard.testing._faults import Faults, disk_full, kill_process
    from callboard.testing._memory_surface import MemoryServer
    from callboard.testing._replays import assert_replays, replayed
    from callboard.testing._stand import SurfaceCall, SurfaceCase
    from callboard.testing._suite import SurfaceSuite, surface_suite
    from callboard.testing.phone import Contact, Phone, plugged_in

__all__ = [
    "AdbDevice",
    "Contact",
    "Difference",
    "Faults",
    "FunctionModel",
    "MemoryEngine",
    "MemoryHub",
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

_HOMES = {
    "callboard.actors.replay": ("Difference", "Replay", "replay_journal"),
    "callboard.actors.runtime": ("VirtualClock",),
    "callboard.fleet": ("MemoryEngine", "MemoryHub"),
    "callboard.models": ("FunctionModel", "ScriptedModel"),
    "callboard.testing._adb_device": ("AdbDevice",),
    "callboard.testing._faults": ("Faults", "disk_full", "kill_process"),
    "callboard.testing._memory_surface": ("MemoryServer",),
    "callboard.testing._replays": ("assert_replays", "replayed"),
    "callboard.testing._stand": ("SurfaceCall", "SurfaceCase"),
    "callboard.testing._suite": ("SurfaceSuite", "surface_suite"),
    "callboard.testing.phone": ("Contact", "Phone", "plugged_in"),
}
"""The public names by the module that has them."""

if not TYPE_CHECKING:  # a type checker would take any name for one of this module's
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
