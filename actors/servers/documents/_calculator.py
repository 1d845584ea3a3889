"""Compute a workbook's formulas with IronCalc, in a process of its own.

A crash, a loop or a lack of memory then stops only this process.

Arguments: the workbook's path, the path of a JSON file with the wanted cells ``[[sheet, row, column], …]`` (the
sheet in small letters) and the functions that they use, the path to write the results to, and the seconds of processor
time that it may take.
"""

import contextlib
import json
import sys
from pathlib import Path

import ironcalc

try:
    import resource
except ImportError:  # only Unix has it
    resource = None  # type: ignore[assignment]

_MEMORY = 2 << 30
_UNKNOWN = "#NAME?"
_FAULTS = frozenset({_UNKNOWN, "#ERROR!", "#N/IMPL!", "#CIRC!"})
"""Errors that say that IronCalc could not compute, not that the result is an error."""


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


def main(book: str, wanted: str, results: str, seconds: str) -> None:
    """Compute the wanted cells.

    A cell that can't be computed is left out of the results.
    """
    limit(int(seconds))
    asked = json.loads(Path(wanted).read_text("utf-8"))
    model = ironcalc.load_from_xlsx(book)
    model.evaluate()
    titles = {sheet["name"].casefold(): number for number, sheet in enumerate(model.get_worksheets_properties())}
    values = []
    for title, row, column in asked["cells"]:
        sheet = titles[title]
        value = model.get_cell_value(sheet, row, column)
        error = model.get_cell_type(sheet, row, column) == ironcalc.CellType.ErrorValue
        if value is not None and not (error and value in _FAULTS):
            values.append([title, row, column, value, error])
    found = {"unknown": unknown(asked["functions"]), "values": values}
    Path(results).write_text(json.dumps(found), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
