"""Print routines for people: lists, contents and statistics."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from callboard.config import Settings
from callboard.history import cut, plain
from callboard.journal import JournalReader
from callboard.messages import CallboardError, Outcome, RoutineError, RoutineLoop, RoutineStep, steps_of
from callboard.routines import load_routine, proposal_path
from callboard.terminal._commands import fail
from callboard.terminal._journals import RUNS, SETTINGS_FILE, journal_at, journal_in, print_json, settings_at, span
from callboard.terminal._routine_run import is_routine
from callboard.terminal._text import print_hanging, short

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import Console

    from callboard.journal import RoutineRun
    from callboard.messages import RecordedControl, Routine, RoutineAction, RoutineSubtask

_MOST_FILES = 1_000
_MOST_JOURNALS = 100
"""The number of the newest runs' folders whose journals are read."""
_MOST_RUNS = 1_000
"""The number of the newest runs that are read from each journal."""


def list_routines(console: Console, folder: Path, *, as_json: bool) -> None:
    """List the routines in a folder, with their parameters and proposals."""
    if not folder.is_dir():
        fail(f"{folder}: is no folder: name one with routines in it, or `callboard routine show FILE`")
    files = sorted(path for path in folder.iterdir() if is_routine(path) and path.is_file())
    lines = [_line(path) for path in files[:_MOST_FILES]]
    if as_json:
        print_json(lines)
        return
    table = Table(box=box.SIMPLE, pad_edge=False)
    for heading in ("file", "parameters", "change", "request"):
        table.add_column(heading, overflow="fold")
    for line in lines:
        change = "proposed" if line["proposal"] else ""
        request = Text(cut(plain(line["request"] or line["problem"])))
        table.add_row(plain(Path(line["file"]).name), plain(", ".join(line["parameters"])), change, request)
    if lines:
        console.print(table)
    counted = "1 routine" if len(files) == 1 else f"{len(files)} routines"
    advice = "" if files else "; `callboard routine save TASK` makes one of a finished task"
    console.print(Text(f"{counted} in {plain(short(folder.absolute()))}{advice}", style="dim"))


def _line(path: Path) -> dict[str, Any]:
    try:
        routine, problem = load_routine(path), ""
    except RoutineError as error:
        routine, problem = None, str(error).splitlines()[0]
    return {
        "file": str(path),
        "routine": "" if routine is None else routine.routine,
        "request": "" if routine is None else routine.request,
        "parameters": [] if routine is None else list(routine.parameters),
        "proposal": proposal_path(path).is_file(),
        "problem": problem,
    }


def show_routine(console: Console, file: Path, *, as_json: bool) -> None:
    """Print a routine in words: its parameters, subtasks, steps and guards."""
    routine = load_routine(file)
    if as_json:
        print_json(routine.model_dump(mode="json", exclude_defaults=True))
        return
    console.print(Text(plain(routine.routine), style="bold").append(f": {plain(routine.request)}", "default"))
    for name, parameter in routine.parameters.items():
        usual = "must be given" if parameter.value is None else f"usually {_written(parameter.value)}"
        words = [usual, *(["a document"] if parameter.document else []), *filter(None, [parameter.description])]
        print_hanging(console, Text(f"parameter {name}: {plain('; '.join(words))}"), 0, 2)
    for number, subtask in enumerate(routine.subtasks, 1):
        _print_subtask(console, number, subtask)
    _print_steps(console, "the HostAgent", routine.host)
    for check in routine.checks:
        print_hanging(console, Text(f"check {plain(_written(check))}"), 0, 2)
    recorded = routine.recorded
    if recorded.task:
        verified = "verified" if recorded.verified else "not verified"
        calls = f"{recorded.model_calls} model calls, {span(recorded.seconds)}"
        console.print(Text(f"recorded from the task {plain(recorded.task)}: {verified}, {calls}", style="dim"))


def _print_subtask(console: Console, number: int, subtask: RoutineSubtask) -> None:
    heading = f"subtask {number}, the {subtask.kind} agent of {subtask.target}: {subtask.request}"
    _print_steps(console, plain(heading), subtask.steps)


def _print_steps(console: Console, heading: str, entries: Sequence[RoutineStep | RoutineLoop]) -> None:
    if entries:
        print_hanging(console, Text(heading, style="bold"), 0, 2)
    number = 0
    for entry in entries:
        is_loop = isinstance(entry, RoutineLoop)
        if isinstance(entry, RoutineLoop):
            print_hanging(console, Text(f"for each item of ${{{plain(entry.each)}}}:"), 2, 2)
        for step in steps_of(entry):
            number += 1
            for line in step_words(step):
                print_hanging(console, Text(plain(f"{number}. {line}")), 4 if is_loop else 2, 3)


def step_words(step: RoutineStep) -> Iterator[str]:
    """Yield a step in words, its guard last."""
    controls = [_control_words(control) for control in step.controls]
    for action in step.actions:
        yield _action_words(action, controls)
    for part in step.assign:
        after = f" after {', '.join(map(str, part.after))}" if part.after else ""
        yield f"hand over subtask {part.subtask}{after}"
    if step.result is not None:
        yield f"the result is {_written(step.result)}"
    guard = [
        *([f"{step.window!r} is in front"] if step.window else []),
        *(f"there is {control}" for control in controls),
        f"no dialog is open but {', '.join(step.dialogs)}" if step.dialogs else "no new dialog is open",
    ]
    ends = "" if step.status == "CONTINUE" else f"{step.status}, "
    yield f"{ends}only if {'; '.join(guard)}"


