"""Count a task's instructions outside the kernel with valgrind.

``python -m benchmarks --only instructions`` prints a table. It counts where no hardware counter can be read. It needs
``valgrind``, and takes about a quarter of an hour; ``python -m benchmarks`` leaves it out unless it is named. Each row
is the difference of two runs, of three batches of tasks and of one, so that the start and the warm-up do not count.

``python -m benchmarks.figures.instructions`` answers to ``{"row": name}``, a key of `ROWS`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks import raw, record
from benchmarks.board import VARIANTS, prepare
from benchmarks.protocol import serve

if TYPE_CHECKING:
    from benchmarks.protocol import Prepare

VALGRIND = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
FEW, MANY = 1, 3
"""Batches of the two runs."""
ROWS: dict[str, tuple[Prepare, int]] = {
    "J": (raw.job, 100),
    "record": (record.prepare, 100),
    **{variant: (partial(prepare, VARIANTS[variant]), 100) for variant in ("off", "process")},
    "alone": (partial(prepare, VARIANTS["process"]), 1),
}
"""The rows: a preparation, and the tasks at once."""
TITLES = {
    "J": "raw Pykka, 10 messages (J)",
    "record": "the record only",
    "off": "a task without journal and log",
    "process": "a task with journal and log",
    "alone": "the same, one at a time",
}
ONE_BY_ONE = 50
"""Batches, in place of one, where a batch is a single task."""


def run(row: str, batches: int) -> None:
    """Run batches of a row, after a warm-up."""
    prepared, size = ROWS[row]
    with prepared(size) as go:
        go(1)
        go(batches * (ONE_BY_ONE if size == 1 else 1))


def counted(row: str, batches: int) -> int:
    """Count the instructions of a process that runs batches of a row."""
    command = [*VALGRIND, sys.executable, "-m", "benchmarks.figures.instructions", row, str(batches)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    match = re.search(r"I +refs: +([\d,]+)", said)
    if match is None:
        msg = f"valgrind printed no count of instructions: {said[-500:]}"
        raise RuntimeError(msg)
    return int(match[1].replace(",", ""))


def measure(parameters: dict[str, Any]) -> dict[str, float]:
    """Count the instructions of one task of a row.

    Raises:
        RuntimeError: If there is no valgrind.
    """
    if shutil.which(VALGRIND[0]) is None:
        msg = "valgrind is not installed"
        raise RuntimeError(msg)
    row = str(parameters["row"])
    size = ROWS[row][1]
    tasks = (MANY - FEW) * (ONE_BY_ONE if size == 1 else size)
    return {"instructions": (counted(row, MANY) - counted(row, FEW)) / tasks}


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run(sys.argv[1], int(sys.argv[2]))
    else:
        serve(measure)
