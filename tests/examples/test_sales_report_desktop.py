"""The example on the desktop: a table out of the real Writer becomes a chart in the real Calc."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import openpyxl
import pytest
from openpyxl.chart import BarChart

from callboard import Outcome, Supervisor, Task
from callboard.config import Settings, load_yaml
from callboard.surfaces import Need
from callboard.surfaces.desktop import DesktopSurface

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "sales_report_desktop"
RUNS = 20
IN_GATE = 1
TABLE = [
    ["Region", "Q1", "Q2", "Q3", "Q4"],
    ["North", 412.5, 438, 471.5, 526],
    ["South", 298, 341.5, 402, 467.5],
    ["West", 655, 640.5, 688, 731.5],
    ["Online", 884.5, 961, 1042.5, 1318],
]


@pytest.fixture(scope="module")
def _needs_a_desktop() -> None:
    """Skip where there is no desktop with Office; with ``REQUIRE_DESKTOP`` it fails."""
    needs = [*DesktopSurface.needs({"display": "private"}), Need.program("soffice")]
    missing = "; ".join(need.told for need in needs if not need.met)
    if missing and os.environ.get("REQUIRE_DESKTOP"):
        pytest.fail(missing)
    if missing:
        pytest.skip(missing)


@pytest.mark.usefixtures("_needs_a_desktop")
@pytest.mark.parametrize(
    "number", [pytest.param(number, marks=pytest.mark.slow if number >= IN_GATE else ()) for number in range(RUNS)]
)
def test_the_table_and_its_chart_are_saved_as_a_workbook(tmp_path: Path, number: int) -> None:
    folder = Path(shutil.copytree(EXAMPLE, tmp_path / f"run {number}"))
    request = load_yaml(folder / "task.yaml")["request"]
    with Supervisor.start(Settings.load(folder / "callboard.yaml")) as supervisor:
        result = supervisor.submit(Task(request=request)).result(120)
    assert result.outcome is Outcome.FINISHED, result.causes
    assert not list(folder.rglob(".~lock*")), "Office was asked to close before it was ended"
    workbook = openpyxl.load_workbook(folder / "workspace" / "report.xlsx")
    assert [list(row) for row in workbook.active.values] == TABLE
    (chart,) = workbook.active._charts
    assert isinstance(chart, BarChart)
    ranges = [(series.tx.strRef.f, series.cat.strRef.f, series.val.numRef.f) for series in chart.series]
    assert ranges == [
        (f"Sheet1!${column}$1", "Sheet1!$A$2:$A$5", f"Sheet1!${column}$2:${column}$5") for column in "BCDE"
    ]
