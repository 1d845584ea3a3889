"""Calls on large documents, and what other libraries need for the same.

``python -m benchmarks.figures.documents`` answers to ``{"row": name}``, a row of `benchmarks.large_documents` or of
`LIBRARIES`; with ``"files": [name, ...]`` it builds only these files. They are built once; each row gets copies.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.figures.start import REPORT
from benchmarks.large_documents import FILES, ROWS
from benchmarks.protocol import serve

LONGEST = 600.0
"""Seconds of a row; it ends after them, without figures."""
LIBRARIES = {
    "openpyxl, read-only: the same 12 rows": (
        "openpyxl",
        """
sheet = openpyxl.load_workbook("rows.xlsx", read_only=True)["Data"]
rows = [*sheet.iter_rows(min_row=150_000, max_row=150_011, values_only=True)]
""",
    ),
    "python-calamine: the 1,000,000 cells": (
        "python_calamine",
        "python_calamine.load_workbook('million.xlsx').get_sheet_by_index(0).to_python()",
    ),
}
"""Programs of other libraries, each with the module that it imports."""


def rows() -> list[str]:
    """Give the rows that can be measured here."""
    return [*ROWS, *(row for row, (module, _) in LIBRARIES.items() if find_spec(module))]


class Files:
    """The documents, each built at its first use."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._built: set[str] = set()

    def measure(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """Measure one row on copies of the files."""
        row, names = str(parameters["row"]), parameters.get("files") or list(FILES)
        for name in names:
            if name not in self._built:
                FILES[name](self._folder / name)
                self._built.add(name)
        with tempfile.TemporaryDirectory(dir=self._folder.parent) as copies:
            for name in names:  # cp, because it keeps the holes of sparse files
                subprocess.run(["cp", self._folder / name, copies], check=True)  # noqa: S607 - any cp
            return library(row, copies) if row in LIBRARIES else call(row, copies)


def call(row: str, folder: str) -> dict[str, Any]:
    """Measure a row of calls, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.large_documents", "--measure", folder, row]
    process = subprocess.run(command, check=False, capture_output=True, text=True, timeout=LONGEST)
    if process.returncode:
        raise RuntimeError(process.stderr.strip().rpartition("\n")[2])
    answer: dict[str, Any] = json.loads(process.stdout)
    return answer


def library(row: str, folder: str) -> dict[str, float]:
    """Measure another library's program; its import counts in the memory only."""
    module, program = LIBRARIES[row]
    timed = f"import {module}, time\nbegin = time.process_time()\n{program}\nprint(time.process_time() - begin)"
    command = [sys.executable, "-c", REPORT + timed]
    process = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True, timeout=LONGEST)
    if process.returncode:
        raise RuntimeError(process.stderr.strip().rpartition("\n")[2])
    seconds, _, figures = process.stdout.split("\n", 2)
    return {"seconds": float(seconds), "megabytes": int(figures.split()[1]) / 1000}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        originals = Path(folder) / "originals"
        originals.mkdir()
        serve(Files(originals).measure)