def _action_words(action: RoutineAction, controls: Sequence[str]) -> str:
    names = {"control_id", "control_name"} if action.control is not None else set()
    arguments = {name: value for name, value in action.arguments.items() if name not in names}
    on = "" if action.control is None else f" on {controls[action.control]}"
    values = ", ".join(f"{name} {_written(value)}" for name, value in arguments.items())
    hazards = f" (it {', '.join(map(str, action.hazards))})" if action.hazards else ""
    return f"{action.tool}{on}{f' with {values}' if values else ''}{hazards}"


def _control_words(control: RecordedControl) -> str:
    place = f" in {control.place!r}" if control.place else ""
    alike = f", one of {control.alike + 1}" if control.alike else ""
    return f"the {control.kind} {control.name!r}{place}{alike}"


def _written(value: Any) -> str:
    return cut(json.dumps(value, ensure_ascii=False))


@dataclass(frozen=True)
class RoutineStats:
    """Numbers of a routine's runs, beside the recorded one."""

    runs: int
    finished: int
    verified: int
    checked: int
    """The runs that had checks."""
    followed: int
    """The runs without a miss."""
    repaired: int
    """The runs that finished after a miss."""
    this_version: int
    """The runs of the present version of the routine."""
    replayed: int
    model_calls: int
    cost: float
    seconds: float
    saved_calls: int
    """The model calls that the finished runs saved, beside the recorded run for each."""
    saved_cost: float
    saved_seconds: float

    @classmethod
    def of(cls, routine: Routine, runs: Sequence[RoutineRun]) -> RoutineStats:
        """Count runs."""
        finished = [run for run in runs if run.outcome is Outcome.FINISHED]
        recorded = routine.recorded
        return cls(
            runs=len(runs),
            finished=len(finished),
            verified=sum(run.verified is True for run in runs),
            checked=sum(run.verified is not None for run in runs),
            followed=sum(not run.missed for run in runs),
            repaired=sum(run.missed > 0 for run in finished),
            this_version=sum(run.digest == routine.digest for run in runs),
            replayed=sum(run.replayed for run in runs),
            model_calls=sum(run.model_calls for run in runs),
            cost=sum(run.cost for run in runs),
            seconds=sum(run.seconds for run in runs),
            saved_calls=len(finished) * recorded.model_calls - sum(run.model_calls for run in finished),
            saved_cost=len(finished) * recorded.cost - sum(run.cost for run in finished),
            saved_seconds=len(finished) * recorded.seconds - sum(run.seconds for run in finished),
        )


def print_stats(console: Console, file: Path, journals: Sequence[Path], *, as_json: bool) -> None:
    """Print the statistics of a routine's runs in some journals."""
    routine = load_routine(file)
    paths = [journal_at(path) for path in journals] or list(_own_journals())
    if not paths:
        fail("no journal is there: name those of the runs with --journal")
    runs = [run for path in paths for run in _runs_in(path, routine.routine, named=bool(journals)) if not run.dry_run]
    stats = RoutineStats.of(routine, runs)
    if as_json:
        print_json({"routine": routine.routine, "journals": len(paths), **dataclasses.asdict(stats)})
        return
    console.print(Text(plain(routine.routine), style="bold"))
    for label, text in _stats_words(stats, routine, len(paths)):
        console.print(Text(f"  {label:<12}", style="dim").append(plain(text), "default"), soft_wrap=True)


def _stats_words(stats: RoutineStats, routine: Routine, journals: int) -> Iterator[tuple[str, str]]:
    recorded = routine.recorded
    where = "1 journal" if journals == 1 else f"{journals} journals"
    yield "runs", f"{stats.runs} in {where}, {stats.this_version} of this version"
    if not stats.runs:
        return
    yield "finished", _rate(stats.finished, stats.runs)
    if stats.checked:
        yield "verified", f"{_rate(stats.verified, stats.checked)} with checks"
    yield "followed", _rate(stats.followed, stats.runs)
    yield "repaired", _rate(stats.repaired, stats.runs)
    yield "per run", f"{stats.model_calls / stats.runs:.1f} model calls, {span(stats.seconds / stats.runs)}"
    if recorded.task:
        yield "recorded", f"{recorded.model_calls} model calls, {span(recorded.seconds)}, cost {recorded.cost:.4f}"
        time = f"{'-' if stats.saved_seconds < 0 else ''}{span(abs(stats.saved_seconds))}"
        yield "saved", f"{stats.saved_calls} model calls, {time}, cost {stats.saved_cost:.4f}"


def _rate(count: int, total: int) -> str:
    return f"{count} of {total} ({count / total:.0%})"


def _runs_in(journal: Path, name: str, *, named: bool) -> Iterable[RoutineRun]:
    """Read the runs of a routine; without `named`, skip an unreadable journal."""
    try:
        with JournalReader.open(journal, pictures=False) as reader:
            return reader.routine_runs(name, limit=_MOST_RUNS)
    except CallboardError:
        if named:
            raise
        return ()


def _own_journals() -> Iterator[Path]:
    """Yield the current folder's journal, and those of the newest runs."""
    newest = sorted(Path(RUNS).glob(f"*/{SETTINGS_FILE}"), key=lambda file: file.stat().st_ctime, reverse=True)
    here = settings_at(None)
    for file in [*([] if here is None else [here]), *newest[:_MOST_JOURNALS]]:
        with contextlib.suppress(CallboardError):  # the settings of an old run may be invalid by now
            journal = journal_in(Settings.load(file))
            if journal is not None and journal.is_file():
                yield journal
