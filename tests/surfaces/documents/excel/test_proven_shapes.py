"""The shapes on which IronCalc is believed, against LibreOffice."""

from __future__ import annotations

import io
import os
import random
import shutil
import zipfile
from typing import TYPE_CHECKING

import formula_shapes
import openpyxl
import pytest
from formula_shapes import CANDIDATES, agree, learned, nested, trials, workbook

from callboard.surfaces.documents._libre_office import LIBRE_OFFICE
from callboard.surfaces.documents._package import Package
from callboard.surfaces.documents.excel import _engines, _proven_functions
from callboard.surfaces.documents.excel._engines import IRON_CALC, OFFICE, Computation
from callboard.surfaces.documents.excel._formula_tree import Literal, NotParsedError, Reference, parsed
from callboard.surfaces.documents.excel._functions import stored_name
from callboard.surfaces.documents.excel._outdated_results import Formulas
from callboard.surfaces.documents.excel._proven_shapes import Shapes, kind_of, proven_functions, single_range
from callboard.surfaces.documents.excel._workbook import ExcelFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from callboard.surfaces.documents.excel._formula_tree import Node

SHORT, LONG = 1_500, 40_000
"""The numbers of random formulas."""


@pytest.fixture(scope="module")
def office() -> Iterator[None]:
    """Keep one LibreOffice for all tests of this module."""
    if shutil.which("soffice") is None:
        (pytest.fail if os.environ.get("REQUIRE_SOFFICE") == "1" else pytest.skip)("soffice is not installed")
    LIBRE_OFFICE.open()
    yield
    LIBRE_OFFICE.close()


def opened(book: bytes) -> ExcelFile:
    """Open a workbook."""
    with zipfile.ZipFile(io.BytesIO(book)) as archive:
        return ExcelFile(Package("book.xlsx", {name: archive.read(name) for name in archive.namelist()}))


def by_iron_calc(formulas: Sequence[str]) -> list[formula_shapes.Result]:
    """Compute formulas; those at which IronCalc crashes have no result."""
    job = Computation(
        opened(workbook(formulas, stored_name)), {("calc", row, 1): [] for row in range(1, len(formulas) + 1)}
    )
    answers = IRON_CALC.run([job])
    if answers is not None:
        return [answers[0].values.get(place) for place in job.live]
    if len(formulas) == 1:
        return [("a crash", True)]
    half = len(formulas) // 2
    return by_iron_calc(formulas[:half]) + by_iron_calc(formulas[half:])


def by_office(formulas: Sequence[str]) -> list[formula_shapes.Result]:
    """Compute formulas with LibreOffice."""
    job = Computation(
        opened(workbook(formulas, stored_name)), {("calc", row, 1): [] for row in range(1, len(formulas) + 1)}
    )
    (answer,) = OFFICE.run([job]) or [None]
    assert answer is not None
    return [answer.values.get(place) for place in job.live]


def proven_of(formulas: Sequence[str]) -> list[str]:
    """Return the formulas of proven shapes."""
    file = opened(workbook(formulas, stored_name))
    known = Formulas.of(file)
    shapes = Shapes(file, known, known.texts)
    return [text for row, text in enumerate(formulas, start=1) if shapes.are_proven(("calc", row, 1))]


