"""The report: tables in Markdown, and their places in the document."""

from __future__ import annotations

import os
import platform
import re
from functools import partial
from importlib import metadata
from typing import TYPE_CHECKING, Literal

from benchmarks.contest import ratio, spread
from benchmarks.environments import PEERS, REQUIREMENTS
from benchmarks.goals import GOALS
from benchmarks.parts import DURABLE, JOB_VARIANTS, titles
from benchmarks.plot import Series, drawn
from benchmarks.raw import HOPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from benchmarks.contest import Answers, Number, Spread


FIGURES: tuple[tuple[str, Number, str, float], ...] = (
    ("a step with journal and log: CPU", ("step-process", "cpu"), "µs", 1e6),
    ("a step without journal and log: CPU", ("step-off", "cpu"), "µs", 1e6),
    ("a raw message from an actor to itself (H): CPU", ("H", "cpu"), "µs", 1e6 / HOPS),
    ("Python calls of a task with journal and log", ("calls-process", "calls"), "calls", 1),
    ("the same, without journal and log", ("calls-off", "calls"), "calls", 1),
    ("callboard functions that such tasks call", ("calls-process", "functions"), "functions", 1),
    ("callboard files that define these functions", ("calls-process", "files"), "files", 1),
    ("a task on a surface with 10 windows: CPU", ("windows", "few"), "ms", 1e3),
    ("the same, with 10,000: CPU", ("windows", "many"), "ms", 1e3),
    ("a task that waits for its window: resident", ("queued", "resident"), "kB", 1e-3),
    ("the same: traced", ("queued-traced", "traced"), "kB", 1e-3),
    ("a task that waits for a person, in a window of its own: resident", ("asking", "resident"), "kB", 1e-3),
    ("the same: traced", ("asking-traced", "traced"), "kB", 1e-3),
    ("an idle application agent: resident", ("idle", "resident"), "kB", 1e-3),
    ("the same: traced", ("idle-traced", "traced"), "kB", 1e-3),
    ("a task with no history: CPU", ("history", "without"), "ms", 1e3),
    ("a task after the history: CPU", ("history", "with"), "ms", 1e3),
    ("one of the first after a start, with no history: CPU", ("history", "first_without"), "ms", 1e3),
    ("one of the first after a start, after the history: CPU", ("history", "first_with"), "ms", 1e3),
    ("start on a short journal", ("history", "start_without"), "ms", 1e3),
    ("start after the history", ("history", "start_with"), "ms", 1e3),
    ("growth of the journal per task", ("history", "growth"), "kB", 1e-3),
    ("growth of the log per task", ("history", "log"), "kB", 1e-3),
    ("growth of the log per task", ("history", "lines"), "lines", 1),
    ("events per task", ("history", "events"), "events", 1),
    ("start without an existing journal", ("stops", "start"), "ms", 1e3),
    ("start, under load", ("stops", "start_busy"), "ms", 1e3),
    ("from a cancel to its result, under load", ("stops", "cancel"), "ms", 1e3),
    ("the longest such cancel", ("stops", "cancel_longest"), "ms", 1e3),
    ("stop, idle", ("stops", "stop_idle"), "ms", 1e3),
    ("stop, under load", ("stops", "stop"), "ms", 1e3),
    ("a tool call in process", ("tools", "in_process"), "µs", 1e6),
    ("a tool call over stdio", ("tools", "stdio"), "µs", 1e6),
    ("a tool call over HTTP", ("tools", "http"), "µs", 1e6),
)
"""The other figures: the name, the number, its unit and its scale."""


def sections(answers: Answers, how: Mapping[str, str] | None = None) -> dict[str, str]:
    """Write the measurements, by section of the document.

    A section without a measurement is left out.

    Args:
        answers: The measurements.
        how: The date and the commit, by part.
    """
    written = {
        "machine": machine(answers, how or {}),
        "job": "\n".join(_job(answers, "seconds", lambda number, _raw: spread(answers, number, 1e3))),
        "cpu": "\n".join(_job(answers, "cpu", partial(ratio, answers))),
        "instructions": "\n".join(_job(answers, "instructions", partial(ratio, answers))) if _counted(answers) else "",
        "goals": "\n".join(_goals(answers)),
        "figures": "\n".join(_figures(answers)),
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
    return pattern.sub(lambda match: f"{match[1]}\n{text}\n\n{match[2]}", document)


def machine(answers: Answers, how: Mapping[str, str]) -> str:
    """Describe the machine, the libraries and the dates."""
    there = {cell.partition("@")[0] for cell in answers}
    named = {peer.environment: REQUIREMENTS[peer.environment] for name, peer in PEERS.items() if name in there}
    versions = [f"Pykka {metadata.version('pykka')}", f"pydantic {metadata.version('pydantic')}"]
    versions += [requirement.replace("==", " ") for requirements in named.values() for requirement in requirements]
    parts = {when: [part for part in how if how[part] == when] for when in how.values()}
    host = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    measured = (f"- {', '.join(those)} {when}" for when, those in parts.items())
    return "\n".join([f"{host}; {', '.join(versions)}. Measured:", "", *measured])


def sizes_of(answers: Answers) -> list[int]:
    """Give the measured numbers of tasks at once."""
    return sorted({int(cell.partition("@")[2]) for cell in answers if cell.startswith("J@")})


def _job(answers: Answers, key: str, spread_of: Callable[[Number, Number], Spread | None]) -> Iterator[str]:
    """Draw a table of the job.

    `spread_of` gets a number of a contender and the same number of J.
    """
    sizes = sizes_of(answers)
    if not sizes:
        return
    yield from _head(["", *(f"{size} at once" for size in sizes), "durable"])
    for name, title in titles().items():
        cells = [
            _failed(answers, f"{name}@{size}") or _spread(spread_of((f"{name}@{size}", key), (f"J@{size}", key)))
            for size in sizes
        ]
        if any(cells):
            yield _row([title, *cells, "yes" if name in DURABLE else "no"])


def _counted(answers: Answers) -> bool:
    """Check whether instructions were counted."""
    return any("instructions" in said for said in answers.get(f"J@{max(sizes_of(answers), default=0)}", ()))


def _failed(answers: Answers, cell: str) -> str:
    return "failed" if any("error" in said for said in answers.get(cell, ())) else ""


def _goals(answers: Answers) -> Iterator[str]:
    spreads = [(goal, goal.found(answers)) for goal in GOALS]
    if all(values is None for _, values in spreads):
        return
    yield from _head(["", "goal", "measured", "met"])
    for goal, values in spreads:
        bound = f"{goal.sign} {goal.bound:g} {goal.unit}"
        met = "" if values is None else "yes" if goal.met(values) else "no"
        yield _row([goal.what, bound, _spread(values) or "not measured", met])


def _figures(answers: Answers) -> Iterator[str]:
    rows = [
        (what, unit, values)
        for what, number, unit, scale in FIGURES
        if (values := spread(answers, number, scale)) is not None
    ]
    if rows:
        yield from _head(["", "median (quartiles)", "unit"])
    for what, unit, values in rows:
        yield _row([what, _spread(values), unit])


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


def _number(value: float) -> str:
    """Write a value with three significant digits."""
    if abs(value) >= 100:  # three digits
        return f"{value:.0f}"
    return f"{value:#.3g}".rstrip(".")


def _head(cells: Sequence[str]) -> Iterable[str]:
    return (_row(cells), f"| {' | '.join(['---', *('--:' for _ in cells[1:])])} |")


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
