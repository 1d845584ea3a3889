"""The steps of an agent that repeats a routine so far."""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.messages import AgentStatus, ResultStatus, RoutineMiss

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from callboard.messages import CommandResult, StepRecord

AGAIN, DONE, STOP = "try again", "it is done, go on", "stop"
"""The answers of a person who is asked about a step that can't be repeated."""


class LeftError(Exception):
    """The routine is left at a step."""

    def __init__(
        self, number: int, expected: str, found: str, *, place: int = 0, is_over: bool = False, by_guard: bool = False
    ) -> None:
        """Create it.

        Args:
            number: The number of the step in the list.
            expected: The recorded fact.
            found: The present one.
            place: The place of the step if it was done; 0 for the next step, which was not.
            is_over: Whether there are no more steps, though the work is not over.
            by_guard: Whether the guard of the next step does not hold.
        """
        self.miss = RoutineMiss(step=number, expected=expected, found=found)
        self.place = place
        self.is_over = is_over
        self.by_guard = by_guard


@dataclass(frozen=True)
class RoutineProgress:
    """The steps of an agent so far.

    Their places never decrease: a step that is tried again, or resumed after an approval, keeps its own. So the steps
    of a place are found without a walk through all of them, and there may be thousands.
    """

    records: Sequence[StepRecord]
    replies: Sequence[str]
    """A person's answers to the question with which the last step ended; empty without any."""

    @property
    def asked(self) -> bool:
        """True if the last step asked a person."""
        return bool(self.records) and self.records[-1].decision.status == AgentStatus.PENDING

    @property
    def reply(self) -> str:
        """A person's choice of those that the last step offered; or empty."""
        questions = self.records[-1].decision.questions if self.asked else ()
        offered = {choice for question in questions for choice in question.choices} - {STOP}
        return next((reply for reply in self.replies if reply in offered), "")

    @property
    def place(self) -> int:
        """The place of the next step."""
        if self.asked:
            return _place_of(self.records[-1]) + (self.reply == DONE)
        return 1 + (_place_of(self.records[-1]) if self.records else 0)

    def open_end(self) -> str:
        """Say why the work is not over after the last step."""
        refused = [check.name for record in self.records[-1:] for check in record.failed_checks]
        if refused:
            return f"a check that does not hold: {refused[0]}"
        return "the agent asked once more"

    def records_of(self, place: int) -> Sequence[StepRecord]:
        """Return the steps of a place."""
        begin = bisect.bisect_left(self.records, place, key=_place_of)
        return self.records[begin : bisect.bisect_right(self.records, place, begin, key=_place_of)]

    def results_of(self, place: int) -> list[CommandResult] | None:
        """Return the results of a step; None if it was not done.

        Those after an approval are included; of a repeated step, the latest count.
        """
        results: list[CommandResult] | None = None
        for record in self.records_of(place):
            if record.resumed:
                results = [*(results or ()), *record.results]
            elif record.decision.status != AgentStatus.PENDING:
                results = [*record.results]
        return results

    def choices(self, error: LeftError, once: Collection[str]) -> list[str]:
        """List the answers that a person may choose from.

        None does an action twice that must not be repeated.
        """
        results = self.results_of(error.place) or ()
        ran = {result.tool for result in results if result.status != ResultStatus.SKIPPED}
        assigns = any(record.decision.status == AgentStatus.ASSIGN for record in self.records_of(error.place))
        again = [] if assigns or not ran.isdisjoint(once) else [AGAIN]
        return [*again, *([] if error.is_over else [DONE]), STOP]


def _place_of(record: StepRecord) -> int:
    return record.decision.routine_step
