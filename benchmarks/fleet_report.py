"""The tables of a fleet: latency, throughput, processes at rest, and beats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.contest import spread

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.contest import Answers

PLACES = {
    "here": "on this machine",
    "there": "on another machine",
    "shell": "in the shell of another machine",
    "any": "in the shell of any machine",
}
PROCESSES = {"machine": "a machine that serves", "submitter": "a machine that submits", "server": "the server"}
THROUGHPUT = {
    "rate": "tasks a second",
    "submitter_ms": "CPU ms a task: submitter",
    "machines_ms": "machines",
    "server_ms": "server",
    "messages": "messages",
    "bytes": "bytes",
}
LOCAL_MACHINES = 2
LOCAL = {"one": "tasks a second: one process", "many": f"`local: {LOCAL_MACHINES}`", "ratio": "times"}
KINDS = {"cpu": "50 ms of CPU in a tool", "instant": "instant"}
BEATS = {
    "rate": "messages a second",
    "kilobytes": "kB a second",
    "server_cpu": "CPU ms a second: server",
    "machine_cpu": "a machine",
    "megabytes_each": "server's MB for each",
}


def fleet_lines(answers: Answers) -> Iterator[str]:
    """Draw the tables; nothing if the fleet was not measured."""
    if not any(cell.startswith("fleet/") for cell in answers):
        return
    yield from _head("a task with one action", "ms, median", "ms, 99th percentile")
    for place, title in PLACES.items():
        yield _row(title, *(_cell(answers, "latency", f"{place}_{name}", 1e3) for name in ("median", "p99")))
    yield ""
    yield from _head("tasks whose model thinks for 0.2 s", *THROUGHPUT.values())
    for row in _rows(answers, "throughput-"):
        number = int(row.partition("-")[2])
        title = f"{number} machine{'s' if number > 1 else ''}" if number else "on this machine"
        yield _row(f"{title}, 8 windows each" if number else f"{title}, 8 windows", *_cells(answers, row, THROUGHPUT))
    yield ""
    yield from _head("at rest", "MB", "CPU ms a second")
    for name, title in PROCESSES.items():
        yield _row(title, *(_cell(answers, "rest", f"{name}_{key}") for key in ("megabytes", "cpu")))
    yield ""
    yield from _head("tasks of one computer", *LOCAL.values())
    for kind, title in KINDS.items():
        yield _row(title, *(_cell(answers, "local", f"{kind}_{name}") for name in LOCAL))
    yield ""
    yield from _head("simulated machines that only tell their states", *BEATS.values())
    for row in _rows(answers, "beats-"):
        _, number, interval = row.split("-")
        yield _row(f"{number}, every {interval} s", *_cells(answers, row, BEATS))


def _rows(answers: Answers, begin: str) -> list[str]:
    rows = [cell.partition("/")[2] for cell in answers if cell.startswith(f"fleet/{begin}")]
    return sorted(rows, key=lambda row: int(row.split("-")[1]))


def _cells(answers: Answers, row: str, keys: dict[str, str]) -> list[str]:
    return [_cell(answers, row, key) for key in keys]


def _cell(answers: Answers, row: str, key: str, scale: float = 1.0) -> str:
    said = answers.get(f"fleet/{row}", ())
    if any("error" in answer for answer in said):
        return "failed"
    values = spread(answers, (f"fleet/{row}", key), scale)
    if values is None:
        return ""
    return f"{values.median:,.0f}" if values.median >= 100 else f"{values.median:#.3g}".rstrip(".")  # three digits


def _head(*cells: str) -> Iterator[str]:
    yield _row(*cells)
    yield f"| {' | '.join(['---', *('--:' for _ in cells[1:])])} |"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def rows_of(machines: Sequence[int], beats: Sequence[tuple[int, float]]) -> Iterator[tuple[str, dict[str, object]]]:
    """Give the rows and their parameters."""
    yield "latency", {"row": "latency"}
    for number in machines:
        yield f"throughput-{number}", {"row": "throughput", "machines": number}
    yield "rest", {"row": "rest"}
    for number, interval in beats:
        yield f"beats-{number}-{interval:g}", {"row": "beats", "machines": number, "interval": interval}
    yield "local", {"row": "local", "machines": LOCAL_MACHINES}
