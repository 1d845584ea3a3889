"""Pure JSON is returned as it would be read back; everything else is refused."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from collections import OrderedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue, TypeAdapter

from callboard.messages import Cause, Effect, as_json

_JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)
_PARTS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(_PARTS | _TEXTS, lambda part: st.lists(part) | st.dictionaries(_TEXTS, part), max_leaves=20)


@given(VALUES)
def test_json_is_given_as_it_is(value):
    try:
        read = as_json(value)
    except ValueError:  # a number of more than 64 bits may be refused
        assert len(repr(value)) >= 19
    else:
        assert read == value
        assert repr(read) == repr(_JSON.validate_python(value))


def _endless() -> list[object]:
    value: list[object] = []
    value.append(value)
    return value


def _deep() -> object:
    value: object = 1
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        [float("inf")],
        (1, 2),
        {"a": (1,)},
        {1: "one"},
        {True: "one"},
        {"a", "b"},
        b"bytes",
        "\ud800x",
        {"\ud800": 1},
        object(),
        dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        decimal.Decimal("1.5"),
        uuid.UUID(int=1),
        Cause(reason="none"),
        _endless(),
        _deep(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_as_json_refuses_values_that_it_can_not_read_back(value):
    with pytest.raises(ValueError, match=r"."):
        as_json(value)


@pytest.mark.parametrize(("value", "plain"), [(Effect.READ, "read"), (OrderedDict(a=1), {"a": 1})])
def test_as_json_gives_plain_types(value, plain):
    read = as_json([value])
    assert read == [plain]
    assert type(read[0]) is type(plain)
