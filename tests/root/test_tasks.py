"""The task book: each task's request, its progress, its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from callboard.actors.root import _tasks
from callboard.actors.root._tasks import TaskBook, TaskRecord
from callboard.messages import (
    JournalError,
    Outcome,
    PlanStep,
    SubtaskResult,
    SupervisorStoppedError,
    Task,
    TaskRefusedError,
    TaskResult,
)
from callboard.testing import MemoryServer

WINDOW = MemoryServer.window()
HOSTED = Task(id="task-1", request="the whole")
ALONE = Task(id="task-1", request="the whole", target="memo:one")
PLANNED = Task(id="task-1", plan=["first", PlanStep(request="second", target="memo:one")])


def record(task=HOSTED, target=None):
    return TaskRecord(task, target, started=100.0)


def subtask(number=1, outcome=Outcome.FINISHED, **fields):
    return SubtaskResult(
        run_id=f"task-1~{number}", number=number, request="part", address=WINDOW.address, outcome=outcome, **fields
    )


@pytest.fixture
def book():
    return TaskBook()


def test_an_id_is_used_once_even_when_its_task_is_over(book):
    opened = book.open(HOSTED, None, 0.0)
    with pytest.raises(TaskRefusedError, match="'task-1'"):
        book.open(HOSTED, None, 0.0)
    book.close(opened)
    with pytest.raises(TaskRefusedError):
        book.open(HOSTED, None, 0.0)


def test_a_task_is_on_the_books_until_it_is_closed(book):
    opened = book.open(HOSTED, None, 0.0)
    assert book.get("task-1") is opened
    assert (book.records, book.ended) == ((opened,), 0)
    book.close(opened)
    assert book.get("task-1") is None
    assert (book.records, book.ended) == ((), 1)


def test_a_follow_up_belongs_to_its_conversation_even_after_both_end(book):
    first = book.open(HOSTED, None, 0.0)
    second = book.open(Task(id="task-2", request="more", session="task-1"), None, 0.0)
    assert (first.session, second.session) == ("task-1", "task-1")
    assert first.host == second.host == "host/task-1"
    book.close(first)
    book.close(second)
    assert [book.session(task_id) for task_id in ("task-1", "task-2", "task-3")] == ["task-1", "task-1", "task-3"]


def ended(book, *task_ids, session=None):
    for task_id in task_ids:
        book.close(book.open(Task(id=task_id, request="work", session=session), None, 0.0))


def test_running_conversations_are_named_whole_and_then_the_latest_ended(book):
    ended(book, "old", "a")
    ended(book, "r-2", session="r")
    ended(book, "b")
    ended(book, "a-2", session="a")
    book.open(Task(id="s", request="work"), None, 0.0)
    book.open(Task(id="r-3", request="work", session="r"), None, 0.0)
    assert book.conversations(2) == ("s", "r-2", "r-3", "b", "a", "a-2")
    assert book.conversations(1) == ("s", "r-2", "r-3", "a", "a-2")
    assert book.conversations(9) == ("s", "r-2", "r-3", "old", "b", "a", "a-2")


def test_conversation_has_the_tasks_of_the_journal(book):
    book.open(Task(id="r-3", request="work", session="r"), None, 0.0)
    book.learn("r", ("r", "r-2", "r-3"))
    book.learn("r", ("r", "r-2"))
    assert book.conversations(0) == ("r", "r-2", "r-3")
    assert (book.ended, book.session("r-2")) == (0, "r")


def test_only_the_latest_ids_are_remembered(book, monkeypatch):
    monkeypatch.setattr(_tasks, "REMEMBERED", 2)
    for number in range(4):
        book.close(book.open(Task(id=f"task-{number}", request="work"), None, 0.0))
    assert book.ended == 4
    assert book.open(Task(id="task-0", request="work"), None, 0.0).task.id == "task-0"
    with pytest.raises(TaskRefusedError):
        book.open(Task(id="task-3", request="work"), None, 0.0)


def test_a_task_without_a_target_begins_with_its_hostagent():
    assign = record().next_assign()
    assert (assign.address, assign.run_id, assign.number, assign.round) == ("host/task-1", "task-1~0", 0, 1)
    assert (assign.request, assign.task_request, assign.token) == ("the whole", "the whole", 0)


def test_a_task_with_a_target_begins_with_that_targets_agent():
    assign = record(ALONE, WINDOW).next_assign()
    assert (assign.address, assign.run_id, assign.number) == (WINDOW.address, "task-1~1", 1)
    assert assign.target == WINDOW


def test_a_plan_is_followed_step_by_step_and_each_step_sees_what_was_done():
    followed = record(PLANNED)
    first = followed.next_assign()
    followed.end_subtask(subtask())
    assert followed.has_next_round
    second = followed.next_assign()
    assert not followed.has_next_round
    assert [(assign.round, assign.request, assign.plan_step) for assign in (first, second)] == [
        (1, "first", PLANNED.plan[0]),
        (2, "second", PLANNED.plan[1]),
    ]
    assert (first.subtasks, second.subtasks) == ((), (subtask(),))


def test_a_task_without_a_plan_has_one_round():
    one = record()
    one.next_assign()
    assert not one.has_next_round


def test_a_status_tells_what_runs_and_what_waits():
    going = record()
    assign = going.next_assign()
    assert [run.leased for run in going.status().runs] == [False]
    going.runs[assign.run_id] = assign.model_copy(update={"token": 4})
    going.end_subtask(subtask())
    status = going.status()
    assert [run.leased for run in status.runs] == [True]
    assert (status.task_id, status.request, status.round, status.ended_subtasks) == ("task-1", "the whole", 1, 1)
    assert not status.cancelling


def test_suspended_task_keeps_its_first_ending():
    record = TaskRecord(Task(id="t", request="do it"), None, 0.0)
    record.tell(SupervisorStoppedError("it goes on with the next one"))
    record.tell(TaskResult(task_id="t", outcome=Outcome.FINISHED))
    record.tell(JournalError(Path("journal.db"), "can't be written"))
    with pytest.raises(SupervisorStoppedError, match="with the next one"):
        record.done.result(0)
