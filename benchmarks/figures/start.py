"""CPU time, memory and modules of imports, commands and a first task.

``python -m benchmarks.figures.start`` prints a table; with ``--serve`` it is a contender that answers to
``{"row": name}``. Each row runs in processes of its own, which take turns with the import of the libraries that
callboard builds on, so that a ratio compares processes of the same minute. Bytecode is written before the first
measurement. The first action of a run is measured by wall clock.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.contest import hold
from benchmarks.protocol import serve

ROUNDS = 5
"""Rounds of the command; as a part of the benchmark it has fewer."""
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "sales_report"
LIBRARIES = "import pydantic, pykka, structlog"
NEEDED = f"{LIBRARIES}, asyncio, msgspec, pydantic_settings, sqlite3, yaml"
"""The libraries that a supervisor needs."""
TASK = """
from callboard import FunctionModel, Settings, Supervisor, Task
from callboard.testing import MemoryServer
settings = Settings.load(log={"stream": "off"})
models = {"app": FunctionModel(lambda request: {"Status": "FINISH"})}
with Supervisor.start(settings, models=models, servers=[MemoryServer(MemoryServer.window())]) as supervisor:
    assert supervisor.submit(Task(request="x", target="memo:one")).result().ok
"""
REPORT = """
import atexit, sys
def report():
    with open("/proc/self/status") as status:
        peak = next(line.split()[1] for line in status if line.startswith("VmHWM"))
    print(f"\\n{len(sys.modules)} {peak}", flush=True)
atexit.register(report)
"""
"""A beginning of programs that print the number of their modules, and their largest memory in kB, at their end.

The system's own answer to `os.wait4` is at least the memory of the process that started them."""
COMMAND = "from callboard.__main__ import main; main()"
PROGRAMS = {
    "libraries": ("`import pydantic, pykka, structlog`", LIBRARIES),
    "callboard": ("`import callboard`", "import callboard"),
    "needed": ("the libraries that a supervisor needs", NEEDED),
    "task": ("a supervisor, and its first task", TASK),
}
RUN = ("run", str(EXAMPLE), "--log", "--no-input")
COMMANDS = {
    "--version": ("--version",),
    "--help": ("--help",),
    "docs": ("docs",),
    "completion": ("completion",),
    "tasks": ("tasks", "runs/sales_report-1"),
}
FIRST_ACTION = "action"
TITLES = {
    **{row: title for row, (title, _) in PROGRAMS.items()},
    **{row: f"`callboard {row}`" for row in COMMANDS},
    FIRST_ACTION: "first action of `callboard run` with the example, by wall clock",
}
"""The rows, named for people."""


class Processes:
    """Interpreters with a cache of bytecode of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self._compiled: set[str] = set()

    def measure(self, parameters: dict[str, Any]) -> dict[str, float]:
        """Measure one row; its bytecode is written before."""
        if not self._compiled:
            self._first_action()  # it makes the folder of the run, too
        row = str(parameters["row"])
        if row == FIRST_ACTION:
            return self._first_action()
        if row not in self._compiled:
            self._cost(row)
            self._compiled.add(row)
        return self._cost(row)

    def _start(self, program: str, *arguments: str, errors: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", program, *arguments],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )

    def _cost(self, row: str) -> dict[str, float]:
        """Run a row; give its CPU seconds, peak memory and modules.

        The interpreter's start counts, too.
        """
        program, arguments = (PROGRAMS[row][1], ()) if row in PROGRAMS else (COMMAND, COMMANDS[row])
        with self._start(REPORT + program, *arguments) as process:
            output = process.stdout.read() if process.stdout else ""
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            msg = f"{TITLES[row]} ended with status {process.returncode}"
            raise RuntimeError(msg)
        modules, kilobytes = output.splitlines()[-1].split()
        seconds = usage.ru_utime + usage.ru_stime
        return {"seconds": seconds, "megabytes": int(kilobytes) / 1000, "modules": int(modules)}

    def _first_action(self) -> dict[str, float]:
        """Give the seconds of a run until its first action ended."""
        begin = time.perf_counter()
        with self._start(COMMAND, *RUN, errors=subprocess.STDOUT) as process:
            lines = process.stdout or ()
            seconds = next((time.perf_counter() - begin for line in lines if '"command.ended"' in line), None)
            process.communicate()
        if seconds is None:
            msg = f"{EXAMPLE} ended without an action"
            raise RuntimeError(msg)
        return {"seconds": seconds}


def main() -> None:
    """Print the table."""
    from benchmarks.parts import Sizes, start
    from benchmarks.report import sections

    answers = hold(list(start(Sizes())), ROUNDS, math.inf, lambda text: print(text, file=sys.stderr, flush=True))
    print(sections(answers)["start"])


if __name__ == "__main__":
    if sys.argv[1:] == ["--serve"]:
        with tempfile.TemporaryDirectory() as folder:
            serve(Processes(Path(folder)).measure)
    else:
        main()
