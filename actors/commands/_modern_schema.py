"""Convert JSON Schemas of older drafts to the draft of 2020.

Third parties' tools have schemas of any draft, and not all name theirs in `$schema`. The old forms of keywords are
invalid in later drafts, so each is converted wherever it occurs.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

from pydantic_core import SchemaError, SchemaValidator, core_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from jsonschema import ValidationError

_SCHEMAS = (
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
)
"""Keywords whose value is a schema."""
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
"""Keywords whose value is a list of schemas."""
_NAMED = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")
"""Keywords whose value has schemas by name."""
_IDS_WITHOUT_DOLLAR = re.compile(r"json-schema\.org/draft-0?[34]/")
_DEEPEST = 100
"""The depth to which a schema is converted."""


def modern(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a schema to the draft of 2020.

    Parts that no draft allows stay as they are.
    """
    keywords = {name: part for name, part in schema.items() if name != "$schema"}
    old_ids = _IDS_WITHOUT_DOLLAR.search(str(schema.get("$schema", ""))) is not None
    converted: dict[str, Any] = _modern(keywords, _DEEPEST, old_ids=old_ids)
    return converted


def _modern(schema: Any, depth: int, *, old_ids: bool) -> Any:
    if not isinstance(schema, dict) or depth == 0:
        return schema
    convert = functools.partial(_modern, depth=depth - 1, old_ids=old_ids)
    new = dict(schema)
    _convert_keywords(new)
    _convert_ids(new, ("id", "$id") if old_ids else ("$id",))
    _convert_dependencies(new)
    _convert_required(new)
    for name in _SCHEMAS:
        if name in new:
            new[name] = convert(new[name])
    for name in _LISTS:
        if isinstance(new.get(name), list):
            new[name] = [convert(part) for part in new[name]]
    for name in _NAMED:
        if isinstance(new.get(name), dict):
            new[name] = {key: convert(part) for key, part in new[name].items()}
    return new


def _convert_keywords(schema: dict[str, Any]) -> None:
    """Convert limits, tuples, divisors and types."""
    for bound, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(schema.get(bound), bool) and schema.pop(bound) and limit in schema:
            schema[bound] = schema.pop(limit)
    if isinstance(schema.get("items"), list):
        schema["prefixItems"] = schema.pop("items")
        if "additionalItems" in schema:
            schema["items"] = schema.pop("additionalItems")
    if "divisibleBy" in schema:
        schema.setdefault("multipleOf", schema.pop("divisibleBy"))
    types = schema.get("type")
    if types == "any" or (isinstance(types, list) and "any" in types):
        del schema["type"]


def _convert_ids(schema: dict[str, Any], names: Iterable[str]) -> None:
    for name in names:
        if isinstance(schema.get(name), str):
            text = schema.pop(name)
            schema.update({"$anchor": text[1:]} if text.startswith("#") else {"$id": text})


def _convert_dependencies(schema: dict[str, Any]) -> None:
    old = schema.get("dependencies")
    if not isinstance(old, dict):
        return
    del schema["dependencies"]
    for name, part in old.items():
        names = [part] if isinstance(part, str) else part
        keyword = "dependentRequired" if isinstance(names, list) else "dependentSchemas"
        schema[keyword] = {**schema.get(keyword, {}), name: names}


def _convert_required(schema: dict[str, Any]) -> None:
    """Convert `required: true` of a property, a form of draft 3."""
    if isinstance(schema.get("required"), bool):
        del schema["required"]
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return
    marked = [name for name, part in properties.items() if isinstance(part, dict) and part.get("required") is True]
    listed = schema.get("required", [])
    if marked and isinstance(listed, list):
        schema["required"] = list(dict.fromkeys([*listed, *marked]))


def validator_of(schema: Mapping[str, Any]) -> Any:
    """Return a validator for a schema; it fetches no references."""
    from referencing import Registry

    return _validator_class()(schema, registry=Registry())


@functools.lru_cache(maxsize=1024)
def _expression(pattern: str) -> SchemaValidator | None:
    """Compile a pattern without backtracking; None if it can't be read."""
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except SchemaError:
        return None


def _matches(pattern: object, text: str) -> bool:
    """Return whether a text matches; unreadable patterns are left to the server."""
    expression = _expression(pattern) if isinstance(pattern, str) else None
    return expression is None or bool(expression.isinstance_python(text))


def _pattern(_: object, pattern: object, instance: object, __: object) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not _matches(pattern, instance):
        yield _validation_error(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: object, _: object
) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for pattern, part in patterns.items():
            if isinstance(pattern, str) and _expression(pattern) is not None:
                for name, value in instance.items():
                    if _matches(pattern, name):
                        yield from validator.descend(value, part, path=name, schema_path=pattern)


def _additional_properties(
    validator: Any, additional: object, instance: object, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    patterns, properties = schema.get("patternProperties", {}), schema.get("properties", {})
    extra_names = [
        name for name in instance if name not in properties and not any(_matches(pattern, name) for pattern in patterns)
    ]
    if isinstance(additional, dict):
        for name in extra_names:
            yield from validator.descend(instance[name], additional, path=name)
    elif additional is False and extra_names:
        yield _validation_error(f"there is no {', '.join(map(repr, extra_names))}")


def _validation_error(text: str) -> ValidationError:
    import jsonschema

    return jsonschema.ValidationError(text)


@functools.cache
def _validator_class() -> Any:
    """Return the class of a validator whose patterns are those of Rust.

    `unevaluatedProperties` still reads them as Python's.
    """
    import jsonschema

    extend: Any = jsonschema.validators.extend
    keywords = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
    }
    return extend(jsonschema.Draft202012Validator, keywords)
