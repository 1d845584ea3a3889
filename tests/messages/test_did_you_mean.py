"""The hint at the name that a wrong one resembles."""

import pytest

from callboard.messages import AgentKind, did_you_mean


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("stps", ["steps", "seconds"], "; did you mean 'steps'?"),
        ("hots", AgentKind, "; did you mean 'host'?"),
        ("stps", {"steps": 1}, "; did you mean 'steps'?"),
        ("colour", ["steps", "seconds"], "; known: steps, seconds"),
        ("colour", [], "; known: steps, seconds"),
    ],
)
def test_an_error_ends_with_the_similar_name_or_with_all(name, known, hint):
    assert did_you_mean(name, known, "known: steps, seconds") == hint


def test_without_a_similar_name_and_another_end_there_is_no_hint():
    assert did_you_mean("colour", ["steps"]) == ""


def test_the_similar_name_is_shown_as_the_caller_wants():
    assert did_you_mean("STPS", ["STEPS"], show="CALLBOARD_{}".format) == "; did you mean CALLBOARD_STEPS?"


def test_a_cutoff_decides_how_similar_a_name_must_be():
    assert did_you_mean("offer.docx", ["office.doc"], cutoff=0.9) == ""
    assert did_you_mean("offer.docx", ["zebra"], cutoff=0) == "; did you mean 'zebra'?"


def test_very_long_name_has_no_suggestion():
    assert did_you_mean("x" * 1_001, ["x" * 1_000], "known: x") == "; known: x"
