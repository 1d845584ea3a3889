"""Checks: one reading, one expectation, and nothing outside of the workspace."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from callboard.messages import Check, Task

CELLS = {"cells": "report.xlsx!Sales!B8"}


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, "has nothing to read: give exactly one of `cells`, `table`"),
        ({"cells": "a!A1", "table": "b"}, "has 'cells' and 'table': give exactly one"),
        ({**CELLS, "equals": 1, "count": 1}, "has 'equals' and 'count': give one matcher"),
        ({"file": "a", "equals": 1}, "has 'equals' beside `file`"),
        ({"only": ["a"], "matches": "x"}, "has 'matches' beside `only`"),
        ({**CELLS, "target": "memo"}, "has a `target` beside `cells`"),
        ({**CELLS, "args": {"a": 1}}, "has `args` beside `cells`, which takes none"),
        ({**CELLS, "path": "rows.0"}, "'rows.0' is not a JSON pointer: .* `/rows/0`"),
        ({**CELLS, "changed": True}, "has `changed` without `file`"),
        ({**CELLS, "tolerance": 0.1}, "has a `tolerance` without"),
        ({**CELLS, "between": [3, 1]}, "`between` is empty: 3 is larger than 1"),
        ({**CELLS, "between": [1]}, "at least 2 items"),
        ({**CELLS, "matches": "("}, "is not a regular expression: unclosed group"),
        ({**CELLS, "matches": "(?=x)"}, "is not a regular expression: look-around"),
        ({**CELLS, "schema": {"type": "numbr"}}, "is not a JSON Schema"),
        ({**CELLS, "within": -1}, "greater than or equal to 0"),
        ({**CELLS, "source": "model"}, "a check of a task is its own: leave `source` out"),
        ({**CELLS, "show": "everything"}, "'name', 'found' or 'all'"),
        ({**CELLS, "equal": 1}, "Extra inputs are not permitted"),
        ({"control": {"target": "gedit"}}, "names no control: give its `name`, its `kind`, or both"),
        ({"cells": "../private.xlsx!A1"}, "'../private.xlsx' leads out of the workspace"),
        ({"file": "/etc/shadow"}, "'/etc/shadow' leads out of the workspace"),
        ({"text": "~/letter.docx"}, "leads out of the workspace"),
        ({"table": "a/../../b.csv"}, "leads out of the workspace"),
        ({"unchanged": ["a", "C:\\b"]}, "leads out of the workspace"),
        ({**CELLS, "same_as": {"chart": "..\\a.xlsx"}}, "leads out of the workspace"),
        ({**CELLS, "same_as": {"file": "a"}}, "Extra inputs are not permitted"),
    ],
)
def test_a_check_that_makes_no_sense_is_refused(fields, why):
    with pytest.raises(ValidationError, match=why):
        Check(**fields)


@pytest.mark.parametrize(
    ("fields", "title", "expected"),
    [
        ({**CELLS, "equals": 412.5}, "cells report.xlsx!Sales!B8", {"equals": 412.5}),
        ({**CELLS, "same_as": {"table": "a.docx!T"}}, "cells report.xlsx!Sales!B8", {"same_as": "table a.docx!T"}),
        ({**CELLS, "name": "the total"}, "the total", {"exists": True}),
        ({"tool": "read", "target": "memo", "args": {"n": 1}, "path": "/x"}, 'tool read of memo {"n": 1} /x', None),
        ({"control": {"target": "gedit", "name": "Save", "kind": "button"}}, "control 'Save' button of gedit", None),
        ({"only": "a.xlsx"}, "only a.xlsx", {"changed": ["a.xlsx"]}),
        ({"unchanged": ["a", "b"]}, "unchanged a, b", {"changed": []}),
        ({"file": "a", "changed": False}, "file a", {"changed": False}),
        ({"program": "p"}, "program p", {"returns": True}),
        ({**CELLS, "schema": {"type": "number"}}, "cells report.xlsx!Sales!B8", {"schema": {"type": "number"}}),
    ],
)
def test_a_check_is_called_by_its_reading_alone(fields, title, expected):
    check = Check(**fields)
    assert check.title == title
    assert expected in (None, check.expected)


def test_a_task_comes_back_from_its_journal_with_its_checks():
    task = Task(request="x", checks=[{**CELLS, "schema": {"type": "number"}}, {"only": ["a"]}], plan=[])
    again = Task.model_validate_json(task.model_dump_json())
    assert again == task
    assert [check.matcher for check in again.checks] == ["schema", ""]


def test_a_task_has_at_most_a_hundred_checks():
    with pytest.raises(ValidationError, match="at most 100 items"):
        Task(request="x", checks=[CELLS] * 101)
