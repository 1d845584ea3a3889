"""Numbers in texts: read where there is no doubt, left alone otherwise."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.surfaces._numbers import Number, are_numbers, is_ambiguous, is_numeric, parse_number, separator_of

AMOUNTS = st.decimals(min_value=0, max_value=10**12, places=2, allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("0", 0, ""), ("1200", 1200, ""), ("-7", -7, ""), ("\u22127", -7, ""),
        (" 12.75 ", 12.75, ""), ("12,75", 12.75, ""),
        ("1,234.50", 1234.5, ""), ("1.234,50", 1234.5, ""), ("1,234,567", 1234567, ""), ("1'234.50", 1234.5, ""),
        ("1\u00a0234,50", 1234.5, ""), ("1\u202f234", 1234, ""), ("0,500", 0.5, ""), ("1234,567", 1234.567, ""),
        ("12 %", 0.12, "%"), ("-3.5%", -0.035, "%"), ("+3.5 %", 0.035, "%"), ("$1,234.50", 1234.5, "$"),
        ("1.234,50 €", 1234.5, "€"), ("-€5", -5, "€"), ("$-5.25", -5.25, "$"),
        ("EUR 20", 20, "EUR"), ("12.00", 12.0, ""), ("1\u2009234,50 Kč", 1234.5, "Kč"), ("R$ 5,25", 5.25, "R$"),
        ("₹1,200.50", 1200.5, "₹"), ("25,5 kr", 25.5, "kr"),
    ],
)  # fmt: skip
def test_a_number_without_doubt_is_read(text: str, value: float, unit: str) -> None:
    assert parse_number(text) == Number(value, unit)


@pytest.mark.parametrize(
    "text",
    ["", "-", "n/a", "1,234", "1.234", "€ 1.200", "007", "1/2", "3-5", "10:30", "2024-05-31", "1.2.2024", "31.12.2024",
     "1e5", "(12)", "(1,234.50)", "+491701234567", "+5", "1,23,456.00", "1 234", "12 345 678", "1234567890123456",
     "١٢", "½", "12 apples", "$12 EUR", "--5", "-$-5", "1,234.5.6", "5 %%", "192.168.100.200", "1,2,3", "- 5", "00"],
)  # fmt: skip
def test_ambiguous_numbers_stay_text(text: str) -> None:
    assert parse_number(text) is None


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("(1,200.00)", -1200, ""), ("(12)", -12, ""), ("300-", -300, ""), ("1 234,50", 1234.5, ""), ("1 234", 1234, ""),
        ("12 345 678", 12345678, ""), ("1E5", 100000, ""), ("-2.5e-3", -0.0025, ""), ("(€ 5,50)", -5.5, "€"),
        ("(3 %)", -0.03, "%"), ("(3) %", -0.03, "%"), ("1 200,50- €", None, ""), ("1.200,50-", -1200.5, ""),
        ("(1 234,50)", -1234.5, ""), ("((5))", None, ""), ("(-5)", None, ""), ("5--", None, ""), ("3-5", None, ""),
        (".5", 0.5, ""), ("-,25", -0.25, ""), ("\u2013500", -500, ""), ("\uff0d20", -20, ""),
        ("\u25b21,200.5", -1200.5, ""), ("1,23,456.00", 123456, ""), ("\uff11\uff12\uff13", 123, ""),
        ("\u0661\u0662", 12, ""), ("\u202d400\u202c", 400, ""),
        ("1E5E2", None, ""), ("()", None, ""), ("12 34", None, ""), ("1 23 456", None, ""), ("10 30.5.2", None, ""),
    ],
)  # fmt: skip
def test_more_forms_are_read_among_numbers(text: str, value: float | None, unit: str) -> None:
    assert parse_number(text, loose=True) == (None if value is None else Number(value, unit))
    assert parse_number(text) is None
    assert is_ambiguous(text) == (value is not None)


def test_a_column_holds_numbers_if_one_is_beyond_doubt() -> None:
    assert are_numbers(["5,25", "1 234,50", "", "(3)"], ",")
    assert not are_numbers(["1E5", "2E7"], None)
    assert not are_numbers(["5,25", "1E5", "A12"], ",")
    assert not are_numbers([], None)


def test_a_text_is_numeric_by_its_signs() -> None:
    assert all(map(is_numeric, ["1,23,456.00", "007", "10:30", "1 23", "$ 5..3", "(7)"]))
    assert all(map(is_numeric, ["19,\u2013", "12.--", "~400", "<5", "200*", "7 \u2030"]))
    assert not any(map(is_numeric, ["apples", "12 apples", "", "-", "A1"]))


def test_known_separator_resolves_ambiguous_numbers() -> None:
    assert parse_number("1,234", ".") == Number(1234)
    assert parse_number("1,234", ",") == Number(1.234)
    assert parse_number("1.234,50", ".") is None
    assert is_ambiguous("€ 1.200")
    assert not is_ambiguous("12.75")
    assert not is_ambiguous("apples")


def test_the_separator_is_learnt_only_from_unmistakable_numbers() -> None:
    assert separator_of(["1,234", "12.75"]) == "."
    assert separator_of(["1.234", "12,75"]) == ","
    assert separator_of(["1,234", "5"]) is None
    assert separator_of(["12.75", "12,75"]) is None


@given(AMOUNTS)
def test_amounts_as_they_are_written_in_english_are_read_back(amount: Decimal) -> None:
    assert parse_number(f"{amount:,.2f}") == Number(float(amount))


@given(AMOUNTS)
def test_amounts_as_they_are_written_in_german_are_read_back(amount: Decimal) -> None:
    text = f"{amount:,.2f}".replace(",", " ").replace(".", ",").replace(" ", ".")
    assert parse_number(text) == Number(float(amount))


@given(st.text(alphabet="0123456789.,-+%€$ '()x", max_size=12), st.sampled_from([None, ".", ","]))
def test_no_text_makes_the_reader_fail_or_lose_digits(text: str, separator: str | None) -> None:
    number = parse_number(text, separator)  # type: ignore[arg-type]
    if number is not None and number.unit != "%":
        digits = "".join(filter(str.isdigit, text)).strip("0")
        assert "".join(filter(str.isdigit, f"{Decimal(str(number.value)):f}")).strip("0") == digits


@given(st.from_regex(r"[1-9][0-9]{0,2}[.,][0-9]{3}", fullmatch=True))
def test_one_group_of_three_is_never_guessed(text: str) -> None:
    assert parse_number(text) is None
    assert is_ambiguous(text)
