"""Approvals by forms, for callers whose client shows them to a person."""

from __future__ import annotations

import asyncio
import json

import pytest
from mcp import MCPError
from mcp_types import INVALID_REQUEST, ElicitResult, ErrorData

from support import ASK, FINISH, PATIENCE, append

RUN = {"request": "write it", "target": "memo:one", "wait_seconds": 50}
PERSON = {"ann": {"elicitation": "person"}}
RULES = [{"verdict": "approve", "tool": "append"}]


def person(forms, *answers):
    """Make a callback that answers forms in order, and keeps them."""

    async def answer(_context, form):
        forms.append(form)
        return answers[len(forms) - 1]

    return answer


ACCEPT = ElicitResult(action="accept", content={"decision": "approve"})


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_person_approves_by_a_form(desk, mode):
    forms = []
    opened = desk(PERSON, app=[append("x", "FINISH")], policy=RULES)
    async with opened.client("ann", mode=mode, elicitation_callback=person(forms, ACCEPT)) as client:
        report = (await client.call_tool("run_task", RUN)).structured_content
    assert (report["outcome"], report["actions"]) == ("finished", 1)
    assert 'append on memo:one at field-1: {"control_id": "field-1", "text": "x"}' in forms[0].message
    answered = [
        event for event in opened.supervisor.handle(report["task_id"]).events() if event.name == "approval.answered"
    ]
    assert "caller ann, by a form" in str(answered[0].data)


@pytest.mark.parametrize(
    ("mode", "answer"),
    [
        ("auto", ElicitResult(action="decline")),
        ("legacy", ElicitResult(action="decline")),
        ("auto", ElicitResult(action="cancel")),
        ("legacy", ElicitResult(action="accept", content={"decision": "reject", "reason": "no"})),
        ("auto", ElicitResult(action="accept", content={})),
        ("legacy", ElicitResult(action="decline", content={"decision": "approve"})),
    ],
    ids=["decline", "decline-legacy", "cancel", "reject", "empty", "declined-approval"],
)
async def test_any_other_answer_is_a_refusal(desk, mode, answer):
    opened = desk(PERSON, app=lambda _: append("x", "FINISH"), policy=RULES)
    async with opened.client("ann", mode=mode, elicitation_callback=person([], answer)) as client:
        report = (await client.call_tool("run_task", RUN)).structured_content
    assert (report["outcome"], report["actions"]) == ("rejected", 0)


async def test_a_request_too_long_for_a_form_is_left_to_the_console(desk):
    forms = []
    opened = desk(PERSON, app=lambda _: append("x" * 5_000), policy=RULES)
    async with opened.client("ann", elicitation_callback=person(forms)) as client:
        report = (await client.call_tool("run_task", RUN)).structured_content
    assert (report["waiting_for"][0]["kind"], forms) == ("approval", [])


async def test_a_client_without_forms_is_told_who_is_waited_for(desk):
    opened = desk(PERSON, app=lambda _: append("x"), policy=RULES)
    async with opened.client("ann") as client:
        report = (await client.call_tool("run_task", RUN)).structured_content
    assert "a person: at the front desk" in report["waiting_for"][0]["answered_by"]


async def test_a_question_is_no_form(desk):
    forms = []
    opened = desk(PERSON, app=[ASK, FINISH], policy=RULES)
    async with opened.client("ann", elicitation_callback=person(forms)) as client:
        report = (await client.call_tool("run_task", RUN)).structured_content
    assert (report["waiting_for"][0]["kind"], forms) == ("question", [])


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_person_approves_by_a_form_over_http(served, mode):
    forms = []
    opened = served(PERSON, app=[append("x", "FINISH")], policy=RULES)
    async with opened.client("ann", mode=mode, elicitation_callback=person(forms, ACCEPT)) as client:
        report = (await client.call_tool("run_task", RUN)).structured_content
    assert (report["outcome"], len(forms)) == ("finished", 1)


