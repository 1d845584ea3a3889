"""The arguments of tools, read from JSON Schemas that may be a third party's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.console._offers import ArgumentTold, arguments_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["properties", "type", "anyOf", "$ref", "$defs", "items", "enum", "required", "default", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("part", "told"),
    [
        ({"type": "string"}, "string"),
        ({"type": ["string", "null"]}, "string | null"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}, {"type": "integer"}]}, "integer | null"),
        ({"enum": ["bar", 3]}, '"bar" | 3'),
        ({"const": "bar"}, '"bar"'),
        ({"type": "array", "items": {"type": "array", "items": {"enum": [1, 2]}}}, "array of (array of (1 | 2))"),
        ({"$ref": "#/$defs/Room"}, "object"),
        ({"$ref": "#/$defs/Unknown"}, "Unknown"),
        ({"$ref": "#/$defs/Self"}, "any"),
        ({}, "any"),
        (True, "any"),
    ],
)
def test_a_type_is_told_in_the_words_of_json_schema(part, told):
    definitions = {"Room": {"type": "object"}, "Self": {"$ref": "#/$defs/Self"}}
    (argument,) = arguments_of({"properties": {"x": part}, "$defs": definitions})
    assert argument == ArgumentTold(name="x", type=told, required=False)


def test_an_argument_has_its_default_and_its_description():
    schema = {"properties": {"x": {"type": "string", "default": "é", "description": "An x."}}, "required": ["x"]}
    assert arguments_of(schema) == (
        ArgumentTold(name="x", type="string", required=True, default='"é"', description="An x."),
    )


@given(JSON)
def test_a_schema_may_be_anything(part):
    schema = {"properties": {"x": part}, "$defs": part, "required": part}
    assert [argument.name for argument in arguments_of(schema)] == ["x"]
    if isinstance(part, dict):
        assert isinstance(arguments_of(part), tuple)
