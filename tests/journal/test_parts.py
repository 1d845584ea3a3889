"""Parts of messages are found by the types of the fields, and exchanged wherever they stand."""

from __future__ import annotations

import pytest

from callboard.journal._parts import exchanged, holders
from callboard.messages import Captured, Event, Observation, StepDone, StepRecord, TaskResult, check_depth


def test_only_messages_that_can_have_a_part_are_searched_for_one():
    assert [holders(Event, kind) for kind in (bytes, Observation)] == [(), ()]
    assert [holders(StepDone, kind) for kind in (bytes, Observation)] == [("record",), ("record",)]
    assert holders(StepRecord, bytes) == ("observation", "results")
    assert holders(StepRecord, Observation) == ("observation",)
    assert holders(TaskResult, Observation) == ("subtasks",)


def test_a_message_without_such_a_part_stays_the_same_object():
    message = Captured(observation=Observation(text="x"))
    assert exchanged(message, {bytes: lambda _: None}) is message


@pytest.mark.parametrize(("levels", "refused"), [(199, False), (250, True)])
def test_json_too_deep_to_read_back_is_refused(levels, refused):
    text = b"[" * levels + b"]" * levels
    if refused:
        with pytest.raises(ValueError, match="recursion limit"):
            check_depth(text)
    else:
        check_depth(text)
    check_depth(b"[" * 3 + b'"' + b"[" * 500 + b'"' + b"]" * 3)  # within a text they nest nothing
