"""Forms that a third-party server wants filled in: a person is asked while the call waits, and may refuse."""

from __future__ import annotations

import asyncio
import contextvars
import json
import os
import signal
import subprocess
import sys

import pytest
from mcp_types import ElicitRequestFormParams, ElicitRequestURLParams

from callboard import EventName, Outcome
from callboard.actors.commands.mcp._elicitation import (
    ANSWER,
    CANCEL,
    DECLINE,
    LEAVE_OUT,
    MOST_CHOICES,
    MOST_FIELDS,
    YES,
    DeclinedError,
    fill_in,
)
from callboard.actors.commands.mcp._running_calls import MOST_FORMS, RunningCalls
from callboard.actors.runtime import HungJobs, Lease
from callboard.messages import Command
from callboard.surfaces import EffectGuard
from callboard.testing import VirtualClock
from forks import Program
from support import PATIENCE, call, lone, told

DESK = """
import json, os, sys

def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

FORM = json.loads(sys.argv[1])
if "DESK_PID" in os.environ:
    with open(os.environ["DESK_PID"], "w") as file:
        file.write(str(os.getpid()))
INFO = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "desk", "version": "1"}}
TOOLS = {"tools": [{"name": "book", "inputSchema": {"type": "object"}}]}
for line in sys.stdin:
    message = json.loads(line)
    match message.get("method"):
        case "initialize":
            send(id=message["id"], result=INFO)
        case "tools/list":
            send(id=message["id"], result=TOOLS)
        case "tools/call":
            calling = message["id"]
            send(id="form", method="elicitation/create", params=FORM)
        case None if message["id"] == "form" and "result" in message:
            send(id=calling, result={"content": [{"type": "text", "text": json.dumps(message["result"])}]})
        case None:
            pass
        case _ if "id" in message:
            send(id=message["id"], error={"code": -32601, "message": "no"})
"""
SEATS = {"type": "object", "properties": {"seats": {"type": "integer", "minimum": 1}}, "required": ["seats"]}
FORM = {"message": "How many seats?", "requestedSchema": SEATS}


def desk(form=FORM, **settings):
    """Give the settings of a server whose only tool asks, and returns the answer it got."""
    return {"desk": {"command": sys.executable, "args": ["-I", "-S", "-c", DESK, json.dumps(form)], **settings}}


ALLOWED = [{"verdict": "allow", "tool": "desk.*"}]
BOOK = call("desk.book", "FINISH")


def asked(handle, number):
    """Wait for a question, the first or a later one; gives its request."""
    events = (event.data["request"] for event in handle.events() if event.name is EventName.QUESTION_ASKED)
    for _ in range(number):
        next(events)
    return next(events)


def reply(handle, number, *texts):
    request = asked(handle, number)
    handle.answer(request["id"], *texts)
    return request


def said(handle):
    return json.loads(handle.result(PATIENCE).output)


def test_a_person_fills_in_a_form_while_the_call_waits(start):
    supervisor = start(app=[BOOK], mcpServers=desk(), policy=ALLOWED)
    handle = supervisor.submit(lone("desk"))
    first = reply(handle, 0, ANSWER)
    assert "The MCP server 'desk' asks during the call of book: 'How many seats?'" in first["questions"][0]["text"]
    assert "enter no password" in first["questions"][0]["text"]
    second = reply(handle, 1, "3")
    assert second["questions"][0]["text"] == "seats"
    assert said(handle) == {"action": "accept", "content": {"seats": 3}}
    moved = [event.data["target"] for event in handle.events() if event.name is EventName.STATE_CHANGED]
    assert moved == ["CONTINUE", "FINISH"]
    assert supervisor.status().questions == ()


@pytest.mark.parametrize("choice", [DECLINE, CANCEL])
def test_a_person_may_refuse(start, choice):
    supervisor = start(app=[BOOK], mcpServers=desk(), policy=ALLOWED)
    handle = supervisor.submit(lone("desk"))
    reply(handle, 0, choice)
    assert said(handle) == {"action": choice}


