"""The questions of each part, and the titles of the contenders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.board import VARIANTS
from benchmarks.contest import Contender, Question
from benchmarks.environments import PEERS
from benchmarks.fan_out import WIDTHS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

JOB_VARIANTS = ("off", "process", "full", "once", "blocks", "own")
FEW = 3
"""Rounds in which everything is asked, however long it takes."""


@dataclass(frozen=True)
class Sizes:
    """Sizes of the measurements; a smoke test needs small ones."""

    tasks: tuple[int, ...] = (1, 10, 100, 1000)
    waits: tuple[int, ...] = (100, 1000)
    step_tasks: int = 10
    memory_tasks: int = 300
    """Waiting tasks, or idle agents, whose memory is averaged."""
    traced: bool = True
    """Whether memory is measured in both ways."""
    history: int = 10_000
    history_tasks: int = 200
    load: int = 100
    calls: int = 50
    windows: tuple[int, int] = (10, 10_000)
    counted: int = 20
    """Tasks at once whose Python calls are counted."""
    documents: tuple[str, ...] = ()
    """Large documents that are built; none stands for all."""
    document_rows: tuple[str, ...] = ()
    """Calls on these documents; none stands for all."""
    subtask_seconds: float = 1.0
    """Seconds that each subtask of the fan-out waits."""
    fan_outs: int = 25
    """Tasks without waits whose CPU time is averaged."""
    browser_steps: int = 100
    pages: tuple[str, ...] = ()
    """Pages of MiniWoB++; none stands for all."""
    seeds: int = 3
    """Times that a page is solved, each with other contents."""
    fleet_tasks: int = 200
    fleet_machines: tuple[int, ...] = (0, 1, 2, 3)
    """Machines of the throughput; 0 stands for this one."""
    beats: tuple[tuple[int, float], ...] = ((50, 2.0), (200, 20.0))
    """Simulated machines, and the seconds between the beats of each."""
    rest_seconds: float = 20.0
    console_tasks: int = 100_000


QUICK = Sizes(
    tasks=(1, 10),
    waits=(10,),
    step_tasks=2,
    memory_tasks=10,
    traced=False,
    history=20,
    history_tasks=5,
    load=5,
    calls=5,
    windows=(10, 100),
    counted=2,
    documents=("million.xlsx",),
    document_rows=("look at 1,000,000 cells",),
    subtask_seconds=0.01,
    fan_outs=2,
    browser_steps=3,
    pages=("click-test", "use-slider", "drag-box"),
    seeds=1,
    fleet_tasks=3,
    fleet_machines=(1,),
    beats=((3, 0.5),),
    rest_seconds=0.5,
    console_tasks=1_000,
)


def job(sizes: Sizes, interpreters: dict[str, Path]) -> Iterator[Question]:
    """The job: raw, callboard's variants, and the installed peers."""
    contenders = [Contender("J", "benchmarks.raw"), Contender("record", "benchmarks.record")]
    contenders += [Contender(name, "benchmarks.board", (name,)) for name in JOB_VARIANTS]
    for name, python in interpreters.items():
        module, *arguments = PEERS[name].command
        contenders.append(Contender(name, f"benchmarks.peers.{module}", tuple(arguments), str(python)))
    for size in sizes.tasks:
        for contender in contenders:
            yield Question(contender, {"tasks": size}, sized=True, least=FEW)


def fan_out(sizes: Sizes, interpreters: dict[str, Path]) -> Iterator[Question]:
    """Eight subtasks of one task, by callboard and by LangGraph."""
    contenders = {"board": Contender("fan_out", "benchmarks.figures.subtasks")}
    for name, python in interpreters.items():
        contenders[name] = Contender("fan_out", "benchmarks.peers.langgraph_fan_out", python=str(python))
    for width in WIDTHS:
        parameters = {"width": width, "wait": sizes.subtask_seconds, "runs": sizes.fan_outs}
        yield from (Question(contender, parameters, row=f"{name}-{width}") for name, contender in contenders.items())


def steps(sizes: Sizes) -> Iterator[Question]:
    """One step of an agent."""
    parameters = {"tasks": sizes.step_tasks}
    for name in ("process", "off"):
        yield Question(Contender(f"step-{name}", "benchmarks.figures.steps", (name,)), parameters)


def waits(sizes: Sizes) -> Iterator[Question]:
    """The job with models and tools that wait."""
    contender = Contender("waits", "benchmarks.board", ("waits",))
    yield from (Question(contender, {"tasks": size, "least": 0}, sized=True) for size in sizes.waits)


def memory(sizes: Sizes) -> Iterator[Question]:
    """Memory of waiting tasks and idle agents."""
    for what in ("queued", "asking", "idle"):
        for traced in (False, True) if sizes.traced else (False,):
            contender = Contender(f"{what}{'-traced' if traced else ''}", "benchmarks.figures.memory", fresh=True)
            yield Question(contender, {"what": what, "count": sizes.memory_tasks, "traced": traced})


