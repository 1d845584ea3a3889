"""Offer Anthropic's computer tool to a model.

Its calls are converted to an operator's actions. pydantic-ai has no such tool, but its public settings can extend the
body of a request, and it passes on calls of unknown tools. It drops the calls of OpenAI's models (`computer_call`) and
can't offer the tool to Google's. Those models answer in the common form.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from callboard.messages import AgentStatus
from callboard.models._computer_actions import argument_forms
from callboard.models.prompt import MOST_ACTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_ai.messages import ModelResponse

    from callboard.models._model import ModelRequest


PROVIDER = "anthropic"
"""The kind of provider that has the tool."""
NAME = "computer"
"""The name of the single tool; calls of the toolset have the names of its members."""
_TOOLSET = "computer_toolset_20260801"
_BETAS = {"computer_20250124": "computer-use-2025-01-24", "computer_20251124": "computer-use-2025-11-24"}
_CLICKS = {
    "left_click": ("left", 1),
    "right_click": ("right", 1),
    "middle_click": ("middle", 1),
    "double_click": ("left", 2),
    "triple_click": ("left", 3),
}
_TOOLS = {
    **dict.fromkeys(_CLICKS, "click_at"),
    "mouse_move": "move_to",
    "left_click_drag": "drag_at",
    "scroll": "scroll_at",
    "type": "type_text",
    "key": "press_keys",
    "wait": "wait",
}
"""The surface's tool for each member of the toolset."""
_LOST = ("cursor_position", "hold_key", "left_mouse_down", "left_mouse_up", "zoom")
"""Members without a tool of a surface."""
_WAYS = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
_HOW = (
    "Act with your computer tool. What you call is done in order, and then you look again: that is CONTINUE. Call the "
    "tool {answer} for any other status; with CONFIRM, call both in one answer."
)


@dataclass(frozen=True)
class ComputerTool:
    """A version of the tool, as named in a provider's settings."""

    version: str

    def serves(self, request: ModelRequest) -> bool:
        """Return whether a request comes from an operator that sees a picture."""
        return request.is_operator and request.observation.picture_size is not None

    def without(self, request: ModelRequest) -> ModelRequest:
        """Return the request without the tools that this one replaces."""
        return replace(request, tools=tuple(tool for tool in request.tools if argument_forms(tool.name) is None))

    def instructions(self, answer: str) -> str:
        """Return the instructions for the model.

        `answer` is the name of the tool for answers.
        """
        return _HOW.format(answer=answer)

    def settings(self, request: ModelRequest, answer: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return pydantic-ai's settings of a call.

        Tools in its body override pydantic-ai's own.
        """
        form = {"name": answer, "description": "Say what comes next.", "input_schema": schema}
        if self.version == _TOOLSET:
            tools = {tool.name for tool in request.tools}
            disabled_members = [*_LOST, *(member for member, tool in _TOOLS.items() if tool not in tools)]
            computer_tool: dict[str, Any] = {
                "type": self.version,
                "configs": {member: {"enabled": False} for member in disabled_members},
            }
        else:
            width, height = request.observation.picture_size or (1, 1)
            computer_tool = {"type": self.version, "name": NAME, "display_width_px": width, "display_height_px": height}
        beta = _BETAS.get(self.version)
        return {"extra_body": {"tools": [computer_tool, form]}} | ({"anthropic_betas": [beta]} if beta else {})

    def content(self, response: ModelResponse, answer: str) -> dict[str, Any] | None:
        """Convert a response to an operator's answer.

        None if the tool was not called.
        """
        calls = [call for call in response.tool_calls if call.tool_name != answer]
        if not calls:
            return None
        actions = [action for call in calls for action in _actions(call.tool_name, call.args_as_dict())]
        arguments = next((call.args_as_dict() for call in response.tool_calls if call.tool_name == answer), {})
        inner = arguments.get("Decision")
        decision = {
            "Status": AgentStatus.CONTINUE.value,
            **(inner if isinstance(inner, dict) else {}),
            "Actions": actions,
        }
        return {"Thought": response.text or "", **arguments, "Decision": decision}


def _actions(name: str, arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Convert a call to actions.

    An unknown call keeps its name and is rejected later.
    """
    member = str(arguments.get("action")) if name == NAME else name
    if member not in _TOOLS:
        return [{"action": member}]
    action = {"action": _TOOLS[member], **_arguments(member, arguments)}
    held = arguments.get("text") if member not in {"type", "key", "wait"} else None
    if isinstance(held, str) and held:  # an action without modifiers is rejected, not run without the keys
        action["modifiers"] = held.split("+")
    often = arguments.get("repeat") if member == "key" else 1
    return [action] * min(max(1, often if isinstance(often, int) else 1), MOST_ACTIONS + 1)  # too many are rejected


def _arguments(member: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    point = arguments.get("coordinate")
    match member:
        case "left_click_drag":
            return {**_point(arguments.get("start_coordinate"), "x", "y"), **_point(point, "to_x", "to_y")}
        case "scroll":
            across, down = _WAYS.get(str(arguments.get("scroll_direction")), (0, 0))
            amount = arguments.get("scroll_amount")
            steps = amount if isinstance(amount, int) else 1
            return {**_point(point, "x", "y"), "dx": across * steps, "dy": down * steps}
        case "type":
            return {"text": arguments.get("text")}
        case "key":
            return {"keys": arguments.get("text")}
        case "wait":
            return {"seconds": arguments.get("duration")}
        case _:
            button, count = _CLICKS.get(member, ("left", 1))
            more = {"button": button} if button != "left" else {}
            return {**_point(point, "x", "y"), **more, **({"count": count} if count > 1 else {})}


def _point(value: object, x: str, y: str) -> dict[str, Any]:
    return dict(zip((x, y), value, strict=False)) if isinstance(value, list) else {}
