"""Routines: record finished work once, and repeat it behind guards, without a model."""

from callboard.routines._control_guard import held_controls, recorded_control
from callboard.routines._expected import check_result, expected_of
from callboard.routines._screen import dialogs_of, window_of

__all__ = [
    "check_result",
    "dialogs_of",
    "expected_of",
    "held_controls",
    "recorded_control",
    "window_of",
]
