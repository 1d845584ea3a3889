"""The recorder: events, and the blackboard."""

from __future__ import annotations

import pykka
import pytest

from callboard.actors.root._recorder import Recorder
from callboard.actors.runtime import EventStream, VirtualClock
from callboard.config import BlackboardSettings
from callboard.messages import Assign, BlackboardQuery, Board, EventName, TaskForgotten

ASSIGN = Assign(task_id="task-1", run_id="task-1/2", address="app/memo/one", number=2, request="work", token=3)


@pytest.fixture
def stream():
    return EventStream(VirtualClock(1000.0), kept=100, queue=100)


@pytest.fixture
def record(stream):
    made = []

    def begin(**settings):
        recorder = Recorder(BlackboardSettings(**settings), stream, VirtualClock(1000.0))
        made.append(recorder)
        return recorder

    yield begin
    for recorder in made:
        try:
            recorder.stop().get(timeout=5)
        except pykka.ActorDeadError:
            continue


def read(recorder, task_id="task-1"):
    return recorder.read(BlackboardQuery(task_id=task_id), task_id).result(5)


def test_an_event_of_an_assignment_says_whose_it_is(record, stream):
    feed = stream.open()
    record().emit_of(EventName.SUBTASK_ASSIGNED, ASSIGN, request="work")
    event = feed.get(5)
    assert (event.name, event.task_id, event.run_id, event.agent) == (
        EventName.SUBTASK_ASSIGNED,
        "task-1",
        "task-1/2",
        "app/memo/one",
    )
    assert event.data == {"request": "work"}


def test_a_message_that_came_too_late_is_told(record, stream):
    feed = stream.open()
    record().stale("task-1", "Assign")
    event = feed.get(5)
    assert (event.name, event.task_id, event.agent, event.data) == (
        EventName.MESSAGE_STALE,
        "task-1",
        "supervisor",
        {"message": "Assign"},
    )


def test_what_is_noted_stands_on_its_board_with_its_author_and_time(record):
    recorder = record()
    recorder.note("task-1", Board.REQUESTS, "user", "the whole")
    recorder.note("task-1", Board.SUBTASKS, "app/memo/one", {"rows": 3})
    view = read(recorder)
    assert [(row.author, row.at, row.content) for row in view.requests] == [("user", 1000.0, "the whole")]
    assert [(row.author, row.content) for row in view.subtasks] == [("app/memo/one", {"rows": 3})]
    assert (view.questions, view.trajectories, view.dropped) == ((), (), 0)


def test_tasks_do_not_see_each_others_rows(record):
    recorder = record()
    recorder.note("task-1", Board.REQUESTS, "user", "mine")
    assert read(recorder, "task-2").requests == ()


def test_a_task_is_shown_the_page_of_its_conversation(record):
    recorder = record()
    recorder.note("task-1", Board.REQUESTS, "user", "the whole")
    view = recorder.read(BlackboardQuery(task_id="task-2"), "task-1").result(5)
    assert [row.content for row in view.requests] == ["the whole"]


def test_the_oldest_rows_go_first_and_are_counted(record):
    recorder = record(rows=2)
    for number in range(5):
        recorder.note("task-1", Board.REQUESTS, "user", number)
    view = read(recorder)
    assert [row.content for row in view.requests] == [3, 4]
    assert view.dropped == 3


def test_ended_tasks_are_kept_as_many_as_set_and_those_that_run_all(record):
    recorder = record(tasks=1)
    for task in ("task-1", "task-2", "task-3"):
        recorder.note(task, Board.REQUESTS, "user", task)
    for task in ("task-2", "task-1"):
        recorder.post(TaskForgotten(task_id=task))
    assert [len(read(recorder, task).requests) for task in ("task-1", "task-2", "task-3")] == [1, 0, 1]


def test_a_stopped_blackboard_has_read_all_that_was_posted_before(record):
    recorder = record()
    recorder.note("task-1", Board.REQUESTS, "user", "the whole")
    reading = recorder.read(BlackboardQuery(task_id="task-1"), "task-1")
    recorder.stop().get(timeout=5)
    assert len(reading.result(0).requests) == 1


def test_closing_ends_the_stream(record, stream):
    feed = stream.open()
    record().close()
    assert feed.get(5) is None
