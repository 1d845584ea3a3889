"""The figures of a fleet: its rows on a server, and their tables."""

from __future__ import annotations

import pytest

from benchmarks.contest import Question
from benchmarks.figures.fleet import measure
from benchmarks.fleet_report import fleet_lines
from benchmarks.parts import QUICK, fleet
from nats_server import check_for_server


@pytest.fixture(autouse=True)
def _server():
    check_for_server()


def parameters(begin):
    """Give the smallest size of a row."""
    (question,) = [question for question in fleet(QUICK) if question.row.startswith(begin)]
    return question.parameters


def test_beats_of_simulated_machines_reach_the_others():
    answer = measure(parameters("beats"))
    assert answer["rate"] > 0
    assert answer["kilobytes"] > 0
    assert answer["server_megabytes"] > 1


def test_tasks_of_another_machine_are_counted_at_the_server():
    answer = measure(parameters("throughput"))
    assert answer["messages"] > 1
    assert 0 < answer["rate"] < 1_000


@pytest.mark.slow
def test_latency_and_rest_are_measured():
    latency, rest = measure(parameters("latency")), measure(parameters("rest"))
    assert latency["there_median"] > 0
    assert latency["any_median"] > 0
    assert rest["machine_megabytes"] > 10


@pytest.mark.slow
def test_machines_of_this_computer_take_turns_with_one_process():
    answer = measure(parameters("local"))
    assert answer["cpu_many"] > 0
    assert answer["instant_ratio"] > 0


def test_fleet_tables_have_a_line_for_each_row():
    questions: list[Question] = list(fleet(QUICK))
    answers = {
        questions[0].cell: [{"here_median": 0.005, "here_p99": 0.01, "there_median": 0.0151, "round": 0}],
        questions[1].cell: [{"rate": 40.0, "messages": 31.5, "bytes": 7000.0, "round": 0}],
        questions[2].cell: [{"error": "no server", "round": 0}],
        questions[3].cell: [{"rate": 220.0, "server_cpu": 14.0, "round": 0}],
        questions[4].cell: [{"cpu_one": 18.0, "cpu_many": 33.0, "cpu_ratio": 1.83, "round": 0}],
    }
    lines = list(fleet_lines(answers))
    assert "| on this machine | 5.00 | 10.0 |" in lines
    assert "| on another machine | 15.1 |  |" in lines
    assert "| 1 machine, 8 windows each | 40.0 |  |  |  | 31.5 | 7,000 |" in lines
    assert "| the server | failed | failed |" in lines
    assert "| 3, every 0.5 s | 220 |  | 14.0 |  |  |" in lines
    assert "| 50 ms of CPU in a tool | 18.0 | 33.0 | 1.83 |" in lines
    assert list(fleet_lines({})) == []
