"""`callboard.testing` runs journals again: a bug report is a file, and its test is one line."""

from __future__ import annotations

import sys
from contextlib import closing

import pytest

import forks
from callboard import Settings, Task
from callboard.journal import JournalFile
from callboard.messages import EventName, Fact, UnknownTaskError
from callboard.testing import assert_replays, replayed  # noqa: F401 - a fixture
from support import PATIENCE

WRITE = {"Status": "FINISH", "Function": "write", "Args": {"control_id": "field-1", "text": "a"}}
DENY = {"policy": [{"verdict": "deny", "tool": "write", "reason": "not now"}]}


@pytest.fixture
def bug(record):
    """A journal of two tasks."""
    for task_id in ("one", "two"):
        record.run(Task(id=task_id, request="x", target="memo:one"), app=[WRITE])
    return record.path


def test_one_line_is_a_test(bug, replayed):  # noqa: F811 - the fixture
    assert [replay.task.id for replay in replayed(bug)] == ["one", "two"]


def test_one_task_can_be_named(bug, replayed):  # noqa: F811 - the fixture
    assert [replay.task.id for replay in replayed(bug, "two")] == ["two"]


def test_a_difference_fails_the_test_and_is_shown(bug, replayed):  # noqa: F811 - the fixture
    with pytest.raises(AssertionError, match="the task one goes another way than recorded") as failed:
        replayed(bug, settings=Settings.load(**DENY))
    assert "replayed: deny: not now" in str(failed.value)


def test_settings_may_be_a_file(bug, replayed, tmp_path):  # noqa: F811 - the fixture
    settings = tmp_path / "callboard.yaml"
    settings.write_text("policy: [{verdict: deny, tool: write}]", encoding="utf-8")
    with pytest.raises(AssertionError, match="the policy's verdict on write"):
        replayed(bug, settings=settings)


def test_a_journal_without_tasks_is_no_passed_test(tmp_path, replayed):  # noqa: F811 - the fixture
    with closing(JournalFile.open(tmp_path / "bug-17.db")) as file:
        file.write_events([Fact(seq=1, at=1.0, name=EventName.SUPERVISOR_STARTED)], pytest.fail)
        file.commit()
    with pytest.raises(AssertionError, match=r"bug-17\.db has no task: .* bug-17\.db-wal belongs beside it"):
        replayed(tmp_path / "bug-17.db")


def test_a_task_that_the_journal_does_not_have_is_no_passed_test(bug, replayed):  # noqa: F811 - the fixture
    with pytest.raises(UnknownTaskError):
        replayed(bug, "three")


async def test_it_runs_where_an_event_loop_runs(bug):
    assert len(assert_replays(bug)) == 2


def test_a_bug_report_is_a_file_and_its_test_is_one_line(bug):
    lines = ["from callboard.testing import replayed", f"def test_bug(replayed): replayed({bug.name!r})"]
    test = bug.parent / "test_bug.py"
    test.write_text("\n".join(lines), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test.name]
    ran = forks.run(command, cwd=bug.parent, timeout=PATIENCE)
    assert (ran.returncode, "1 passed" in ran.stdout) == (0, True), ran.stdout + ran.stderr
