"""A journal of version 1 is migrated when it is opened, and its tasks go on: one waits, one has an action in doubt."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from callboard.actors.journal import JournalReader
from callboard.messages import StepDone
from callboard.testing import MemoryServer, VirtualClock, assert_replays
from support import FINISH, PATIENCE, command_line

DUMP = Path(__file__).with_name("version_1.sql")
"""Three tasks of the program that wrote it: ``done``; ``waits`` for an approval; ``doubt``, killed in the middle."""

WRITTEN = 1_795_379_300.0
"""A moment right after it was written, in seconds since 1970: ten minutes later nobody may answer any more."""


class Left(MemoryServer):
    """The windows as that program left them."""

    def __init__(self):
        super().__init__(*(self.window(name) for name in ("one", "two", "three")))
        for name, text in (("one", "BOBCAROL"), ("two", "ALICE"), ("three", "ALICEBOB")):
            self._controls[f"memo:{name}"]["field-1"] = text


@pytest.fixture
def journal(tmp_path):
    path = tmp_path / "journal.db"
    with closing(sqlite3.connect(path)) as made:
        made.executescript(DUMP.read_text(encoding="utf-8"))
    return path


@pytest.fixture
def started(start, journal):
    surface = Left()
    policy = [{"verdict": "approve", "tool": "write"}]
    clock = VirtualClock(WRITTEN)
    return surface, start(
        servers=[surface], app=lambda _: FINISH, journal={"path": journal}, policy=policy, clock=clock
    )


def paired(path, task_id):
    """List the calls of a task's steps: what was written, and what it gave."""
    with JournalReader.open(path) as reader:
        steps = [row.message for row in reader.rows(task_id) if isinstance(row.message, StepDone)]
    return [(action.arguments["text"], result.value) for step in steps for action, result in step.record.calls]


def test_results_of_held_actions_are_with_their_actions(started, journal):
    assert paired(journal, "done") == [("ALICE", "ALICE"), ("BOB", "BOB"), ("CAROL", "BOBCAROL")]


def test_what_waits_is_approved_and_done(started, journal):
    surface, supervisor = started
    handle = supervisor.handle("waits")
    handle.approve(handle.approvals()[0].id)
    assert handle.result(PATIENCE).ok
    assert paired(journal, "waits") == [("ALICE", "ALICE"), ("BOB", "BOB"), ("CAROL", "BOBCAROL")]
    assert [text for target, _, text in surface.deeds if target == "memo:two"] == ["BOB", "CAROL"]


def test_what_was_in_doubt_is_looked_at_and_not_done_again(started, journal):
    surface, supervisor = started
    assert supervisor.handle("doubt").result(PATIENCE).ok
    assert [action for action, _ in paired(journal, "doubt")] == ["ALICE", "BOB"]
    assert [text for target, _, text in surface.deeds if target == "memo:three"] == []


def test_it_replays_and_can_be_shown(started, journal):
    _, supervisor = started
    supervisor.handle("doubt").result(PATIENCE)
    supervisor.stop()
    assert all(assert_replays(journal, task) for task in ("waits", "doubt"))
    with pytest.raises(AssertionError, match="replayed: subtask_finished"):  # version 1 asked again after an approval
        assert_replays(journal, "done")
    assert "append on field-1" in command_line("show", "done", journal).stdout


def test_what_was_changed_is_taken_from_what_was_told(started):
    _, supervisor = started
    result = supervisor.handle("done").result(PATIENCE)
    assert (result.changed, result.actions) == (result.artifacts, result.usage.commands) == ((), 3)
    assert (result.subtasks[0].changed, result.subtasks[0].actions) == ((), 0)
