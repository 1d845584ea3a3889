"""The times of subtasks that were assigned together, as a chart.

It is plain ASCII, so that every terminal shows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.text import Text

from callboard.messages import Outcome
from callboard.terminal._text import BAD, GOOD, plain, print_hanging, ranges

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from callboard.messages import Assign
    from callboard.terminal._task_history import TaskHistory

_NARROWEST_BAR, _WIDEST_BAR = 10, 60
_SHORTEST_WAIT = 0.05
"""The shortest wait that is told, in seconds: it is not 0.0 when it is rounded."""
_LEGEND = "start and duration; = works, . waits for others, - waits for its turn"


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
    def style(self) -> str:
        """The style of its state."""
        return "" if self.outcome is None else GOOD if self.outcome is Outcome.FINISHED else BAD

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

    def bar(self, span: float, width: int) -> str:
        """Draw its waits and its work on a scale of `span` seconds."""

        def column(seconds: float) -> int:
            return round(seconds / span * width)

        begun = self.end if self.begun is None else self.begun
        first = min(column(begun), width - (self.begun is not None))
        wait = "." * min(first, column(self.due))
        work = "" if self.begun is None else "=" * max(1, column(self.end) - first)
        return f"{f'{wait:-<{first}}{work}':<{width}}"


def print_chart(console: Console, history: TaskHistory, assigned: float, group: Sequence[Assign]) -> None:
    """Print the subtasks of a group on a time scale.

    Each has two lines.

    Args:
        console: The terminal.
        history: The task.
        assigned: The time of the assignment.
        group: The subtasks, in the order of their numbers.
    """
    members = _members(history, assigned, group)
    span = max([member.end for member in members] + [0.001])
    states = max(len(member.state) for member in members)
    times = len(f"{span:.1f} s")
    numbers = len(str(group[-1].number))
    bar_width = console.width - (numbers + states + 2 * times + 11)
    bar_width = max(_NARROWEST_BAR, min(_WIDEST_BAR, bar_width))
    console.print(Text(f"subtasks {ranges(assign.number for assign in group)}, assigned together, {span:.1f} s"))
    print_hanging(console, Text(_LEGEND, style="dim"), 2)
    for member in members:
        begun, took = member.times
        line = Text(f"  {member.assign.number:>{numbers}}  ").append(f"{member.state:<{states}}", member.style)
        line.append(f"  {begun:>{times}} {took:>{times}}  |{member.bar(span, bar_width)}|", "default")
        console.print(line, soft_wrap=True)
        details = Text(plain(member.assign.address), "cyan").append(plain(member.waits()), "default")
        print_hanging(console, details, numbers + 4, 2)


def _members(history: TaskHistory, assigned: float, group: Sequence[Assign]) -> list[MemberTimes]:
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
