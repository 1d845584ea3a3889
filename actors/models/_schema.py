"""The JSON Schema of one answer: what is legal, and really there, at this step. Fit for providers' strict modes.

Every property is required, and null where there is nothing to say; no other is allowed. Only tools whose own schema
can't be told in that way have arguments of any form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from callboard.actors.models._labels import labelled
from callboard.messages import AgentKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from callboard.actors.models._model import ModelRequest, ToolInfo

Schema = dict[str, Any]

CONTROL = ("control_id", "control_name")
"""Parameters of a tool that stand for a control; an answer names it once, beside the arguments."""

MOST_CHOICES = 150
"""More controls than that are not enumerated: providers refuse long enumerations."""
MOST_CHARACTERS = 7000
"""The same, for the length of all their names together."""
MOST_TOOLS = 60
"""More tools than that share one form of arguments."""
_DEEPEST = 8

_TEXT: Schema = {"type": "string"}
_LINES: Schema = {"type": "array", "items": _TEXT, "maxItems": 12}
_FREE: Schema = {"type": "object", "additionalProperties": True}
_CONTROL: Schema = {"$ref": "#/$defs/Control"}


class _LooseError(Exception):
    """A schema that has no strict form."""


def answer_schema(request: ModelRequest) -> Schema:
    """Build the schema of an answer to a request."""
    labels = choices(labelled(request.observation.controls))
    control = _CONTROL if labels else _TEXT
    statuses = legal_statuses(request)
    properties: Schema = {"Observation": _TEXT, "Thought": _TEXT, "Plan": _LINES}
    if request.tools:
        properties["Actions"] = {"type": "array", "items": _actions(request.tools, control), "maxItems": 10}
    if "SCREENSHOT" in statuses:
        properties["ControlReannotate"] = {"type": "array", "items": control, "maxItems": 20}
    properties["Status"] = {"type": "string", "enum": list(statuses)}
    if "ASSIGN" in statuses:
        targets = choices(labelled(request.observation.targets))
        properties["ControlText"] = _or_null({"type": "string", "enum": targets} if targets else _TEXT)
        properties["Current Sub-Task"] = _or_null(_TEXT)
    if "PENDING" in statuses:
        question = _object({"text": _TEXT, "choices": _LINES})
        properties["Questions"] = {"type": "array", "items": question, "maxItems": 5}
    if "FINISH" in statuses:
        properties["Result"] = _or_null(_TEXT)
    properties["Comment"] = _TEXT
    schema = _object(properties)
    return {**schema, "$defs": {"Control": {"type": "string", "enum": labels}}} if labels else schema


def legal_statuses(request: ModelRequest) -> tuple[str, ...]:
    """Give the statuses that make sense now: all that are legal, but ASSIGN only where there is a target."""
    nobody = request.kind is AgentKind.HOST and not request.observation.targets
    left = tuple(status for status in request.statuses if status != "ASSIGN" or not nobody)
    return left or request.statuses


def choices(labels: Mapping[str, object]) -> list[str]:
    """Give the labels that an answer may name; none if they are too many for an enumeration."""
    fit = len(labels) <= MOST_CHOICES and sum(map(len, labels)) <= MOST_CHARACTERS
    return list(labels) if fit else []


def takes_control(tool: ToolInfo) -> bool:
    """Say whether a tool acts on a control."""
    return CONTROL[0] in tool.schema.get("properties", {})


def needs_control(tool: ToolInfo) -> bool:
    """Say whether a tool can't do without one."""
    return CONTROL[0] in tool.schema.get("required", ())


def own_parameters(tool: ToolInfo) -> Schema:
    """Give the schemas of a tool's parameters but those that stand for a control."""
    properties = tool.schema.get("properties", {})
    hidden = CONTROL if takes_control(tool) else ()
    return {name: part for name, part in properties.items() if name not in hidden}


def _actions(tools: Iterable[ToolInfo], control: Schema) -> Schema:
    offered = sorted(tools, key=lambda tool: tool.name)
    if len(offered) > MOST_TOOLS:
        named = {"type": "string", "enum": [tool.name for tool in offered]}
        return _object({"Function": named, "ControlText": _or_null(control), "Args": _FREE})
    forms = [_action(tool, control) for tool in offered]
    return forms[0] if len(forms) == 1 else {"anyOf": forms}


def _action(tool: ToolInfo, control: Schema) -> Schema:
    properties: Schema = {"Function": {"type": "string", "enum": [tool.name]}}
    if takes_control(tool):
        properties["ControlText"] = control if needs_control(tool) else _or_null(control)
    properties["Args"] = _arguments(tool)
    return _object(properties)


def _arguments(tool: ToolInfo) -> Schema:
    """Make the strict form of a tool's own parameters."""
    whole = tool.schema
    if whole.get("additionalProperties") or whole.get("patternProperties"):
        return _FREE
    try:
        required = whole.get("required", ())
        parts = {name: _strict(part, whole, 0) for name, part in own_parameters(tool).items()}
    except _LooseError:
        return _FREE
    return _object({name: part if name in required else _or_null(part) for name, part in parts.items()})


def _strict(part: object, whole: Schema, depth: int) -> Schema:  # noqa: PLR0911 - a case a keyword
    """Make the strict form of a schema.

    Raises:
        _LooseError: If it has none.
    """
    if not isinstance(part, dict) or depth > _DEEPEST:
        raise _LooseError
    if "$ref" in part:
        return _strict(resolved(part, whole), whole, depth + 1)
    if "enum" in part or "const" in part:
        return {key: part[key] for key in ("type", "enum", "const") if key in part}
    options = part.get("anyOf") or part.get("oneOf")
    if options:
        return {"anyOf": [_strict(option, whole, depth + 1) for option in options]}
    if isinstance(part.get("type"), list):
        return {"anyOf": [_strict({**part, "type": kind}, whole, depth + 1) for kind in part["type"]]}
    match part.get("type"):
        case "object" if part.get("properties") and not part.get("additionalProperties"):
            required = part.get("required", ())
            inner = {name: _strict(each, whole, depth + 1) for name, each in part["properties"].items()}
            return _object({name: each if name in required else _or_null(each) for name, each in inner.items()})
        case "array" if "prefixItems" not in part:
            bounds = {key: part[key] for key in ("minItems", "maxItems") if key in part}
            return {"type": "array", "items": _strict(part.get("items"), whole, depth + 1), **bounds}
        case "integer" | "number" as kind:
            return {"type": kind, **{key: part[key] for key in ("minimum", "maximum") if key in part}}
        case "string" | "boolean" | "null" as kind:
            return {"type": kind}
        case _:
            raise _LooseError


def resolved(part: Schema, whole: Schema) -> object:
    """Follow a reference within a schema; None if it leads nowhere."""
    current: object = whole
    for name in str(part["$ref"]).removeprefix("#").strip("/").split("/"):
        step = name.replace("~1", "/").replace("~0", "~")
        current = current.get(step) if isinstance(current, dict) else None
    return current


def _object(properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _or_null(schema: Schema) -> Schema:
    options = schema.get("anyOf", [schema])
    null = {"type": "null"}
    return schema if null in options else {"anyOf": [*options, null]}
