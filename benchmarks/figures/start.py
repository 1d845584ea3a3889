"""CPU time, memory and modules of imports, commands and a first task.

``python -m benchmarks.figures.start`` prints a table. Each row runs in processes of its own, which take turns with the
import of the libraries that callboard builds on, so that a ratio compares processes of the same minute. Bytecode is
written before the first round. The first action of a run is measured by wall clock.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 5
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
COUNT = "\nimport sys; print(len(sys.modules))"
COMMANDS = (["--version"], ["--help"], ["docs"], ["completion"], ["tasks"])


def python(program: str) -> list[str]:
    """Give the command that runs a program."""
    return [sys.executable, "-c", program]


def cost(command: list[str]) -> tuple[float, float]:
    """Run a command; give its CPU seconds and peak memory in MB.

    The interpreter's start counts, too.
    """
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0  # it was waited for
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def modules(program: str) -> int:
    """Count the modules after a program."""
    counted = subprocess.run(python(program + COUNT), capture_output=True, text=True, check=True)
    return int(counted.stdout)


def first_action(folder: Path) -> float:
    """Give the seconds of a run until its first action ended."""
    command = [*python("from callboard.__main__ import main; main()"), "run", str(EXAMPLE), "--log", "--no-input"]
    begin = time.perf_counter()
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        seconds = next(time.perf_counter() - begin for line in process.stdout or () if '"command.ended"' in line)
        process.communicate()
    return seconds


def main() -> None:
    """Print the table."""
    rows = {
        "`import pydantic, pykka, structlog`": python(LIBRARIES),
        "`import callboard`": python("import callboard"),
        "the libraries that a supervisor needs": python(NEEDED),
        "a supervisor, and its first task": python(TASK),
        **{
            f"`callboard {' '.join(arguments)}`": [*python("from callboard.__main__ import main; main()"), *arguments]
            for arguments in COMMANDS
        },
    }
    programs = {
        "`import pydantic, pykka, structlog`": LIBRARIES,
        "`import callboard`": "import callboard",
        "the libraries that a supervisor needs": NEEDED,
        "a supervisor, and its first task": TASK,
    }
    with tempfile.TemporaryDirectory() as folder:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = f"{folder}/bytecode"
        os.chdir(folder)
        for command in rows.values():
            subprocess.run(command, capture_output=True, check=False)
        measured: dict[str, list[tuple[float, float]]] = {row: [] for row in rows}
        for _ in range(ROUNDS):
            for row, command in rows.items():
                measured[row].append(cost(command))
        print("| | CPU, s | peak, MB | modules |\n| --- | --: | --: | --: |")
        for row, answers in measured.items():
            seconds, memory = (statistics.median(part) for part in zip(*answers, strict=True))
            count = modules(programs[row]) if row in programs else ""
            print(f"| {row} | {seconds:.2f} | {memory:.0f} | {count} |", flush=True)
        actions = [first_action(Path(folder)) for _ in range(ROUNDS)]
        print(f"| the first action of a run of examples/sales_report, wall | {statistics.median(actions):.2f} | | |")


if __name__ == "__main__":
    main()
