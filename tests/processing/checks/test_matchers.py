"""Matchers: the comparison of a value with an expectation."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.actors.processing.checks._matchers import MISSING, difference, holds, is_empty, same, value_at
from callboard.messages import Check

ROWS = [["Region", "Q1"], ["North", 412.5], ["South", "298.00"]]


def check(**matcher):
    return Check(cells="report.xlsx!A1", **matcher)


@pytest.mark.parametrize(
    ("found", "matcher", "held"),
    [
        (412.5, {"equals": 412.5}, True),
        (412.5, {"equals": "412.50"}, True),
        (0.1 + 0.2, {"equals": 0.3}, True),
        (412.5, {"equals": 412.6}, False),
        (412.5, {"equals": 412.6, "tolerance": 0.2}, True),
        ("Bob ", {"equals": "Bob"}, True),
        ("bob", {"equals": "Bob"}, False),
        ("007", {"equals": 7}, False),
        ("7 EUR", {"equals": "7 USD"}, False),
        ("7 EUR", {"equals": 7}, True),
        (True, {"equals": 1}, False),
        (True, {"equals": True}, True),
        (1, {"equals": True}, False),
        ([[1, 2, 3]], {"equals": [1, 2, 3]}, True),
        ([[1], [2], [3]], {"equals": [1, 2, 3]}, True),
        ([[7]], {"equals": 7}, True),
        ([1, 2], {"equals": [2, 1]}, False),
        ([1, 2], {"equals": [1, 2, 3]}, False),
        ({"kind": "bar", "at": "G2"}, {"equals": {"kind": "bar"}}, False),
        ([None, ""], {"equals": ["", None]}, True),
        (99.9999, {"approx": 100, "tolerance": 0.001}, True),
        (99.99, {"approx": 100}, False),
        ("1,000.5", {"approx": 1000.5}, True),
        ("about a thousand", {"approx": 1000}, False),
        ("Dear Ms  Kim,", {"contains": "Ms Kim"}, True),
        ("Dear Ms Kim", {"contains": "Mr"}, False),
        (ROWS, {"contains": ["North", 412.5]}, True),
        (ROWS, {"contains": 298}, True),
        (ROWS, {"contains": ["East", 1]}, False),
        (["North", "South"], {"contains": ["South", "North"]}, True),
        ({"kind": "bar", "ranges": ["Sales!B2:B5", "Sales!C2:C5"]}, {"contains": {"ranges": ["Sales!B2:B5"]}}, True),
        ({"kind": "bar", "ranges": ["Sales!B2:B5"]}, {"contains": {"kind": "line"}}, False),
        ({"kind": "bar"}, {"contains": "bar"}, False),
        ("12 errors", {"matches": r"^\d+ errors$"}, True),
        ("no errors", {"matches": r"^\d+"}, False),
        (12, {"matches": "^12$"}, True),
        ([1, 2], {"matches": "1"}, False),
        ("a" * 50_000 + "!", {"matches": "(a+)+$"}, False),
        (3, {"between": [1, 3]}, True),
        ("3.5", {"between": [1, 3]}, False),
        (None, {"between": [0, 3]}, False),
        ("b", {"one_of": ["a", "b"]}, True),
        (3, {"one_of": ["a", "3.0"]}, True),
        (ROWS, {"count": 3}, True),
        (5, {"count": 5}, False),
        ({}, {"is_empty": True}, True),
        ([["", None]], {"is_empty": True}, True),
        (0, {"is_empty": True}, False),
        ("x", {"is_empty": False}, True),
        (None, {}, False),
        (0, {}, True),
        (None, {"exists": False}, True),
        (ROWS, {"schema": {"type": "array", "items": {"type": "array", "minItems": 2}}}, True),
        (ROWS, {"schema": {"type": "object"}}, False),
        ("a" * 50_000 + "!", {"schema": {"type": "string", "pattern": "^(a+)+$"}}, False),
        (MISSING, {"exists": False}, True),
        (MISSING, {"is_empty": True}, False),
        (MISSING, {"equals": "nothing"}, False),
        (MISSING, {"contains": "a"}, False),
        (MISSING, {"schema": {"type": "string"}}, False),
        ([[None], [""]], {}, False),
        ("#N/A", {}, False),
        ([["x"], ["112 pieces"]], {"contains": ["x", "12"]}, False),
        ({"ranges": ["Sales!B2:B50"]}, {"contains": {"ranges": ["Sales!B2:B5"]}}, False),
        (491511234567890, {"equals": 491511234567999}, False),
        ("491511234567890", {"equals": "491511234567999"}, False),
        (491511234567890.0, {"equals": "491511234567890"}, True),
        (0.1 + 0.2 - 0.3, {"equals": 0}, True),
        (0, {"equals": 1e-10}, False),
        (0, {"approx": 9e-7}, False),
        ({"a": [1], "a/²": 1}, {"equals": {"a": [1], "a/²": 2}}, False),
    ],
)
def test_a_value_is_as_expected_or_not(found, matcher, held):
    assert holds(check(**matcher), found) is held


@pytest.mark.parametrize(
    ("value", "path", "found"),
    [
        ({"rows": ROWS}, "/rows/1/1", 412.5),
        (ROWS, "/-1/0", "South"),
        (ROWS, "", ROWS),
        (ROWS, "/3", MISSING),
        (ROWS, "/first", MISSING),
        ({"a/b": {"~": 1}}, "/a~1b/~0", 1),
        ("text", "/0", MISSING),
        (None, "/0", MISSING),
    ],
)
def test_a_pointer_leads_into_an_answer_or_nowhere(value, path, found):
    assert value_at(value, path) == found


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab 1.,", max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=2),
    max_leaves=6,
)


@given(JSON)
def test_every_value_is_the_same_as_itself(value):
    assert same(value, json.loads(json.dumps(value)))


@given(JSON, JSON)
def test_two_values_are_the_same_in_either_order(one, other):
    assert same(one, other) is same(other, one)


@given(st.lists(st.lists(st.integers(0, 3), min_size=2, max_size=2), min_size=2, max_size=3), JSON)
def test_a_difference_leads_to_parts_that_differ(rows, other):
    changed = [*rows[:-1], [rows[-1][0], other]]
    path = difference(rows, changed)
    if same(rows, changed):
        assert path == ""
    else:
        assert not same(value_at(rows, path), value_at(changed, path))
        assert path == f"/{len(rows) - 1}/1" or is_empty(other) or isinstance(other, list | dict)


@given(st.floats(-1e9, 1e9), st.floats(0, 1e3), st.floats(0, 10))
def test_a_tolerance_is_the_largest_difference(number, difference, tolerance):
    other = number + difference
    assert same(number, other, tolerance) is (abs(other - number) <= tolerance)
