"""The example with a shell: errors are counted in logs, and become a workbook with a chart."""

from __future__ import annotations

import shutil
from pathlib import Path

import openpyxl
import pytest
from openpyxl.chart import BarChart

from callboard import EventName, Outcome, Supervisor, Task
from callboard.config import Settings, load_yaml
from support import PATIENCE

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "log_report"
RUNS = 20
IN_GATE = 2


@pytest.mark.parametrize(
    "number", [pytest.param(number, marks=pytest.mark.slow if number >= IN_GATE else ()) for number in range(RUNS)]
)
def test_the_errors_of_each_log_are_counted_and_drawn(tmp_path: Path, number: int) -> None:
    folder = Path(shutil.copytree(EXAMPLE, tmp_path / "log_report"))
    logs = folder / "workspace" / "logs"
    (logs / "new.log").write_text("2026-03-04 06:00:00 ERROR disk full\n" * number, encoding="utf-8")
    with Supervisor.start(Settings.load(folder / "callboard.yaml")) as supervisor:
        result = supervisor.submit(Task(request=load_yaml(folder / "task.yaml")["request"])).result(PATIENCE)
    assert result.outcome is Outcome.FINISHED, result.causes
    counted = {path.name: path.read_text(encoding="utf-8").count(" ERROR ") for path in sorted(logs.iterdir())}
    workbook = openpyxl.load_workbook(folder / "workspace" / "errors.xlsx")
    assert dict(list(workbook.active.values)[1:]) == counted
    (chart,) = workbook.active._charts
    assert isinstance(chart, BarChart)
    assert [series.val.numRef.f for series in chart.series] == ["'Sheet1'!$B$2:$B$6"]


def test_commands_that_only_read_need_no_approval(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(EXAMPLE, tmp_path / "log_report"))
    settings = Settings.load(folder / "callboard.yaml", policy=[])
    with Supervisor.start(settings) as supervisor:
        handle = supervisor.submit(Task(request=load_yaml(folder / "task.yaml")["request"]))
        assert handle.result(PATIENCE).ok
        told = [event for event in handle.events() if event.name is EventName.POLICY_DECIDED]
    (run,) = [event for event in told if event.data["tool"] == "run"]
    assert (run.data["effect"], run.data["verdict"], run.data["hazards"]) == ("read", "allow", [])
