"""Canonical form of arguments.

Equal values have equal texts, however a model wrote them.
"""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from callboard.actors.commands._modern_schema import validator_of
from callboard.messages import pointed_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

EXACT_FLOATS = 2**53
"""The limit up to which a floating-point number represents every integer."""
_NESTED = 20
"""The depth to which a schema is followed, since it may refer to itself."""
_TEXT = frozenset({"string", "null"})


def canonical(value: JsonValue) -> JsonValue:
    """Convert whole floats to integers, also in lists and objects.

    ``1e3`` becomes ``1000``.
    """
    if isinstance(value, float) and value.is_integer() and abs(value) <= EXACT_FLOATS:
        return int(value)
    if isinstance(value, dict):
        return {name: canonical(item) for name, item in value.items()}
    if isinstance(value, list):
        return [canonical(item) for item in value]
    return value


def settled(value: Any) -> Any:
    """Normalize Python values that have several notations.

    They are decimals, and times in other time zones.
    """
    if isinstance(value, BaseModel):
        value = value.model_dump()
    if isinstance(value, dict):
        return {name: settled(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [settled(item) for item in value]
    if isinstance(value, Decimal) and value.is_finite():
        is_integer = value == value.to_integral_value()
        return (
            int(value) if is_integer else float(value) if Decimal(repr(float(value))) == value else format(value, "f")
        )
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC)
    return value


def text_of(value: JsonValue) -> str:
    """Return the text that rules match.

    A string is unchanged, any other value is written as JSON.
    """
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def by_schema(
    schema: Mapping[str, Any], arguments: Mapping[str, JsonValue], root: Mapping[str, Any] | None = None
) -> tuple[dict[str, JsonValue], frozenset[str]]:
    """Canonicalize valid arguments and add the defaults that their JSON Schema declares.

    Args:
        schema: An object's schema.
        arguments: The object.
        root: The schema that references are resolved in; by default `schema` itself.

    Returns:
        The arguments, and the names of those whose type the schema does not declare: it is unknown how an
        MCP server reads them.
    """
    root = schema if root is None else root
    parts = _merged(schema, root, _NESTED).get("properties", {})
    merged_parts = {name: _merged(part, root, _NESTED) for name, part in parts.items()}
    defaults = {name: part["default"] for name, part in merged_parts.items() if "default" in part}
    read = {name: _value(parts.get(name), value, root, _NESTED) for name, value in {**defaults, **arguments}.items()}
    values = {name: value for name, (value, _) in read.items()}
    return values, frozenset(name for name, (_, exact) in read.items() if not exact)


def _merged(schema: Any, root: Mapping[str, Any], remaining_depth: int) -> dict[str, Any]:
    """Merge a schema with the schemas in its `$ref` and `allOf`.

    Its own keywords win.
    """
    if not isinstance(schema, dict) or remaining_depth == 0:
        return {}
    merged: dict[str, Any] = {}
    references = [pointed_at(str(schema["$ref"]), root)] if "$ref" in schema else []
    for part in (
        *references,
        *schema.get("allOf", ()),
        {key: schema[key] for key in schema.keys() - {"$ref", "allOf"}},
    ):
        merged_part = part if part is not None and "$ref" not in part and "allOf" not in part else None
        merged_part = merged_part if merged_part is not None else _merged(part, root, remaining_depth - 1)
        merged = {
            **merged,
            **merged_part,
            "properties": {**merged.get("properties", {}), **merged_part.get("properties", {})},
        }
    return merged


def _value(schema: Any, value: JsonValue, root: Mapping[str, Any], remaining_depth: int) -> tuple[JsonValue, bool]:
    """Return a value in canonical form.

    The second result tells whether the schema declares the type of each part.
    """
    if not isinstance(schema, dict) or remaining_depth == 0:
        return canonical(value), False
    if "$ref" in schema:
        return _value(pointed_at(str(schema["$ref"]), root), value, root, remaining_depth - 1)
    for name in ("anyOf", "oneOf", "allOf"):
        if name in schema:
            return _of_branches(schema, name, value, root, remaining_depth)
    types = schema.get("type", ())
    named = frozenset([types] if isinstance(types, str) else types)
    if isinstance(value, dict) and "object" in named:
        members, inexact = by_schema(schema, value, root)
        return members, not inexact
    if isinstance(value, list) and "array" in named:
        converted_items = [_value(schema.get("items"), item, root, remaining_depth - 1) for item in value]
        return [item for item, _ in converted_items], all(exact for _, exact in converted_items)
    # where the schema allows another type too, an MCP server may read a text as a value of that type
    typed = bool(named) and (named <= _TEXT or not isinstance(value, str))
    return canonical(value), typed or "enum" in schema or "const" in schema


def _of_branches(
    schema: Mapping[str, Any], name: str, value: JsonValue, root: Mapping[str, Any], remaining_depth: int
) -> tuple[JsonValue, bool]:
    fitting = [branch for branch in schema[name] if _fits(branch, value, root)]
    if not fitting:
        return canonical(value), False
    typed = schema[name] if isinstance(value, str) and name != "allOf" else fitting
    exact = all(
        _value(branch, value, root, remaining_depth - 1)[1]
        for branch in typed
        if not (isinstance(branch, dict) and branch.get("type") == "null")
    )
    return _value(fitting[0], value, root, remaining_depth - 1)[0], exact


def _fits(schema: Mapping[str, Any], value: JsonValue, root: Mapping[str, Any]) -> bool:
    full_schema = {name: root[name] for name in ("$defs", "definitions") if name in root} | dict(schema)
    try:
        return bool(validator_of(full_schema).is_valid(value))
    except Exception:  # third-party code boundary: the schema may be anything
        return False