def test_invalid_reply_is_asked_for_again(start):
    supervisor = start(app=[BOOK], mcpServers=desk(), policy=ALLOWED)
    handle = supervisor.submit(lone("desk"))
    for number, text in enumerate([ANSWER, "three", "0"]):
        reply(handle, number, text)
    again = reply(handle, 3, "2")
    assert again["questions"][0]["text"].startswith("This did not fit: seats: 0 is less than the minimum of 1. ")
    assert said(handle) == {"action": "accept", "content": {"seats": 2}}


def test_no_clock_runs_while_a_person_is_asked(start):
    clock = VirtualClock()
    limits = {"command_seconds": 5, "step_seconds": 10, "task_seconds": 20, "subtask_seconds": 20}
    supervisor = start(app=[BOOK], mcpServers=desk(), policy=ALLOWED, limits=limits, clock=clock)
    handle = supervisor.submit(lone("desk"))
    asked(handle, 0)
    clock.advance(1000)
    assert HungJobs(supervisor._assembly.jobs, clock).find(15) == []  # it does not count as hung
    reply(handle, 0, ANSWER)
    asked(handle, 1)
    clock.advance(1000)
    reply(handle, 1, "1")
    assert said(handle)["action"] == "accept"


def test_unanswered_question_is_cancelled_at_its_deadline(start):
    clock = VirtualClock()
    supervisor = start(app=[BOOK], mcpServers=desk(), policy=ALLOWED, clock=clock, limits={"question_seconds": 60})
    handle = supervisor.submit(lone("desk"))
    asked(handle, 0)
    clock.advance(61)
    assert said(handle) == {"action": "cancel"}


def test_a_cancel_takes_the_question_back(start):
    supervisor = start(app=[BOOK], mcpServers=desk(), policy=ALLOWED)
    handle = supervisor.submit(lone("desk"))
    asked(handle, 0)
    handle.cancel()
    assert handle.result(PATIENCE).outcome is Outcome.CANCELLED
    assert supervisor.status().questions == ()
    answered = [event.data["answer"] for event in handle.events() if event.name is EventName.QUESTION_ANSWERED]
    assert [each["withdrawn"] for each in answered] == [True]


def declined(handle):
    assert said(handle) == {"action": "decline"}
    assert not [event for event in handle.events() if event.name is EventName.QUESTION_ASKED]
    (event,) = [event for event in handle.events() if event.name is EventName.QUESTION_DECLINED]
    assert (event.data["server"], event.data["tool"]) == ("desk", "book")
    return event.data["reason"]


def test_elicitation_is_declined_at_once_when_questions_are_off(start):
    supervisor = start(app=[BOOK], mcpServers=desk(), policy=ALLOWED, system={"ask_question": False})
    assert declined(supervisor.submit(lone("desk"))) == "system.ask_question is off: no person will answer"


@pytest.mark.parametrize("field", [{"format": "password"}, {"title": "API key"}, {}])
def test_a_server_that_asks_for_a_secret_is_declined(start, field):
    name = "password" if not field else "it"
    form = {
        "message": "Log in",
        "requestedSchema": {"type": "object", "properties": {name: {"type": "string", **field}}},
    }
    supervisor = start(app=[BOOK], mcpServers=desk(form), policy=ALLOWED)
    assert declined(supervisor.submit(lone("desk"))) == f"it asks for what looks like a secret: {name!r}"


def test_an_answer_with_a_secret_is_not_sent_on(start):
    form = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"who": {"type": "string"}}}}
    supervisor = start(app=[BOOK], mcpServers=desk(form), policy=ALLOWED)
    handle = supervisor.submit(lone("desk", secrets={"pin": "hunter2-4711"}))
    reply(handle, 0, ANSWER)
    reply(handle, 1, "it is hunter2-4711")
    assert said(handle) == {"action": "decline"}
    (event,) = [event for event in handle.events() if event.name is EventName.QUESTION_DECLINED]
    assert event.data["reason"] == "the answer contains a secret of the task or the settings"


def test_a_server_that_dies_takes_its_question_along(start, tmp_path):
    pid = tmp_path / "pid"
    app = told([BOOK, {"Status": "FAIL"}], notes := [])
    supervisor = start(app=app, mcpServers=desk(env={"DESK_PID": str(pid)}), policy=ALLOWED)
    handle = supervisor.submit(lone("desk"))
    asked(handle, 0)
    os.kill(int(pid.read_text(encoding="utf-8")), signal.SIGKILL)
    assert handle.result(PATIENCE).outcome is Outcome.FAILED
    assert any("went away during the call: whether it was done is in doubt" in note for note in notes[1])
    assert supervisor.status().questions == ()


