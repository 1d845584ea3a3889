"""How a task ends with what its agents came to again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.actors.replay._result import Difference, Differs
from callboard.actors.root import past_of
from callboard.messages import RoundEnded, SubtaskEnded, TaskResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from callboard.actors.journal import Row
    from callboard.messages import Outcome


def compare_outcome(recorded: TaskResult | None, rows: Sequence[Row]) -> Outcome | None:
    """Hold the task's outcome against the record; None if it was not over.

    Args:
        recorded: How the task ended.
        rows: The task's rows but events, with the words that were made again.

    Raises:
        Differs: If it ends in another way.
    """
    past = past_of([row for row in rows if not isinstance(row.message, TaskResult)], 0.0)
    if recorded is None or past is None:
        return None
    record = past.record
    if past.begun and record.stopping is None:
        return recorded.outcome  # crashes ended it: no agent had the last word
    for ended in past.said.values():
        match ended:
            case RoundEnded():
                record.end_round(ended)
            case SubtaskEnded():
                record.end_subtask(ended.result)
    result = record.result(0.0)
    stopped = record.stopping is not None  # what it broke off of a step is in no word, and so only in the record
    for what in ("outcome",) if stopped else ("outcome", "output", "artifacts"):
        expected, got = getattr(recorded, what), getattr(result, what)
        if expected != got:
            raise Differs(
                Difference(
                    run_id="", address="", step=0, what=f"the task's {what}", expected=str(expected), got=str(got)
                )
            )
    return result.outcome
