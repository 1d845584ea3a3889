"""The report: the tables, the goals, the plot, and where they stand in the document."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from benchmarks import fan_out
from benchmarks.contest import Spread
from benchmarks.figures import start
from benchmarks.figures.documents import LIBRARIES
from benchmarks.goals import GOALS, ROW_GOALS
from benchmarks.large_documents import ROWS
from benchmarks.parts import titles
from benchmarks.plot import LINE, Series, drawn
from benchmarks.report import plotted, replaced, sections

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = next(iter(LIBRARIES))
DOCUMENT = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")


def measured(**values):
    """Make answers of two rounds: the same CPU time as wall time."""
    return {
        name.replace("_at_", "@"): [{"seconds": value, "cpu": value, "round": number} for number in range(2)]
        for name, value in values.items()
    }


def test_a_goal_is_met_if_its_median_keeps_the_bound():
    table = sections(measured(J_at_100=1.0, process_at_100=3.0, off_at_100=19.0))["goals"]
    rows = table.splitlines()[2:]
    assert len(rows) == len(GOALS)
    assert [row for row in rows if "not measured" not in row] == [
        "| a task with journal and log, at 100: CPU time | ≤ 26 J | 3.00 (3.00 to 3.00) | yes |",
        "| a task without journal and log, at 100: CPU time | ≤ 18 J | 19.0 (19.0 to 19.0) | no |",
    ]
    assert "| a task with journal and log, at 100: instructions | ≤ 26 J | not measured |  |" in rows


def test_latency_of_a_single_task_is_compared_by_wall_clock():
    answers = {
        "J@1": [{"seconds": 0.001, "cpu": 0.001, "round": 0}],
        "process@1": [{"seconds": 0.04, "cpu": 0.02, "round": 0}],
    }
    assert "| latency of a single task, by wall clock | ≤ 37 J | 40.0 | no |" in sections(answers)["goals"]


def counts(**instructions):
    return {f"valgrind/{name}": [{"instructions": count, "round": 0}] for name, count in instructions.items()}


def test_counts_of_valgrind_stand_in_for_a_missing_hardware_counter():
    answers = measured(J_at_100=1.0, process_at_100=3.0) | counts(J=1e6, process=27e6)
    row = "| a task with journal and log, at 100: instructions | ≤ 26 J | {} | no |"
    assert row.format("27.0") in sections(answers)["goals"]
    for cell, instructions in (("J@100", 1e6), ("process@100", 30e6)):
        answers[cell] = [{**answer, "instructions": instructions} for answer in answers[cell]]
    assert row.format("30.0 (30.0 to 30.0)") in sections(answers)["goals"]


def test_instructions_are_listed_in_millions_and_in_raw_jobs():
    assert sections(counts(J=0.5e6, process=14e6))["instructions"].splitlines()[2:] == [
        "| raw Pykka, 10 messages (J) | 0.500 | 1 |",
        "| a task with journal and log | 14 | 28 |",
    ]


LIMITS = "≤ 2 times the libraries' CPU, ≤ 55 MB, ≤ 500 modules"


def start_answers(**rows):
    keys = ("seconds", "megabytes", "modules")
    return {
        f"start/{name.replace('_', '-')}": [{**dict(zip(keys, values, strict=False)), "round": 0}]
        for name, values in rows.items()
    }


@pytest.mark.parametrize(("seconds", "modules", "met"), [(0.4, 500, "yes"), (0.41, 500, "no"), (0.4, 501, "no")])
def test_start_is_compared_with_the_libraries_that_it_builds_on(seconds, modules, met):
    answers = start_answers(libraries=(0.2, 30.0, 300), callboard=(seconds, 55.0, modules))
    assert sections(answers)["start"].splitlines()[2:] == [
        "| `import pydantic, pykka, structlog` | 0.200 | 30 | 300 |  |  |",
        f"| `import callboard` | {seconds:.3f} | 55 | {modules} | {LIMITS} | {met} |",
    ]


def test_start_without_its_libraries_has_no_verdict():
    (row,) = sections(start_answers(callboard=(0.1, 50.0, 400)))["start"].splitlines()[2:]
    assert row.endswith("≤ 500 modules |  |")


def test_documents_have_a_row_for_each_measured_call():
    cost = {"seconds": 1.5, "megabytes": 100.0, "round": 0}
    answers = {f"documents/{row}": [cost] for row in ("look twice", "look at 1,000,000 cells", LIBRARY)}
    assert sections(answers)["documents"].splitlines()[2:] == [
        "| look at 1,000,000 cells | 1.50 | 100 | ≤ 1.2 s, ≤ 250 MB | no |",
        "| look twice | 1.50 | 100 |  |  |",
        f"| {LIBRARY} | 1.50 | 100 |  |  |",
    ]


def test_fan_out_has_a_row_for_each_measured_width():
    answers = {"fan_out/board-8": [{"seconds": 1.25, "cpu_ms": 2.0, "round": 0}]}
    answers["fan_out/langgraph-sqlite-8"] = [{"seconds": 1.05, "cpu_ms": 1.0, "round": 0}]
    assert sections(answers)["fan_out"].splitlines()[2:] == [
        "| callboard, journal `process`, log, 8 at once | 1.25 | 2 | ≤ 1.3 s | yes |",
        "| LangGraph, `AsyncSqliteSaver`, 8 at once | 1.05 | 1 |  |  |",
    ]


def test_row_that_failed_is_named_in_its_table():
    answers = start_answers(libraries=(0.2, 30.0, 300)) | {"start/docs": [{"error": "status 2", "round": 0}]}
    assert "| `callboard docs` | failed | failed | failed | ≤ 0.4 s |  |" in sections(answers)["start"]


def test_goals_of_rows_name_rows_that_are_measured():
    rows = {f"start/{row}" for row in start.TITLES} | {f"documents/{row}" for row in ROWS}
    rows |= {f"fan_out/{row}" for row in fan_out.TITLES}
    assert {goal.above[0] for goal in ROW_GOALS} <= rows


@pytest.mark.parametrize(("ours", "met"), [(0.01, True), (0.06, False)])
def test_a_goal_may_be_a_lower_bound(ours, met):
    answers = measured(process_at_100=ours, **{"langgraph-sqlite_at_100": 0.5})
    goal = next(each for each in GOALS if each.sign == "≥" and each.found(answers) is not None)
    assert goal.met(goal.found(answers)) is met


def test_goals_of_what_was_not_measured_are_left_out():
    assert "goals" not in sections(measured(J_at_1=1.0))


def test_the_table_has_a_row_for_each_contender_that_was_measured():
    table = sections(measured(J_at_10=0.001, process_at_10=0.004))["job"]
    assert table.splitlines()[::2] == [
        "|  | ms, 10 at once | CPU in J, 10 at once | durable |",
        "| raw Pykka, 10 messages (J) | 1 | 1 | no |",
    ]
    assert table.splitlines()[-1] == "| callboard, journal `process`, log | 4 | 4 | yes |"


def test_table_of_the_job_is_brief_in_the_document():
    names = ("J", "process", "own")
    answers = measured(**{f"{name}_at_{size}": 0.004 for name in names for size in (1, 10, 100)})
    assert sections(answers, brief=True)["job"].splitlines()[2:] == [
        "| raw Pykka, 10 messages (J) | 4 | 4 | 1 | 1 | no |",
        "| callboard, journal `process`, log | 4 | 4 | 1 | 1 | yes |",
    ]
    assert (
        "| callboard, `process`, log, one window per task | 4 | 4 | 4 | 1 | 1 | 1 | yes |" in sections(answers)["job"]
    )


def test_calls_without_a_goal_are_left_out_of_the_document():
    cost = {"seconds": 1.5, "megabytes": 100.0, "round": 0}
    answers = {f"documents/{row}": [cost] for row in ("look twice", "look at 1,000,000 cells", LIBRARY)}
    rows = sections(answers, brief=True)["documents"].splitlines()[2:]
    assert [row.split(" | ")[0] for row in rows] == ["| look at 1,000,000 cells", f"| {LIBRARY}"]


def test_figures_without_a_goal_follow_the_goals():
    rows = sections({"tools": [{"stdio": 0.0025, "round": 0}]})["goals"].splitlines()[2:]
    assert len(rows) == len(GOALS) + 1
    assert rows[-1] == "| a tool call over stdio |  | 2500 µs |  |"


def test_a_section_of_the_document_is_replaced_and_nothing_else():
    before = "a\n<!-- measured: x -->\nold\n<!-- /measured -->\nb\n"
    assert replaced(before, "x", "new") == "a\n<!-- measured: x -->\nnew\n<!-- /measured -->\nb\n"


def test_a_section_that_is_missing_is_refused():
    with pytest.raises(ValueError, match="no section 'x'"):
        replaced("nothing", "x", "new")


def test_the_document_has_every_section_once_and_shows_the_plot():
    names = re.findall(r"<!-- measured: (\w+) -->", DOCUMENT)
    assert sorted(names) == [
        "browser",
        "console",
        "documents",
        "fan_out",
        "fleet",
        "goals",
        "instructions",
        "job",
        "machine",
        "miniwob",
        "start",
    ]
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
    assert "| callboard, journal `process`, log | failed | failed | yes |" in sections(answers)["job"]
