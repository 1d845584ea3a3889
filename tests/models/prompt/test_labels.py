"""Labels of controls and targets: names, and ids where names are not unique."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.messages import Control
from callboard.models import chosen, labelled


def controls(*pairs):
    return [Control(id=key, name=name, kind="field") for key, name in pairs]


@pytest.mark.parametrize(
    ("pairs", "labels"),
    [
        ([("a-1", "Sales")], ["Sales"]),
        ([("a-1", "Sales"), ("a-2", "Costs")], ["Sales", "Costs"]),
        ([("a-1", "Sales"), ("a-2", "Sales")], ["Sales [a-1]", "Sales [a-2]"]),
        ([("a-1", "")], ["a-1"]),
        ([("a-1", ""), ("a-2", "")], ["a-1", "a-2"]),
        ([("a-1", "a-2"), ("a-2", "Costs")], ["a-2 [a-1]", "Costs"]),
        ([("a-1", "a-1")], ["a-1"]),
        ([("a-1", "two\n lines")], ["two lines"]),
        ([("a-1", "x" * 90)], [f"{'x' * 79}… [a-1]"]),
        ([("c1", "Pay [c3]"), ("c2", "Pay"), ("c3", "Pay")], ["Pay [c3] [c1]", "Pay [c2]", "Pay [c3]"]),
        ([("c2", "Pay"), ("c3", "Pay"), ("Pay [c2]", "Stop")], ["c2", "Pay [c3]", "Stop"]),
        ([("b] [c", "a"), ("c", "a [b]"), ("d", "a"), ("e", "a [b]")], ["b] [c", "c", "a [d]", "a [b] [e]"]),
    ],
)
def test_a_label_is_the_name_where_that_is_enough(pairs, labels):
    assert list(labelled(controls(*pairs))) == labels


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("Sales", "a-1"),
        ("a-1", "a-1"),
        (" sales ", "a-1"),
        ("Costs [a-3]", "a-3"),
        ("Costs", None),
        ("Prices", None),
        ("", None),
    ],
)
def test_chosen_control_is_found_by_label_id_or_unique_name(said, found):
    control = chosen(labelled(controls(("a-1", "Sales"), ("a-2", "Costs"), ("a-3", "Costs"))), said)
    assert (control and control.id) == found


marks = st.text("ab[] ", max_size=9)
names = st.one_of(
    st.lists(st.tuples(words, longer), unique_by=lambda pair: pair[0])
    for words, longer in ((st.text(max_size=5), st.text(max_size=100)), (marks, marks))
)


@given(names)
def test_every_control_has_a_label_by_which_it_is_found(pairs):
    labels = labelled(controls(*pairs))
    assert [control.id for control in labels.values()] == [key for key, _ in pairs]
    assert all(chosen(labels, label) is control for label, control in labels.items() if label == label.strip())
