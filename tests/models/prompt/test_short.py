"""Short requests, as small models are asked: what they leave out, and what they keep."""

from __future__ import annotations

import dataclasses

import pytest

from callboard.actors.commands import Toolbox
from callboard.actors.models import ToolInfo
from callboard.actors.models.prompt._answer_schema import answer_schema, own_parameters
from callboard.actors.models.prompt._prompt import prompt_of, shortened_request
from callboard.actors.runtime import Lanes
from callboard.actors.servers.documents import DocumentServer
from callboard.messages import ESSENTIAL, Action, AgentKind, Decision, Effect, Target, TargetKind

TABLE = ToolInfo(
    name="insert_table",
    description="Insert rows.",
    schema={
        "type": "object",
        "properties": {
            "rows": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
            "title": {"type": "string", "default": ""},
            "control_id": {"type": "string", "default": ""},
            "control_name": {"type": "string", "default": ""},
        },
        "required": ["rows"],
    },
    effect=Effect.ONCE,
)


def told(request):
    short = shortened_request(request)
    prompt = prompt_of(short, short=True)
    return "\n\n".join((prompt.system, *prompt.user)), answer_schema(short)


def test_tools_are_told_without_what_may_be_left_out(asks):
    text, schema = told(asks(tools=(TABLE,)))
    assert "    rows: " in text
    assert "title" not in text
    form = schema["$defs"]["Action"]["properties"]
    assert list(form["Args"]["properties"]) == ["rows"]
    assert "ControlText" in form  # the control it may act on is chosen all the same


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "properties": {"bold": {"type": "boolean"}, "size": {"type": "number"}}},
        {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "string"}},
            "required": ["c"],
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
    ],
    ids=["none", "any of them", "one of two"],
)
def test_a_tool_of_which_nobody_can_tell_what_it_needs_is_told_whole(asks, schema):
    whole = dataclasses.replace(TABLE, schema=schema)
    assert shortened_request(asks(tools=(whole,))).tools == (whole,)


def test_where_a_call_would_act_elsewhere_without_it_a_parameter_is_told(asks):
    cell = {"type": "string", "default": "", ESSENTIAL: True}
    schema = {**TABLE.schema, "properties": {**TABLE.schema["properties"], "cell": cell}}
    _, answer = told(asks(tools=(dataclasses.replace(TABLE, schema=schema),)))
    assert list(answer["$defs"]["Action"]["properties"]["Args"]["properties"]) == ["rows", "cell"]


WINDOW = Target(
    id="a.docx",
    name="a.docx",
    kind=TargetKind.WINDOW,
    address="app/word/a.docx",
    server="documents",
    binds={"document": "a.docx"},
)


def parameters(tools):
    return {tool.name: set(own_parameters(tool)) for tool in tools}


def test_the_documents_tools_say_what_they_need(asks, tmp_path):
    server = DocumentServer(tmp_path)
    toolbox, book = Toolbox([server], (), Lanes()), WINDOW.model_copy(update={"address": "app/excel/book.xlsx"})
    offered = toolbox.actions(AgentKind.APP, WINDOW) | toolbox.actions(AgentKind.APP, book)
    tools = tuple(tool.info for tool in offered.values())
    whole, short = parameters(tools), parameters(shortened_request(asks(tools=tools)).tools)
    assert short["write_range"] == {"values", "cell"}
    assert short["insert_paragraph"] == {"text", "position"}
    assert short["insert_chart"] == {"type", "cells", "title"}
    assert short["set_font"] == whole["set_font"]


def test_what_others_were_asked_is_not_told(asks):
    request = asks(task_request="read the table and make a chart", request="make a chart", plan=("read the table",))
    assert "read the table and make a chart" in prompt_of(request).user[0]
    text, _ = told(request)
    assert "read the table and make a chart" not in text
    assert "Your plan so far" not in text


def test_steps_are_told_without_what_was_thought(asks):
    decision = Decision(
        status="CONTINUE",
        observation="I see it.",
        thought="I want it.",
        comment="I say it.",
        plan=("I plan it.",),
        actions=(Action(tool="read", arguments={"all": True}, call_id="t/2.1.0"),),
    )
    request = asks()
    request = dataclasses.replace(request, memory=(request.memory[0].model_copy(update={"decision": decision}),))
    assert "I want it." in prompt_of(request).user[0]
    text, _ = told(request)
    assert not [said for said in ("I see it.", "I want it.", "I say it.", "I plan it.") if said in text]
    assert 'read {"all": true} → returned {"rows": [[1, 2.5], ["a"]]}' in text
    assert request.memory[0].decision.thought == "I want it."  # the agent's own memory stays as it is


def test_data_that_can_be_passed_on_is_told_by_its_name(asks):
    text, _ = told(asks())
    assert '"cells": "${subtasks.1.output.cells}"' in text
    assert '"rows": 4' in text
    assert '- "${subtasks.1.output.cells}": 1 rows, the first ["a", 1]' in text


def test_a_host_is_told_the_data_it_answers_from(asks):
    host = asks(kind=AgentKind.HOST)
    assert '"cells": [["a", 1]]' in told(host)[0]


def test_a_name_that_is_no_part_of_a_reference_is_told_as_it_is(asks):
    request = asks()
    left = request.subtasks[0].model_copy(update={"output": {"a.b": 5, "a": {"b": [1]}}})
    text, _ = told(dataclasses.replace(request, subtasks=(left,)))
    assert '"a.b": 5, "a": {"b": "${subtasks.1.output.a.b}"}' in text