def test_a_supervisor_that_stops_cancels_the_question(begin):
    supervisor = begin(app=[BOOK], mcpServers=desk(), policy=ALLOWED)
    handle = supervisor.submit(lone("desk", id="t"))
    asked(handle, 0)
    assert supervisor.stop() == ()
    result = begin(app=[BOOK], mcpServers=desk(), policy=ALLOWED).handle("t").result(PATIENCE)
    assert (result.outcome, json.loads(result.output)) == (Outcome.FINISHED, {"action": "cancel"})


CRASHES = """
import json, sys
from callboard import EventName, FunctionModel, Settings, Supervisor, Task

given = json.loads(sys.argv[1])
models = {"app": FunctionModel(lambda request: given["answer"])}
with Supervisor.start(Settings.load(**given["settings"]), models=models) as supervisor:
    for event in supervisor.submit(Task(request="x", target="desk", id="t")).events():
        if event.name is EventName.QUESTION_ASKED:
            print("asked", flush=True)
"""


def test_after_a_crash_the_call_that_asked_is_in_doubt(start, tmp_path):
    settings = {"mcpServers": desk(), "policy": ALLOWED, "journal": {"path": str(tmp_path / "journal.db")}}
    program = tmp_path / "crashes.py"
    program.write_text(CRASHES, encoding="utf-8")
    command = [sys.executable, str(program), json.dumps({"settings": settings, "answer": BOOK})]
    with Program(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout.readline() == "asked\n"
        running.kill()
    handle = start(app=[BOOK], **settings).handle("t")
    requests = (event.data["request"] for event in handle.events() if event.name is EventName.QUESTION_ASKED)
    request = next(each for each in requests if "in_doubt" in each)  # the journal may have the first one's event
    assert request["in_doubt"] == "t~1.1.0"
    assert request["questions"][0]["text"].startswith("desk.book may have been done before a crash, or not")


# Which call it is for


def running(tool, keeper):
    command = Command(task_id="t", run_id="t~1", token=1, call_id=tool, tool=tool, timeout=PATIENCE)
    return EffectGuard(Lease("app/mcp/desk", 1), command, keeper)


class Keeper:
    async def ask(self, questions):
        return (DECLINE,)


PARAMS = ElicitRequestFormParams(message="Well?", requested_schema={"properties": {}})


async def test_a_question_of_one_of_two_calls_is_declined():
    events = []
    calls = RunningCalls("desk", lambda name, **data: events.append((name, data["reason"])), asks=True)
    context = contextvars.copy_context()  # the connection's: no call's
    with calls.run("one", running("one", Keeper())):
        assert (await context.run(asyncio.ensure_future, calls.elicit(None, PARAMS))).action == "decline"
        assert events == []  # a person declined
        with calls.run("two", running("two", Keeper())):
            elsewhere = asyncio.get_running_loop().create_task(calls.elicit(None, PARAMS), context=context)
            assert (await elsewhere).action == "decline"
            assert (await calls.elicit(None, PARAMS)).action == "decline"
    why = "2 calls are running, and nothing tells which one it belongs to"
    assert events == [(EventName.QUESTION_DECLINED, why)]


async def test_a_call_that_asks_without_end_is_declined():
    events = []
    calls = RunningCalls("desk", lambda name, **data: events.append(data["reason"]), asks=True)
    with calls.run("one", running("one", Keeper())):
        for _ in range(MOST_FORMS):
            await calls.elicit(None, PARAMS)
        assert events == []  # a person declined
        assert (await calls.elicit(None, PARAMS)).action == "decline"
    assert events == ["the call has asked 10 times"]


async def test_a_question_without_a_call_is_declined():
    events = []
    calls = RunningCalls("desk", lambda name, **data: events.append(data), asks=True)
    assert (await calls.elicit(None, PARAMS)).action == "decline"
    why = "no calls are running, and nothing tells which one it belongs to"
    assert events == [{"server": "desk", "tool": "", "reason": why}]


NEWER = """
from typing import Annotated
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel

server = MCPServer("desk", log_level="ERROR")


class Number(BaseModel):
    number: int


async def seats() -> Elicit[Number]:
    return Elicit("How many seats?", Number)


async def rows() -> Elicit[Number]:
    return Elicit("Which row?", Number)


@server.tool(structured_output=False)
async def book(seats: Annotated[Number, Resolve(seats)], rows: Annotated[Number, Resolve(rows)]) -> str:
    return str([seats.number, rows.number])


server.run("stdio")
"""


def test_a_server_of_the_newest_protocol_asks_in_the_same_way(start, tmp_path):
    program = tmp_path / "desk.py"
    program.write_text(NEWER, encoding="utf-8")
    newer = {"desk": {"command": sys.executable, "args": [str(program)]}}
    handle = start(app=[BOOK], mcpServers=newer, policy=ALLOWED).submit(lone("desk"))
    first = reply(handle, 0, ANSWER)
    for number, text in enumerate(["3", ANSWER, "3"], 1):
        reply(handle, number, text)
    assert "How many seats?" in first["questions"][0]["text"]
    assert handle.result(PATIENCE).output == "[3, 3]"


# The kinds of forms


async def filled(schema, *answers):
    """Fill in a form; gives the server's input, and the questions."""
    given, questions = iter([(ANSWER,), *answers]), []

    async def ask(asked):
        questions.append(asked)
        return next(given)

    params = ElicitRequestFormParams(message="Well?", requested_schema=schema)
    return await fill_in("desk", "book", params, ask), questions


async def test_each_kind_of_field_is_read_by_its_schema():
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "title": "Name", "description": "in full"},
            "price": {"type": "number"},
            "window": {"type": "boolean"},
            "class": {"type": "string", "enum": ["first", "second"]},
            "meal": {"type": "string", "oneOf": [{"const": "fish", "title": "Fish"}]},
            "days": {"type": "array", "items": {"type": "string"}},
            "note": {"type": "string"},
        },
        "required": ["name", "price", "window", "class", "days"],
    }
    result, questions = await filled(schema, ("Ada", "1.5", YES, "first", LEAVE_OUT, "mo, tu", ""))
    expected = {"name": "Ada", "price": 1.5, "window": True, "class": "first", "days": ["mo", "tu"]}
    assert (result.action, result.content) == ("accept", expected)
    assert [each.choices for each in questions[1]] == [
        (),
        (),
        ("yes", "no"),
        ("first", "second"),
        ("fish", LEAVE_OUT),
        (),
        (),
    ]
    assert questions[1][0].text == "Name: in full"


