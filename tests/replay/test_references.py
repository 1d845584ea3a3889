"""References in a model's answer to other agents' results: no row of the subtask has that, and a replay does."""

from __future__ import annotations

import pytest

from callboard import ModelAnswer, Outcome, Task
from callboard.actors.replay import replay_journal
from callboard.journal import JournalReader
from callboard.messages import Assign, Decided
from support import FINISH, PATIENCE

ASSIGN = {"Status": "ASSIGN", "ControlText": "memo:one"}


def host(request):
    """Assign two subtasks for each task."""
    mine = [done for done in request.subtasks if done.run_id.startswith(f"{request.task_id}~")]
    return {**ASSIGN, "Current Sub-Task": f"part {len(mine)}"} if len(mine) < 2 else FINISH


def app(request):
    """Leave a text, or write the text that the conversation's first subtask left."""
    if not request.subtasks:
        return {"Status": "FINISH", "Result": "what was found"}
    write = {"Function": "write", "Args": {"control_id": "field-1", "text": "${subtasks.1.output}"}}
    return ModelAnswer(content={"Status": "FINISH", **write}, refers=True)


@pytest.fixture
def told(record):
    """A task of two subtasks, and a follow-up of two more."""
    with record.begin(host=host, app=app) as supervisor:
        first = supervisor.submit(Task(id="t", request="x"))
        assert first.result(PATIENCE).outcome is Outcome.FINISHED
        assert first.follow_up("again", id="u").result(PATIENCE).outcome is Outcome.FINISHED
    assert [text for _, _, text in record.surface.effects] == ["what was found"] * 3
    return record


@pytest.mark.parametrize("task_id", ["t", "u"])
def test_a_reference_to_another_agents_result_means_the_same_again(told, task_id):
    done = replay_journal(told.path, task_id)
    assert (done.same, done.outcome) == (True, Outcome.FINISHED), str(done.difference)


def test_the_result_stands_in_no_row_of_the_subtask_but_where_it_is_used(told):
    with JournalReader.open(told.path) as reader:
        rows = [row.message for row in reader.rows("u", events=False)]
    assert all(not row.subtasks for row in rows if isinstance(row, Assign))
    written = [action.arguments["text"] for row in rows if isinstance(row, Decided) for action in row.actions]
    assert written == ["what was found"] * 2
