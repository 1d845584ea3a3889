"""Each event has a class whose fields are the keys of its data."""

from __future__ import annotations

import json
import threading

import pytest
from pydantic import ValidationError

from callboard import Task
from callboard.events import (
    ApprovalAnswered,
    ApprovalRequested,
    Event,
    EventName,
    PolicyDecided,
    QuestionAnswered,
    QuestionAsked,
    StepEnded,
    TaskEnded,
    ThreadFreed,
)
from callboard.messages import AtDeadline, Fact, Message, Outcome, ResultStatus, Verdict, read_events
from callboard.messages.events import EVENT_CLASSES
from callboard.testing import VirtualClock
from support import FINISH, PATIENCE

ENDED = {"outcome": "finished", "causes": [], "artifacts": ["/home/me/a"]}
FACT = Fact(7, 1.5, EventName.TASK_ENDED, "t", data=ENDED)


def plain(fact):
    return Event(seq=fact.seq, at=fact.at, name=fact.name, task_id=fact.task_id, data=fact.data)


def test_every_event_has_one_class():
    assert set(EVENT_CLASSES) == set(EventName)
    assert all(issubclass(event, Event) for event in EVENT_CLASSES.values())


def test_the_tag_of_events_leads_to_their_base():
    assert Message.registry["event"] is Event


def test_a_fact_becomes_an_event_of_its_class():
    event = FACT.event()
    assert isinstance(event, TaskEnded)
    assert (event.seq, event.at, event.task_id) == (7, 1.5, "t")
    assert (event.outcome, event.causes, event.artifacts) == (Outcome.FINISHED, (), ("/home/me/a",))


def test_generic_readers_find_the_same_name_data_and_json():
    event = FACT.event()
    assert (event.name, event.data) == (EventName.TASK_ENDED, ENDED)
    assert event.model_dump_json() == plain(FACT).model_dump_json()
    assert event.model_dump() == plain(FACT).model_dump()


def test_an_events_json_is_read_as_its_class():
    assert read_events(f"[{FACT.event().model_dump_json()}]") == [FACT.event()]
    assert Event.model_validate_json(FACT.event().model_dump_json()) == plain(FACT)


@pytest.mark.parametrize("data", [{}, {**ENDED, "outcome": "great"}, {**ENDED, "causes": "none"}])
def test_data_that_does_not_fit_gives_a_plain_event(data):
    event = Fact(1, 0.0, EventName.TASK_ENDED, data=data).event()
    assert type(event) is Event
    assert event.data == data


def test_a_key_of_a_later_version_stays_in_the_data():
    event = Fact(1, 0.0, EventName.TASK_ENDED, data={**ENDED, "mood": {"good": True}}).event()
    assert isinstance(event, TaskEnded)
    assert event.data["mood"] == {"good": True}


def test_text_that_is_not_unicode_is_mended_as_before():
    event = Fact(1, 0.0, EventName.THREAD_FREED, data={"thread": "half \ud83d"}).event()
    assert isinstance(event, ThreadFreed)
    assert event.thread == event.data["thread"] == "half \\ud83d"


def test_no_event_is_read_from_an_unknown_name():
    with pytest.raises(ValidationError, match=r"task\.begun"):
        read_events('[{"kind": "event", "seq": 1, "at": 0.0, "name": "task.begun"}]')


def test_an_event_made_by_name_has_its_data():
    made = TaskEnded(seq=7, at=1.5, task_id="t", outcome=Outcome.FINISHED, causes=(), artifacts=("/home/me/a",))
    assert made == FACT.event()
    assert json.loads(made.model_dump_json())["data"] == ENDED


def test_an_event_without_a_required_field_is_refused():
    with pytest.raises(ValidationError, match=r"data\.outcome"):
        TaskEnded(seq=1, at=0.0, causes=())


def test_an_event_of_another_name_is_refused():
    with pytest.raises(ValidationError, match="name"):
        TaskEnded(seq=1, at=0.0, name=EventName.STEP_ENDED, outcome=Outcome.FINISHED, causes=())


def test_a_typed_event_is_frozen():
    with pytest.raises(ValidationError, match="frozen"):
        FACT.event().outcome = Outcome.FAILED


def test_a_subscriber_matches_classes(start):
    supervisor = start(app=lambda request: FINISH)
    seen, over = [], threading.Event()

    def see(event):
        match event:
            case StepEnded(duration=float(), status=status, phases=phases):
                seen.append((status, [phase.phase for phase in phases]))
            case TaskEnded(outcome=outcome):
                seen.append(outcome)
                over.set()

    supervisor.subscribe(see)
    supervisor.submit(Task(request="look", target="memo:one"))
    assert over.wait(PATIENCE)
    phases = ["data_collection", "llm_interaction", "action_execution", "memory_update"]
    assert seen == [("FINISH", phases), Outcome.FINISHED]


def events_of(start, answers, reply, **settings):
    supervisor = start(app=lambda request: answers[min(request.step, len(answers)) - 1], **settings)
    handle, found = supervisor.submit(Task(request="write", target="memo:one")), []
    for event in handle.events():
        found.append(event)
        reply(handle, event)
    assert [event for event in found if type(event) is Event] == []
    return {type(event): event for event in found}


def test_an_approval_comes_with_its_actions_and_its_answer(start):
    act = {"control_label": "field-1", "function": "write", "arguments": {"text": "hello"}}
    rule = {"verdict": "approve", "tool": "write", "reason": "writes need a nod"}

    def approve(handle, event):
        if isinstance(event, ApprovalRequested):
            handle.approve(event.request.id, by="ada")

    found = events_of(start, [{"Status": "FINISH", "Actions": [act]}], approve, policy=[rule])
    request, answer = found[ApprovalRequested].request, found[ApprovalAnswered].answer
    assert [(action.tool, action.arguments["text"]) for action in request.actions] == [("write", "hello")]
    assert (request.reason, request.target.id) == ("writes need a nod", "memo:one")
    assert (answer.id, answer.approved, answer.by, answer.withdrawn) == (request.id, True, "ada", False)
    assert found[StepEnded].results == (ResultStatus.SUCCESS,)
    assert found[PolicyDecided].verdict is Verdict.APPROVE


def test_a_question_comes_with_its_parts_and_its_answer(start):
    ask = {"Status": "PENDING", "Questions": "Which title?"}

    def answer(handle, event):
        if isinstance(event, QuestionAsked):
            handle.answer(event.request.id, "the usual one", by="ada")

    found = events_of(start, [ask, FINISH], answer)
    assert [part.text for part in found[QuestionAsked].request.questions] == ["Which title?"]
    assert (found[QuestionAnswered].answer.texts, found[QuestionAnswered].answer.by) == (("the usual one",), "ada")


def test_withdrawn_approval_is_marked_in_its_event(start):
    def cancel(handle, event):
        if isinstance(event, ApprovalRequested):
            handle.cancel()

    found = events_of(start, [{"Status": "CONFIRM", "Comment": "may I?"}], cancel)
    answer = found[ApprovalAnswered].answer
    assert (answer.withdrawn, answer.approved, answer.then) == (True, None, None)


def test_an_expired_approval_names_the_verdict(start):
    clock = VirtualClock()

    def wait(handle, event):
        if isinstance(event, ApprovalRequested):
            clock.advance(61)

    found = events_of(
        start, [{"Status": "CONFIRM", "Comment": "may I?"}], wait, clock=clock, limits={"approval_seconds": 60}
    )
    answer = found[ApprovalAnswered].answer
    assert (answer.expired, answer.then) == (True, AtDeadline.DENY)
