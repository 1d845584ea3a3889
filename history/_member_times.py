"""The times of subtasks that were assigned together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.history._phrases import ranges

if TYPE_CHECKING:
    from collections.abc import Sequence

    from callboard.history._task_history import TaskHistory
    from callboard.messages import Assign, Outcome

_SHORTEST_WAIT = 0.05
"""The shortest wait that is told, in seconds: it is not 0.0 when it is rounded."""


@dataclass(frozen=True)
class MemberTimes:
    """The times of one subtask, in seconds after its group's assignment."""

    assign: Assign
    due: float
    """When all had ended that it comes after, or the end of the chart."""
    open_numbers: tuple[int, ...]
    """The numbers of those that have not ended."""
    last: int
    """The number of the one that ended last; 0 if it comes after none."""
    begun: float | None
    end: float
    """Its end, or the end of the chart."""
    outcome: Outcome | None
    reason: str = ""

    @property
    def state(self) -> str:
        """Its outcome, or what it does."""
        if self.outcome is not None:
            return self.outcome.value.replace("_", " ")
        return "waiting" if self.begun is None else "working"

    @property
    def times(self) -> tuple[str, str]:
        """Its start and its duration; both empty if it did not begin."""
        return ("", "") if self.begun is None else (f"{self.begun:.1f} s", f"{self.end - self.begun:.1f} s")

    @property
    def order(self) -> str:
        """Describe those that it comes after; empty if there are none."""
        member = self.assign.member
        if member is None:
            return ""
        any_end = [f"the end of {ranges(member.after_any)}"] if member.after_any else []
        return ", ".join(([ranges(member.after)] if member.after else []) + any_end)

    def waits(self) -> str:
        """Describe its order and its waits."""
        after = f", after {self.order}" if self.order else ""
        if self.begun is None and self.outcome is None:
            return f"{after}: waits for {ranges(self.open_numbers) or 'its turn'}"
        if self.begun is None:
            return f"{after}: it did not begin{f', because {self.reason}' if self.reason else ''}"
        parts = [f"{self.due:.1f} s for {self.last}"] if self.last else []
        parts += [f"{self.begun - self.due:.1f} s for its turn"] if self.begun - self.due >= _SHORTEST_WAIT else []
        return f"{after}: waited {', then '.join(parts)}" if parts else after


def member_times(history: TaskHistory, assigned: float, group: Sequence[Assign]) -> list[MemberTimes]:
    """Return the times of the subtasks of a group."""
    ends = {assign.number: history.ended_at[assign.run_id] for assign in group if assign.run_id in history.ended_at}
    latest = max([assigned, *(entry.at for entry in history.entries)])
    latest = latest if history.ended is None else history.ended
    latest = max(ends.values()) if len(ends) == len(group) else latest
    results = {} if history.result is None else {result.run_id: result for result in history.result.subtasks}
    members = []
    for assign in group:
        before = () if assign.member is None else (*assign.member.after, *assign.member.after_any)
        open_numbers = tuple(number for number in before if number not in ends)
        last = max(before, key=lambda number: ends.get(number, latest), default=0)
        begun = history.begun_at.get(assign.run_id)
        result = history.results.get(assign.run_id) or results.get(assign.run_id)
        members.append(
            MemberTimes(
                assign=assign,
                due=ends.get(last, latest if open_numbers else assigned) - assigned,
                open_numbers=open_numbers,
                last=last,
                begun=None if begun is None else begun - assigned,
                end=ends.get(assign.number, latest) - assigned,
                outcome=None if result is None else result.outcome,
                reason="" if result is None or not result.causes else result.causes[0].reason,
            )
        )
    return members
