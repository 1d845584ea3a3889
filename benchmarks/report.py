"""The report: tables in Markdown, and their places in the document."""

from __future__ import annotations

import os
import platform
import re
from importlib import metadata
from typing import TYPE_CHECKING, Literal

from benchmarks.contest import ratio, spread
from benchmarks.environments import PEERS, REQUIREMENTS
from benchmarks.fan_out import TITLES as FAN_OUT
from benchmarks.figures import instructions, start
from benchmarks.figures.browser import TITLES as BROWSER_TITLES
from benchmarks.figures.console_pages import TITLES as CONSOLE
from benchmarks.figures.documents import LIBRARIES
from benchmarks.fleet_report import fleet_lines
from benchmarks.goals import GOALS, ROW_GOALS
from benchmarks.large_documents import ROWS
from benchmarks.miniwob.report import miniwob_lines
from benchmarks.parts import DURABLE, JOB_VARIANTS, titles
from benchmarks.plot import Series, drawn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from benchmarks.contest import Answers, Number, Spread
    from benchmarks.goals import Goal


FIGURES: tuple[tuple[str, Number, str, float], ...] = (
    ("CPU time of a step with journal and log", ("step-process", "cpu"), "µs", 1e6),
    ("start after 10,000 ended tasks", ("history", "start_with"), "ms", 1e3),
    ("growth of the journal per task", ("history", "growth"), "kB", 1e-3),
    ("growth of the log per task", ("history", "log"), "kB", 1e-3),
    ("from a cancel to its result, with 100 tasks that never end", ("stops", "cancel"), "ms", 1e3),
    ("a tool call in process", ("tools", "in_process"), "µs", 1e6),
    ("a tool call over stdio", ("tools", "stdio"), "µs", 1e6),
)
"""Figures without a goal: the name, the number, its unit and its scale."""


SHOWN = (1, 100)
"""Tasks at once in the document's table of the job, if both were measured; its plot has all."""
UNSHOWN = {"record", "blocks", "own", "agent-framework-checkpoint", "langgraph-memory"}
"""Contenders that are in the plot, but not in the document's tables."""


def sections(answers: Answers, how: Mapping[str, str] | None = None, *, brief: bool = False) -> dict[str, str]:
    """Write the measurements, by section of the document.

    A section without a measurement is left out.

    Args:
        answers: The measurements.
        how: The date and the commit, by part.
        brief: Leave out sizes, contenders and calls that the document does not show.
    """
    written = {
        "machine": machine(answers, how or {}),
        "start": "\n".join(_rows(answers, "start", start.TITLES, ("seconds", "megabytes", "modules"))),
        "documents": "\n".join(_rows(answers, "documents", _documents(brief=brief), ("seconds", "megabytes"))),
        "job": "\n".join(_job(answers, brief=brief)),
        "fan_out": "\n".join(_rows(answers, "fan_out", FAN_OUT, ("seconds", "cpu_ms"))),
        "instructions": "\n".join(_instructions(answers, brief=brief)),
        "goals": "\n".join(_goals(answers)),
        "browser": "\n".join(_rows(answers, "browser", BROWSER_TITLES, ("seconds", "cpu"))),
        "miniwob": "\n".join(miniwob_lines(answers)),
        "fleet": "\n".join(fleet_lines(answers)),
        "console": "\n".join(_rows(answers, "console", CONSOLE, ("ms",))),
    }
    return {name: text for name, text in written.items() if text}


def replaced(document: str, name: str, text: str) -> str:
    """Replace a section of a document.

    Raises:
        ValueError: If the document has no such section.
    """
    pattern = re.compile(rf"(<!-- measured: {name} -->\n).*?(<!-- /measured -->)", re.DOTALL)
    if not pattern.search(document):
        msg = f"the document has no section {name!r}"
        raise ValueError(msg)
    return pattern.sub(lambda match: f"{match[1]}{text}\n{match[2]}", document)


def machine(answers: Answers, how: Mapping[str, str]) -> str:
    """Describe the machine, the libraries and the dates."""
    there = {cell.partition("@")[0] for cell in answers}
    named = {peer.environment: REQUIREMENTS[peer.environment] for name, peer in PEERS.items() if name in there}
    versions = [f"Pykka {metadata.version('pykka')}", f"pydantic {metadata.version('pydantic')}"]
    versions += [requirement.replace("==", " ") for requirements in named.values() for requirement in requirements]
    parts = {when: [part for part in how if how[part] == when] for when in how.values()}
    host = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    measured = "; ".join(f"{', '.join(names)} {when}" for when, names in parts.items())
    return f"{host}; {', '.join(versions)}. Measured: {measured}."


def sizes_of(answers: Answers) -> list[int]:
    """Give the measured numbers of tasks at once."""
    return sorted({int(cell.partition("@")[2]) for cell in answers if cell.startswith("J@")})


