"""Every part of the benchmark, at the least size, as a user would run it."""

from __future__ import annotations

import json
import shutil
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import forks
from benchmarks.contest import hold
from benchmarks.environments import PEERS, default_cache, is_made, python_of
from benchmarks.fan_out import WIDTHS
from benchmarks.parts import FIGURES, JOB_VARIANTS, QUICK, Sizes, fan_out, job
from benchmarks.record import Appended, Emitted, taped
from callboard.messages import EventName, Task, TaskResult
from support import PATIENCE

SLOW = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def run(tmp_path):
    """Run the benchmark; give its answers and its output."""

    def run(*options):
        file = tmp_path / "answers.json"
        command = [sys.executable, "-m", "benchmarks", "--quick", "--offline", "--json", str(file), *options]
        done = forks.run(command, timeout=5 * PATIENCE, cwd=ROOT)
        assert done.returncode == 0, done.stderr
        answers = json.loads(file.read_text("utf-8"))
        assert answers["how"].keys() == answers["parts"].keys()
        return answers["parts"], done.stdout

    return run


SHORT = "stops"
"""The part that is run each time; the others take minutes."""


@pytest.mark.parametrize("part", [pytest.param(part, marks=() if part == SHORT else SLOW) for part in FIGURES])
def test_every_part_beside_the_job_gives_figures(run, part):
    answers, said = run("--only", part)
    assert set(answers) == {part}
    assert not any("error" in answer for answers_of in answers[part].values() for answer in answers_of)
    assert part == "waits" or "| --- |" in said


def test_eight_subtasks_are_measured_at_each_width(run):
    answers, said = run("--only", "fan_out", "--no-peers")
    assert set(answers["fan_out"]) == {"fan_out/board-8", "fan_out/board-4", "fan_out/board-1"}
    assert all(each["seconds"] > 0 and each["cpu_ms"] > 0 for said in answers["fan_out"].values() for each in said)
    assert "one after the other" in said


def test_langgraph_fans_out_as_wide():
    if not is_made("langgraph", default_cache()):
        pytest.skip("LangGraph has no environment: python -m benchmarks makes it")
    questions = fan_out(QUICK, {"langgraph-sqlite": python_of("langgraph", default_cache())})
    answers = hold([each for each in questions if "langgraph" in each.row], 1, 60.0, print)
    assert all(answers[f"fan_out/langgraph-sqlite-{width}"][0]["seconds"] > 0 for width in WIDTHS)


@SLOW
def test_the_job_is_done_raw_and_by_every_variant(run):
    measured, said = run("--only", "job", "--tasks", "2", "--no-peers")
    answers = measured["job"]
    assert set(answers) == {"J@2", "record@2", *(f"{name}@2" for name in JOB_VARIANTS)}
    assert all(each["seconds"] > 0 and each["cpu"] > 0 for said in answers.values() for each in said)
    assert "| callboard, no journal, no log |" in said


def test_the_record_is_of_one_task_from_its_submission_to_its_end(tmp_path):
    tape = taped(tmp_path)
    rows = [row for part in tape if isinstance(part, Appended) for row in part.rows]
    names = [part.name for part in tape if isinstance(part, Emitted)]
    assert (type(rows[0].message), type(rows[-1].message)) == (Task, TaskResult)
    assert names[0] is EventName.TASK_SUBMITTED
    assert names[-1] is EventName.TASK_ENDED
    assert names.count(EventName.STEP_ENDED) == 5
    assert len({row.task_id for row in rows}) == 1


@pytest.mark.parametrize("peer", PEERS)
def test_every_peer_does_the_job(peer):
    if not is_made(PEERS[peer].environment, default_cache()):
        pytest.skip(f"{peer} has no environment: python -m benchmarks makes it")
    python = python_of(PEERS[peer].environment, default_cache())
    questions = [each for each in job(Sizes(tasks=(2,)), {peer: python}) if each.contender.key == peer]
    answers = hold(questions, 1, 60.0, print)
    assert answers[f"{peer}@2"][0]["seconds"] > 0


@SLOW
def test_the_report_and_the_plot_are_written_into_the_documents(run, tmp_path):
    document = shutil.copy(ROOT / "docs" / "benchmarks.md", tmp_path)
    run("--only", "job", "--tasks", "1", "2", "--no-peers", "--write", "--docs", str(tmp_path))
    assert "| ms, 1 at once | ms, 2 at once | CPU in J, 1 at once | CPU in J, 2 at once | durable |" in Path(
        document
    ).read_text("utf-8")
    assert ET.parse(tmp_path / "benchmarks.svg").getroot().tag.endswith("svg")  # noqa: S314 - our own


@SLOW
def test_a_part_that_is_left_out_may_come_from_an_earlier_run(run, tmp_path):
    earlier = tmp_path / "earlier.json"
    job = {"J@1": [{"seconds": 0.001, "cpu": 0.001, "round": 0}]}
    earlier.write_text(json.dumps({"parts": {"job": job}, "how": {"job": "long ago at commit x"}}), "utf-8")
    answers, said = run("--only", "waits", "--add", str(earlier))
    assert set(answers) == {"job", "waits"}
    assert "| raw Pykka, 10 messages (J) | 1 |" in said
    assert "Measured: job long ago at commit x; waits on " in said
