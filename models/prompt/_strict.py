"""Convert JSON Schemas to the subset that providers' strict modes accept."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from callboard.messages import pointed_at

if TYPE_CHECKING:
    from collections.abc import Iterable


Schema = dict[str, Any]

MOST_CHOICES = 150
"""Maximum number of enumerated values; providers reject longer enumerations."""
MOST_CHARACTERS = 7000
"""Maximum total length of enumerated values."""
_DEEPEST = 8

FREE: Schema = {"type": "object", "additionalProperties": True}
"""Arguments of any form."""
_NULL: Schema = {"type": "null"}
_SINGLE: list[Schema] = [{"type": "string"}, {"type": "number"}, {"type": "boolean"}, _NULL]
ANY: Schema = {"anyOf": [FREE, {"type": "array", "items": {"anyOf": [FREE, *_SINGLE]}}, *_SINGLE]}
"""A result of any form."""
_SCALARS = ("string", "boolean", "integer", "number", "null")


class LooseError(Exception):
    """A schema without a strict form."""


# pydantic-ai's JsonSchemaTransformer does not fit: it rewrites one tool's schema for one provider and keeps the parts
# that it can't make strict. Here the arguments of all tools become parts of one answer, and schemas without a strict
# form have to be detected.
def strict(part: object, root: Schema, depth: int = 0) -> Schema:
    """Return the strict form of `part`, a subschema of `root`.

    Raises:
        LooseError: If it has no strict form.
    """
    if not isinstance(part, dict) or depth > _DEEPEST:
        raise LooseError
    if "$ref" in part:
        return strict(resolved(part, root), root, depth + 1)
    if "enum" in part or "const" in part:
        return _enumerated(part)
    options = part.get("anyOf") or part.get("oneOf")
    if options:
        return {"anyOf": [strict(option, root, depth + 1) for option in options]}
    if isinstance(part.get("type"), list):
        return {"anyOf": [strict({**part, "type": kind}, root, depth + 1) for kind in part["type"]]}
    match part.get("type"):
        case "object" if part.get("properties") and not part.get("additionalProperties"):
            return _members(part, root, depth)
        case "array" if "prefixItems" not in part:
            bounds = {key: part[key] for key in ("minItems", "maxItems") if key in part}
            return {"type": "array", "items": strict(part.get("items"), root, depth + 1), **bounds}
        case "integer" | "number" as kind:
            return {"type": kind, **{key: part[key] for key in ("minimum", "maximum") if key in part}}
        case "string" | "boolean" | "null" as kind:
            return {"type": kind}
        case _:
            raise LooseError


def _members(part: Schema, root: Schema, depth: int) -> Schema:
    required = part.get("required", ())
    inner = {name: strict(member, root, depth + 1) for name, member in part["properties"].items()}
    if not set(required) <= set(inner):
        raise LooseError
    return object_of({name: member if name in required else or_null(member) for name, member in inner.items()})


def _enumerated(part: Schema) -> Schema:
    """Group enumerated values by type.

    Strict modes require a type and distinct values.
    """
    members = part["enum"] if "enum" in part else [part["const"]]
    declared = part.get("type", list(_SCALARS))
    kinds = declared if isinstance(declared, list) else [declared]
    if not isinstance(members, list):
        raise LooseError
    named: dict[str, list[Any]] = {}
    for value in members:
        kind = _kind(value, kinds)
        if kind is not None and value not in named.setdefault(kind, []):
            named[kind].append(value)
    if not named:
        raise LooseError
    options: list[Schema] = [
        {"type": kind, "enum": values} if kind != "null" and few(map(str, values)) else {"type": kind}
        for kind, values in named.items()
    ]
    return options[0] if len(options) == 1 else {"anyOf": options}


def _kind(value: object, kinds: list[str]) -> str | None:
    """Return the type of a value among `kinds`, else None.

    Raises:
        LooseError: If values of its type can't be enumerated.
    """
    match value:
        case None:
            candidates = ["null"]
        case bool():
            candidates = ["boolean"]
        case str():
            candidates = ["string"]
        case int():
            candidates = ["integer", "number"]
        case float() if math.isfinite(value):
            candidates = ["number"]
        case _:
            raise LooseError
    return next((kind for kind in candidates if kind in kinds), None)


def few(names: Iterable[str]) -> bool:
    """Return whether names can be enumerated: neither too many nor too long."""
    lengths = [len(name) for name in names]
    return len(lengths) <= MOST_CHOICES and sum(lengths) <= MOST_CHARACTERS


def values(schema: object) -> int:
    """Count the enumerated values in a strict schema."""
    if isinstance(schema, dict):
        members = schema.get("enum")
        return len(members) if isinstance(members, list) else sum(map(values, schema.values()))
    return sum(map(values, schema)) if isinstance(schema, list) else 0


def plain(schema: Schema) -> Schema:
    """Return a strict schema without its enumerations."""
    return {key: _plain(part) for key, part in schema.items() if not (key == "enum" and isinstance(part, list))}


def _plain(part: Any) -> Any:
    if isinstance(part, dict):
        return plain(part)
    return list(map(_plain, part)) if isinstance(part, list) else part


def is_free(schema: object) -> bool:
    """Return whether a part of a schema accepts any object."""
    if isinstance(schema, dict):
        return schema.get("additionalProperties") is True or any(map(is_free, schema.values()))
    return isinstance(schema, list) and any(map(is_free, schema))


def resolved(part: Schema, root: Schema) -> object:
    """Resolve a reference within a schema; None if it is broken."""
    target: object = pointed_at("#/" + str(part["$ref"]).removeprefix("#").strip("/"), root)
    return target


def object_of(properties: Schema) -> Schema:
    """Build the schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def or_null(schema: Schema) -> Schema:
    """Extend a schema to allow null."""
    options = schema.get("anyOf", [schema])
    return schema if _NULL in options else {"anyOf": [*options, _NULL]}


