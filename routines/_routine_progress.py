"""The steps of an agent that repeats a routine so far."""

from __future__ import annotations

import functools
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
    """The steps of an agent so far."""

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
            return self.records[-1].decision.routine_step + (self.reply == DONE)
        return 1 + max((record.decision.routine_step for record in self.records), default=0)

    def open_end(self) -> str:
        """Say why the work is not over after the last step."""
        refused = [check.name for record in self.records[-1:] for check in record.failed_checks]
        if refused:
            return f"a check that does not hold: {refused[0]}"
        return "the agent asked once more"

    @functools.cached_property
    def results(self) -> dict[int, list[CommandResult]]:
        """The results of the steps by place.

        Those after an approval are included; of a repeated step, the latest count.
        """
        results: dict[int, list[CommandResult]] = {}
        for record in self.records:
            place = record.decision.routine_step
            if record.resumed:
                results.setdefault(place, []).extend(record.results)
            elif record.decision.status != AgentStatus.PENDING:
                results[place] = [*record.results]
        return results

    def choices(self, error: LeftError, once: Collection[str]) -> list[str]:
        """List the answers that a person may choose from.

        None does an action twice that must not be repeated.
        """
        done = [record for record in self.records if record.decision.routine_step == error.place]
        ran = {result.tool for result in self.results.get(error.place, ()) if result.status != ResultStatus.SKIPPED}
        assigns = any(record.decision.status == AgentStatus.ASSIGN for record in done)
        again = [] if assigns or not ran.isdisjoint(once) else [AGAIN]
        return [*again, *([] if error.is_over else [DONE]), STOP]
