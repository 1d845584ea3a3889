"""Calls of Anthropic's own computer tool as the actions of an operator."""

from __future__ import annotations

import dataclasses

import pytest
from pydantic_ai.messages import ModelResponse, ToolCallPart

from callboard import Settings
from callboard.actors.processing import MACHINES
from callboard.messages import AgentKind, Effect, InvalidAnswerError, Observation, SettingsError
from callboard.models import OperatorResponse, ToolInfo, named_models, read_response
from callboard.models._computer_actions import argument_forms
from callboard.models.live import ComputerTool
from support import PNG

KIND, OLD = AgentKind.OPERATOR, "computer_20250124"
DONE = {"Decision": {"Plan": [], "Status": "FINISH", "Result": "sent"}, "Comment": "It is sent."}


def content(*calls, answer=None):
    parts = [ToolCallPart("computer", given) for given in calls]
    parts += [] if answer is None else [ToolCallPart("answer", answer)]
    return ComputerTool(OLD).content(ModelResponse(parts=parts), "answer")


@pytest.mark.parametrize(
    ("call", "tool_name", "arguments"),
    [
        ({"action": "right_click", "coordinate": [1, 2]}, "click_at", {"x": 1, "y": 2, "button": "right"}),
        ({"action": "triple_click", "coordinate": [1, 2]}, "click_at", {"x": 1, "y": 2, "count": 3}),
        (
            {"action": "left_click", "coordinate": [1, 2], "text": "ctrl+shift"},
            "click_at",
            {"x": 1, "y": 2, "modifiers": ["ctrl", "shift"]},
        ),
        ({"action": "mouse_move", "coordinate": [1, 2]}, "move_to", {"x": 1, "y": 2}),
        (
            {"action": "left_click_drag", "start_coordinate": [1, 2], "coordinate": [3, 4]},
            "drag_at",
            {"x": 1, "y": 2, "to_x": 3, "to_y": 4},
        ),
        (
            {"action": "scroll", "coordinate": [1, 2], "scroll_direction": "up", "scroll_amount": 5},
            "scroll_at",
            {"x": 1, "y": 2, "dx": 0, "dy": -5},
        ),
        ({"action": "key", "text": "ctrl+s"}, "press_keys", {"keys": "ctrl+s"}),
        ({"action": "wait", "duration": 2}, "wait", {"seconds": 2.0}),
    ],
    ids=lambda given: given.get("action", "") if isinstance(given, dict) else given,
)
def test_each_call_is_the_action_of_a_surface(call, tool_name, arguments):
    (action,) = read_response(OperatorResponse, content(call)).decided_actions()
    assert (action.tool, action.arguments) == (tool_name, arguments)


@pytest.mark.parametrize(
    "call",
    [
        {"action": "left_click"},
        {"action": "left_click", "coordinate": "middle"},
        {"action": "left_click", "coordinate": [1]},
        {"action": "scroll", "coordinate": [1, 2], "scroll_direction": "down", "scroll_amount": 2, "text": "ctrl"},
        {"action": "type"},
        {"action": "wait", "duration": -1},
    ],
    ids=str,
)
def test_a_call_that_lacks_something_is_refused(call):
    with pytest.raises(InvalidAnswerError):
        read_response(OperatorResponse, content(call)).decided_actions()


def test_a_screenshot_is_one_more_look_and_repeated_keys_are_bounded():
    assert read_response(OperatorResponse, content({"action": "screenshot"})).decided_actions() == ()
    keys = {"action": "key", "text": "Tab"}
    assert len(read_response(OperatorResponse, content({**keys, "repeat": 3})).decided_actions()) == 3
    assert len(read_response(OperatorResponse, content({**keys, "repeat": 10**12})).decided_actions()) == 11


def test_answer_beside_calls_sets_the_status():
    said = content({"action": "type", "text": "x"}, answer={"Decision": {"Status": "CONFIRM"}, "Comment": "May I?"})
    response = read_response(OperatorResponse, said)
    assert (response.decided_status(), response.comment, len(response.decided_actions())) == ("CONFIRM", "May I?", 1)
    assert content(answer=DONE) is None


def test_only_operators_that_see_a_picture_get_the_tool(asks):
    own = ComputerTool(OLD)
    seen = Observation(picture=PNG)
    assert own.serves(asks(kind=KIND, observation=seen))
    assert not own.serves(asks(kind=KIND, observation=Observation()))
    assert not own.serves(asks(observation=seen))


def test_other_tools_of_the_target_stay_in_the_form(asks):
    click = ToolInfo(name="click_at", description="", schema=argument_forms("click_at"), effect=Effect.ONCE)
    save = dataclasses.replace(click, name="save")
    request = asks(kind=KIND, statuses=MACHINES[KIND].offered("CONTINUE"), tools=(click, save))
    assert ComputerTool(OLD).without(request).tools == (save,)


def test_a_provider_without_such_a_tool_is_refused_at_the_start():
    providers = {"local": {"url": "http://127.0.0.1:1", "computer_tool": OLD}}
    with pytest.raises(SettingsError, match=r"providers\.local\.computer_tool: openai-compatible has none"):
        named_models(Settings(models={"operator": "local:small"}, providers=providers))
