"""The examples that are installed with the package."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from callboard.__main__ import app
from callboard.terminal import demo_names

Call = Callable[..., Result]


def test_the_first_demo_needs_no_arguments(call: Call, here: Path) -> None:
    result = call("demo")
    assert result.exit_code == 0, result.output
    assert (here / "runs/sales_report-1/workspace/report.xlsx").is_file()
    assert "others: expenses, log_report, sales_report_desktop" in result.stdout


def test_each_example_with_a_task_is_a_demo() -> None:
    assert demo_names() == ["expenses", "log_report", "sales_report", "sales_report_desktop"]


@pytest.mark.parametrize("name", ["sales_reprot", "../sales_report", "/etc", "", "own_agent.py", "\x1b[2J", "x" * 9000])
def test_a_name_that_is_not_listed_is_refused(call: Call, here: Path, name: str) -> None:
    result = call("demo", name)
    assert result.exit_code == 2
    assert "there is no example" in result.stderr
    assert "\x1b" not in result.output
    assert not (here / "runs").exists()


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_display_cuts_nothing_and_has_no_jargon(here: Path, columns: int) -> None:
    result = CliRunner().invoke(app, ["demo"], env={"COLUMNS": str(columns)})
    board = result.stdout[result.stdout.rindex("host/sales_report-1  finished") :]
    words = " ".join(board.replace("|", " ").split())
    for told in ("app/word/sales.docx", "app/excel/report.xlsx", "Write the table and create a bar chart"):
        assert told in words
    assert "…" not in board
    for word in ("CONTINUE", "ASSIGN", "not_done", "data_collection"):
        assert word not in result.stdout
