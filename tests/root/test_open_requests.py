"""The open requests: the requests that wait for a person, and their order."""

from __future__ import annotations

import pytest

from callboard.actors.root._open_requests import OpenRequests
from callboard.actors.root._outbox import Outbox
from callboard.actors.runtime import VirtualClock, WaitingRequests
from callboard.journal import MemoryJournal
from callboard.messages import (
    Action,
    Answer,
    AnswerRefusedError,
    ApprovalAnswer,
    ApprovalRequest,
    AskedQuestion,
    AtDeadline,
    EventName,
    NotWaitingError,
    Observation,
    Question,
    RequestExpired,
)

ADDRESS = "app/memo/one"


class Agents:
    """Notes the messages to agents."""

    def __init__(self):
        self.told = []

    def sender(self, address, message):
        return lambda: self.told.append((address, message))


class Notes:
    """Notes the events."""

    def __init__(self):
        self.events = []

    def emit(self, name, **fields):
        self.events.append((name, fields))


class Office:
    """A desk and all that it works with."""

    def __init__(self):
        self.agents, self.notes, self.clock = Agents(), Notes(), VirtualClock(1000.0)
        self.journal, self.kept = MemoryJournal(), []
        self.journal.feed(self.kept.extend)
        self.outbox = Outbox(self.journal, self.clock, self.agents)
        self.desk = OpenRequests(self.notes, self.outbox, self.clock, self.expire, WaitingRequests())

    def answer(self, given):
        self.desk.answer(given)
        self.outbox.flush()

    def expire(self, expired):
        self.desk.expire(expired)
        self.outbox.flush()


@pytest.fixture
def office():
    return Office()


WHICH = (AskedQuestion(text="Which?"),)


def question(id_="ask-1", task_id="task-1", deadline=None, questions=WHICH):
    return Question(
        id=id_,
        task_id=task_id,
        run_id=f"{task_id}~1",
        token=1,
        address=ADDRESS,
        questions=questions,
        deadline=deadline,
    )


def approval(id_="ask-2", task_id="task-1", deadline=None):
    return ApprovalRequest(
        id=id_,
        task_id=task_id,
        run_id=f"{task_id}~1",
        token=1,
        address=ADDRESS,
        actions=(Action(tool="write"),),
        reason="a rule",
        observation=Observation(text="what is seen"),
        deadline=deadline,
    )


def answer(*texts, id_="ask-1", task_id="task-1", by=""):
    return Answer(id=id_, task_id=task_id, texts=texts, by=by)


def verdict(*, approved=True, id_="ask-2", task_id="task-1", by=""):
    return ApprovalAnswer(id=id_, task_id=task_id, approved=approved, by=by)


def test_open_requests_are_listed_by_kind(office):
    office.desk.ask(question())
    office.desk.ask(approval())
    assert office.desk.questions == (question(),)
    assert office.desk.approvals == (approval(),)


def test_request_event_leaves_out_the_agents_observation(office):
    office.desk.ask(approval())
    ((name, fields),) = office.notes.events
    assert name is EventName.APPROVAL_REQUESTED
    assert (fields["task_id"], fields["run_id"], fields["agent"]) == ("task-1", "task-1~1", ADDRESS)
    assert "what is seen" not in str(fields)
    assert fields["request"]["reason"] == "a rule"


def test_request_of_an_earlier_process_is_open_without_a_second_event(office):
    office.desk.put(question(deadline=1060.0))
    assert office.desk.questions == (question(deadline=1060.0),)
    assert office.notes.events == []
    office.clock.advance(60)
    assert office.desk.questions == ()


def test_answer_is_kept_before_its_agent_gets_it(office):
    office.desk.ask(question())
    office.desk.answer(answer("this"))
    assert (office.kept, office.agents.told) == ([], [])
    office.outbox.flush()
    [row] = office.kept
    assert (row.task_id, row.run_id, row.message, row.at) == ("task-1", "task-1~1", answer("this"), 1000.0)
    assert office.agents.told == [(ADDRESS, answer("this"))]


def test_an_answer_goes_to_the_agent_and_closes_the_question(office):
    office.desk.ask(question())
    office.answer(answer("this"))
    assert office.agents.told == [(ADDRESS, answer("this"))]
    assert office.desk.questions == ()
    assert office.notes.events[-1][0] is EventName.QUESTION_ANSWERED


