"""The programs that compute formulas: IronCalc and LibreOffice."""

from __future__ import annotations

import functools
import importlib.util
import io
import itertools
import json
import os
import posixpath
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from lxml import etree
from openpyxl.utils import get_column_letter, quote_sheetname
from openpyxl.utils.datetime import MAC_EPOCH

from callboard.surfaces.documents._libre_office import (
    LIBRE_OFFICE,
    OfficeFailedError,
    check_running,
    has_libre_office,
)
from callboard.surfaces.documents._office import q
from callboard.surfaces.documents._package import R_ID, rels_of
from callboard.surfaces.documents.excel._cell_references import functions, rewritten
from callboard.surfaces.documents.excel._cell_values import unescape
from callboard.surfaces.documents.excel._functions import stored_name
from callboard.surfaces.documents.excel._outdated_results import CellPosition
from callboard.surfaces.documents.excel._reduced_workbook import reduced
from callboard.surfaces.documents.excel._sheet import position_of
from callboard.surfaces.documents.excel._structured_references import with_table_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from callboard.surfaces.documents.excel._workbook import ExcelFile

Results: TypeAlias = dict[CellPosition, tuple[float | str | bool, bool]]
"""The computed values by cell, each with whether it is an error."""

SECONDS = 10
"""The longest time that IronCalc may take, in seconds."""
_PROGRAM = Path(__file__).with_name("_ironcalc_process.py")
_PAUSE_SECONDS = 0.05
_FAULTS = frozenset({"#NAME?", "#ERROR!", "#N/IMPL!", "#CIRC!", "#SPILL!", "#CALC!"})
"""Errors that say that a program could not compute, not that the result is an error."""
_WORKBOOK, _STRINGS = "xl/workbook.xml", "xl/sharedStrings.xml"
_TYPES_OF_ERRORS = {"#DIV/0!": 2, "#VALUE!": 3, "#REF!": 4, "#NUM!": 6, "#N/A": 7}


@dataclass(frozen=True)
class Computation:
    """A workbook, and the formulas of it to compute."""

    file: ExcelFile
    live: Mapping[CellPosition, Sequence[CellPosition]]
    """The cells whose formulas are computed, each with the other cells that it fills."""
    known_results: Results = field(default_factory=dict)
    """Results that stand for formulas which are not computed."""

    @functools.cached_property
    def functions(self) -> list[str]:
        """The functions that these formulas use, without prefixes."""
        texts = (self._formula(cell) for cell in self.live)
        return sorted({name for text in texts for name in functions(text)})

    def _formula(self, cell: CellPosition) -> str:
        title, row, column = cell
        sheet = self.file.sheet(title)
        return with_table_names(sheet, row, column, sheet.formula(row, column).removeprefix("{").removesuffix("}")[1:])

    @property
    def cells(self) -> list[CellPosition]:
        """The cells that get results."""
        return [cell for anchor, filled_cells in self.live.items() for cell in (anchor, *filled_cells)]

    @property
    def spills(self) -> list[CellPosition]:
        """The cells of array formulas that grow and shrink with their results."""
        return [
            (title, row, column) for title, row, column in self.live if self.file.sheet(title).is_spill(row, column)
        ]

    def sizes(self) -> list[str]:
        """Write formulas for the rows and columns of each spill."""
        formulas = []
        for anchor in self.spills:
            qualify = functools.partial(_qualified, quote_sheetname(self.file.sheet(anchor[0]).title))
            text = rewritten(self._formula(anchor), qualify)
            formulas += [f"ROWS({text})", f"COLUMNS({text})"]
        return formulas


@dataclass(frozen=True)
class EngineAnswer:
    """The results of a job."""

    values: Results
    unknown: frozenset[str]
    """The functions that the program does not know: errors of formulas with them may be hidden."""
    sizes: Mapping[CellPosition, tuple[int, int]]
    """The rows and columns of each spill whose size could be computed."""


class Engine:
    """A program that computes formulas."""

    name = ""
    may_err = False
    """Whether its errors are not believed."""

    def is_available(self) -> bool:
        """Return whether it can be used here."""
        raise NotImplementedError

    def fits(self, file: ExcelFile) -> bool:
        """Return whether it can compute formulas of a workbook."""
        raise NotImplementedError

    def run(self, jobs: Sequence[Computation]) -> list[EngineAnswer] | None:
        """Compute all jobs; None if the program fails or takes too long."""
        raise NotImplementedError


