"""The figures of the console's pages: each row is measured on a small journal."""

from __future__ import annotations

import pytest

from benchmarks.figures.console_pages import QUERIES, TITLES, Console
from benchmarks.parts import QUICK, console
from benchmarks.report import sections

TASKS = 60


@pytest.fixture(scope="module")
def measured_console(tmp_path_factory):
    """Give a console whose journal is written once."""
    return Console(tmp_path_factory.mktemp("figures"))


def test_each_row_of_the_console_is_measured(measured_console):
    questions = list(console(QUICK))
    assert [question.row for question in questions] == list(TITLES)
    answers = {
        question.cell: [{**measured_console.measure({**question.parameters, "tasks": TASKS}), "round": 0}]
        for question in questions
    }
    assert all(answer["ms"] > 0 for (answer,) in answers.values())
    assert len(sections(answers)["console"].splitlines()) == len(TITLES) + 2


@pytest.mark.parametrize(("row", "count"), [("newest", 50), ("oldest", 50), ("rare", 1), ("common", 50), ("label", 1)])
def test_query_of_a_row_finds_its_tasks(measured_console, row, count):
    html = measured_console._pages_of(TASKS).tasks(QUERIES[row])  # noqa: SLF001 - the pages that are measured
    assert html.count("<tr data-task") == count