@pytest.mark.parametrize("approved", [True, False])
def test_a_verdict_goes_to_the_agent_with_who_gave_it(office, approved):
    office.desk.ask(approval())
    given = verdict(approved=approved, by="kim")
    office.answer(given)
    assert office.agents.told == [(ADDRESS, given)]
    assert office.desk.approvals == ()
    assert office.notes.events[-1][0] is EventName.APPROVAL_ANSWERED
    assert office.notes.events[-1][1]["answer"]["by"] == "kim"


def test_the_first_answer_wins(office):
    office.desk.ask(question())
    office.answer(answer("this"))
    with pytest.raises(NotWaitingError, match="'ask-1'"):
        office.answer(answer("that"))
    assert len(office.agents.told) == 1


@pytest.mark.parametrize(
    "wrong",
    [answer("this", id_="ask-9"), answer("this", task_id="task-2"), verdict(id_="ask-9")],
    ids=["no-such-request", "another-task", "no-such-approval"],
)
def test_an_answer_to_what_is_not_open_is_refused(office, wrong):
    office.desk.ask(question())
    with pytest.raises(NotWaitingError):
        office.answer(wrong)
    assert office.desk.questions == (question(),)
    assert office.agents.told == []


CHOICES = (AskedQuestion(text="Which?", choices=("a", "b")), AskedQuestion(text="Why?"))


@pytest.mark.parametrize(
    ("asked", "wrong", "why"),
    [
        (question(), verdict(id_="ask-1"), "is a question"),
        (approval("ask-1"), answer("yes"), "is an approval"),
        (question(), answer(), "asks 1 questions, and got 0"),
        (question(), answer("a", "b"), "asks 1 questions, and got 2"),
        (question(questions=CHOICES), answer("c", "so"), "choose one of: a, b"),
    ],
    ids=["verdict-on-a-question", "answer-to-an-approval", "too-few", "too-many", "no-choice"],
)
def test_an_answer_that_does_not_fit_is_refused_and_the_request_stays_open(office, asked, wrong, why):
    office.desk.ask(asked)
    with pytest.raises(AnswerRefusedError, match=why):
        office.answer(wrong)
    assert office.desk.questions + office.desk.approvals == (asked,)
    assert office.agents.told == []


def test_a_choice_and_free_text_fit(office):
    office.desk.ask(question(questions=CHOICES))
    office.answer(answer("b", "anything"))
    assert len(office.agents.told) == 1


@pytest.mark.parametrize(
    ("asked", "then"),
    [
        (question(deadline=1060.0), AtDeadline.FAIL),
        (approval(deadline=1060.0), approval().at_deadline),
        *((approval(deadline=1060.0).model_copy(update={"at_deadline": then}), then) for then in AtDeadline),
    ],
)
def test_a_request_expires_at_its_deadline_in_the_way_that_was_set(office, asked, then):
    office.desk.ask(asked)
    office.clock.advance(59)
    assert office.agents.told == []
    office.clock.advance(1)
    assert office.agents.told == [(ADDRESS, RequestExpired(id=asked.id, task_id="task-1", at_deadline=then))]
    assert office.desk.questions + office.desk.approvals == ()


def test_a_request_whose_deadline_is_past_expires_at_once(office):
    office.desk.ask(question(deadline=900.0))
    office.clock.advance(0)
    assert office.desk.questions == ()


def test_a_request_without_a_deadline_waits_for_ever(office):
    office.desk.ask(question())
    office.clock.advance(1e9)
    assert office.desk.questions == (question(),)


def test_a_deadline_after_the_answer_changes_nothing(office):
    office.desk.ask(question(deadline=1060.0))
    office.answer(answer("this"))
    office.clock.advance(100)
    office.expire(RequestExpired(id="ask-1", task_id="task-1"))
    assert office.agents.told == [(ADDRESS, answer("this"))]


def test_an_answer_after_the_deadline_is_refused(office):
    office.desk.ask(question(deadline=1060.0))
    office.clock.advance(60)
    with pytest.raises(NotWaitingError):
        office.answer(answer("this"))


def test_withdrawing_takes_away_all_of_one_task_and_tells_no_agent(office):
    office.desk.ask(question(deadline=1060.0))
    office.desk.ask(approval())
    office.desk.ask(question("ask-3", "task-2"))
    office.desk.withdraw("task-1")
    office.clock.advance(100)
    assert office.desk.questions == (question("ask-3", "task-2"),)
    assert office.desk.approvals == ()
    assert office.agents.told == []
    told = [(fields["answer"]["id"], fields["answer"].get("withdrawn")) for _, fields in office.notes.events[-2:]]
    assert told == [("ask-1", True), ("ask-2", True)]