class IronCalc(Engine):
    """The library IronCalc, in a process for each computation.

    It takes dates that count from 1904 for dates four years earlier.
    """

    name = "IronCalc"
    may_err = True

    def is_available(self) -> bool:
        """Return whether the library is installed."""
        return _has_iron_calc() and _PROGRAM.is_file()

    def fits(self, file: ExcelFile) -> bool:
        """Return whether dates count from 1900."""
        return file.epoch != MAC_EPOCH

    def run(self, jobs: Sequence[Computation]) -> list[EngineAnswer] | None:
        """Compute all jobs in one process."""
        with tempfile.TemporaryDirectory(prefix="callboard-") as name:
            folder = Path(name)
            requests = []
            for number, job in enumerate(jobs):
                book = folder / f"{number}.xlsx"
                sizes = job.sizes()
                book.write_bytes(reduced(job.file, job.live, job.known_results, [sizes] if sizes else ()))
                numbers = {sheet.title.casefold(): index for index, sheet in enumerate(job.file.sheets)}
                requested_cells = [(numbers[title], row, column) for title, row, column in job.cells]
                requested_cells += [(len(numbers), 1, column) for column in range(1, len(sizes) + 1)]
                requests.append([str(book), requested_cells, job.functions])
            (folder / "jobs.json").write_text(json.dumps(requests), "utf-8")
            results = self._run(folder)
        return None if results is None else [_answer(job, result) for job, result in zip(jobs, results, strict=True)]

    def _run(self, folder: Path) -> list[dict[str, Any]] | None:
        paths = [str(folder / name) for name in ("jobs.json", "results.json")]
        environment = {key: os.environ[key] for key in ("SYSTEMROOT", "LD_LIBRARY_PATH") if key in os.environ}
        until = time.monotonic() + SECONDS
        with subprocess.Popen(
            [sys.executable, "-I", str(_PROGRAM), *paths, str(SECONDS)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder, env=environment,
        ) as process:  # fmt: skip
            try:
                while True:
                    check_running(until)
                    try:
                        code = process.wait(_PAUSE_SECONDS)
                        break
                    except subprocess.TimeoutExpired:
                        continue
                results: list[dict[str, Any]] = json.loads((folder / "results.json").read_text("utf-8"))
            except (OfficeFailedError, OSError, ValueError):
                return None
            finally:
                process.kill()
        return results if code == 0 else None


class Office(Engine):
    """LibreOffice, as one instance that is kept."""

    name = "LibreOffice"

    def is_available(self) -> bool:
        """Return whether LibreOffice is installed."""
        return has_libre_office()

    def fits(self, file: ExcelFile) -> bool:
        """Return whether no value is rounded to its format."""
        setting = file.package.tree(file.part).find(q("calcPr"))
        return setting is None or setting.get("fullPrecision") not in {"0", "false"}

    def run(self, jobs: Sequence[Computation]) -> list[EngineAnswer] | None:
        """Compute all jobs in one conversion.

        A last sheet shows the functions that LibreOffice does not know, by calls without arguments, and the kinds of
        errors: it writes several as ``#VALUE!``.
        """
        try:
            books = LIBRE_OFFICE.convert(
                [reduced(job.file, job.live, job.known_results, _scratch(job)) for job in jobs]
            )
        except OfficeFailedError:
            return None
        if any(book is None for book in books):
            return None
        return [_of_office(job, book) for job, book in zip(jobs, books, strict=True) if book is not None]


IRON_CALC, OFFICE = IronCalc(), Office()


@functools.cache
def _has_iron_calc() -> bool:
    frozen = getattr(sys, "frozen", False)
    return bool(sys.executable) and not frozen and importlib.util.find_spec("ironcalc") is not None


def _qualified(default_title: str, sheet: str, cells: str) -> str | None:
    return None if sheet else f"{default_title}!{cells}"


def _answer(job: Computation, output: Mapping[str, Any]) -> EngineAnswer:
    results = {number: (value, error) for number, value, error in output["values"]}
    values = {cell: results[number] for number, cell in enumerate(job.cells) if number in results}
    values = {cell: result for cell, result in values.items() if not (result[1] and result[0] in _FAULTS)}
    sizes = [results.get(len(job.cells) + number, (None, True)) for number in range(2 * len(job.spills))]
    return EngineAnswer(values, frozenset(output["unknown"]), _sizes(job, sizes))


def _sizes(job: Computation, results: Sequence[tuple[Any, bool]]) -> dict[CellPosition, tuple[int, int]]:
    pairs = zip(job.spills, results[::2], results[1::2], strict=True)
    return {anchor: (int(rows[0]), int(columns[0])) for anchor, rows, columns in pairs if not (rows[1] or columns[1])}


def _scratch(job: Computation) -> list[list[str]]:
    titles = {sheet.title.casefold(): quote_sheetname(sheet.title) for sheet in job.file.sheets}
    types = [f"ERROR.TYPE({titles[title]}!{get_column_letter(column)}{row})" for title, row, column in job.cells]
    calls = [f"{stored_name(name)}()" for name in job.functions]
    return [[text] for text in (*types, *job.sizes(), *calls, "1")]


def _of_office(job: Computation, book: bytes) -> EngineAnswer:
    """Read the results out of the workbook that LibreOffice saved."""
    numbers = {sheet.title.casefold(): index for index, sheet in enumerate(job.file.sheets)}
    positions_by_sheet: dict[int, set[tuple[int, int]]] = {number: set() for number in numbers.values()}
    for title, row, column in job.cells:
        positions_by_sheet[numbers[title]].add((row, column))
    cells_by_sheet = _read(book, {**positions_by_sheet, len(numbers): None})
    lines = cells_by_sheet.get(len(numbers), {})
    scratch = (lines.get((row, 1), (None, True)) for row in itertools.count(1))
    types = list(itertools.islice(scratch, len(job.cells)))
    sizes = list(itertools.islice(scratch, 2 * len(job.spills)))
    calls = zip(job.functions, scratch, strict=False)
    values: Results = {}
    for (title, row, column), kind in zip(job.cells, types, strict=True):
        result = cells_by_sheet.get(numbers[title], {}).get((row, column))
        # An error that only LibreOffice has is written as another one.
        if result is not None and (not result[1] or kind[0] == _TYPES_OF_ERRORS.get(str(result[0]))):
            values[title, row, column] = result
    unknown = frozenset(name for name, result in calls if result == ("#NAME?", True))
    return EngineAnswer(values, unknown, _sizes(job, sizes))


Cells: TypeAlias = dict[tuple[int, int], tuple[float | str | bool, bool]]


def _read(book: bytes, positions_by_sheet: Mapping[int, set[tuple[int, int]] | None]) -> dict[int, Cells]:
    """Read cells of sheets, by their numbers; None stands for all cells."""
    with zipfile.ZipFile(io.BytesIO(book)) as archive:
        links = {link.get("Id"): link.get("Target") for link in etree.fromstring(archive.read(rels_of(_WORKBOOK)))}
        entries = list(etree.fromstring(archive.read(_WORKBOOK)).iter(q("sheet")))
        names = [posixpath.normpath(posixpath.join("xl", links[entry.get(R_ID)])) for entry in entries]
        strings = []
        if _STRINGS in archive.namelist():
            entries = etree.fromstring(archive.read(_STRINGS)).iter(q("si"))
            strings = ["".join(part.text or "" for part in entry.iter(q("t"))) for entry in entries]
        if len(names) != max(positions_by_sheet) + 1:
            return {}
        return {
            number: _cells(archive.read(names[number]), cells, strings) for number, cells in positions_by_sheet.items()
        }


def _cells(sheet: bytes, positions: set[tuple[int, int]] | None, strings: Sequence[str]) -> Cells:
    cells: Cells = {}
    for cell in etree.fromstring(sheet).iter(q("c")):
        position, kind, text = position_of(cell.get("r")), cell.get("t", "n"), cell.findtext(q("v"))
        if text is None or (positions is not None and position not in positions):
            continue
        if kind == "n":
            cells[position] = (float(text), False)
        elif kind == "b":
            cells[position] = (text == "1", False)
        else:
            cells[position] = (strings[int(text)] if kind == "s" else unescape(text), kind == "e")
    return cells
