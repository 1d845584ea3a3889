"""Arguments in canonical form, by the JSON Schemas of third parties' tools."""

from __future__ import annotations

import pytest

from callboard.actors.commands._canonical import by_schema, canonical, text_of

NUMBER, TEXT, ANYTHING = {"type": "number"}, {"type": "string"}, {}
TREE = {"type": "object", "properties": {"size": NUMBER, "below": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}}


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (1000, "1000"),
        (1000.0, "1000"),
        (-0.0, "0"),
        (0.5, "0.5"),
        (1e300, "1e+300"),
        (True, "true"),
        (None, "null"),
        ("1e3", "1e3"),
        ([1.0, {"b": 2.0, "a": "x"}], '[1, {"a": "x", "b": 2}]'),
    ],
)
def test_one_value_has_one_text(written, text):
    assert text_of(canonical(written)) == text


@pytest.mark.parametrize(
    ("schema", "given", "value", "exact"),
    [
        (NUMBER, 1e3, 1000, True),
        (TEXT, "1e3", "1e3", True),
        ({"type": ["string", "null"]}, "x", "x", True),
        ({"type": ["string", "integer"]}, "1e3", "1e3", False),  # the server may read a number
        ({"type": ["string", "integer"]}, 1000.0, 1000, True),
        ({"anyOf": [TEXT, {"type": "null"}]}, "x", "x", True),
        ({"anyOf": [TEXT, NUMBER]}, "1e3", "1e3", False),
        ({"anyOf": [TEXT, NUMBER]}, 1e3, 1000, True),
        ({"allOf": [{"$ref": "#/$defs/tree"}]}, {"size": 2.0}, {"size": 2}, True),
        ({"enum": ["fast", 2]}, 2.0, 2, True),
        (ANYTHING, 1e3, 1000, False),
        (True, "x", "x", False),
        ({"type": "object"}, {"free": 1}, {"free": 1}, False),
        ({"type": "array"}, [1.0], [1], False),
        ({"type": "array", "items": NUMBER}, [1.0, 2.5], [1, 2.5], True),
        ({"$ref": "#/$defs/tree"}, {"below": [{"size": 3.0}]}, {"below": [{"size": 3}]}, True),
        ({"$ref": "#/$defs/nowhere"}, 1.0, 1, False),
        ({"$ref": "http://127.0.0.1:1/else"}, 1.0, 1, False),
    ],
)
def test_schema_decides_the_type_of_an_argument(schema, given, value, exact):
    whole = {"properties": {"it": schema}, "$defs": {"tree": TREE}}
    assert by_schema(whole, {"it": given}) == ({"it": value}, frozenset() if exact else {"it"})


def test_defaults_are_filled_in_and_unknown_names_are_inexact():
    schema = {"properties": {"urgent": {"type": "boolean", "default": True}, "note": TEXT}}
    assert by_schema(schema, {"else": 1}) == ({"urgent": True, "else": 1}, {"else"})
    assert by_schema(schema, {"urgent": False}) == ({"urgent": False}, frozenset())


def test_a_schema_that_refers_to_itself_without_end_is_given_up():
    schema = {"properties": {"it": {"$ref": "#/properties/it"}}}
    assert by_schema(schema, {"it": "x"}) == ({"it": "x"}, {"it"})


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/all", "$defs": {"all": {"properties": {"amount": {"type": "integer", "default": 1000}}}}},
        {"allOf": [{"properties": {"amount": {"type": "integer", "default": 1000}}}]},
        {"properties": {"amount": {"$ref": "#/$defs/it"}}, "$defs": {"it": {"type": "integer", "default": 1000}}},
    ],
)
def test_defaults_behind_references_are_filled_in(schema):
    assert by_schema(schema, {}) == ({"amount": 1000}, frozenset())
