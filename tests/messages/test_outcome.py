"""Outcomes, causes and usage."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from callboard.messages import Cause, Outcome, PhaseError, Usage

COUNTS = st.integers(min_value=0, max_value=10**9)
USAGES = st.builds(
    Usage,
    steps=COUNTS,
    model_calls=COUNTS,
    input_tokens=COUNTS,
    output_tokens=COUNTS,
    commands=COUNTS,
    repairs=COUNTS,
    seconds=st.integers(min_value=0, max_value=10**6).map(float),
)


@given(USAGES, USAGES)
def test_usages_add_up_field_by_field(one, other):
    both = one + other
    assert {name: getattr(both, name) for name in Usage.model_fields} == {
        name: getattr(one, name) + getattr(other, name) for name in Usage.model_fields
    }


@given(USAGES, USAGES, USAGES)
def test_the_order_of_adding_does_not_matter(one, two, three):
    assert one + two == two + one
    assert (one + two) + three == one + (two + three)


@given(USAGES)
def test_usage_of_zero_changes_no_sum(usage):
    assert usage + Usage() == usage
    assert sum([usage], Usage()) == usage


def test_cause_chain_begins_with_the_error_and_continues_with_its_cause():
    disk = OSError("the disk is full")
    error = PhaseError("action_execution", disk)
    error.__cause__ = disk
    assert Cause.chain(error, where="app/memo/one") == (
        Cause(reason="the actions could not be run: the disk is full", where="app/memo/one", exception="PhaseError"),
        Cause(reason="the disk is full", where="app/memo/one", exception="OSError"),
    )


def test_a_chain_follows_what_was_being_handled_too():
    error = ValueError("b")
    error.__context__ = KeyError("a")
    assert [cause.exception for cause in Cause.chain(error)] == ["ValueError", "KeyError"]


def test_a_chain_ends_where_the_context_was_cut_off():
    error = ValueError("b")
    error.__context__, error.__suppress_context__ = KeyError("a"), True
    assert [cause.exception for cause in Cause.chain(error)] == ["ValueError"]


def test_error_without_a_message_is_named_by_its_class():
    assert Cause.chain(TimeoutError())[0].reason == "TimeoutError"


def test_a_long_chain_is_cut_and_a_circle_ends():
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    assert len(Cause.chain(first)) == 10


def test_even_an_exit_becomes_a_cause():
    assert Cause.chain(SystemExit(3))[0] == Cause(reason="3", exception="SystemExit")


def test_outcome_values_are_their_names_in_lower_case():
    assert [outcome for outcome in Outcome if outcome.value != outcome.name.lower()] == []
