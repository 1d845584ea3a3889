"""The guard of one action, compared with the call that would be made."""

from __future__ import annotations

from callboard.messages import ActionGuard, RoutineMiss, changed_fact

MARKS = {"1" * 30: "may", "2" * 30: "a b"}
GUARD = ActionGuard(step=3, marked={}, texts=MARKS)


def test_marks_are_replaced_in_texts():
    first, second = MARKS
    form = [{"cat": [first, f"x-{second}{first}", 1, None, {"-n": f"{first}9"}]}]
    assert GUARD.changed_form(form, [{"cat": ["may", "x-a bmay", 1, None, {"-n": "may9"}]}]) is None


def test_marks_are_no_keys():
    miss = GUARD.changed_form({next(iter(MARKS)): None}, {"may": None})
    assert str(miss) == (
        "step 3: expected the recorded form of the call with the values 'may', 'a b' in it; "
        'found another form: {"may": null}'
    )


def test_long_forms_are_cut():
    miss = GUARD.changed_form("x", "y" * 1000)
    assert miss is not None
    assert len(miss.found) < 300


def test_form_without_values_must_be_equal():
    guard = ActionGuard(step=1, marked={})
    assert guard.changed_form(["a"], ["a"]) is None
    assert guard.changed_form(["a"], ["b"]) is not None


def test_first_fact_that_differs_is_named():
    assert changed_fact(1, {}, {"a": 1}) is None
    assert changed_fact(1, {"a": "a file"}, {"a": "a file", "b": "missing"}) is None
    assert changed_fact(2, {"a": 1, "b": 2}, {"a": 1, "b": 3}) == RoutineMiss(step=2, expected="'b' to be 2", found="3")
    assert changed_fact(2, {"a": 1}, {}) == RoutineMiss(step=2, expected="'a' to be 1", found="nothing known of it")
