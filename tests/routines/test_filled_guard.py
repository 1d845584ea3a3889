"""Marks stand for the values that a routine fills into an action."""

from __future__ import annotations

import re

import pytest

from callboard.messages import RoutineAction
from callboard.routines._filled_guard import action_guard

TREE = {"name": "may", "rows": [["a"]], "item": {"0": "x", "1": 5}}


def guard_of(arguments, *, has_form=True, **facts):
    return action_guard(RoutineAction(tool="run", arguments=arguments, **facts), 1, TREE, has_form=has_form)


def test_each_reference_to_a_text_gets_a_mark_of_its_own():
    guard = guard_of({"command": "cat ${name} ${name} ${item.0}$${x}", "plain": "a", "nested": [{"a": "${name}"}]})
    assert sorted(guard.texts.values()) == ["may", "may", "may", "x"]
    assert all(len(mark) == 30 and mark.isdecimal() for mark in guard.texts)
    first, second, third, fourth = guard.texts
    assert guard.marked == {"command": f"cat {first} {second} {third}${{x}}", "plain": "a", "nested": [{"a": fourth}]}


@pytest.mark.parametrize("usual", ["april.csv", "a/b-c d.txt", "./x", "*.csv", "-rf", "$HOME", "a;b", "a/", None])
def test_mark_has_the_signs_of_a_plain_usual_value(usual):
    action = RoutineAction(tool="run", arguments={"command": "${name} ${name}"})
    texts = action_guard(action, 1, TREE, has_form=True, usual={"name": usual}).texts
    is_plain = usual in {"april.csv", "a/b-c d.txt", "./x"}
    assert {re.sub("[0-9]{30}", "w", mark) for mark in texts} == {re.sub(r"\w+", "w", usual) if is_plain else "w"}
    numbers = [number for mark in texts for number in re.findall("[0-9]+", mark)]
    assert len(numbers) == len(set(numbers))


def test_value_that_is_no_text_is_filled_in_as_it_is():
    guard = guard_of({"rows": "${rows}", "command": "head -n ${item.1} ${name}"})
    assert guard.marked is not None
    assert guard.marked["rows"] == [["a"]]
    assert list(guard.texts.values()) == ["5", "may"]


def test_action_without_references_has_no_marks():
    assert guard_of({"command": "cat a ${secret:pw}"}).marked is None


def test_action_whose_surface_has_no_forms_has_no_marks():
    guard = guard_of({"text": "${name}"}, has_form=False, relies_on={"${name}.csv": "a file"})
    assert (guard.marked, guard.texts, guard.relies_on) == (None, {}, {"may.csv": "a file"})


def test_missing_value_of_a_fact_is_an_error():
    with pytest.raises(LookupError, match="nowhere"):
        guard_of({}, relies_on={"${month}": "a file"})


def test_facts_that_differ_of_one_name_can_not_hold():
    facts = {"${name}": "a file", "${item.0}": "a file", "may": "missing"}
    assert guard_of({}, relies_on=facts).relies_on == {"may": "both a file and missing", "x": "a file"}
    assert guard_of({}, relies_on={"${name}": "a file", "may": "a file"}).relies_on == {"may": "a file"}
