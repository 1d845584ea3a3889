"""The recorder: events, and the blackboard, which is read off the journal."""

from __future__ import annotations

from types import SimpleNamespace

import pykka
import pytest

from callboard.actors.blackboard import RowsKept
from callboard.actors.processing import SharedNotes
from callboard.actors.root._recorder import BlackboardCrashed, Recorder
from callboard.actors.root._tasks import TaskBook
from callboard.actors.runtime import EventStream, ThreadScheduler, VirtualClock
from callboard.config import BlackboardSettings
from callboard.journal import MemoryJournal, Row
from callboard.messages import (
    Answer,
    AskedQuestion,
    Assign,
    BlackboardQuery,
    Cause,
    Decision,
    EventName,
    Observation,
    Outcome,
    Question,
    RequestExpired,
    StepDone,
    StepRecord,
    SubtaskResult,
    Task,
    TaskResult,
    subtask_ended,
)
from support import PATIENCE

ASSIGN = Assign(task_id="task-1", run_id="task-1~2", address="app/memo/one", number=2, request="work", token=3)


@pytest.fixture
def stream():
    return EventStream(VirtualClock(1000.0), kept=100, queue=100)


@pytest.fixture
def journal():
    return MemoryJournal()


@pytest.fixture
def posted():
    return []


@pytest.fixture
def scheduler():
    made = ThreadScheduler("test-actors")
    made.start()
    yield made
    assert made.stop(PATIENCE)


@pytest.fixture
def record(stream, journal, posted, scheduler):
    recorders = []

    def begin(*conversations, **settings):
        tasks = TaskBook()
        for task_id in conversations:
            tasks.learn(task_id, [task_id])
        services = SimpleNamespace(
            settings=SimpleNamespace(blackboard=BlackboardSettings(**settings)),
            stream=stream,
            journal=journal,
            shared=SharedNotes(),
        )
        recorder = Recorder(services, tasks, posted.append, scheduler)
        recorders.append(recorder)
        return recorder

    yield begin
    for recorder in recorders:
        try:
            recorder.stop().get(timeout=PATIENCE)
        except pykka.ActorDeadError:
            continue


@pytest.fixture
def keep(journal):
    """Keep messages of a task as the root and jobs do: ``keep("task-1", message, run_id="task-1~1")``."""

    def kept(task_id, *messages, run_id="", job=0):
        journal.append([Row(1000.0, task_id, run_id, message, job) for message in messages])

    return kept


def task(task_id="task-1", **fields):
    return Task(id=task_id, request="the whole", **fields)


def round_of(task_id="task-1", number=1, request="the whole"):
    return Assign(
        task_id=task_id, run_id=f"{task_id}~0", address=f"host/{task_id}", request=request, token=1, round=number
    )


def subtask_of(task_id="task-1"):
    fields = {"address": "app/memo/one", "host": f"host/{task_id}", "number": 1, "request": "a part", "token": 2}
    return Assign(task_id=task_id, run_id=f"{task_id}~1", **fields)


def step(thought):
    decision = Decision(status="CONTINUE", thought=thought)
    return StepDone(
        record=StepRecord(step=1, status="CONTINUE", observation=Observation(text="seen"), decision=decision)
    )


def ending(task_id="task-1"):
    result = SubtaskResult(
        run_id=f"{task_id}~1", number=1, request="a part", address="app/memo/one", outcome=Outcome.FINISHED, output=3
    )
    return subtask_ended(task_id, 2, result)


def question(id_="task-1~1~ask-1.1"):
    return Question(
        id=id_,
        task_id="task-1",
        run_id="task-1~1",
        token=2,
        address="app/memo/one",
        questions=(AskedQuestion(text="which?"),),
    )


def over(task_id="task-1"):
    return TaskResult(task_id=task_id, outcome=Outcome.ERROR, causes=(Cause(reason="it broke", where="supervisor"),))


def read(recorder, task_id="task-1"):
    return recorder.read(BlackboardQuery(task_id=task_id)).result(PATIENCE)


def test_assignment_event_has_its_task_run_and_agent(record, stream):
    feed = stream.open()
    record().emit_of(EventName.SUBTASK_ASSIGNED, ASSIGN, request="work")
    event = feed.get(PATIENCE)
    assert (event.name, event.task_id, event.run_id, event.agent) == (
        EventName.SUBTASK_ASSIGNED,
        "task-1",
        "task-1~2",
        "app/memo/one",
    )
    assert event.data == {"request": "work"}


def test_late_message_has_an_event(record, stream):
    feed = stream.open()
    record().stale(ASSIGN)
    event = feed.get(PATIENCE)
    assert (event.name, event.task_id, event.number, event.agent, event.data) == (
        EventName.MESSAGE_STALE,
        "task-1",
        2,
        "supervisor",
        {"message": "Assign"},
    )


def test_blackboard_shows_requests_with_author_and_time(record, keep):
    recorder = record()
    keep("task-1", task(), round_of())
    view = read(recorder)
    assert [(row.author, row.at, row.content) for row in view.requests] == [("user", 1000.0, "the whole")]
    assert (view.questions, view.trajectories, view.subtasks, view.dropped) == ((), (), (), 0)


