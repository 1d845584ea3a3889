"""The display of a task, made from its events alone.

It has a row for each piece of work, and the last lines.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from callboard.history import (
    agent_label,
    cut,
    described_event,
    judged_event,
    lines_of,
    numbered,
    plain,
    probe_words,
    ranges,
)
from callboard.messages import AgentStatus, Event, EventName, Outcome
from callboard.terminal._text import BAD, GOOD, listed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_SHOWN_LINES = 3
_THE_PLAN = "the plan"
"""The work of a task that has a plan in place of a request."""
_MARGIN = 12
"""The width of the time before a line, in columns."""
_ROW_HEIGHT = 4
"""The most lines that a piece of work usually has."""
_NARROW = 90
"""The width, in columns, below which each piece of work has lines of its own instead of a row."""
_STATES = {
    "": "starting",
    "PLANNED": "waiting",
    "QUEUED": "waiting",
    AgentStatus.CONTINUE: "working",
    AgentStatus.SCREENSHOT: "working",
    AgentStatus.ASSIGN: "delegating",
    AgentStatus.PENDING: "asking",
    AgentStatus.CONFIRM: "asking",
    AgentStatus.FAIL: "ending",
    AgentStatus.ERROR: "ending",
    AgentStatus.FINISH: "ending",
}
"""The words for states; those of other machines are shown as they are."""


@dataclass(frozen=True)
class AgentRow:
    """One agent's work as the display shows it."""

    agent: str
    subtask: str
    started: float | None
    """None until its turn has come."""
    number: int = 0
    """The number of the subtask; 0 for a HostAgent's round."""
    after: tuple[int, ...] = ()
    """The numbers of the subtasks that it comes after."""
    machine: str = ""
    """The other machine that was chosen for it, or that did it."""
    state: str = ""
    step: int = 0
    ended: float | None = None
    ok: bool | None = None

    @property
    def label(self) -> str:
        """The agent and its machine."""
        return agent_label(self.agent, self.machine)

    @property
    def style(self) -> str:
        """The style of its state."""
        return {None: "", True: GOOD, False: BAD}[self.ok]

    @property
    def waits(self) -> bool:
        """True while it waits for other subtasks."""
        return self.state == "PLANNED"

    @property
    def steps(self) -> str:
        """The number of its steps; empty if it did not begin."""
        return "" if self.started is None else numbered(self.step, "step")

    def elapsed(self, now: float) -> str:
        """Format its time; empty if it did not begin."""
        return "" if self.started is None else f"{(self.ended or now) - self.started:.1f} s"


