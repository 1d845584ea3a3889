"""The form of a result is kept; its values may differ."""

from __future__ import annotations

import pytest

from callboard.messages import CommandResult, Effect, ExpectedResult, ResultStatus
from callboard.routines import check_result, expected_of

DONE = ResultStatus.SUCCESS


def result(value: object = None, *, effect: Effect = Effect.READ, status: ResultStatus = DONE, error: str = ""):
    return CommandResult(call_id="1", tool="read_table", status=status, effect=effect, value=value, error=error)


def test_other_values_have_the_same_form():
    expected = expected_of(result({"rows": [[1]], "header": ["a"]}))
    assert expected == ExpectedResult(changes=False, members=("header", "rows"))
    assert check_result(expected, result({"header": ["b"], "rows": [[2], [3]]})) == ""
    assert check_result(expected_of(result("a")), result("b")) == ""
    assert check_result(expected_of(result([1])), result(None)) == ""


@pytest.mark.parametrize(
    ("recorded", "now", "reason"),
    [
        (result(), result(status=ResultStatus.FAILURE, error="it is locked"), "read_table failed: it is locked"),
        (result(), result(status=ResultStatus.SKIPPED), "read_table was not done"),
        (result(effect=Effect.ONCE), result(), "read_table changed nothing, unlike the recorded call"),
        (result(), result(effect=Effect.ONCE), "read_table changed something, unlike the recorded call"),
        (result({"rows": []}), result([]), "read_table answered no object instead of an object"),
        (result([]), result({"rows": []}), "read_table answered an object instead of no object"),
        (result({"rows": [], "sheet": ""}), result({"rows": []}), "read_table answered without sheet"),
        (
            result({"cells": 1}, effect=Effect.ONCE),
            result({"cells": 1, "warning": "x"}, effect=Effect.ONCE),
            "read_table answered with warning, unlike the recorded call",
        ),
    ],
)
def test_another_form_is_named(recorded, now, reason):
    assert check_result(expected_of(recorded), now) == reason


def test_more_members_of_an_answer_that_was_only_read_do_not_count():
    assert check_result(expected_of(result({"text": "a"})), result({"text": "b", "attachments": []})) == ""


def test_a_dry_run_has_the_expected_form():
    expected = expected_of(result({"cells": 1}, effect=Effect.ONCE))
    assert check_result(expected, result(status=ResultStatus.DRY_RUN)) == ""