def test_a_step_stands_under_the_agent_that_took_it_without_what_it_saw(record, keep):
    recorder = record()
    keep("task-1", task(), subtask_of())
    keep("task-1", step("so"), run_id="task-1~1", job=1)
    [row] = read(recorder).trajectories
    assert (row.author, row.content["decision"]["thought"]) == ("app/memo/one", "so")
    assert "seen" not in str(row.content)


def test_questions_stand_with_who_answered_them(record, keep):
    recorder = record()
    keep("task-1", task(), question("1"), Answer(id="1", task_id="task-1", texts=("this",), by="kim"))
    keep("task-1", question("2"), RequestExpired(id="2", task_id="task-1"))
    rows = read(recorder).questions
    assert [row.author for row in rows] == ["app/memo/one", "kim", "app/memo/one", "supervisor"]
    assert [row.content.get("id") for row in rows] == ["1", "1", "2", "2"]


def test_blackboard_leaves_out_an_answer_without_a_question(record, keep):
    recorder = record()
    keep("task-1", task(), Answer(id="1", task_id="task-1", nobody=True))
    assert read(recorder).questions == ()


def test_blackboard_shows_a_repeated_message_once(record, keep):
    recorder = record()
    anew = round_of().model_copy(update={"token": 5})
    keep("task-1", task(), round_of(), subtask_of(), ending(), anew, ending())
    view = read(recorder)
    assert ([row.content for row in view.requests], [row.content["output"] for row in view.subtasks]) == (
        ["the whole"],
        [3],
    )


def test_each_round_has_its_request(record, keep):
    recorder = record()
    keep("task-1", task(), round_of(request="one"), round_of(number=2, request="two"))
    assert [row.content for row in read(recorder).requests] == ["one", "two"]


def test_an_assignment_that_waits_for_its_target_is_no_request_yet(record, keep):
    recorder = record()
    keep("task-1", task(), round_of().model_copy(update={"token": 0}))
    assert read(recorder).requests == ()


def test_tasks_do_not_see_each_others_rows(record, keep):
    recorder = record()
    keep("task-1", task(), round_of())
    assert read(recorder, "task-2").requests == ()


def test_a_follow_up_is_shown_the_page_of_its_conversation(record, keep):
    recorder = record()
    keep("task-1", task(), round_of(), over())
    keep("task-2", task("task-2", session="task-1"), round_of("task-2", request="more"))
    view = read(recorder, "task-2")
    assert (view.task_id, [row.content for row in view.requests]) == ("task-1", ["the whole", "more"])


def test_the_oldest_rows_go_first_and_are_counted(record, keep):
    recorder = record(rows=2)
    keep("task-1", task(), *(round_of(number=number, request=str(number)) for number in range(1, 6)))
    view = read(recorder)
    assert [row.content for row in view.requests] == ["4", "5"]
    assert view.dropped == 3


def test_ended_tasks_are_kept_as_many_as_set_and_those_that_run_all(record, keep):
    recorder = record(tasks=1)
    for name in ("task-1", "task-2", "task-3"):
        keep(name, task(name), round_of(name))
    for name in ("task-2", "task-1"):
        keep(name, over(name))
    assert [len(read(recorder, name).requests) for name in ("task-1", "task-2", "task-3")] == [1, 0, 1]


def test_a_stopped_blackboard_has_read_all_that_was_kept_before(record, keep):
    recorder = record()
    keep("task-1", task(), round_of())
    reading = recorder.read(BlackboardQuery(task_id="task-1"))
    recorder.stop().get(timeout=PATIENCE)
    assert len(reading.result(0).requests) == 1


def test_a_dead_blackboard_is_silent_and_is_rebuilt_from_the_journal(record, keep, stream, posted, caplog):
    caplog.set_level("CRITICAL", "pykka")
    recorder, feed = record("task-1"), stream.open()
    keep("task-1", task(), round_of())
    broken = recorder._blackboard
    broken.tell(RowsKept(["no row at all"]))
    with pytest.raises(pykka.ActorDeadError):
        broken.ask("are you there?", timeout=PATIENCE)
    assert read(recorder).requests == ()
    [crash] = posted
    assert isinstance(crash, BlackboardCrashed)
    recorder.rebuild()
    keep("task-1", ending())
    view = read(recorder)
    assert (len(view.requests), len(view.subtasks)) == (1, 1)
    assert feed.get(PATIENCE).name is EventName.BLACKBOARD_REBUILT


def test_blackboard_rebuilt_event_comes_once_the_rows_are_fed(record, keep, stream, journal, monkeypatch):
    recorder, feed = record("task-1"), stream.open()
    keep("task-1", task(), round_of())
    order = []
    whole = journal.feed
    monkeypatch.setattr(journal, "feed", lambda *given: (order.append(feed.take()), whole(*given)))
    recorder.stop().get(timeout=PATIENCE)
    recorder.rebuild()
    assert order == [None]
    assert (feed.get(PATIENCE).name, len(read(recorder).requests)) == (EventName.BLACKBOARD_REBUILT, 1)


def test_blackboard_reads_journal_rows_of_continued_tasks(record, keep):
    keep("task-1", task(), round_of())
    recorder = record()
    assert read(recorder).requests == ()
    recorder.fill(["task-1"])
    keep("task-1", round_of(number=2, request="more"))
    assert [row.content for row in read(recorder).requests] == ["the whole", "more"]


def test_closing_ends_the_stream(record, stream):
    feed = stream.open()
    record().close()
    assert feed.get(PATIENCE) is None
