"""Requests that need an answer, and results that are none."""

from __future__ import annotations

import pytest

from callboard.actors.processing._requested_answer import answer_need, reports_only_the_end


@pytest.mark.parametrize(
    ("request_text", "need"),
    [
        ("How many shelves are in stock?", "words"),
        ("From which year is the lathe?", "words"),
        ("Look at the table. Which of them is cheapest?", "words"),
        ("Is Anna in the list?", "words"),
        ("Read the table of the revenue", "data"),
        ("Please tell me the address of the landlord", "data"),
        ("Could you list the open orders?", "data"),
        ("Find and replace the name", "nothing"),
        ("Could you rename the sheet?", "nothing"),
        ("What is the sum? Write it into B5", "nothing"),
        ("Give the sheet the name Costs", "nothing"),
        ("Draw a chart", "nothing"),
    ],
)
def test_need_for_an_answer_follows_from_the_request(request_text, need):
    assert answer_need(request_text) == need


@pytest.mark.parametrize(
    "result",
    ["it is done", "Done.", "The task is completed!", "OK", "The table has been read", "6 rows, the first ['A', 1]"],
)
def test_report_of_the_end_is_no_answer(result):
    assert reports_only_the_end(result)


@pytest.mark.parametrize(
    "result", ["45", "Yes", "Done: 45", "Anna has finished", "nothing found in 2026", 7, ["ok"], None]
)
def test_answer_is_no_report_of_the_end(result):
    assert not reports_only_the_end(result)
