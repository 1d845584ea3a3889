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

from callboard.messages import AgentStatus, Event, EventName, Outcome, Probe
from callboard.terminal._check_words import described_event, judged_event
from callboard.terminal._text import BAD, GOOD, cut, listed, numbered, plain

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_SHOWN_LINES = 3
_ROW_HEIGHT = 4
"""The most lines that a piece of work usually has."""
_NARROW = 90
"""The width, in columns, below which each piece of work has lines of its own instead of a row."""
_STATES = {
    "": "starting",
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
_PROBES = {
    Probe.DONE: "it was done",
    Probe.NOT_DONE: "it was not done",
    Probe.BEGUN: "it was begun, and is resumed",
    Probe.UNKNOWN: "the surface does not show it",
}


@dataclass(frozen=True)
class AgentRow:
    """One agent's work as the display shows it."""

    agent: str
    subtask: str
    started: float
    state: str = ""
    step: int = 0
    ended: float | None = None
    ok: bool | None = None

    @property
    def style(self) -> str:
        """The style of its state."""
        return {None: "", True: GOOD, False: BAD}[self.ok]


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
                run_id: row if row.ended is not None else replace(row, started=row.started + pause)
                for run_id, row in self.rows.items()
            }
        self.last = event.at
        if event.run_id:
            row = self.rows.get(event.run_id) or AgentRow(event.agent, self.request, event.at)
            self.rows[event.run_id] = _advanced(row, event)
        description = _described(event)
        if not description:
            return None
        line = Text(f"{event.at - self.started:8.2f} s  ", style="dim")
        line.append(f"{event.agent or 'supervisor'}  ", style="cyan").append(cut(plain(description)))
        self.lines = [*self.lines, line][-_SHOWN_LINES:]
        return line

    def drawn(self, now: float, width: int, hidden: Collection[str] = ()) -> RenderableType:
        """Draw the rows for a terminal of a width in columns.

        Of the `hidden` runs only the number is drawn.
        """
        rows = [row for run_id, row in self.rows.items() if run_id not in hidden]
        drawn = self._table(rows, now) if width >= _NARROW else self._list(rows, now)
        left_out = len(self.rows) - len(rows)
        return Group(Text(f"{left_out} ended earlier", style="dim"), drawn) if left_out else drawn

    def _list(self, rows: Iterable[AgentRow], now: float) -> Group:
        lines: list[RenderableType] = []
        for row in rows:
            steps, elapsed = numbered(row.step, "step"), f"{(row.ended or now) - row.started:.1f} s"
            head = Text(plain(row.agent), style="cyan", overflow="fold")
            head.append(f"  {_state(row)}", row.style).append(f"  {steps}, {elapsed}", style="default")
            lines += [head, Padding(Text(cut(plain(row.subtask))), (0, 0, 0, 2))]
        return Group("", *lines, "")

    def _table(self, rows: Iterable[AgentRow], now: float) -> Table:
        table = Table(box=box.SIMPLE, pad_edge=False)
        table.add_column("agent", style="cyan", overflow="fold", no_wrap=True)
        table.add_column("state", no_wrap=True)
        table.add_column("subtask")  # the only column that shrinks on a narrow terminal
        table.add_column("step", justify="right")
        table.add_column("elapsed", justify="right", no_wrap=True)
        for row in rows:
            elapsed = f"{(row.ended or now) - row.started:.1f} s"
            subtask = Text(cut(plain(row.subtask)))
            table.add_row(plain(row.agent), Text(_state(row), row.style), subtask, str(row.step), elapsed)
        return table

    def picture(self, now: float, width: int, hidden: Collection[str] = ()) -> Group:
        """Draw the rows and the last lines."""
        return Group(self.drawn(now, width, hidden), *self.lines)


def pictures(boards: Collection[TaskDisplay], now: float, console: Console) -> Group:
    """Draw tasks one below the other, in the height of a terminal.

    As many ended runs are hidden as it needs, the oldest first.
    """
    runs = (pair for board in boards for pair in board.rows.items())
    ended = sorted((row.ended, run_id) for run_id, row in runs if row.ended is not None)
    hidden = 0
    while True:
        left_out = {run_id for _, run_id in ended[:hidden]}
        drawn = Group(*(board.picture(now, console.width, left_out) for board in boards))
        excess = len(console.render_lines(drawn, pad=False)) - console.height
        if excess <= 0 or hidden >= len(ended):
            return drawn
        hidden += max(1, excess // _ROW_HEIGHT)


def _state(row: AgentRow) -> str:
    return _STATES.get(row.state, row.state.replace("_", " "))


def _advanced(row: AgentRow, event: Event) -> AgentRow:
    data = event.data
    match event.name:
        case EventName.ROUND_STARTED | EventName.SUBTASK_ASSIGNED:
            return replace(row, subtask=str(data["request"]), ended=None, ok=None)
        case EventName.SUBTASK_QUEUED:
            return replace(row, state="QUEUED")
        case EventName.STATE_CHANGED:
            return replace(row, state=str(data["target"]))
        case EventName.STEP_STARTED if event.step is not None:
            return replace(row, step=event.step)
        case EventName.ROUND_ENDED | EventName.SUBTASK_ENDED:
            outcome = str(data["outcome"])
            return replace(row, state=outcome, ended=event.at, ok=outcome == Outcome.FINISHED.value)
        case _:
            return row


def _described(event: Event) -> str:  # noqa: C901, PLR0912 - one match, a case an event
    """Describe an event in a few words; empty for those without interest."""
    data = event.data
    match event.name:
        case EventName.ROUND_STARTED | EventName.SUBTASK_ASSIGNED:
            return f"starts: {data['request']}"
        case EventName.SUBTASK_QUEUED:
            return f"waits for its target, {data['ahead']} ahead of it"
        case EventName.STATE_CHANGED if data["source"] not in {"", data["target"]}:
            return _moved(str(data["source"]), str(data["target"]))
        case EventName.COMMAND_ENDED:
            status, error = str(data["status"]), str(data["error"] or "")
            return f"{data['tool']}: {error if error.startswith(status) else ', '.join(filter(None, (status, error)))}"
        case EventName.MODEL_REPAIRED:
            return f"its model's answer was sent back: {data['reason']}"
        case EventName.STEP_FAILED | EventName.AGENT_CRASHED:
            failed = "a step failed" if event.name is EventName.STEP_FAILED else "the agent crashed"
            return f"{failed}: {next(iter(listed(data['causes'])), '')}"
        case EventName.CHECK_PASSED | EventName.CHECK_FAILED:
            return described_event(event)
        case EventName.JUDGE_ANSWERED:
            return judged_event(event)
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


def probe_words(probe: str) -> str:
    """Describe the finding about an action in doubt."""
    return _PROBES.get(Probe(probe), probe)