@dataclass
class TaskDisplay:
    """The display of a task, made from its events alone.

    It has a row for each piece of work, and the last lines.
    """

    task_id: str
    request: str
    rows: dict[str, AgentRow] = field(default_factory=dict)
    lines: list[Text] = field(default_factory=list)
    started: float | None = None
    last: float = 0.0
    """The time of the latest event."""

    def see(self, event: Event) -> Text | None:
        """Process an event.

        Returns its line for the terminal, if it has one.
        """
        self.started = event.at if self.started is None else self.started
        if event.name is EventName.TASK_RECOVERED:  # no process worked on the task in between
            pause = event.at - self.last
            self.started += pause
            self.rows = {
                run_id: replace(row, started=row.started + pause)
                if row.ended is None and row.started is not None
                else row
                for run_id, row in self.rows.items()
            }
        self.last = event.at
        if event.run_id and event.name is not EventName.MESSAGE_STALE:
            former = self.rows.get(event.run_id) or AgentRow(event.agent, self.request, event.at, event.number)
            self.rows[event.run_id] = _advanced(former, event)
        description = _described(event)
        if not description:
            return None
        line = Text(f"{event.at - self.started:8.2f} s  ", style="dim")
        number = f"{event.number} " if event.number and self._has_numbers else ""
        row = self.rows.get(event.run_id)
        agent = agent_label(event.agent, "" if row is None else row.machine) or "supervisor"
        line.append(f"{number}{agent}  ", style="cyan").append(cut(plain(description)))
        self.lines = [*self.lines, line][-_SHOWN_LINES:]
        return line

    @property
    def _has_numbers(self) -> bool:
        """False for a task of one agent alone."""
        return any(not row.number for row in self.rows.values())

    def subtask(self, run_id: str) -> AgentRow | None:
        """Return the row of a subtask.

        None for other work, and for a task of one agent alone.
        """
        row = self.rows.get(run_id)
        return row if row is not None and row.number and self._has_numbers else None

    def _request(self, row: AgentRow) -> str:
        """Return the request of a row, after its number."""
        number = f"{row.number}. " if row.number and self._has_numbers else ""
        return number + (cut(plain(row.subtask)) or _THE_PLAN)

    def drawn(self, now: float, width: int, hidden: Collection[str] = ()) -> RenderableType:
        """Draw the rows for a terminal of a width in columns.

        Of the `hidden` runs only the number is drawn.
        """
        rows = [row for run_id, row in self.rows.items() if run_id not in hidden]
        drawn = self._table(rows, now, width) if width >= _NARROW else self._list(rows, now)
        hidden_rows = [row for run_id, row in self.rows.items() if run_id in hidden]
        waiting = sum(row.waits for row in hidden_rows)
        ended = len(hidden_rows) - waiting
        words = ([f"{ended} ended earlier"] if ended else []) + ([f"{waiting} more wait for others"] if waiting else [])
        return Group(Text(", ".join(words), style="dim"), drawn) if words else drawn

    def _list(self, rows: Iterable[AgentRow], now: float) -> Group:
        lines: list[RenderableType] = []
        for row in rows:
            head = Text(row.label, style="cyan", overflow="fold")
            head.append(f"  {self._state(row)}", row.style)
            if row.started is not None:
                head.append(f"  {row.steps}, {row.elapsed(now)}", style="default")
            lines += [head, Padding(Text(self._request(row)), (0, 0, 0, 2))]
        return Group("", *lines, "")

    def _table(self, rows: Iterable[AgentRow], now: float, width: int) -> Table:
        table = Table(box=box.SIMPLE, pad_edge=False)
        table.add_column("agent", style="cyan", overflow="fold", max_width=width * 2 // 5)
        table.add_column("state", no_wrap=True)
        table.add_column("subtask")  # the only column that shrinks on a narrow terminal
        table.add_column("step", justify="right")
        table.add_column("elapsed", justify="right", no_wrap=True)
        for row in rows:
            state, step = Text(self._state(row), row.style), "" if row.started is None else str(row.step)
            table.add_row(row.label, state, Text(self._request(row)), step, row.elapsed(now))
        return table

    def _state(self, row: AgentRow) -> str:
        """Describe the state of a run.

        That of a waiting one names those that it waits for.
        """
        if row.waits:
            ended = {other.number for other in self.rows.values() if other.ended is not None}
            open_numbers = ranges(set(row.after) - ended)
            if open_numbers:
                return f"after {open_numbers}"
        return _STATES.get(row.state, row.state.replace("_", " "))

    def picture(self, now: float, width: int, hidden: Collection[str] = ()) -> Group:
        """Draw the rows and the last lines."""
        lines = Table.grid()
        lines.add_column(no_wrap=True, width=_MARGIN)
        lines.add_column(overflow="fold")
        for line in self.lines:
            lines.add_row(line[:_MARGIN], line[_MARGIN:])
        return Group(self.drawn(now, width, hidden), lines)


def pictures(boards: Collection[TaskDisplay], now: float, console: Console) -> Group:
    """Draw tasks one below the other, in the height of a terminal.

    As many runs are hidden as it needs: ended ones, the oldest first, then waiting ones, the last first.
    """
    runs = [(run_id, row) for board in boards for run_id, row in board.rows.items()]
    ended = sorted((row.ended, run_id) for run_id, row in runs if row.ended is not None)
    dispensable = [run_id for _, run_id in ended] + [run_id for run_id, row in reversed(runs) if row.waits]
    hidden = 0
    while True:
        drawn = Group(*(board.picture(now, console.width, dispensable[:hidden]) for board in boards))
        excess = len(console.render_lines(drawn, pad=False)) - console.height
        if excess <= 0 or hidden >= len(dispensable):
            return drawn
        hidden += max(1, excess // _ROW_HEIGHT)


def _advanced(row: AgentRow, event: Event) -> AgentRow:
    data = event.data
    match event.name:
        case EventName.SUBTASK_PLANNED:
            return replace(row, subtask=str(data["request"]), state="PLANNED", after=_before(event), started=None)
        case EventName.ROUND_STARTED | EventName.SUBTASK_ASSIGNED:
            started, state = (event.at, "") if row.started is None else (row.started, row.state)
            return replace(row, subtask=str(data["request"]), state=state, started=started, ended=None, ok=None)
        case EventName.SUBTASK_QUEUED:
            return replace(row, state="QUEUED", started=event.at if row.started is None else row.started)
        case EventName.STATE_CHANGED:
            return replace(row, state=str(data["target"]))
        case EventName.STEP_STARTED if event.step is not None:
            return replace(row, step=event.step)
        case EventName.MACHINE_CHOSEN:
            return replace(row, machine=str(data["machine"]))
        case EventName.ROUND_ENDED | EventName.SUBTASK_ENDED:
            outcome = str(data["outcome"])
            row = replace(row, state=outcome, ended=event.at, ok=outcome == Outcome.FINISHED.value)
            there, steps = data.get("machine"), data.get("steps")  # its steps there have no events here
            if there and isinstance(there, str) and isinstance(steps, int):
                row = replace(row, machine=there, step=steps)
            return row
        case _:
            return row


def _before(event: Event) -> tuple[int, ...]:
    """Return the numbers of the subtasks that a planned one comes after."""
    numbers = [*listed(event.data["after"]), *listed(event.data["after_any"])]
    return tuple(number for number in numbers if isinstance(number, int))


def _described(event: Event) -> str:  # noqa: C901, PLR0912 - one match, a case an event
    """Describe an event in a few words; empty for those without interest."""
    data = event.data
    match event.name:
        case EventName.ROUND_STARTED | EventName.SUBTASK_ASSIGNED:
            return f"starts: {data['request'] or _THE_PLAN}"
        case EventName.SUBTASK_PLANNED if before := _before(event):
            return f"waits for {ranges(before)}: {data['request']}"
        case EventName.SUBTASK_QUEUED:
            return f"waits for its target, {data['ahead']} ahead of it"
        case EventName.STATE_CHANGED if data["source"] not in {"", data["target"]}:
            return _moved(str(data["source"]), str(data["target"]))
        case EventName.COMMAND_ENDED:
            status, error = str(data["status"]).replace("_", " "), str(data["error"] or "")
            return f"{data['tool']}: {error if error.startswith(status) else ', '.join(filter(None, (status, error)))}"
        case EventName.MODEL_REPAIRED:
            return f"its model's answer was sent back: {data['reason']}"
        case EventName.ROUTINE_MISSED:
            return next(lines_of(event))[0]
        case EventName.STEP_FAILED | EventName.AGENT_CRASHED:
            failed = "a step failed" if event.name is EventName.STEP_FAILED else "the agent crashed"
            return f"{failed}: {next(iter(listed(data['causes'])), '')}"
        case EventName.CHECK_PASSED | EventName.CHECK_FAILED:
            return described_event(event)
        case EventName.JUDGE_ANSWERED:
            return judged_event(event)
        case EventName.MACHINE_CHOSEN:
            return f"is given to the machine {data['machine']}"
        case EventName.MACHINE_AWAY:
            reason = "was stopped" if data["stopped"] else f"is away: no sign for {data['seconds']:g} s"
            return f"the machine {data['machine']} {reason}; its work waits for it"
        case EventName.MACHINE_BACK:
            return f"the machine {data['machine']} is back"
        case EventName.APPROVAL_ELSEWHERE:
            return f"waits for an approval by a person of the machine {data['machine']}: {data['reason']}"
        case EventName.TASK_CANCELLING:
            return f"stopping: {data['reason']}"
        case EventName.ROUND_ENDED | EventName.SUBTASK_ENDED:
            return str(data["outcome"]).replace("_", " ")
        case EventName.TASK_RECOVERED | EventName.RUN_RECOVERED:
            return "resumed from the journal"
        case EventName.COMMAND_IN_DOUBT:
            return f"{data['tool']} may have been done before a crash: {probe_words(str(data['probe']))}"
        case EventName.EVENTS_MISSED:
            return f"{data['count']} events were missed here"
        case _:
            return ""


def _moved(source: str, target: str) -> str:
    """Describe a move between states; empty between those with one word."""
    old_state, new_state = (_STATES.get(state, state) for state in (source, target))
    return f"{old_state} → {new_state}" if old_state != new_state else ""
