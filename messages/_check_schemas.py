"""Limits of the JSON Schemas of checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from callboard.messages._patterns import check_expression, expression_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import jsonschema
    from pydantic import JsonValue

_MOST_PARTS = 10_000
"""The most parts of a schema whose references are replaced by what they refer to."""
_DATA = frozenset({"const", "enum", "default", "examples"})
"""The keywords whose values are no schemas."""
_BACKTRACKING = frozenset({"unevaluatedProperties", "unevaluatedItems"})
"""The keywords that jsonschema evaluates with Python's regular expressions."""


def schema_problem(error: jsonschema.SchemaError) -> str:
    """Describe a value that is no JSON Schema."""
    return f"is not a JSON Schema: the value at {error.json_path} is not allowed there"


def check_schema(schema: Mapping[str, JsonValue]) -> None:
    """Check the schema of a check.

    Raises:
        ValueError: If it is no JSON Schema, has no keyword, refers to another document or to itself, has a pattern that
            `matches` would refuse, or is too large.
    """
    import jsonschema

    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise ValueError(schema_problem(error)) from None
    if schema.keys().isdisjoint(jsonschema.Draft202012Validator.VALIDATORS):
        msg = "expects nothing: it has none of the keywords of JSON Schema, such as `type`"
        raise ValueError(msg)
    for part in _parts(schema):
        for name in _BACKTRACKING & part.keys():
            msg = f"has `{name}`, which checks do not support"
            raise ValueError(msg)
        for name in ("$dynamicRef", "$id"):
            if name in part:
                msg = f"has `{name}`: refer to a part of the schema by `$ref: '#/$defs/NAME'`"
                raise ValueError(msg)
    for pattern in patterns_of(schema):
        try:
            check_expression(pattern)
        except ValueError as error:
            msg = f"its pattern {pattern!r} {error}"
            raise ValueError(msg) from None
    _expanded_size(schema, schema, {}, ())


def patterns_of(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield the regular expressions of a schema."""
    for part in _parts(schema):
        if isinstance(part.get("pattern"), str):
            yield part["pattern"]
        if isinstance(part.get("patternProperties"), dict):
            yield from part["patternProperties"]


def largest_pattern(schema: Mapping[str, Any]) -> int:
    """Return the size of the largest regular expression of a schema."""
    return max(map(expression_size, patterns_of(schema)), default=0)


def _parts(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield all objects of a schema that may be schemas."""
    if isinstance(value, dict):
        yield value
        for name, part in value.items():
            if name not in _DATA:
                yield from _parts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _parts(part)


def _expanded_size(
    schema: Mapping[str, Any], value: Any, sizes: dict[str, int], open_references: tuple[str, ...]
) -> int:
    """Count the parts of a value with its references replaced.

    Raises:
        ValueError: If there are too many, or a reference leads to itself or to nothing.
    """
    size = 1
    if isinstance(value, dict):
        for name, part in value.items():
            if name in _DATA:
                continue
            if name == "$ref" and isinstance(part, str):
                if part in open_references:
                    msg = f"refers to itself, at {part!r}"
                    raise ValueError(msg)
                if part not in sizes:
                    sizes[part] = _expanded_size(schema, _at(schema, part), sizes, (*open_references, part))
                size += sizes[part]
            else:
                size += _expanded_size(schema, part, sizes, open_references)
    elif isinstance(value, list):
        size += sum(_expanded_size(schema, part, sizes, open_references) for part in value)
    if size > _MOST_PARTS:
        msg = f"is too large: it has more than {_MOST_PARTS:,} parts, with its references"
        raise ValueError(msg)
    return size


def _at(schema: Mapping[str, Any], reference: str) -> Any:
    if not reference.startswith("#/"):
        msg = f"refers to {reference!r}: it may refer only to its own parts, such as `#/$defs/NAME`"
        raise ValueError(msg)
    part: Any = schema
    for step in reference[2:].split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(part, dict) or name not in part:
            msg = f"refers to {reference!r}, which it does not have"
            raise ValueError(msg)
        part = part[name]
    return part
