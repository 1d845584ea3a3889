"""Run an eval set, and print its table and comparison."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from callboard.config import make_private, write_own
from callboard.history import numbered, plain
from callboard.messages import CallboardError, Outcome
from callboard.terminal._commands import EXIT_CODES, WORSE, Again, fail, models_of, warn
from callboard.terminal._eval_cells import Cell, CellResult
from callboard.terminal._eval_page import page
from callboard.terminal._eval_report import EvalReport, cost_text, differences
from callboard.terminal._eval_runner import EvalRunner, NotRun
from callboard.terminal._eval_set import OWN_MODELS, LoadedSet, check_different, slug
from callboard.terminal._journals import EVALS
from callboard.terminal._text import BAD, GOOD, short, terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rich.console import Console

    from callboard.terminal._eval_report import RateChange
    from callboard.terminal._eval_set import LoadedTask
    from callboard.terminal._people import Attendance

REPORT_FILE = "report.json"
_CLOSE = 1e-9


@dataclass(frozen=True)
class EvalChoices:
    """The options of a call."""

    attendance: Attendance
    models: Sequence[str] = ()
    seeds: int | None = None
    tasks: Sequence[str] = ()
    at_once: int | None = None
    output: Path | None = None
    again: Again = Again.NONE
    against: Path | None = None
    threshold: float = 0.0
    html: Path | None = None
    as_json: bool = False


def run_set(path: Path, choices: EvalChoices, programs: Mapping[str, Callable[..., Any]] | None = None) -> int:
    """Run an eval set, print its report, and return the exit code.

    Everything is read and checked before the first run starts.

    Args:
        path: The set.
        choices: The options of the call.
        programs: Check programs by name, in addition to those that the settings name.
    """
    loaded = LoadedSet.load(path)
    if choices.html is not None and not choices.html.parent.is_dir():
        fail(f"--html {choices.html}: there is no folder {choices.html.parent}")
    old_report = None if choices.against is None else EvalReport.load(choices.against)
    tasks = loaded.chosen(choices.tasks)
    root = (choices.output or Path(EVALS, slug(loaded.name))).resolve()
    cells = _cells(loaded, tasks, choices, root)
    console = terminal(quiet=choices.as_json)
    results, waiting = _split(cells, choices.again)
    console.print(Text(f"{plain(loaded.name)}: {len(cells)} runs in {plain(short(root))}", style="bold"))
    if results:
        console.print(Text(f"{len(results)} have a result already", style="dim"))
    make_private(root, exist_ok=True)
    runner = EvalRunner(
        waiting, choices.attendance, choices.at_once or loaded.content.at_once, loaded.content.cost, programs or {}
    )
    runner.spent = sum(result.cost for result in results)
    not_run: dict[str, str] = {}
    try:
        for ended in runner.results():
            if isinstance(ended, NotRun):
                not_run[str(ended.cell)] = ended.reason
            else:
                results.append(ended)
            console.print(_line(ended), soft_wrap=True)
    except KeyboardInterrupt:
        typer.echo("callboard: interrupted; the same command continues the unfinished runs", err=True)
        raise
    order = {(cell.task.name, cell.model, cell.seed): number for number, cell in enumerate(cells)}
    results.sort(key=lambda result: order[result.task, result.model, result.seed])
    report = EvalReport.of(loaded.name, results, not_run)
    changes = [] if old_report is None else differences(report, old_report)
    written = report.model_dump_json(indent=1)
    write_own(root / REPORT_FILE, written)
    if choices.html is not None:
        requests = {cell.task.name: cell.kept().request for cell in cells}
        write_own(choices.html, page(report, requests, changes, choices.threshold))
    if choices.as_json:
        typer.echo(written)
    _print(console, report, changes)
    return _exit_code(report, old_report, changes, choices)


def _cells(loaded: LoadedSet, tasks: Sequence[LoadedTask], choices: EvalChoices, root: Path) -> list[Cell]:
    """List the runs, and check that each of them can start."""
    named = {name: loaded.models.get(name) or models_of([name]) for name in choices.models}
    models = named or loaded.models or {OWN_MODELS: {}}
    check_different("models", list(models), "--model")
    seeds = range(1, choices.seeds + 1) if choices.seeds else loaded.content.seeds or (None,)
    cells = []
    for task in tasks:
        for model, kinds in models.items():
            mine = [Cell(task, model, kinds, seed, root / "runs") for seed in seeds]
            try:
                mine[0].check()
            except CallboardError as error:
                fail(f"{task.where}: {error}")
            cells += mine
    return cells


def _split(cells: Sequence[Cell], repeats: Again) -> tuple[list[CellResult], list[Cell]]:
    """Return the results of earlier processes, and the runs without one."""
    results, waiting = [], []
    for cell in cells:
        result = None if repeats is Again.ALL else cell.ended()
        if repeats is Again.ALL or (repeats is Again.ERRORS and result and result.outcome is Outcome.ERROR):
            cell.forget()
            result = None
        if result is None:
            waiting.append(cell)
        else:
            results.append(result)
    return results, waiting


def _line(ended: CellResult | NotRun) -> Text:
    if isinstance(ended, NotRun):
        return Text("not run ", style=BAD).append(plain(f"{ended.cell}: {ended.reason}"), "default")
    word, style = ("passed  ", GOOD) if ended.passed else ("failed  ", BAD)
    seed = "" if ended.seed is None else f", seed {ended.seed}"
    line = Text(word, style=style).append(plain(f"{ended.task}, {ended.model}{seed}"), "default")
    return line.append(f" in {ended.seconds:.1f} s{_why(ended)}", "dim")


def _why(result: CellResult) -> str:
    """Describe the first reason of a run that did not pass."""
    if result.passed:
        return ""
    outcome = "" if result.outcome is Outcome.FINISHED else f"{result.outcome.value.replace('_', ' ')}: "
    first = next((f"{name}: {problem}" for name, problem in result.failures.items()), result.reason)
    return plain(f": {outcome}{first}")


def _print(console: Console, report: EvalReport, changes: Sequence[RateChange]) -> None:
    most = max((max(figures.pass_k) for figures in report.models), default=1)
    table = Table(box=box.SIMPLE, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("model", overflow="fold", style="cyan")
    for name in (
        "passed",
        "rate (95 %)",
        *([f"pass^{most}"] if most > 1 else ()),
        "steps",
        "tokens",
        "cost",
        "seconds",
    ):
        table.add_column(name, justify="right", no_wrap=True)
    for figures in report.models:
        interval = f"{figures.rate:.0%} ({100 * figures.low:.0f}-{100 * figures.high:.0f})"
        most_k = [f"{figures.pass_k[most]:.0%}" if most in figures.pass_k else ""] if most > 1 else []
        used = [f"{figures.steps:g}", f"{figures.tokens:,.0f}", cost_text(figures), f"{figures.seconds:.1f}"]
        table.add_row(plain(figures.model), f"{figures.passed} of {figures.runs}", interval, *most_k, *used)
    console.print(table)
    for figures in report.models:
        if figures.apart:
            sentence = f"{numbered(figures.apart, 'run')} of {plain(figures.model)} ended by an error or a limit"
            console.print(Text(sentence, style=BAD), soft_wrap=True)
    if any(figures.unpriced_calls for figures in report.models):
        console.print(Text("+: some calls have no known price", style="dim"))
    for figures in report.models:
        for name, count in figures.failures.items():
            line = Text(f"{count:>4} failed ", style=BAD).append(plain(f"{name} ({figures.model})"), "default")
            console.print(line, soft_wrap=True)
    for change in changes:
        style = BAD if change.change < -_CLOSE else GOOD
        line = Text(f"{change.change:+.0%} ", style=style)
        rates = f"{change.before:.0%} before, {change.now:.0%} now"
        sentence = f"{change.model}: {rates}, in {numbered(change.tasks, 'task')} of both"
        console.print(line.append(plain(sentence), "default"), soft_wrap=True)


def _exit_code(
    report: EvalReport, old_report: EvalReport | None, changes: Sequence[RateChange], choices: EvalChoices
) -> int:
    if old_report is not None:
        compared = {change.model for change in changes}
        lacking = [figures.model for figures in report.models if figures.model not in compared]
        warn(f"{choices.against} has no run of {model} with a task of this set" for model in lacking)
        if not changes:
            fail(f"{choices.against}: nothing can be compared: it has no model and task of this set")
        if any(change.change < -choices.threshold - _CLOSE for change in changes):
            return WORSE
    return EXIT_CODES[Outcome.ERROR] if report.not_run else 0
