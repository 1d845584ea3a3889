"""The literals that a request's outcome must contain, and those that do not count."""

from __future__ import annotations

import pytest

from callboard.actors.processing._request_literals import MOST_LITERALS, request_literals
from callboard.actors.processing._requested_answer import AnswerNeed, answer_need


def texts(request):
    return [literal.text for literal in request_literals(request)]


@pytest.mark.parametrize(
    ("request_text", "expected"),
    [
        ('Write "Paid" into cell D3', ["Paid", "D3"]),
        ("Add the heading “Next steps”", ["Next steps"]),
        ("Füge „Anhang“ hinzu", ["Anhang"]),
        ("Add the heading 'Next steps'", ["Next steps"]),
        ("Add a sheet called Archive", ["Archive"]),
        ("Rename the sheet to Costs", ["Costs"]),
        ("Give the sheet the name Budget 2027", ["Budget 2027"]),
        ("Replace Monday with Tuesday everywhere", ["Tuesday"]),
        ("Put a paragraph after the last one that says: The office is closed.", ["The office is closed"]),
        ("Add this paragraph at the end: The next meeting is in June.", ["The next meeting is in June"]),
        ("Change the hours of Anna in the table to 32", ["32"]),
        ("The number of visitors must be 47. Correct it", ["47"]),
        ("Set the amount of order P-8 to 260", ["260"]),
        ("Set B2 to 1,000", ["B2", "1,000"]),
        ("Change the tax to 5%", ["5%"]),
        ("Append a row: Tulip, red, 40, 1,200", ["40", "1,200"]),
        ("Add the item Carpet, quantity 5, price 119", ["5", "119"]),
        ("Write the sum into cell B9", ["B9"]),
        ("Fill the range A1:C5 with zeros", ["A1:C5"]),
        ("Save it as out/report.pdf", ["out/report.pdf"]),
        ("Create summary.xlsx from data.csv", ["summary.xlsx"]),
        ('Save a copy as "May report.docx"', ["May report.docx"]),
    ],
)
def test_literal_of_a_request_is_found(request_text, expected):
    assert texts(request_text) == expected


@pytest.mark.parametrize(
    "request_text",
    [
        "Delete the rows above 500",
        "Sort the table by price, the highest first",
        "Show all amounts with two decimals",
        "Round the amounts to 2 decimals",
        "Keep the top 10 rows, from 5 to 15",
        "Go through pages 3 to 7",
        "Add up to 5 rows",
        "Add a bold line of 12 pt",
        "Append 5 rows to it",
        'Do not change "Total"',
        'Rename everything except "Total"',
        "Don't touch cell B2",
        'Write a word such as "late"',
        'Write "high" if the sum is above 100, otherwise "low"',
        'When there is no header, write "Header"',
        'Use "yes" or "no"',
        'Run "ls -la /srv"',
        "Run `pytest -q` and fix it",
        'Name each file "{year}.csv"',
        "Read the table in sales.docx",
        "Draw a chart of the data from costs.xlsx",
        "Convert all *.docx files",
        "Change the date to 2026-05-01",
        "The deadline is 4 May now, correct it",
        'Change the date to "May 1, 2026"',
        "Report for Q3 in Q3, printed in A4",
        "The users' names and the clients' ages are wrong",
        'The screens are 5" and 7" wide',
        "Fill the column Total with formulas: pieces times unit price",
    ],
)
def test_literal_in_doubt_does_not_count(request_text):
    assert texts(request_text) == []


def test_exception_counts_for_its_own_clause():
    assert texts('Do not change "Total", but set "Rest" to 5') == ["Rest", "5"]


def test_literals_are_unique_and_limited():
    assert texts('Write "a" and "a"') == ["a"]
    assert len(texts(" ".join(f'"text {number}"' for number in range(50)))) == MOST_LITERALS


@pytest.mark.parametrize("unit", ['"a" ', "add: 1, ", "“", "save ", "what ", "? ", "and ", "to 1 ", "a.b", "'a"])
def test_hostile_request_is_searched_in_bounded_time(unit):
    """A request of a subtask comes from a model, and the search is on the event loop."""
    text = unit * 100_000
    assert len(request_literals(text)) <= MOST_LITERALS
    assert answer_need(text) is AnswerNeed.NOTHING
