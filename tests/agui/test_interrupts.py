"""Interrupts: approvals, questions and doubts that the signed-in person answers."""

from __future__ import annotations

import jsonschema
import pytest
from ag_ui.core import ResumeEntry
from held_surface import Held

from callboard.agui._interrupts import answer_to, interrupt_of
from support import ASK, FINISH, PATIENCE, append, lone, wait_for

HERE = {"forwarded_props": {"callboard": {"target": "memo:one"}}}
RULES = [{"verdict": "approve", "tool": "append"}]
CHOICE = {"Status": "PENDING", "Comment": "which?", "Questions": [{"Text": "which?", "Choices": ["a", "b"]}]}
STAMP = [{"Status": "CONTINUE", "Function": "stamp"}, FINISH]


def resolved(interrupt, **payload):
    """Answer an interrupt."""
    return [ResumeEntry(interrupt_id=interrupt.id, status="resolved", payload=payload)]


def dismissed(interrupt):
    """Close an interrupt without an answer."""
    return [ResumeEntry(interrupt_id=interrupt.id, status="cancelled")]


async def asked(office, text="write x"):
    """Do a run that ends with one interrupt, and give it."""
    events = await office.run(text, **HERE)
    (interrupt,) = events[-1].outcome.interrupts
    return interrupt


async def test_person_approves_once_by_name(front):
    office = front(app=[append("x", "FINISH")], policy=RULES)
    interrupt = await asked(office)
    assert interrupt.reason == "confirmation"
    assert 'append on memo:one at field-1: {"control_id": "field-1", "text": "x"}' in interrupt.message
    jsonschema.validate({"approved": True}, interrupt.response_schema)
    answer = resolved(interrupt, approved=True)
    events = await office.run(None, "r2", resume=answer)
    assert (events[0].run_id, events[-1].outcome.type, events[-1].result["actions"]) == ("r2", "success", 1)
    snapshot = next(event.snapshot for event in events if event.type.value == "STATE_SNAPSHOT")["callboard"]
    assert (snapshot["steps"], snapshot["subtasks"]["1"]["status"]) == (1, "working")
    again = await office.run(None, "r2", resume=answer)
    assert again[-1].result == events[-1].result
    handle = office.supervisor.handle(events[-1].result["task_id"])
    (closing,) = [event for event in handle.events() if event.name == "approval.answered"]
    assert (closing.answer.by, closing.answer.approved) == ("ann", True)


@pytest.mark.parametrize("is_dismissed", [False, True])
async def test_refusal_of_an_approval_runs_nothing(front, is_dismissed):
    office = front(app=lambda _: append("x", "FINISH"), policy=RULES)
    interrupt = await asked(office)
    answer = dismissed(interrupt) if is_dismissed else resolved(interrupt, approved=False, reason="not today")
    error = (await office.run(None, "r2", resume=answer))[-1]
    assert (error.type.value, error.code) == ("RUN_ERROR", "rejected")
    (handle,) = [office.supervisor.handle(interrupt.metadata["callboard"]["taskId"])]
    assert handle.result(PATIENCE).actions == 0


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"approved": "true"},
        {"approved": 1},
        {"approved": True, "editedArgs": {"text": "y"}},
        {"approved": True, "by": "the director"},
        {"approved": True, "reason": 3},
        {"decision": "approve"},
    ],
)
async def test_other_payload_approves_nothing(front, payload):
    office = front(app=lambda _: append("x"), policy=RULES)
    interrupt = await asked(office)
    error = (await office.run(None, "r2", resume=resolved(interrupt, **payload)))[-1]
    assert (error.type.value, error.code) == ("RUN_ERROR", "invalid_answer")
    assert [request.id for request in office.supervisor.status().approvals] == [interrupt.id]


async def test_approval_that_is_too_long_to_show_can_only_be_rejected(front):
    office = front(app=lambda _: append("x" * 5_000), policy=RULES)
    interrupt = await asked(office)
    assert "decide in the console" in interrupt.message
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"approved": True}, interrupt.response_schema)
    assert (await office.run(None, "r2", resume=resolved(interrupt, approved=True)))[-1].code == "invalid_answer"
    assert (await office.run(None, "r3", resume=resolved(interrupt, approved=False)))[-1].code == "rejected"


async def test_question_of_an_agent_is_answered_by_a_form(front):
    office = front(app=[CHOICE, FINISH])
    interrupt = await asked(office)
    assert (interrupt.reason, interrupt.message) == ("input_required", "which?")
    assert interrupt.response_schema["properties"]["answer_1"]["enum"] == ["a", "b"]
    for payload in ({"answer_1": "c"}, {"answer_1": ""}, {"answer_1": "a", "answer_2": "b"}, {"answer": "a"}):
        assert (await office.run(None, "r2", resume=resolved(interrupt, **payload)))[-1].code == "invalid_answer"
    assert (await office.run(None, "r3", resume=dismissed(interrupt)))[-1].outcome.interrupts[0].id == interrupt.id
    assert (await office.run(None, "r4", resume=resolved(interrupt, answer_1="b")))[-1].outcome.type == "success"


async def test_answer_that_comes_too_late_has_a_note(front):
    office = front(app=[append("x", "FINISH")], policy=RULES)
    interrupt = await asked(office)
    handle = office.supervisor.handle(interrupt.metadata["callboard"]["taskId"])
    handle.approve(interrupt.id, by="Ms Kim")
    assert handle.result(PATIENCE).ok
    events = await office.run(None, "r2", resume=resolved(interrupt, approved=False))
    told = [event.delta for event in events if event.type.value == "TEXT_MESSAGE_CONTENT"]
    assert "Your answer came too late" in told[0]
    assert "approved by Ms Kim" in told[0]
    assert events[-1].outcome.type == "success"


async def test_person_settles_a_doubt_after_a_crash(front, begin):
    stuck, after = Held([], "after"), Held([], "")
    after.effects = stuck.effects
    office = front(app=STAMP, servers=[stuck])
    async with office.begun("stamp it", **HERE):
        assert stuck.reached.wait(PATIENCE)
    office.supervisor.stop(timeout=0.1)
    later = front(begin(app=STAMP, servers=[after]))
    interrupt = await asked(later, "stamp it")
    assert interrupt.reason == "callboard:doubt"
    events = await later.run(None, "r2", resume=resolved(interrupt, answer_1="it was done"))
    assert (events[-1].outcome.type, len(stuck.effects)) == ("success", 1)
    stuck.go.set()


async def test_answers_are_all_checked_before_one_is_taken(front):
    office = front(app=lambda _: append("x"), policy=RULES)
    interrupt = await asked(office)
    good = resolved(interrupt, approved=True)
    strange = [ResumeEntry(interrupt_id=f"{interrupt.metadata['callboard']['taskId']}~none", status="cancelled")]
    for entries in (good + strange, good + good, strange):
        assert (await office.run(None, "r2", resume=entries))[-1].code == "unknown_interrupt"
    assert [request.id for request in office.supervisor.status().approvals] == [interrupt.id]


def test_deadline_of_a_request_is_that_of_its_interrupt(begin):
    supervisor = begin(app=lambda _: ASK, limits={"question_seconds": 3600})
    (question,) = wait_for(supervisor.submit(lone()).questions)
    interrupt = interrupt_of(question)
    assert interrupt.expires_at.startswith("20")
    assert interrupt.expires_at.endswith("+00:00")
    decision = answer_to(question, ResumeEntry(interrupt_id=question.id, status="cancelled", payload={"answer_1": "x"}))
    assert (decision.is_approval, decision.texts) == (False, ())
