"""The example with a phone: contacts of a Word table are typed into it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import forks
from callboard.config import install_command
from callboard.surfaces.android import find_adb
from support import PATIENCE

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "phone_contacts" / "run.py"
RUNS = 20
IN_GATE = 1


@pytest.mark.parametrize(
    "number", [pytest.param(number, marks=pytest.mark.slow if number >= IN_GATE else ()) for number in range(RUNS)]
)
def test_the_contacts_are_added(tmp_path: Path, number: int) -> None:
    if find_adb() is None and not os.environ.get("REQUIRE_ADB"):
        pytest.skip("adb is missing")
    picture = tmp_path / f"{number}.png"
    home = {"HOME": str(tmp_path), "TMPDIR": str(tmp_path), "ADB_LOCAL_TRANSPORT_MAX_PORT": "0"}
    command = [sys.executable, str(EXAMPLE), "--output", str(picture)]
    ran = forks.run(command, timeout=PATIENCE, env={**os.environ, **home})
    assert ran.returncode == 0, ran.stderr + ran.stdout
    assert {"  Ada Lovelace, +44 20 7946 0001", "  Søren O'Hara, +45 33 12 34 56"} < set(ran.stdout.splitlines())
    *_, ada, soren, grace, last = ran.stdout.splitlines()
    assert all(line.startswith("control ") and line.endswith(": holds") for line in (ada, soren, grace))
    assert last == "finished: 3 contacts were added."
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_missing_extra_is_named_in_one_line() -> None:
    without = f"import runpy, sys; sys.modules['PIL'] = None; runpy.run_path({str(EXAMPLE)!r}, run_name='__main__')"
    command = [sys.executable, "-c", without]  # not in a fork, where the extra is imported
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ran.returncode == 1
    assert f"android: the package 'PIL' is missing: {install_command('android')}" in ran.stderr.splitlines()
    assert "Traceback" not in ran.stderr
