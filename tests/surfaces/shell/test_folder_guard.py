"""The guard of a routine on a shell: its working folder."""

from __future__ import annotations

import pytest

from callboard.messages import RoutineMissError, RoutineStep
from callboard.routines import held_controls, window_of


def test_guard_stops_in_another_folder(local):
    (local.work / "reports").mkdir()
    assert window_of(local.look(), local.target) == "."
    step = RoutineStep(status="CONTINUE", window="reports")
    with pytest.raises(RoutineMissError, match=r"expected 'reports' in front; found '\.'"):
        held_controls(step, local.look(), local.target)
    local.run("cd reports")
    (local.work / "reports" / "may.csv").write_text("1")
    assert held_controls(step, local.look(), local.target) == ()
