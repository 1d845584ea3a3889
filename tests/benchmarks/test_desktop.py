"""The benchmark of the desktop: one program, once."""

from __future__ import annotations

import os

import pytest

from benchmarks import desktop
from callboard.surfaces.desktop import DesktopSurface


def test_a_window_is_looked_at_and_walked(capsys):
    missing = [need.told for need in DesktopSurface.needs({"display": "private"}) if not need.met]
    if missing and os.environ.get("REQUIRE_DESKTOP"):
        pytest.fail("; ".join(missing))
    if missing:
        pytest.skip("; ".join(missing))
    desktop.main(["--rounds", "1", "--only", "a form (zenity)"])
    *_, row = capsys.readouterr().out.splitlines()
    name, controls, *figures = [cell.strip() for cell in row.strip("|").split("|")]
    assert name == "a form (zenity)"
    assert int(controls) >= 4
    assert all(float(figure) > 0 for figure in figures)