def history(sizes: Sizes) -> Iterator[Question]:
    """The effect of a long history, and its growth per task."""
    parameters = {"history": sizes.history, "tasks": sizes.history_tasks}
    yield Question(Contender("history", "benchmarks.figures.history"), parameters)


def stops(sizes: Sizes) -> Iterator[Question]:
    """Start, cancel, stop."""
    yield Question(Contender("stops", "benchmarks.figures.stops"), {"tasks": sizes.load})


def tools(sizes: Sizes) -> Iterator[Question]:
    """A tool call, in process and over the protocol."""
    yield Question(Contender("tools", "benchmarks.figures.tools"), {"calls": sizes.calls})


def calls(sizes: Sizes) -> Iterator[Question]:
    """Python calls."""
    for name in ("process", "off"):
        yield Question(Contender(f"calls-{name}", "benchmarks.figures.calls", (name,)), {"tasks": sizes.counted})


def windows(sizes: Sizes) -> Iterator[Question]:
    """A surface with many windows."""
    yield Question(
        Contender("windows", "benchmarks.figures.windows"), {"windows": sizes.windows, "tasks": sizes.counted}
    )


def start(_sizes: Sizes) -> Iterator[Question]:
    """Imports, commands, a first task, a first action."""
    from benchmarks.figures.start import TITLES

    contender = Contender("start", "benchmarks.figures.start", ("--serve",))
    yield from (Question(contender, {"row": row}, row=row) for row in TITLES)


def documents(sizes: Sizes) -> Iterator[Question]:
    """Calls on large documents."""
    from benchmarks.figures.documents import rows

    contender = Contender("documents", "benchmarks.figures.documents")
    for row in sizes.document_rows or rows():
        yield Question(contender, {"row": row, "files": sizes.documents}, row=row)


def instructions(_sizes: Sizes) -> Iterator[Question]:
    """Instructions of a task, counted by valgrind."""
    from benchmarks.figures.instructions import ROWS

    contender = Contender("valgrind", "benchmarks.figures.instructions")
    yield from (Question(contender, {"row": row}, row=row) for row in ROWS)


WITH_PEERS = {"job": (job, frozenset(PEERS)), "fan_out": (fan_out, frozenset({"langgraph-sqlite"}))}
"""The parts that other libraries take part in, with their names."""


def browser(sizes: Sizes) -> Iterator[Question]:
    """A step in a browser, beside Playwright alone."""
    from benchmarks.figures.browser import TITLES

    contender = Contender("browser", "benchmarks.figures.browser")
    yield from (Question(contender, {"row": row, "steps": sizes.browser_steps}, row=row) for row in TITLES)


def miniwob(sizes: Sizes) -> Iterator[Question]:
    """The pages of MiniWoB++."""
    from benchmarks.miniwob.pages import page_names

    contender = Contender("miniwob", "benchmarks.figures.miniwob")
    for name in sizes.pages or page_names():
        yield Question(contender, {"page": name, "seeds": sizes.seeds}, row=name)


def fleet(sizes: Sizes) -> Iterator[Question]:
    """Tasks on machines of a fleet, beside tasks here."""
    from benchmarks.fleet_report import rows_of

    contender = Contender("fleet", "benchmarks.figures.fleet")
    common = {"tasks": sizes.fleet_tasks, "seconds": sizes.rest_seconds}
    for row, parameters in rows_of(sizes.fleet_machines, sizes.beats):
        yield Question(contender, {**common, **parameters}, row=row)


def console(sizes: Sizes) -> Iterator[Question]:
    """Pages of the console, and the price of the journal's index."""
    from benchmarks.figures.console_pages import TITLES

    contender = Contender("console", "benchmarks.figures.console_pages")
    yield from (Question(contender, {"row": row, "tasks": sizes.console_tasks}, row=row) for row in TITLES)


FIGURES = {
    "steps": steps,
    "waits": waits,
    "calls": calls,
    "windows": windows,
    "memory": memory,
    "history": history,
    "stops": stops,
    "tools": tools,
    "start": start,
    "documents": documents,
}
"""The parts of callboard alone."""
ON_REQUEST = {"instructions": instructions, "browser": browser, "miniwob": miniwob, "fleet": fleet, "console": console}
"""Parts that run only when they are named: they need programs and packages that few have, and two take long."""


def titles() -> dict[str, str]:
    """Name the contenders of the job, for people."""
    return {
        "J": "raw Pykka, 10 messages (J)",
        "record": "the record only: `process`, log, no agents",
        **{name: VARIANTS[name].title for name in JOB_VARIANTS},
        **{name: peer.title for name, peer in PEERS.items()},
    }


DURABLE = {"record", "process", "full", "once", "blocks", "own", "langgraph-sqlite"}
"""Contenders of the job whose work survives the process."""
