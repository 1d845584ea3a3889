"""The actions of an operator.

They are click, move, drag, scroll, type, press, wait, and one more look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from callboard.messages import Action, InvalidAnswerError

if TYPE_CHECKING:
    from collections.abc import Mapping

SCREENSHOT = "screenshot"
"""The action without a tool call: the next step observes in any case."""
_Button = Literal["left", "middle", "right"]


class _Action(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _AtPoint(_Action):
    x: int
    y: int


class ClickAt(_AtPoint):
    """Click a point."""

    action: Literal["click_at"]
    button: _Button = "left"
    count: int = Field(default=1, ge=1, le=3)
    modifiers: list[str] = Field(default_factory=list)


class MoveTo(_AtPoint):
    """Move the pointer to a point."""

    action: Literal["move_to"]


class DragAt(_AtPoint):
    """Drag from one point to another."""

    action: Literal["drag_at"]
    to_x: int
    to_y: int
    button: _Button = "left"


class ScrollAt(_AtPoint):
    """Turn the wheel at a point, in steps.

    Down and right are positive.
    """

    action: Literal["scroll_at"]
    dx: int = 0
    dy: int = 0


class TypeText(_Action):
    """Type into what has the focus."""

    action: Literal["type_text"]
    text: str


class PressKeys(_Action):
    """Press one key, or several together: ``Return``, ``ctrl+s``."""

    action: Literal["press_keys"]
    keys: str


class Wait(_Action):
    """Wait, in seconds."""

    action: Literal["wait"]
    seconds: float = Field(ge=0)


class Screenshot(_Action):
    """Look again, and do nothing."""

    action: Literal["screenshot"]


OperatorAction = Annotated[
    ClickAt | MoveTo | DragAt | ScrollAt | TypeText | PressKeys | Wait | Screenshot, Field(discriminator="action")
]
"""An action; the tag is the name of its tool, and the other fields are the arguments."""

_ADAPTER: TypeAdapter[OperatorAction] = TypeAdapter(OperatorAction)
_FORMS: dict[str, dict[str, Any]] = {
    form["properties"]["action"]["const"]: form for form in _ADAPTER.json_schema()["$defs"].values()
}
_ALSO = {
    "click": "click_at",
    "move": "move_to",
    "drag": "drag_at",
    "scroll": "scroll_at",
    "type": "type_text",
    "key": "press_keys",
}
"""Other names that models use for an action."""


def argument_forms(tool: str) -> dict[str, Any] | None:
    """Return the JSON Schema of an action's arguments; None for other tools."""
    form = _FORMS.get(tool)
    if form is None:
        return None
    properties = {name: part for name, part in form["properties"].items() if name != "action"}
    required = [name for name in form["required"] if name != "action"]
    return {"type": "object", "properties": properties, "required": required}


def as_function(action: object) -> object:
    """Convert an action to a tool call.

    An action is such as ``{"action": "click_at", "x": 1, "y": 2}``.
    """
    if not isinstance(action, dict):
        return action
    named = [key for key in action if str(key).casefold() == "action"]
    if len(named) != 1 or not isinstance(action[named[0]], str):
        return action
    arguments = {name: value for name, value in action.items() if name != named[0]}
    return {"Function": action[named[0]], "Args": arguments["Args"] if arguments.keys() == {"Args"} else arguments}


def tool_call(tool: str, arguments: Mapping[str, Any]) -> Action | None:
    """Validate an action and return its tool call; None for `SCREENSHOT`.

    Calls of other tools are returned unchanged.

    Raises:
        InvalidAnswerError: If arguments are missing, unknown or of the wrong type.
    """
    name = tool.strip().casefold()
    name = _ALSO.get(name, name)
    if name not in _FORMS:
        return Action(tool=tool, arguments=dict(arguments))
    present_arguments = {key: value for key, value in arguments.items() if value is not None}
    try:
        action = _ADAPTER.validate_python({**present_arguments, "action": name})
    except ValidationError as error:
        problems = (f"{'.'.join(map(str, problem['loc'][1:]))}: {problem['msg']}" for problem in error.errors())
        msg = f"{name}: {'; '.join(problems)}"
        raise InvalidAnswerError(msg) from error
    if isinstance(action, Screenshot):
        return None
    return Action(tool=name, arguments=action.model_dump(exclude={"action"}, exclude_unset=True))
