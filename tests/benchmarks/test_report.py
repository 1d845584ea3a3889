"""The report: the tables, the goals, the plot, and where they stand in the document."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from benchmarks.contest import Spread
from benchmarks.goals import GOALS
from benchmarks.parts import titles
from benchmarks.plot import LINE, Series, drawn
from benchmarks.report import plotted, replaced, sections

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")


def measured(**values):
    """Make answers of two rounds: the same CPU time as wall time."""
    return {
        name.replace("_at_", "@"): [{"seconds": value, "cpu": value, "round": number} for number in range(2)]
        for name, value in values.items()
    }


def test_a_goal_is_met_if_its_median_keeps_the_bound():
    table = sections(measured(J_at_100=1.0, process_at_100=3.0, off_at_100=13.0))["goals"]
    rows = table.splitlines()[2:]
    assert len(rows) == len(GOALS)
    assert [row for row in rows if "not measured" not in row] == [
        "| a task with journal and log, at 100: CPU time | ≤ 16 J | 3.00 (3.00 to 3.00) | yes |",
        "| a task without journal and log, at 100: CPU time | ≤ 12 J | 13.0 (13.0 to 13.0) | no |",
    ]
    assert "| a task with journal and log, at 1: CPU time | ≤ 20 J | not measured |  |" in rows


@pytest.mark.parametrize(("ours", "met"), [(0.01, True), (0.06, False)])
def test_a_goal_may_be_a_lower_bound(ours, met):
    answers = measured(process_at_100=ours, **{"langgraph-sqlite_at_100": 0.5})
    goal = next(each for each in GOALS if each.sign == "≥" and each.found(answers) is not None)
    assert goal.met(goal.found(answers)) is met


def test_goals_of_what_was_not_measured_are_left_out():
    assert "goals" not in sections(measured(J_at_1=1.0))


def test_the_table_has_a_row_for_each_contender_that_was_measured():
    table = sections(measured(J_at_10=0.001, process_at_10=0.004))["job"]
    assert table.splitlines()[2:] == [
        "| raw Pykka, 10 messages (J) | 1.00 (1.00 to 1.00) | no |",
        "| callboard, journal `process`, log | 4.00 (4.00 to 4.00) | yes |",
    ]


def test_the_other_table_is_in_units_of_the_raw_job():
    table = sections(measured(J_at_10=0.001, process_at_10=0.004))["cpu"]
    assert "| callboard, journal `process`, log | 4.00 (4.00 to 4.00) | yes |" in table


def test_a_section_of_the_document_is_replaced_and_nothing_else():
    before = "a\n<!-- measured: x -->\nold\n<!-- /measured -->\nb\n"
    assert replaced(before, "x", "new") == "a\n<!-- measured: x -->\n\nnew\n\n<!-- /measured -->\nb\n"


def test_a_section_that_is_missing_is_refused():
    with pytest.raises(ValueError, match="no section 'x'"):
        replaced("nothing", "x", "new")


def test_the_document_has_every_section_once_and_shows_the_plot():
    names = re.findall(r"<!-- measured: (\w+) -->", DOCUMENT)
    assert sorted(names) == ["cpu", "figures", "goals", "instructions", "job", "machine"]
    assert "(benchmarks.svg)" in DOCUMENT


def test_the_plot_names_every_contender_that_was_measured():
    answers = measured(J_at_1=0.001, J_at_10=0.001, process_at_1=0.004, process_at_10=0.003)
    texts = [text.text for text in ET.fromstring(plotted(answers)).iter() if text.tag.endswith("text")]  # noqa: S314
    assert "callboard, journal process, log: 3 ms" in texts
    assert not any("LangGraph" in text for text in texts)


def test_plot_of_no_figures_is_empty():
    assert plotted({}) == ""


def test_labels_of_lines_that_end_together_stand_apart():
    lines = [Series(title, "theirs", {1: Spread(1, 1, 1, 1)}) for title in titles()]
    root = ET.fromstring(drawn(lines, "all the same"))  # noqa: S314 - our own
    labels = [text for text in root.iter() if text.tag.endswith("text") and (text.text or "").endswith("ms")]
    places = sorted(float(text.get("y")) for text in labels)
    assert len(places) == len(lines)
    assert all(after - before >= LINE - 0.2 for before, after in itertools.pairwise(places))


def test_every_line_of_the_plot_has_a_colour_of_its_own():
    measured_once = {
        f"{name}@{size}": [{"seconds": 0.001, "cpu": 0.001, "round": 0}] for name in titles() for size in (1, 10)
    }
    lines = re.findall(
        r'<polyline points="[^"]*" fill="none" stroke="(#\w+)" (?!stroke-opacity)', plotted(measured_once)
    )
    assert len(lines) == len(set(lines)) == len(titles())


def test_a_contender_that_failed_is_named_in_the_table():
    answers = {**measured(J_at_10=0.001), "process@10": [{"error": "the process is gone", "round": 0}]}
    assert "| callboard, journal `process`, log | failed | yes |" in sections(answers)["job"]
