"""The kinds of requests, which decide who may answer them."""

from __future__ import annotations

import pytest

from callboard.actors.client._task_reports import kind_of_request
from callboard.messages import AskedQuestion, Limit, Question


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({}, "question"),
        ({"id": "t~1~away"}, "question"),
        ({"in_doubt": "t~1.1.0"}, "doubt"),
        ({"machine_away": "finance-3"}, "doubt"),
        ({"limit": Limit(node="t", kind="steps")}, "limit"),
    ],
)
def test_kind_of_a_question_is_read_from_its_fields(fields, kind):
    given = {"id": "ask", "task_id": "t", "run_id": "t~1", "token": 7, "address": "app/a/b"} | fields
    assert kind_of_request(Question(questions=(AskedQuestion(text="which?"),), **given)) == kind
