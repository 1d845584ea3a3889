"""The chart of subtasks that were assigned together, in `callboard show`."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from callboard import FunctionModel, Settings, Supervisor, Task
from callboard.history import history_of
from callboard.journal import Row
from callboard.messages import Assign, AssignGroup, Cause, GroupMember, Outcome, PlanStep, SubtaskResult, subtask_ended
from callboard.terminal._timeline import print_chart
from callboard.testing import MemoryServer
from support import PATIENCE, command_line

START = 1000.0


class Journal:
    """Rows of a task whose subtasks were assigned together, each with those that it comes after."""

    def __init__(self, *after: tuple[int, ...], after_any: dict[int, tuple[int, ...]] | None = None) -> None:
        self.assigns = [
            Assign(
                task_id="t",
                run_id=f"t~{number}",
                address=f"app/memo/w{number}",
                request=f"part {number}",
                number=number,
                member=GroupMember(first=1, after=before, after_any=(after_any or {}).get(number, ())),
            )
            for number, before in enumerate(after, 1)
        ]
        group = AssignGroup(task_id="t", run_id="t~0", assigns=tuple(self.assigns))
        self.rows = [Row(START, "t", "", Task(id="t", request="all")), Row(START, "t", "t~0", group)]

    def begin(self, number: int, seconds: float) -> None:
        assign = self.assigns[number - 1].model_copy(update={"token": number})
        self.rows.append(Row(START + seconds, "t", assign.run_id, assign))

    def end(self, number: int, seconds: float, outcome: Outcome = Outcome.FINISHED, reason: str = "") -> None:
        assign = self.assigns[number - 1]
        result = SubtaskResult(
            run_id=assign.run_id,
            number=number,
            group=1,
            request=assign.request,
            address=assign.address,
            outcome=outcome,
            causes=(Cause(reason=reason, where="supervisor"),) if reason else (),
        )
        self.rows.append(Row(START + seconds, "t", assign.run_id, subtask_ended("t", number, result)))

    def chart(self, width: int = 80) -> list[str]:
        history = history_of(self.rows)
        assert history is not None
        console = Console(width=width, record=True, file=io.StringIO(), highlight=False)
        for assigned, group in history.groups:
            print_chart(console, history, assigned, group.assigns)
        return [line.rstrip() for line in console.export_text().splitlines()]


@pytest.fixture
def diamond() -> Journal:
    """Two read at once, for 4 and 2 seconds; a third waits for both, and a second more for its turn."""
    journal = Journal((), (), (1, 2))
    journal.begin(1, 0)
    journal.begin(2, 0)
    journal.end(2, 2)
    journal.end(1, 4)
    journal.begin(3, 5)
    journal.end(3, 8)
    return journal


def test_chart_shows_starts_durations_and_waits(diamond):
    assert diamond.chart(60) == [
        "subtasks 1-3, assigned together, 8.0 s",
        "  start and duration; = works, . waits for others, - waits",
        "  for its turn",
        "  1  finished  0.0 s 4.0 s  |===============               |",
        "     app/memo/w1",
        "  2  finished  0.0 s 2.0 s  |========                      |",
        "     app/memo/w2",
        "  3  finished  5.0 s 3.0 s  |...............----===========|",
        "     app/memo/w3, after 1, 2: waited 4.0 s for 1, then 1.0",
        "       s for its turn",
    ]


def test_subtask_that_was_skipped_has_its_reason(diamond):
    reason = "it comes after subtask 1, which ended as failed"
    journal = Journal((), (1,), (), after_any={3: (2,)})
    journal.begin(1, 0)
    journal.end(1, 2, Outcome.FAILED, "it is locked")
    journal.end(2, 2, Outcome.CANCELLED, reason)
    journal.begin(3, 2)
    journal.end(3, 4)
    lines = journal.chart(120)
    assert re.fullmatch(r"  2  cancelled               \|\.+ +\|", lines[4])
    assert lines[5] == f"     app/memo/w2, after 1: it did not begin, because {reason}"
    assert lines[7] == "     app/memo/w3, after the end of 2: waited 2.0 s for 2"


def test_unfinished_group_is_drawn_to_its_latest_row():
    journal = Journal((), (), (1, 2))
    journal.begin(1, 0)
    journal.begin(2, 0)
    journal.end(2, 3)
    lines = journal.chart()
    assert lines[0] == "subtasks 1-3, assigned together, 3.0 s"
    assert re.fullmatch(r"  1  working   0\.0 s 3\.0 s  \|=+\|", lines[2])
    assert re.fullmatch(r"  3  waiting                \|\.+\|", lines[6])
    assert lines[7] == "     app/memo/w3, after 1, 2: waits for 1"


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_chart_is_plain_ascii_and_fits_the_terminal(diamond, width):
    lines = diamond.chart(width)
    assert max(map(len, lines)) <= width
    assert "".join(lines).isascii()
    bars = [line.partition("|")[2] for line in lines if "|" in line]
    assert len({len(bar) for bar in bars}) == 1


def test_show_draws_the_chart_and_numbers_the_agents(tmp_path):
    plan = [
        PlanStep(request=f"part {number}", target=f"memo:w{number}", after=after)
        for number, after in enumerate([(), (1,)], 1)
    ]
    windows = MemoryServer(MemoryServer.window("w1"), MemoryServer.window("w2"))
    options = Settings.load(log={"stream": "off"}, journal={"path": tmp_path / "journal.db"})
    models = {"app": FunctionModel(lambda _: {"Status": "FAIL", "Comment": "locked"})}
    with Supervisor.start(options, models=models, servers=[windows]) as supervisor:
        supervisor.submit(Task(id="t", plan=plan)).result(PATIENCE)
    said = " ".join(command_line("show", "t", tmp_path / "journal.db").stdout.split())
    assert "1 app/memo/w1 is assigned subtask 1: part 1" in said
    assert "2 app/memo/w2 subtask 2 is stopped: it comes after subtask 1, which ended as failed" in said
    assert "subtasks 1, 2, assigned together" in said
    assert "app/memo/w2, after 1: it did not begin, because it comes after subtask 1, which ended as failed" in said
