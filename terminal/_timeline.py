"""The times of subtasks that were assigned together, as a chart.

It is plain ASCII, so that every terminal shows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from callboard.history import member_times, plain, ranges
from callboard.messages import Outcome
from callboard.terminal._text import BAD, GOOD, print_hanging

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from callboard.history import MemberTimes, TaskHistory
    from callboard.messages import Assign

_NARROWEST_BAR, _WIDEST_BAR = 10, 60
_LEGEND = "start and duration; = works, . waits for others, - waits for its turn"


def print_chart(console: Console, history: TaskHistory, assigned: float, group: Sequence[Assign]) -> None:
    """Print the subtasks of a group on a time scale.

    Each has two lines.

    Args:
        console: The terminal.
        history: The task.
        assigned: The time of the assignment.
        group: The subtasks, in the order of their numbers.
    """
    members = member_times(history, assigned, group)
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
        line = Text(f"  {member.assign.number:>{numbers}}  ").append(f"{member.state:<{states}}", _style(member))
        line.append(f"  {begun:>{times}} {took:>{times}}  |{_bar(member, span, bar_width)}|", "default")
        console.print(line, soft_wrap=True)
        details = Text(plain(member.assign.address), "cyan").append(plain(member.waits()), "default")
        print_hanging(console, details, numbers + 4, 2)


def _style(member: MemberTimes) -> str:
    """Return the style of a subtask's state."""
    return "" if member.outcome is None else GOOD if member.outcome is Outcome.FINISHED else BAD


def _bar(member: MemberTimes, span: float, width: int) -> str:
    """Draw its waits and its work on a scale of `span` seconds."""

    def column(seconds: float) -> int:
        return round(seconds / span * width)

    begun = member.end if member.begun is None else member.begun
    first = min(column(begun), width - (member.begun is not None))
    wait = "." * min(first, column(member.due))
    work = "" if member.begun is None else "=" * max(1, column(member.end) - first)
    return f"{f'{wait:-<{first}}{work}':<{width}}"
