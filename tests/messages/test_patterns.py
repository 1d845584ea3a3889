"""Patterns of rules.

They match the whole text without backtracking; unknown syntax has a clear error.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard import Settings
from callboard.config import fits
from callboard.messages import SettingsError, expression_size


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("re:pay|send", "pay", True),
        ("re:pay|send", "pay_all", False),
        ("re:a.b", "a\nb", True),
        ("re:a", "a\n", False),
        ("re:(?i)delete_.*", "Delete_all", True),
        (r"re:\w+", "größe", True),
        (r"re:\d+", "12a", False),
        ("re:", "", True),
        ("re:", "x", False),
        ("delete_*", "delete_all", True),
        ("delete_*", "Delete_all", False),
        ("[dD]elete?", "Delete1", True),
    ],
)
def test_a_pattern_fits_the_whole_text(pattern, text, expected):
    assert fits(pattern, text) is expected


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("(", "unclosed group"),
        ("a)(b", "unopened group"),
        ("(?=a)b", "look-around, including look-ahead and look-behind, is not supported"),
        ("(?<!a)b", "look-around, including look-ahead and look-behind, is not supported"),
        (r"(a)\1", "backreferences are not supported"),
        ("(a{1000}){1000}", "Compiled regex exceeds size limit of 10485760 bytes"),
    ],
)
@pytest.mark.parametrize("where", ["tool", "arguments"])
def test_an_expression_that_is_not_known_is_refused_with_its_place(expression, why, where):
    pattern = f"re:{expression}"
    rule = {"verdict": "deny", where: {"path": pattern} if where == "arguments" else pattern}
    with pytest.raises(SettingsError) as refused:
        Settings.load(policy=[{"verdict": "allow"}, rule])
    place = "policy.rules.1.arguments.path" if where == "arguments" else "policy.rules.1.tool"
    assert place in str(refused.value)
    assert f"is not a regular expression: {why}" in str(refused.value)


@pytest.mark.parametrize("expression", [r"(\w+\s?)*!", r"(a|a)*b", r"(a*)*c", r"(.*)*d"])
def test_no_expression_takes_longer_than_its_text(expression):
    assert fits(f"re:{expression}", "a" * 100_000) is False  # Python's engine would not come back


@given(st.text(alphabet=st.characters(), max_size=30))
def test_any_text_can_be_asked_about(text):
    assert fits("re:.*", text) is True
    assert fits("re:[^\\x00-\\x{10ffff}]+", text) is False


def test_half_of_a_surrogate_pair_is_asked_about_as_unknown():
    assert fits("re:a.*", "a\ud800") is True


@pytest.mark.parametrize(
    ("expression", "size"),
    [("", 0), ("^0$", 3), (r"\d{4}-\d{2}", 7), ("[01]{80}", 83), ("a{2,}b", 3), (r"\{3\}", 3), ("(ab|c){3}", 12),
     ("a{3}{4}", 12), ("((ab){2}c){3}", 15), ("a)", 2)],
)  # fmt: skip
def test_the_size_of_an_expression_counts_its_repetitions(expression, size):
    assert expression_size(expression) == size
