"""Count a task's instructions outside the kernel with valgrind.

``python -m benchmarks.figures.instructions`` prints a table. It counts where no hardware counter can be read. It needs
``valgrind``, and takes about a quarter of an hour. Each row is the difference of two runs, of three batches of tasks
and of one, so that the start and the warm-up do not count.
"""

from __future__ import annotations

import re
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING

from benchmarks import raw, record
from benchmarks.board import VARIANTS, prepare

if TYPE_CHECKING:
    from benchmarks.protocol import Prepare

VALGRIND = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
FEW, MANY = 1, 3
"""Batches of the two runs."""
ROWS: dict[str, tuple[Prepare, int]] = {
    "a raw Pykka job (J)": (raw.job, 100),
    "the record only": (record.prepare, 100),
    "without journal and log": (partial(prepare, VARIANTS["off"]), 100),
    "with journal (`process`) and log": (partial(prepare, VARIANTS["process"]), 100),
    "the same, one task at a time": (partial(prepare, VARIANTS["process"]), 1),
    "the same, actions with effect `once`": (partial(prepare, VARIANTS["once"]), 100),
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


def main() -> None:
    """Print the table."""
    print("| | million | J |\n| --- | --: | --: |")
    job = 0.0
    for row, (_, size) in ROWS.items():
        tasks = (MANY - FEW) * (ONE_BY_ONE if size == 1 else size)
        instructions = (counted(row, MANY) - counted(row, FEW)) / tasks
        job = job or instructions
        print(f"| {row} | {instructions / 1e6:.3g} | {instructions / job:.3g} |", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run(sys.argv[1], int(sys.argv[2]))
    else:
        main()
