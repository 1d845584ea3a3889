"""Secrets made of digits are found in values of every type, and in every text form of a number."""

from __future__ import annotations

import datetime as dt
import json
import sys
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import JsonValue

from callboard import messages
from callboard.actors.commands import Secrets
from callboard.config import Redactor
from callboard.config._redactor import JSON_MEMBERS
from callboard.messages import CommandResult, ResultStatus, Secret, Usage

DIGITS = st.from_regex(r"[1-9][0-9]{5,14}", fullmatch=True)
SHORT = st.from_regex(r"[1-9][0-9]{3,4}", fullmatch=True)


def redactor(*secrets):
    return Redactor({secret: f"${{secret:s{number}}}" for number, secret in enumerate(secrets)}, 6)


def in_json(secret, value):
    """Redact a value where a tool answers with it."""
    return redactor(secret).redact({"value": value})["value"]


def typed(secret):
    """Give a secret's number in every type and form."""
    number = int(secret)
    grouped = [f"{number:,}", f"{number:_}", f"{number:,}".replace(",", "."), f"{number:,}".replace(",", "\u202f")]
    written = [secret, f"{number}.0", f"{number:.2f}", f"{number:.{len(secret) - 1}e}", f"{number:.{len(secret) - 1}E}"]
    return [number, -number, float(number), Decimal(number), Decimal(number).scaleb(2).scaleb(-2), *grouped, *written]


def digits(value):
    """Write a value as a sink would, without separators."""
    return "".join(sign for sign in json.dumps(value, default=str) if sign not in " ,._'\u202f\\u")


@given(DIGITS)
@example("48151600")
@example("3000000")
@example("900719925474099")
def test_a_long_number_is_redacted_in_every_type_and_form(secret):
    significant = secret.rstrip("0")
    for value in typed(secret):
        shown = in_json(secret, {"cells": [[value, "x"]], f"k{value}": {value: True}})
        assert "${secret:s0" in str(shown["cells"])
        assert (significant if len(significant) > 5 else secret) not in digits(shown), (value, shown)


@given(SHORT)
@example("10000")
def test_a_short_number_is_redacted_as_a_whole(secret):
    for value in typed(secret):
        assert "${secret:s0" in str(in_json(secret, [value])), value
    assert in_json(secret, [int(secret + "7"), float(f"7.{secret}")]) == [int(secret + "7"), float(f"7.{secret}")]


@pytest.mark.parametrize("zero", ["\uff10", "\u0660", "\u06f0", "\u0966", "\u09e6", "\u0e50"])
@pytest.mark.parametrize("secret", ["48151623", "4815"])
def test_a_number_is_redacted_in_the_digits_of_other_scripts(zero, secret):
    written = "".join(chr(ord(zero) + int(digit)) for digit in secret)
    assert in_json(secret, [f"PIN {written}."]) == ["PIN ${secret:s0}."]
    assert in_json(secret, [f"{written[:-1]}{zero}"]) == [f"{written[:-1]}{zero}"]


@pytest.mark.parametrize("within", ["1{}", "{}7", "{}.5", "0.{}", "12{}34"])
def test_a_long_number_is_redacted_within_others(within):
    number = json.loads(within.format("48151623"))
    assert "48151623" not in str(in_json("48151623", [number]))


@pytest.mark.parametrize("secret", ["4815-1623-42", "4815 1623 42", "0048151623", "4,815,162"])
def test_separators_and_leading_zeros_do_not_matter(secret):
    number = int("".join(sign for sign in secret if sign.isdigit()))
    assert str(in_json(secret, [number, float(number), str(number)])).count("${secret:s0") == 3


@pytest.mark.parametrize(
    ("secret", "value"),
    [
        ("45123", "2023-07-16"),
        ("45123", dt.date(2023, 7, 16)),
        ("45123", dt.datetime(2023, 7, 16, 9, tzinfo=dt.UTC)),
        ("2023-07-16", 45123),
        ("2023-07-16", 45123.0),
        ("2023-07-16", dt.date(2023, 7, 16)),
        ("20230716", "2023-07-16"),
        ("1234.56", 1234.56),
        ("1234,56", 1234.56),
    ],
)
def test_dates_and_decimals_are_redacted_as_numbers(secret, value):
    assert "${secret:s0" in str(in_json(secret, [value]))


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats(), lambda inner: st.lists(inner, max_size=3)))
@example([True, 1, 1.0, 2**70, float("inf"), -0.0])
def test_values_without_the_secret_keep_their_types(value):
    kept = in_json("4815162342108", {"value": [value]})["value"]
    assert repr(kept) == repr([value])


def test_counts_and_times_of_messages_stay_numbers():
    mark = redactor("48151623")
    usage = Usage(input_tokens=48151623, output_tokens=1)
    assert mark.redact(usage) == usage
    assert mark.redact({"tokens": 48151623, "value": 48151623}) == {"tokens": 48151623, "value": "${secret:s0:number}"}


def test_members_with_json_are_those_that_are_redacted():
    classes = [each for each in vars(messages).values() if isinstance(each, type) and hasattr(each, "model_fields")]
    found = {
        name
        for each in classes
        for name, field in each.model_fields.items()
        if field.annotation in {JsonValue, dict[str, JsonValue]}
    }
    structure = {"binds", "data", "output_schema", "sections", "takes"}
    """Names and schemas, and data whose members are redacted."""
    assert found - structure <= JSON_MEMBERS
    typed_as_numbers = {
        name
        for each in classes
        for name, field in each.model_fields.items()
        if field.annotation in {int, float, int | None, float | None}
    }
    assert typed_as_numbers.isdisjoint(JSON_MEMBERS)


def test_a_reference_to_a_number_is_filled_in_as_a_number():
    secrets = Secrets({"pin": Secret(value="48151623"), "word": Secret(value="zebra1")})
    references = {"a": [["${secret:pin:number}"]], "b": "${secret:pin}", "c": "x${secret:pin:number}"}
    filled = secrets.fill("t", {**references, "d": "${secret:word:number}"}, None)
    assert filled == {"a": [[48151623]], "b": "48151623", "c": "x48151623", "d": "zebra1"}
    result = CommandResult(call_id="c", tool="t", status=ResultStatus.SUCCESS, value=[48151623.0])
    assert secrets.redact("t", result).value == ["${secret:pin:number}"]


def calls_of(function):
    """Count the calls of Python functions, which does not depend on the machine's load."""
    count = 0

    def profile(frame, event, argument):
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def test_numeric_secrets_add_little_cost_to_redacting_rows():
    rows = {"value": [[1.5, 2, "x"] for _ in range(500)]}
    words, pins = redactor("correct horse"), redactor("correct horse", "48151623")
    assert calls_of(lambda: pins.redact(rows)) <= calls_of(lambda: words.redact(rows)) * 1.2