def without_nulls(value: Any, part: object, root: Schema, depth: int = 0) -> Any:
    """Leave out members that `or_null` made a model give as null.

    They are those that may be missing, and not be null.
    """
    if not isinstance(part, dict) or not isinstance(value, dict | list) or depth > 2 * _DEEPEST:
        return value
    if "$ref" in part:
        value = without_nulls(value, resolved(part, root), root, depth + 1)
    for branch in part.get("allOf", ()):
        value = without_nulls(value, branch, root, depth + 1)
    options = (*part.get("anyOf", ()), *part.get("oneOf", ()))
    if options:
        value = _by_options(value, options, root, depth + 1)
    if isinstance(value, list):
        return [without_nulls(element, part.get("items"), root, depth + 1) for element in value]
    if not isinstance(value, dict):
        return value
    members, required = part.get("properties", {}), part.get("required", ())
    return {
        name: without_nulls(member, members.get(name), root, depth + 1)
        for name, member in value.items()
        if member is not None or name in required or name not in members or _may_be_null(members[name], root)
    }


def _by_options(value: Any, options: Iterable[object], root: Schema, depth: int) -> Any:
    """Leave out members by the first option that the rest fits.

    A value that fits an option stays as it is. If it fits none, all options apply.
    """
    import jsonschema
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    checker = jsonschema.Draft202012Validator(root, registry=Registry())  # fetches no references
    try:
        if any(checker.evolve(schema=option).is_valid(value) for option in options):
            return value
        for option in options:
            stripped_value = without_nulls(value, option, root, depth)
            if checker.evolve(schema=option).is_valid(stripped_value):
                return stripped_value
    except (re.error, RecursionError, Unresolvable):  # the check of the output tells that the schema is broken
        return value
    for option in options:
        value = without_nulls(value, option, root, depth)
    return value


def _may_be_null(part: object, root: Schema, depth: int = 0) -> bool:
    if not isinstance(part, dict) or depth > _DEEPEST:
        return part is True
    options = (*part.get("anyOf", ()), *part.get("oneOf", ()), *([resolved(part, root)] if "$ref" in part else ()))
    if options:
        return any(_may_be_null(option, root, depth + 1) for option in options)
    if "enum" in part or "const" in part:
        return None in part.get("enum", [part.get("const", "")])
    kinds = part.get("type", "null")
    return "null" in kinds if isinstance(kinds, list) else bool(kinds == "null")


def or_one_of(schema: Schema, references: list[str]) -> Schema:
    """Extend a schema to allow certain references."""
    if not references:
        return schema
    return {"anyOf": [{"type": "string", "enum": references}, *schema.get("anyOf", [schema])]}