@pytest.mark.parametrize("callers", [{"ann": {}}, PERSON], ids=["no-right", "person"])
async def test_an_answer_without_a_form_approves_nothing(desk, callers):
    opened = desk(callers, app=lambda _: append("x"), policy=RULES)
    async with opened.client("ann", mode="2026-07-28") as client:
        report = (await client.call_tool("run_task", RUN)).structured_content
        task_id, request_id = report["task_id"], report["waiting_for"][0]["id"]
        state = json.dumps({"task": task_id, "asked": [request_id]})
        with pytest.raises(MCPError, match=r"request_?[sS]tate"):
            await client.call_tool(
                "wait_for_task", {"task_id": task_id}, input_responses={request_id: ACCEPT}, request_state=state
            )
        await client.call_tool(
            "wait_for_task", {"task_id": task_id, "wait_seconds": 0}, input_responses={request_id: ACCEPT}
        )
    assert [request.id for request in opened.supervisor.status().approvals] == [request_id]


STAMP = [{"Status": "CONTINUE", "Function": "stamp"}, FINISH]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_person_settles_a_doubt_by_a_form(desk_in_doubt, mode):
    opened, task_id, held = desk_in_doubt(PERSON, STAMP)
    forms = []
    answer = ElicitResult(action="accept", content={"answer": "it was done"})

    async def waited():
        async with opened.client("ann", mode=mode, elicitation_callback=person(forms, answer)) as client:
            return (
                await client.call_tool("wait_for_task", {"task_id": task_id, "wait_seconds": 50})
            ).structured_content

    report = asyncio.run(waited())
    assert (report["outcome"], len(held.effects)) == ("finished", 1)
    assert "can't tell whether an action was done" in forms[0].message
    assert forms[0].requested_schema["properties"]["answer"]["enum"] == ["it was done", "it was not done", "stop"]


@pytest.mark.parametrize(
    ("callers", "answer"),
    [
        (PERSON, ElicitResult(action="decline")),
        (PERSON, ElicitResult(action="cancel")),
        (PERSON, ElicitResult(action="accept", content={"answer": "yes, trust me"})),
        ({"ann": {}}, ElicitResult(action="accept", content={"answer": "it was done"})),
    ],
    ids=["decline", "cancel", "no-choice", "no-right"],
)
def test_a_doubt_stays_open_without_a_fitting_answer(desk_in_doubt, callers, answer):
    opened, task_id, held = desk_in_doubt(callers, STAMP)

    async def waited():
        async with opened.client("ann", elicitation_callback=person([], answer, answer)) as client:
            waited = await client.call_tool("wait_for_task", {"task_id": task_id, "wait_seconds": 1})
            request_id = waited.structured_content["waiting_for"][0]["id"]
            guess = {"task_id": task_id, "question_id": request_id, "answers": ["it was done"]}
            assert (await client.call_tool("answer_question", guess)).is_error
            return waited.structured_content

    report = asyncio.run(waited())
    assert [entry["kind"] for entry in report["waiting_for"]] == ["doubt"]
    assert (len(held.effects), len(opened.supervisor.status().questions)) == (1, 1)


async def test_form_ends_when_the_request_is_answered_elsewhere(desk):
    """A form that no person answers does not hold the call."""
    shown = asyncio.Event()

    async def leave(_context, _form):
        shown.set()
        await asyncio.Event().wait()

    opened = desk(PERSON, app=[append("x", "FINISH")], policy=RULES)
    async with opened.client("ann", mode="legacy", elicitation_callback=leave) as client, asyncio.timeout(PATIENCE):
        call = asyncio.ensure_future(client.call_tool("run_task", RUN))
        await shown.wait()
        (request,) = opened.supervisor.status().approvals
        await asyncio.to_thread(opened.supervisor.handle(request.task_id).approve, request.id, by="Kim")
        report = (await call).structured_content
    assert (report["outcome"], report["actions"]) == ("finished", 1)


@pytest.mark.parametrize(
    "answer", [ErrorData(code=INVALID_REQUEST, message="no screen"), ElicitResult.model_construct(action="perhaps")]
)
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
async def test_client_that_fails_to_show_a_form_is_told_who_is_waited_for(desk, answer):
    async def fail(_context, _form):
        return answer

    opened = desk(PERSON, app=lambda _: append("x"), policy=RULES)
    async with opened.client("ann", mode="legacy", elicitation_callback=fail) as client, asyncio.timeout(PATIENCE):
        report = (await client.call_tool("run_task", RUN)).structured_content
    assert "a person: at the front desk" in report["waiting_for"][0]["answered_by"]
