"""An operator's actions: their form, their description, and the tool calls that they become."""

from __future__ import annotations

import dataclasses

import jsonschema
import pytest

from callboard.actors.processing import MACHINES
from callboard.messages import Action, AgentKind, Control, Effect, InvalidAnswerError, Observation
from callboard.models import OperatorResponse, ToolInfo, read_response
from callboard.models._computer_actions import SCREENSHOT, argument_forms, tool_call
from callboard.models.prompt import answer_schema, examples, is_free, parts_of, prompt_of, shortened_request
from support import PNG

KIND = AgentKind.OPERATOR
ACTIONS = ("click_at", "move_to", "drag_at", "scroll_at", "type_text", "press_keys", "wait")
SEEN = Observation(picture=PNG, window={"title": "Pad"}, controls=(Control(id="b", name="Send", kind="button"),))


def tool(name, *left_out):
    schema = argument_forms(name)
    properties = {key: part for key, part in schema["properties"].items() if key not in left_out}
    return ToolInfo(name=name, description="Does it.", schema={**schema, "properties": properties}, effect=Effect.ONCE)


@pytest.fixture
def request_of(asks):
    """Make an operator's request, with these tools."""

    def make(*tools, **more):
        shown = {"kind": KIND, "address": "operator/pads/pad", "observation": SEEN}
        return asks(**{**shown, "statuses": MACHINES[KIND].offered("CONTINUE"), "tools": tools, **more})

    return make


def forms(request):
    form = answer_schema(request)["$defs"]["Action"]
    return {each["properties"]["action"]["enum"][0]: each for each in form.get("anyOf", [form])}


def calls(*actions):
    return read_response(OperatorResponse, {"Status": "CONTINUE", "Actions": list(actions)}).decided_actions()


def test_each_action_of_the_form_is_a_tool_of_the_target_or_one_more_look(request_of):
    assert [*forms(request_of(*map(tool, ACTIONS)))] == [*sorted(ACTIONS), SCREENSHOT]
    assert [*forms(request_of(tool("type_text")))] == ["type_text", SCREENSHOT]


def test_the_form_has_no_argument_that_the_targets_tool_does_not_take(request_of):
    click = forms(request_of(tool("click_at", "modifiers", "count")))["click_at"]
    assert [*click["properties"]] == ["action", "x", "y", "button"]
    assert click["required"] == [*click["properties"]]
    (short,) = shortened_request(request_of(tool("click_at"))).tools
    assert [*short.schema["properties"]] == ["x", "y"]


def test_a_tool_of_another_kind_has_the_usual_form(request_of):
    other = dataclasses.replace(tool("type_text"), name="save")
    form = answer_schema(request_of(other))["$defs"]["Action"]["anyOf"][0]
    assert form["properties"]["Function"]["enum"] == ["save"]


def test_operator_schema_is_strict_and_accepts_its_actions(request_of):
    schema = answer_schema(request_of(*map(tool, ACTIONS)))
    jsonschema.Draft202012Validator.check_schema(schema)
    assert not is_free(schema)
    click = {"action": "click_at", "x": 1, "y": 2, "button": "left", "count": None, "modifiers": None}
    for action in (click, {"action": "press_keys", "keys": "ctrl+s"}, {"action": SCREENSHOT}):
        decision = {"Plan": ["x"], "Status": "CONTINUE", "Actions": [action]}
        jsonschema.validate({"Observation": "", "Thought": "", "Decision": decision, "Comment": ""}, schema)


def test_actions_become_tool_calls_without_what_was_left_out():
    said = [
        {"action": "click_at", "x": 1, "y": 2, "button": None, "count": 2},
        {"action": SCREENSHOT},
        {"action": "scroll_at", "x": 3, "y": 4, "dy": -5},
        {"action": "drag_at", "x": 1, "y": 2, "to_x": 3, "to_y": 4},
        {"Function": "press_keys", "Args": {"keys": "Return"}},
    ]
    assert calls(*said) == (
        Action(tool="click_at", arguments={"x": 1, "y": 2, "count": 2}),
        Action(tool="scroll_at", arguments={"x": 3, "y": 4, "dy": -5}),
        Action(tool="drag_at", arguments={"x": 1, "y": 2, "to_x": 3, "to_y": 4}),
        Action(tool="press_keys", arguments={"keys": "Return"}),
    )


@pytest.mark.parametrize(
    "said",
    [
        {"Action": "Click_At", "x": 1, "y": 2},
        {"action": "click", "x": 1.0, "y": 2},
        {"action": "click_at", "Args": {"x": 1, "y": 2}},
        {"Function": "click_at", "Args": {"x": "1", "y": "2"}},
    ],
)
def test_an_action_is_read_in_the_ways_in_which_models_write_it(said):
    (action,) = calls(said)
    assert action == Action(tool="click_at", arguments={"x": 1, "y": 2})
    assert action.points == ((1, 2),)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"x": 1}, "click_at: y: Field required"),
        ({"x": 1.5, "y": 1}, "x: Input should be a valid integer"),
        ({"x": 1, "y": 1, "button": "fourth"}, "button: Input should be 'left', 'middle' or 'right'"),
        ({"x": 1, "y": 1, "count": 900}, "count: Input should be less than or equal to 3"),
        ({"x": "${steps.1.results.0.value}", "y": 1}, "x: Input should be a valid integer"),
    ],
)
def test_invalid_arguments_are_refused_with_an_error_for_the_model(arguments, why):
    with pytest.raises(InvalidAnswerError, match=r"^click_at: ") as refused:
        tool_call("click_at", arguments)
    assert why in str(refused.value)


def test_the_prompt_tells_the_size_of_the_picture_and_no_control(request_of):
    prompt = prompt_of(request_of(tool("click_at"), memory=()))
    texts = [part for part in prompt.user if isinstance(part, str)]
    assert prompt.user[1:3] == ("The picture has 1 x 1 pixels; x counts from its left edge, y from its upper one:", PNG)
    assert "Send" not in "".join(texts)
    assert '{"title": "Pad"}' in texts[0]
    assert "- screenshot: Look again, and do nothing." in prompt.system
    assert "Each has an action (the tool)" in prompt.system


def test_optional_control_of_a_tool_is_omitted_for_operators(request_of):
    keys = tool("press_keys")
    both = {**keys.schema["properties"], "control_id": {"type": "string", "default": ""}}
    request = request_of(dataclasses.replace(keys, schema={**keys.schema, "properties": both}))
    assert "- press_keys: Does it.\n    keys: string\n- screenshot" in prompt_of(request).system
    assert [*forms(request)["press_keys"]["properties"]] == ["action", "keys"]


def test_prompt_mentions_a_missing_picture(request_of):
    text = prompt_of(request_of(tool("click_at"), observation=Observation())).user[0]
    assert "no picture: nothing can be pointed at now" in text


def test_the_examples_are_answers_in_the_form(request_of):
    shown = [example.answer for example in examples(OperatorResponse, parts_of(request_of(tool("click_at"))))]
    assert len(shown) == 2
    assert [read_response(OperatorResponse, answer).decided_status() for answer in shown] == ["CONTINUE", "FINISH"]
    assert read_response(OperatorResponse, shown[0]).decided_actions()[0].points == ((64, 118),)
