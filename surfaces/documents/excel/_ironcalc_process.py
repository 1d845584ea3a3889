"""Compute a workbook's formulas with IronCalc, in a process of its own.

A crash, a loop or a lack of memory then stops only this process.

Arguments: the path of a JSON file with the jobs, the path to write the results to, and the seconds of processor time
that all may take. A job is a workbook's path, the requested cells ``[[sheet's number, row, column], …]`` and the
functions that they use.
"""

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import ironcalc

try:
    import resource
except ImportError:  # only Unix has it
    resource = None  # type: ignore[assignment]

_MEMORY = 2 << 30
_UNKNOWN = "#NAME?"


def limit(seconds: int) -> None:
    """Limit processor time and memory, where the operating system can."""
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))


def unknown(functions: list[str]) -> list[str]:
    """List the functions that IronCalc does not know."""
    model = ironcalc.create("functions")
    for row, name in enumerate(functions, start=1):
        model.set_user_input(0, row, 1, f"={name}()")
    model.evaluate()
    return [name for row, name in enumerate(functions, start=1) if model.get_cell_value(0, row, 1) == _UNKNOWN]


def computed(book: str, cells: list[list[int]], functions: list[str]) -> dict[str, Any]:
    """Compute the requested cells of one workbook.

    A cell without a value is left out.
    """
    model = ironcalc.load_from_xlsx(book)
    model.evaluate()
    values = []
    for number, (sheet, row, column) in enumerate(cells):
        value = model.get_cell_value(sheet, row, column)
        if value is not None:
            values.append([number, value, model.get_cell_type(sheet, row, column) == ironcalc.CellType.ErrorValue])
    return {"unknown": unknown(functions), "values": values}


def main(jobs: str, results: str, seconds: str) -> None:
    """Compute all jobs."""
    limit(int(seconds))
    answers = [computed(*job) for job in json.loads(Path(jobs).read_text("utf-8"))]
    Path(results).write_text(json.dumps(answers), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
