"""For the tests of your own automations: a surface in memory, a clock that stands still, faults, runs replayed."""

import contextlib

from callboard.actors.models import FunctionModel, ScriptedModel
from callboard.actors.replay import Replay
from callboard.actors.runtime import VirtualClock
from callboard.testing._faults import Faults, disk_full, kill_process
from callboard.testing._memory import MemoryServer
from callboard.testing._replays import assert_replays

with contextlib.suppress(ImportError):  # all else here works without pytest
    from callboard.testing._replays import replayed

__all__ = [
    "Faults",
    "FunctionModel",
    "MemoryServer",
    "Replay",
    "ScriptedModel",
    "VirtualClock",
    "assert_replays",
    "disk_full",
    "kill_process",
    "replayed",
]