def wrong_of(seed: int, count: int) -> list[str]:
    """Compare random formulas of proven shapes; return those on which the programs differ."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    tried = proven_of([nested(chance, kind_of) for _ in range(count)])
    assert len(tried) > count / 20
    results = zip(tried, by_iron_calc(tried), by_office(tried), strict=True)
    return [f"{text}: {light}, {heavy}" for text, light, heavy in results if not agree(light, heavy)]


@pytest.mark.usefixtures("office")
def test_random_formulas_of_proven_shapes_are_right() -> None:
    assert wrong_of(1, SHORT) == []


@pytest.mark.slow
@pytest.mark.usefixtures("office")
@pytest.mark.parametrize("seed", range(10))
def test_many_random_formulas_of_proven_shapes_are_right(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_engines, "SECONDS", 100)
    assert wrong_of(100 + seed, LONG // 10) == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("office")
def test_the_table_is_what_both_programs_agree_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_engines, "SECONDS", 100)
    found = []
    for name in CANDIDATES:
        tried = list(trials(name, random.Random(name), 150, kind_of))  # noqa: S311 - no secret
        formulas = [trial.formula for trial in tried]
        compared = by_iron_calc([f"({formula}=2.5)" for formula in formulas])
        found.append(
            learned(name, list(zip(tried, by_iron_calc(formulas), by_office(formulas), compared, strict=True)))
        )
    table = "\n".join(filter(None, found))
    (tmp_path / "table").write_text(table, encoding="utf-8")
    assert table == _proven_functions.PROVEN.strip(), f"the new table is in {tmp_path / 'table'}"


def test_the_table_names_functions_with_their_arguments() -> None:
    functions = proven_functions()
    assert functions.keys() <= CANDIDATES.keys()
    assert {"SUM", "ROUND", "IF", "VLOOKUP", "SUMIF", "COUNTIF", "LEFT", "&", "+"} <= functions.keys()


RIGHT = ["1+1", "A1*2", "SUM(A1:A3)", "SUM(A:A)", "ROUND(A1,2)", 'IF(A1>2,"a","b")', "SUM(Numbers)", "SUM(Goods[b])"]
WRONG = [
    "LEN(B1:B3)", "SUMPRODUCT((A1:A3>1)*A1:A3)", "A1:A3*2", "A1:A3", 'COUNTIF(A1,"x")', 'COUNTIF(A1:A1,">1")',
    "1/COUNTIF(B1:B3,B1:B3)", "SUM(Sheet:Other!A1)", "SUM(OFFSET(A1,0,0))", 'INDIRECT("A1")', "SUM(A1:A2,A2:A3 A3:A4)",
    "SUM({1,2})", "EDATE(First,Second)", "First+1", "NOFUNCTION(1)", "SUM((A1:A2,A3))", "SUM('[1]Other'!A1:A2)",
    "VLOOKUP(A1,A1:B3,2)", "SUBTOTAL(9,A1:A3)", "NOW()", "@A1:A3", "E1+1", "SUM(E1:E2)", "SUM(1,", "1 2",
]  # fmt: skip


@pytest.fixture(scope="module")
def book() -> bytes:
    """Give a workbook with values of many kinds, names and a table, and all formulas in column H."""
    made = openpyxl.Workbook()
    sheet = made.active
    sheet.title = "Sheet"
    for row in ([1, "red", None], [2.5, "blue", True], [3, "green", ""]):
        sheet.append(row)
    sheet["E1"].value, sheet["E1"].data_type = "#N/A", "e"
    made.create_sheet("Other").append(["a", "b"])
    made["Other"].append([1, 2])
    made["Other"].append([3, 4])
    made["Other"].add_table(openpyxl.worksheet.table.Table(displayName="Goods", ref="A1:B3"))
    for name, text in (("Numbers", "Sheet!$A$1:$A$3"), ("First", "Sheet!$A$1"), ("Second", "Sheet!$A$2")):
        made.defined_names.add(openpyxl.workbook.defined_name.DefinedName(name, attr_text=text))
    for row, formula in enumerate([*RIGHT, *WRONG], start=1):
        sheet.cell(row, 8).value = f"={formula}"
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


@pytest.mark.parametrize("formula", [*RIGHT, *WRONG])
def test_only_known_shapes_are_proven(book: bytes, formula: str) -> None:
    file = opened(book)
    known = Formulas.of(file)
    row = [*RIGHT, *WRONG].index(formula) + 1
    assert Shapes(file, known, known.texts).are_proven(("sheet", row, 8)) is (formula in RIGHT)


@pytest.mark.parametrize(
    ("value", "kind"),
    [(0, "n"), (1, "s"), (31.0, "s"), (32, "i"), (2024, "j"), (99_999, "i"), (100_000, "n"), (2.5, "n"), (True, "b"),
     ("red", "w"), ("5", "d"), ("TRUE", "d"), ("item 2", "d"), ("", "y"), (">5", "c"), (">x", "x"), ("5*", "x"),
     ("a,b", "x"), (" a", "x"), ("Ä", "u"), (None, "z"), (b"", "!")],
)  # fmt: skip
def test_values_have_kinds(value: object, kind: str) -> None:
    assert kind_of(value) == kind


def shown(node: Node) -> str:
    """Write a tree with all its parentheses."""
    if isinstance(node, Reference):
        return node.text
    if isinstance(node, Literal):
        return "_" if node.value is None else f"{node.value:g}" if isinstance(node.value, float) else str(node.value)
    texts = [shown(argument) for argument in node.arguments]
    if node.name in {"NEGATIVE", "%"}:
        return f"({node.name} {texts[0]})"
    return f"{node.name}({','.join(texts)})" if node.name.isalpha() else f"({node.name.join(texts)})"


@pytest.mark.parametrize(
    ("formula", "text"),
    [("1+2*3", "(1+(2*3))"), ("-2^2", "((NEGATIVE 2)^2)"), ("2^-1", "(2^(NEGATIVE 1))"), ("1-2-3", "((1-2)-3)"),
     ("A1&B1=C1", "((A1&B1)=C1)"), ("50%*2", "((% 50)*2)"), ("(1+2)*3", "((1+2)*3)"), ("IF(A1,,2)", "IF(A1,_,2)"),
     ("PI()", "PI()"), ('"a""b"', 'a"b')],
)  # fmt: skip
def test_formulas_are_parsed_by_precedence(formula: str, text: str) -> None:
    assert shown(parsed(formula)) == text


@pytest.mark.parametrize(
    "formula", ["", "1+", "SUM(1", "SUM(1;2)", "{1,2}", "#REF!", "A1 B1", "(" * 100 + "1" + ")" * 100]
)
def test_rare_and_malformed_formulas_are_not_parsed(formula: str) -> None:
    with pytest.raises(NotParsedError):
        parsed(formula)


@pytest.mark.parametrize(
    ("formula", "text"),
    [("=MAX(IF(B1:B6<4,B1:B6))", "B1:B6"), ("=LEN(Other!A1:A2)", "Other!A1:A2"), ("=SUM(A1:A2)", ""),
     ("=SUMPRODUCT(LEN(A1:A2))", ""), ('=COUNTIF(A1:A2,">1")', ""), ("=UNKNOWN(A1:A2)", ""), ("=1+", "")],
)  # fmt: skip
def test_a_range_for_one_value_is_found(formula: str, text: str) -> None:
    assert single_range(formula) == text
