"""The results of formulas after an edit: computed where the extra `excel` is installed, else taken away."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from callboard.actors.servers.documents._excel_outdated import Formulas, SheetRange
from callboard.actors.servers.documents._excel_references import functions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from callboard.actors.servers.documents._excel_file import ExcelFile

Results: TypeAlias = dict[SheetRange, tuple[float | str | bool, bool]]
"""The computed values by cell, each with whether it is an error."""

SECONDS = 10
"""How long a computation may take."""
_MAX_CELLS = 50_000
_PROGRAM = Path(__file__).with_name("_calculator.py")


def settle(file: ExcelFile) -> None:
    """Bring the results of formulas up to date with an edit; results that can't be computed are taken away.

    The program that opens the workbook next computes all of them again.
    """
    changed: list[SheetRange] = [
        (sheet.title.casefold(), row, column) for sheet in file.worksheets for row, column in sheet.changed
    ]
    if not changed and not file.outdated:
        return
    formulas = Formulas.of(file)
    if not formulas.texts:
        return
    file.compute_on_load()
    cells = {id(cell) for cell in file.outdated}
    own: list[SheetRange] = [
        (sheet.title.casefold(), row, column)
        for sheet in file.worksheets
        for (row, column), cell in sheet.cells.items()
        if id(cell) in cells
    ]
    seeds = [*changed, *own, *formulas.volatile]
    outdated = {place: None for place in (*changed, *own, *formulas.volatile) if place in formulas.texts}
    outdated |= formulas.depending(seeds)
    spilled = [each for place in outdated for each in formulas.spilled(place)]
    sheets = {sheet.title.casefold(): sheet for sheet in file.worksheets}
    everything = [*outdated, *spilled]
    for title, row, column in everything:
        if (row, column) in sheets[title].cells:
            sheets[title].set_result(row, column, None)
    results = compute(file, formulas, everything)
    for (title, row, column), (value, error) in results.items():
        sheets[title].set_result(row, column, value, error=error)


def compute(file: ExcelFile, formulas: Formulas, wanted: Iterable[SheetRange]) -> Results:
    """Compute cells of a workbook; those that can't be computed are left out.

    Formulas that use a function that the calculator does not know, or read other workbooks, are left out with all
    that depend on them: one of those might hide the error.
    """
    cells = list(wanted)
    if not cells or len(cells) > _MAX_CELLS or not is_available():
        return {}
    used = {place: set(functions(text)) for place, text in formulas.texts.items()}
    found = _run(file.package.to_bytes(), cells, sorted(set().union(*used.values())))
    if found is None:
        return {}
    strange = set(found["unknown"])
    blocked = [place for place, names in used.items() if names & strange] + formulas.elsewhere()
    left_out = {*blocked, *formulas.depending(blocked)}
    left_out |= {each for place in left_out for each in formulas.spilled(place)}
    results = {(title, row, column): (value, error) for title, row, column, value, error in found["values"]}
    return {place: result for place, result in results.items() if place not in left_out}


@functools.cache
def is_available() -> bool:
    """Return whether formulas can be computed here."""
    frozen = getattr(sys, "frozen", False)
    return (
        bool(sys.executable) and not frozen and importlib.util.find_spec("ironcalc") is not None and _PROGRAM.is_file()
    )


def _run(book: bytes, cells: list[SheetRange], names: list[str]) -> Any:
    """Run the calculator; None if it fails or takes too long."""
    with tempfile.TemporaryDirectory(prefix="callboard-") as name:
        folder = Path(name)
        folder.joinpath("book.xlsx").write_bytes(book)
        folder.joinpath("wanted.json").write_text(json.dumps({"cells": cells, "functions": names}), "utf-8")
        paths = [str(folder / each) for each in ("book.xlsx", "wanted.json", "results.json")]
        kept = {key: os.environ[key] for key in ("SYSTEMROOT", "LD_LIBRARY_PATH") if key in os.environ}
        try:
            subprocess.run(
                [sys.executable, "-I", str(_PROGRAM), *paths, str(SECONDS)],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                cwd=name, env=kept, timeout=SECONDS, check=True,
            )  # fmt: skip
            found = json.loads(folder.joinpath("results.json").read_text("utf-8"))
        except (subprocess.SubprocessError, OSError, ValueError):
            return None
        return found
