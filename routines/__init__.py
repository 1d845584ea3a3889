"""Routines: recorded work that is repeated behind guards, without a model."""

from typing import TYPE_CHECKING

from callboard._lazy_names import lazy_names
from callboard.routines._control_guard import held_controls, recorded_control
from callboard.routines._expected import check_result, expected_of
from callboard.routines._follower import RoutineFollower
from callboard.routines._routine_file import load_routine
from callboard.routines._routine_model import RoutineModel
from callboard.routines._routine_task import with_routine
from callboard.routines._screen import dialogs_of, window_of
from callboard.routines._stop_rule import looked_at, stop_reason
from callboard.routines._task_routines import TaskRoutines
from callboard.routines._tool_check import tool_problems

if TYPE_CHECKING:
    from callboard.routines._promotion import (
        StoredProposal,
        promote,
        proposal_path,
        stored_proposal,
        verified_runs,
        write_proposal,
    )
    from callboard.routines._readable_yaml import dump
    from callboard.routines._recording import RoutineRecording, record
    from callboard.routines._repair import RoutineProposal, propose

__all__ = [
    "RoutineFollower",
    "RoutineModel",
    "RoutineProposal",
    "RoutineRecording",
    "StoredProposal",
    "TaskRoutines",
    "check_result",
    "dialogs_of",
    "dump",
    "expected_of",
    "held_controls",
    "load_routine",
    "looked_at",
    "promote",
    "proposal_path",
    "propose",
    "record",
    "recorded_control",
    "stop_reason",
    "stored_proposal",
    "tool_problems",
    "verified_runs",
    "window_of",
    "with_routine",
    "write_proposal",
]

_HOMES = {
    "callboard.routines._promotion": (
        "StoredProposal",
        "promote",
        "proposal_path",
        "stored_proposal",
        "verified_runs",
        "write_proposal",
    ),
    "callboard.routines._readable_yaml": ("dump",),
    "callboard.routines._recording": ("RoutineRecording", "record"),
    "callboard.routines._repair": ("RoutineProposal", "propose"),
}
"""The names that only the recording of tasks and the repair of routines need, by the module that has them."""

if not TYPE_CHECKING:  # a type checker would take any name for one of this module's
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
