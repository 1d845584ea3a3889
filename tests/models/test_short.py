"""Short requests, as small models are asked: what they leave out, and what they keep."""

from __future__ import annotations

import dataclasses

from callboard.actors.models import ToolInfo
from callboard.actors.models._prompt import prompt_of
from callboard.actors.models._schema import answer_schema
from callboard.actors.models._short import shortened_request
from callboard.messages import Action, Decision, Effect

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


def test_a_tool_without_parameters_is_told_as_it_is(asks):
    plain = dataclasses.replace(TABLE, schema={"type": "object"})
    assert told(asks(tools=(plain,)))[1]["$defs"]["Action"]["properties"]["Args"]["properties"] == {}


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
        actions=(Action(tool="read", arguments={"all": True}),),
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
