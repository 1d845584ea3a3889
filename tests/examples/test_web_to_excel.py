"""The example with a browser: a table on two pages of a website becomes a workbook with a chart."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import openpyxl
import pytest

import forks
from callboard.surfaces.browser import BrowserSurface
from support import PATIENCE

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "web_to_excel" / "run.py"
RUNS = 20
IN_GATE = 1
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.fixture(scope="module")
def _needs_a_browser() -> None:
    """Skip where the browser is missing; with ``REQUIRE_BROWSER`` it fails."""
    missing = "; ".join(need.told for need in BrowserSurface.needs({"executable": "chromium"}) if not need.met)
    if missing and os.environ.get("REQUIRE_BROWSER"):
        pytest.fail(missing)
    if missing:
        pytest.skip(missing)


@pytest.mark.usefixtures("_needs_a_browser")
@pytest.mark.parametrize(
    "number", [pytest.param(number, marks=pytest.mark.slow if number >= IN_GATE else ()) for number in range(RUNS)]
)
def test_the_table_of_both_pages_is_in_the_workbook(tmp_path: Path, number: int) -> None:
    folder = tmp_path / str(number)
    command = [sys.executable, str(EXAMPLE), "--output", str(folder), *(["--no-sandbox"] if IS_ROOT else [])]
    ran = forks.run(command, timeout=PATIENCE)
    assert ran.returncode == 0, ran.stderr + ran.stdout
    *checks, last = ran.stdout.splitlines()
    assert [line.endswith(": holds") for line in checks] == [True] * 4
    assert last == "finished: The table of 6 cities is in cities.xlsx, with a chart."
    sheet = openpyxl.load_workbook(folder / "cities.xlsx").active
    rows = list(sheet.values)
    assert (rows[0], rows[1], rows[-1]) == (
        ("City", "Visitors", "Nights"),
        ("Aarhus", 412_300, 1_204_900),
        ("Ghent", 520_600, 978_300),
    )


@pytest.mark.usefixtures("_needs_a_browser")
@pytest.mark.skipif(not IS_ROOT, reason="only root has no sandbox")
def test_root_is_told_what_to_do(tmp_path: Path) -> None:
    ran = forks.run([sys.executable, str(EXAMPLE), "--output", str(tmp_path)], timeout=PATIENCE)
    assert ran.returncode == 1
    assert "does not work as root" in ran.stderr
    assert "--no-sandbox" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_missing_browser_is_named_in_one_line() -> None:
    command = [sys.executable, str(EXAMPLE), "--browser", "no-such-browser", "--no-sandbox"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ran.returncode == 1
    assert "the program 'no-such-browser' is missing: apt-get install chromium" in ran.stderr
    assert "Traceback" not in ran.stderr
