"""The times of subtasks that were assigned together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.config import term, text
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
            return term("outcome", self.outcome)
        return text("member_waits" if self.begun is None else "member_works")

    @property
    def times(self) -> tuple[str, str]:
        """Its start and its duration; both empty if it did not begin."""
        if self.begun is None:
            return "", ""
        return text("seconds", seconds=self.begun), text("seconds", seconds=self.end - self.begun)

    @property
    def order(self) -> str:
        """Describe those that it comes after; empty if there are none."""
        member = self.assign.member
        if member is None:
            return ""
        any_end = [text("the_end_of", numbers=ranges(member.after_any))] if member.after_any else []
        return ", ".join(([ranges(member.after)] if member.after else []) + any_end)

    def waits(self) -> str:
        """Describe its order and its waits."""
        after = text("member_after", order=self.order) if self.order else ""
        if self.begun is None and self.outcome is None:
            numbers = ranges(self.open_numbers) or text("member_its_turn")
            return text("member_waits_for", after=after, numbers=numbers)
        if self.begun is None:
            not_begun = {"after": after, "reason": self.reason}
            return text("member_not_begun_for", **not_begun) if self.reason else text("member_not_begun", after=after)
        waits = [text("member_waited_for", seconds=self.due, number=self.last)] if self.last else []
        for_turn = self.begun - self.due
        waits += [text("member_waited_its_turn", seconds=for_turn)] if for_turn >= _SHORTEST_WAIT else []
        first, *later = waits or [""]
        waited = text("member_then", first=first, second=later[0]) if later else first
        return text("member_waited", after=after, waits=waited) if waited else after


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
