"""Compute formulas with programs that are right about them.

IronCalc is believed only for formulas of a proven shape (see `_proven_shapes`). All others are computed by LibreOffice,
if it is installed. Neither is believed where it does not reproduce the results that the file holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from callboard.surfaces.documents.excel._cell_references import functions, operators, words
from callboard.surfaces.documents.excel._engines import IRON_CALC, OFFICE, Computation
from callboard.surfaces.documents.excel._functions import may_be_computed
from callboard.surfaces.documents.excel._outdated_results import VOLATILE, Formulas
from callboard.surfaces.documents.excel._proven_shapes import Shapes
from callboard.surfaces.documents.excel._reduced_workbook import left_out_names
from callboard.surfaces.documents.excel._trusted_functions import VERSIONS, Checked

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from callboard.surfaces.documents.excel._engines import Engine, EngineAnswer, Results
    from callboard.surfaces.documents.excel._outdated_results import CellPosition
    from callboard.surfaces.documents.excel._workbook import ExcelFile

    Result = tuple[float | str | bool, bool]
    Live = Mapping[CellPosition, list[CellPosition]]

_FILTERED = frozenset({"AGGREGATE", "SUBTOTAL"})
"""Functions that leave out cells with formulas of such functions, so that these must stay formulas."""
_CLOSE = 1e-9


@dataclass
class Computed:
    """The results of a computation."""

    values: Results = field(default_factory=dict)
    sizes: dict[CellPosition, tuple[int, int]] = field(default_factory=dict)
    """The rows and columns of spills that no longer fit their cells; these have no result."""


class Calculation:
    """A computation of some formulas of a workbook.

    Formulas with a stored result that are not asked for keep it, and are not computed.
    """

    def __init__(self, file: ExcelFile, formulas: Formulas, cells: Iterable[CellPosition]) -> None:
        self._file = file
        self._formulas = formulas
        self._requested_cells = set(cells)
        self._sheets = {sheet.title.casefold(): sheet for sheet in file.worksheets}
        self._live = self._without(self._candidates(), self._refused())

    def run(self) -> Computed:
        """Compute the formulas, except those that no program is right about."""
        if not self._live or self._file.used_cells > self._file.compute_cells:
            return Computed()
        requested_cells = self._requested_cells & self._live.keys()
        shapes = Shapes(self._file, self._formulas, self._live)
        sound = self._without(self._live, {anchor for anchor in self._live if not shapes.are_proven(anchor)})
        iron_calc_fits = IRON_CALC.is_available() and IRON_CALC.fits(self._file)
        office_fits = OFFICE.is_available() and OFFICE.fits(self._file)
        computed = Computed()
        iron_calc_first = iron_calc_fits and (
            not office_fits or requested_cells <= sound.keys() or any(map(self._is_spill, sound))
        )
        if iron_calc_first:
            computed = self._run(IRON_CALC, sound, {}) or computed
        if office_fits and not requested_cells <= computed.values.keys() and not computed.sizes:
            uncomputed = {
                anchor: filled_cells for anchor, filled_cells in self._live.items() if anchor not in computed.values
            }
            more = self._run(OFFICE, uncomputed, computed.values) or Computed()
            computed = Computed(computed.values | more.values, more.sizes)
        if iron_calc_fits and not iron_calc_first and not requested_cells & sound.keys() <= computed.values.keys():
            more = self._run(IRON_CALC, sound, {}) or Computed()
            computed = Computed(more.values | computed.values, more.sizes | computed.sizes)
        computed.values = {cell: result for cell, result in computed.values.items() if cell in self._requested_cells}
        return computed

    def checkable(self, engine: Engine, features: set[str]) -> Live:
        """Return the formulas with these functions and a stored result.

        Those that read a formula without one are left out.
        """
        texts = self._formulas.texts
        volatile = [cell for cell, text in texts.items() if VOLATILE & features_of(text)]
        unknown = [cell for cell in texts if not self._has_result(cell)]
        changing = {*volatile, *self._formulas.depending([*volatile, *unknown])} | self._refused()
        chosen = {cell for cell, text in texts.items() if cell not in changing and features_of(text) & features}
        live = {
            anchor: list(self._formulas.spilled(anchor))
            for anchor in texts
            if anchor in chosen and self._has_result(anchor)
        }
        if engine is OFFICE:
            return live
        shapes = Shapes(self._file, self._formulas, live)
        return {anchor: filled_cells for anchor, filled_cells in live.items() if shapes.are_proven(anchor)}

    def _candidates(self) -> Live:
        """Return the formulas to compute, with the cells that they fill."""
        texts = self._formulas.texts
        chosen = {cell for cell in texts if cell in self._requested_cells or not self._has_result(cell)}
        if any(_FILTERED.intersection(functions(texts[cell])) for cell in chosen):
            chosen |= {cell for cell, text in texts.items() if _FILTERED.intersection(functions(text))}
        return {anchor: list(self._formulas.spilled(anchor)) for anchor in texts if anchor in chosen}

    def _has_result(self, cell: CellPosition) -> bool:
        title, row, column = cell
        return self._sheets[title].raw(row, column)[1] != "empty"

    def _refused(self) -> set[CellPosition]:
        """Return the formulas that no program may get or that none knows."""
        texts = self._formulas.texts
        names = left_out_names(self._file)
        refused = {cell for cell, text in texts.items() if not may_be_computed(text)}
        refused |= {cell for cell, text in texts.items() if names and names & {*map(str.casefold, words(text))}}
        return refused | {cell for cell in texts if self._sheets[cell[0]].is_data_table(*cell[1:])}

    def _without(self, live: Live, refused: set[CellPosition]) -> Live:
        """Leave out formulas, and all that depend on them."""
        refused = refused & live.keys()
        if not refused:
            return live
        refused |= self._formulas.depending([*refused, *(cell for anchor in refused for cell in live[anchor])]).keys()
        return {anchor: filled_cells for anchor, filled_cells in live.items() if anchor not in refused}

    def _run(self, engine: Engine, live: Live, known_results: Results) -> Computed | None:
        """Compute with one program; None if it fails.

        `known_results` holds results of another one.

        Where it was not yet checked against the results that the file holds, this is done in the same run.
        """
        features = {anchor: features_of(self._formulas.texts[anchor]) for anchor in live}
        checked = self._file.checked.setdefault(engine.name, Checked())
        check = Comparison.of(self._file, engine, set().union(*features.values()) - checked.right - checked.wrong)
        answers = engine.run([Computation(self._file, live, known_results), *([check.job] if check else [])])
        if answers is None:
            return None
        if check:
            check.learn(answers[1], checked)
            VERSIONS.keep(self._file.fingerprint, self._file.checked)
        answer = answers[0]
        wrong = {anchor for anchor in live if features[anchor] & (checked.wrong | answer.unknown)}
        sizes = {
            anchor: size
            for anchor, size in answer.sizes.items()
            if anchor not in wrong and self._outgrown(anchor, size)
        }
        wrong |= {anchor for anchor in live if self._is_spill(anchor) and anchor not in answer.sizes}
        wrong |= {anchor for anchor in live if not _is_sure(engine, answer, anchor, live)}
        right = self._without(live, wrong | sizes.keys())
        values = {
            cell: answer.values[cell] for anchor in right for cell in (anchor, *live[anchor]) if cell in answer.values
        }
        return Computed(values, sizes)

    def _is_spill(self, anchor: CellPosition) -> bool:
        return self._sheets[anchor[0]].is_spill(*anchor[1:])

    def _outgrown(self, anchor: CellPosition, size: tuple[int, int]) -> bool:
        area = self._sheets[anchor[0]].array_at(*anchor[1:])
        return size != (area.size["rows"], area.size["columns"])


def features_of(formula: str) -> set[str]:
    """Return the functions and operators that a formula uses."""
    return {*functions(formula), *operators(formula)} or {"="}


def _is_sure(engine: Engine, answer: EngineAnswer, anchor: CellPosition, live: Live) -> bool:
    """Return whether all cells of a formula have a believed result."""
    results = [answer.values.get(cell) for cell in (anchor, *live[anchor])]
    return all(result is not None and not (result[1] and engine.may_err) for result in results)


@dataclass
class Comparison:
    """A comparison of computed results with those that a file holds."""

    job: Computation
    formulas: Formulas

    @classmethod
    def of(cls, file: ExcelFile, engine: Engine, features: set[str]) -> Comparison | None:
        """Choose the formulas with some functions or operators, if any."""
        original = file.original() if features else None
        if original is None:
            return None
        formulas = Formulas.of(original)
        calculation = Calculation(original, formulas, [])
        live = calculation.checkable(engine, features)
        return cls(Computation(original, live), formulas) if live else None

    def learn(self, answer: EngineAnswer, checked: Checked) -> None:
        """Note the functions and operators that were right and wrong.

        A formula that reads another wrong one does not count. Neither does an error that was not reproduced as such:
        programs have other errors than Excel.
        """
        sheets = {sheet.title.casefold(): sheet for sheet in self.job.file.worksheets}
        wrong = set()
        for anchor, filled_cells in self.job.live.items():
            for title, row, column in (anchor, *filled_cells):
                stored, result = sheets[title].stored(row, column), answer.values.get((title, row, column))
                if stored is not None and not _same(stored, result):
                    wrong.add(anchor)
        blamed = wrong - self.formulas.depending(wrong).keys()
        features = {anchor: features_of(self.formulas.texts[anchor]) for anchor in self.job.live}
        checked.wrong |= set().union(*(features[anchor] for anchor in blamed or wrong))
        checked.right |= set().union(*features.values()) - checked.wrong


def _same(stored: Result, result: Result | None) -> bool:
    """Compare a stored result with a computed one."""
    (value, error), computed_value = stored, result[0] if result else None
    if error and (result is None or result[1]):
        return True
    if (
        isinstance(value, bool)
        or isinstance(computed_value, bool)
        or isinstance(value, str)
        or isinstance(computed_value, str)
    ):
        return type(value) is type(computed_value) and value == computed_value and not (result and result[1])
    return computed_value is not None and math.isclose(value, computed_value, rel_tol=_CLOSE, abs_tol=_CLOSE)