async def test_a_form_without_fields_is_only_confirmed():
    result, questions = await filled({"type": "object", "properties": {}})
    assert (result.action, result.content, len(questions)) == ("accept", {}, 1)


async def test_form_is_asked_a_limited_number_of_times():
    result, questions = await filled(SEATS, ("none",), ("none",), ("none",))
    assert (result.action, len(questions)) == ("cancel", 4)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {str(number): {"type": "string"} for number in range(MOST_FIELDS + 1)}},
        {"properties": {"one": {"enum": [str(number) for number in range(MOST_CHOICES + 1)]}}},
        {"properties": [1]},
        {"properties": {"one": 3}},
        {"properties": {"one": {"oneOf": 3}}},
        {"properties": {}, "required": 3},
    ],
)
async def test_a_form_that_is_too_large_or_none_is_declined(schema):
    with pytest.raises(DeclinedError, match="its form"):
        await filled(schema)


async def test_an_address_to_open_is_declined():
    with pytest.raises(DeclinedError, match="to open an address"):
        await fill_in("desk", "book", ElicitRequestURLParams(message="Pay", url="https://pay.example"), None)


async def test_a_long_message_is_cut():
    params = ElicitRequestFormParams(message="x" * 100_000, requested_schema={"properties": {}})
    shown = []

    async def ask(asked):
        shown.append(asked[0].text)

    assert (await fill_in("desk", "book", params, ask)).action == "cancel"
    assert len(shown[0]) < 1300