def _job(answers: Answers, *, brief: bool) -> Iterator[str]:
    """Draw the table of the job: milliseconds, and CPU time in J."""
    sizes = sizes_of(answers)
    if not sizes:
        return
    if brief and set(SHOWN) <= set(sizes):
        sizes = list(SHOWN)
    times, units = (f"ms, {size} at once" for size in sizes), (f"CPU in J, {size} at once" for size in sizes)
    yield from _head(["", *times, *units, "durable"])
    for name, title in titles().items():
        cells = [f"{name}@{size}" for size in sizes]
        spreads = [
            *(spread(answers, (cell, "seconds"), 1e3) for cell in cells),
            *(ratio(answers, (f"{name}@{size}", "cpu"), (f"J@{size}", "cpu")) for size in sizes),
        ]
        failures = [_failed(answers, cell) for cell in cells] * 2
        values = [failed or _median(numbers) for failed, numbers in zip(failures, spreads, strict=True)]
        if any(values) and not (brief and name in UNSHOWN):
            yield _row([title, *values, "yes" if name in DURABLE else "no"])


def _instructions(answers: Answers, *, brief: bool) -> Iterator[str]:
    """Draw the table of instructions, as valgrind counts them."""
    counts = {row: spread(answers, (f"valgrind/{row}", "instructions"), 1e-6) for row in instructions.TITLES}
    if any(counts.values()):
        yield from _head(["", "million", "J"])
    for row in [row for row in counts if not (brief and row in UNSHOWN)]:
        jobs = ratio(answers, (f"valgrind/{row}", "instructions"), ("valgrind/J", "instructions"))
        if value := _failed(answers, f"valgrind/{row}") or _median(counts[row]):
            yield _row([instructions.TITLES[row], value, _median(jobs)])


COLUMNS = {
    "seconds": "s",
    "cpu": "CPU s",
    "megabytes": "MB",
    "modules": "modules",
    "cpu_ms": "CPU ms a subtask",
    "ms": "ms",
}


def _rows(answers: Answers, part: str, row_titles: Mapping[str, str], keys: Sequence[str]) -> Iterator[str]:
    """Draw the table of a part with goals beside its rows."""
    if not any(f"{part}/{row}" in answers for row in row_titles):
        return
    yield from _head(["", *(COLUMNS[key] for key in keys), "goal", "met"])
    for row, title in row_titles.items():
        cell = f"{part}/{row}"
        if cell in answers:
            values = [_failed(answers, cell) or _median(spread(answers, (cell, key))) for key in keys]
            goals = [goal for goal in ROW_GOALS if goal.above[0] == cell]
            limits = ", ".join(goal.limit for goal in goals)
            yield _row([title, *values, limits, _met(answers, goals)])


def _met(answers: Answers, goals: Sequence[Goal]) -> str:
    """Say if all goals are met; empty without goal or figure."""
    spreads = [goal.found(answers) for goal in goals]
    if not goals or None in spreads:
        return ""
    met = all(goal.met(values) for goal, values in zip(goals, spreads, strict=True) if values is not None)
    return "yes" if met else "no"


def _documents(*, brief: bool) -> dict[str, str]:
    """Name the calls on documents; if brief, those with goals alone."""
    goals = {goal.above[0] for goal in ROW_GOALS}
    calls = [row for row in ROWS if not brief or f"documents/{row}" in goals]
    return {row: row for row in (*calls, *LIBRARIES)}


def _failed(answers: Answers, cell: str) -> str:
    return "failed" if any("error" in said for said in answers.get(cell, ())) else ""


def _goals(answers: Answers) -> Iterator[str]:
    """Draw the table of goals; figures without a goal end it."""
    goals = [(goal, goal.found(answers)) for goal in GOALS]
    figures = [(what, unit, spread(answers, number, scale)) for what, number, unit, scale in FIGURES]
    if not any(values for _, values in goals) and not any(values for *_, values in figures):
        return
    yield from _head(["", "goal", "measured", "met"])
    for goal, values in goals:
        yield _row([goal.what, goal.limit, _spread(values) or "not measured", _met(answers, [goal])])
    for what, unit, values in figures:
        if values is not None:
            yield _row([what, "", f"{_spread(values)} {unit}", ""])


def plotted(answers: Answers) -> str:
    """Draw the plot of the job; empty if it was not measured."""
    sizes = sizes_of(answers)
    series = []
    for name, title in titles().items():
        kind: Literal["raw", "ours", "theirs"] = (
            "raw" if name in {"J", "record"} else "ours" if name in JOB_VARIANTS else "theirs"
        )
        points = {size: spread(answers, (f"{name}@{size}", "seconds"), 1e3) for size in sizes}
        series.append(Series(title, kind, {size: point for size, point in points.items() if point is not None}))
    if not any(line.points for line in series):
        return ""
    return drawn(series, "One task: 5 decisions, 3 actions; models and tools take no time")


def _spread(values: Spread | None) -> str:
    if values is None:
        return ""
    if values.count == 1:
        return _number(values.median)
    return f"{_number(values.median)} ({_number(values.low)} to {_number(values.high)})"


def _median(values: Spread | None) -> str:
    if values is None:
        return ""
    return str(int(values.median)) if values.median == int(values.median) else _number(values.median)


def _number(value: float) -> str:
    """Write a value with three significant digits."""
    if abs(value) >= 100:  # three digits
        return f"{value:.0f}"
    return f"{value:#.3g}".rstrip(".")


def _head(cells: Sequence[str]) -> Iterable[str]:
    return (_row(cells), f"| {' | '.join(['---', *('--:' for _ in cells[1:])])} |")


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
