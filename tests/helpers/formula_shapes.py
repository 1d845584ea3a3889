"""Formulas of every function with every kind of argument, for a comparison of two programs."""

from __future__ import annotations

import io
import math
import random
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import openpyxl
from openpyxl.utils import get_column_letter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Result: TypeAlias = tuple[float | str | bool, bool] | None
    KindOf: TypeAlias = Callable[[object], str]
    """Returns the kind of a value, as a small letter."""
    Compute: TypeAlias = Callable[[bytes, int], tuple[list[Result], list[Result]]]
    """Computes the formulas of the sheet `Calc` with both programs."""

VALUES: dict[str, list[object]] = {
    "N": [-1, 2.5, -2.5, 0.5, 45352.75, 1e6, 1e-9, -3, 1.005, 0, 3.141592653589793, -1 / 3, 0.1 + 0.2],
    "S": [1, 2, 3, 12, 31],
    "J": [1901, 1999, 2024, 2199],
    "I": [32, 99, 100, 2600, 45352],
    "B": [True, False],
    "W": ["red", "Blue sky", "RED", "bl"],
    "D": ["5", "-1.5", "2024-05-01", "12:30", "1e3", "5%", "TRUE", " 7 ", "$5", "1,234", "item 2"],
    "Y": [""],
    "C": [">2", "<=3.5", ">=-1", "<100", ">45000"],
    "X": ["red*", ">red", "<>red", "?ed", "~*", "=", "a-b, c.", " red", "<"],
    "U": ["Ä", "straße", "日本", "éclair"],
}
"""The values that stand for a kind."""
EXPRESSIONS = ["(1/3)", "(0-2/3)", "(3^3)", "(0.1+0.2)", "(6/4)"]
"""Numbers that a formula computes, with more digits than one that it holds."""
ERRORS = ["1/0", "NA()", "SQRT(-1)"]
_CELL_KINDS = "nsjibwdycxu"
COLUMNS: list[list[object]] = [
    [3.5, -1, 2.5, -1, -4, 1000000.5],
    [1, 2, 3, 4, 5, 6],
    [3, 1, 2, 2, 31, 3],
    [45352, 2600, 100, 60, 99, 45380],
    [2024, 2025, 2024, 2023, 1999, 2001],
    [3, None, 2.5, 100, None, 7],
    [3, "red", 2, "Blue sky", 5, 1],
    [3, True, 2, False, 5, 1],
    [3, "5", 2, "2024-05-01", 5, "item 2"],
    [3, "", 2, 1, "", 7],
    [3, "a-b, c.", 2, "red*", 5, ">x"],
    [3, ">2", 2, "<=3.5", 5, 1],
    [3, "Ä", 2, "日本", 5, 1],
    ["red", "Blue sky", "RED", "bl", "Red one", "green"],
    ["red", None, "RED", "bl", None, "green"],
    ["red", "", "RED", "bl", "", "green"],
    ["red", True, "RED", False, "true blue", "green"],
    ["red", "item 2", "RED", "5", "2024-05-01", "green"],
    ["red", "a-b", "red*", "bl", "~*", "?ed"],
    ["red", "Ä", "straße", "bl", "éclair", "green"],
    ["5", "item 2", "2024-05-01", "1e3", "TRUE", "7"],
    [None] * 6,
]
"""Columns of six cells on the sheet `Columns`. The sheet `Rows` has them as rows."""

NUMBER, TEXT = ("2.5", "3"), ('"red"', '"Blue sky"')
CANDIDATES: dict[str, tuple[str, str]] = {}
"""The functions that are tried: the kinds of their results, and canonical arguments by position.

The codes are n: a number, m: a number alone, p, i and 1: a small whole number, h: a rate, j: a year, d and e: dates,
t: a text, b: a truth value, 0: zero or false alone, k: a criterion, D: a number as a text, u: a unit of time, r, q and
s: ranges of numbers, c: of payments, v and w: tables, a and g: a text or truth value or a range. ``?`` begins the
optional ones, and ``*`` lets the last one repeat. ``T`` stands for all kinds of texts, and ``=23`` for arguments that
may be returned.
"""
for _names, _results, _arguments in (
    ("+ - * /", "N", "nn"),
    ("^ POWER", "N", "np"),
    ("NEGATIVE POSITIVE %", "N", "m"),
    ("&", "T", "tt"),
    ("= <>", "B", "nn"),
    ("< > <= >=", "B", "mm"),
    ("SUM PRODUCT AVERAGE MAX MIN COUNT COUNTA MEDIAN STDEV STDEV.S STDEV.P", "N", "r*"),
    ("VAR VAR.S VAR.P STDEVP VARP SUMSQ", "N", "r*"),
    ("AVERAGEA MAXA MINA GEOMEAN HARMEAN DEVSQ AVEDEV SKEW KURT", "N", "r*"),
    ("COUNTBLANK ROWS COLUMNS", "N", "r"),
    ("COUNTIF", "N", "qk"),
    ("SUMIF AVERAGEIF", "N", "qk?r"),
    ("COUNTIFS", "N", "qk?qk"),
    ("SUMIFS AVERAGEIFS MAXIFS MINIFS", "N", "rqk?qk"),
    ("SUMPRODUCT", "N", "r?r"),
    ("LARGE SMALL QUARTILE QUARTILE.INC", "N", "rn"),
    ("PERCENTILE PERCENTILE.INC", "N", "rh"),
    ("RANK RANK.EQ", "N", "nr?n"),
    ("CORREL PEARSON SLOPE INTERCEPT RSQ COVARIANCE.P COVARIANCE.S SUMXMY2 SUMX2MY2 SUMX2PY2", "N", "rs"),
    ("ABS INT SQRT EXP LN LOG10 SIGN EVEN ODD RADIANS DEGREES SIN COS TAN ASIN ACOS ATAN SINH COSH TANH", "N", "n"),
    ("PI", "N", ""),
    ("ROUND ROUNDUP ROUNDDOWN MROUND", "N", "nn"),
    ("TRUNC", "N", "n?n"),
    ("LOG", "N", "n?n"),
    ("CEILING FLOOR MOD QUOTIENT ATAN2 COMBIN PERMUT", "N", "nn"),
    ("BITAND BITOR BITXOR DELTA", "N", "nn"),
    ("GESTEP", "N", "n?n"),
    ("AND OR XOR", "B", "g*"),
    ("NOT", "B", "b"),
    ("TRUE FALSE", "B", ""),
    ("IF", "B=23", "bn?n"),
    ("IFERROR IFNA", "=12", "nn"),
    ("IFS", "=2", "bn"),
    ("CHOOSE", "=23", "1n?n"),
    ("VALUE_OF", "=1", "n"),
    ("ISNUMBER ISTEXT ISBLANK ISERROR ISERR ISNA ISLOGICAL ISNONTEXT", "B", "n"),
    ("ISEVEN ISODD", "B", "n"),
    ("N", "N", "n"),
    ("T", "T", "t"),
    ("LEN CODE", "N", "t"),
    ("LEFT RIGHT", "T", "t?i"),
    ("MID", "T", "tii"),
    ("UPPER LOWER PROPER TRIM CLEAN", "T", "t"),
    ("CHAR", "T", "n"),
    ("FIND SEARCH", "N", "tt?i"),
    ("SUBSTITUTE", "T", "ttt?i"),
    ("REPLACE", "T", "tiit"),
    ("REPT", "T", "ti"),
    ("EXACT", "B", "tt"),
    ("CONCATENATE", "T", "t*"),
    ("CONCAT", "T", "a*"),
    ("TEXTJOIN", "T", "tba*"),
    ("VALUE", "N", "D"),
    ("DATE", "N", "j11"),
    ("TIME", "N", "111"),
    ("YEAR MONTH DAY", "N", "d"),
    ("WEEKDAY WEEKNUM", "N", "d?n"),
    ("ISOWEEKNUM", "N", "d"),
    ("EDATE EOMONTH", "N", "dn"),
    ("DAYS", "N", "dd"),
    ("DAYS360", "N", "dd?b"),
    ("YEARFRAC", "N", "dd?n"),
    ("DATEDIF", "N", "deu"),
    ("NETWORKDAYS", "N", "de"),
    ("WORKDAY", "N", "dn"),
    ("MATCH", "N", "1r0"),
    ("VLOOKUP", "=2", "1v10"),
    ("HLOOKUP", "=2", "1w10"),
    ("INDEX", "=1", "r1?1"),
    ("XLOOKUP", "=34", "nrs?n"),
    ("PMT PV FV NPER", "N", "hnn?nn"),
    ("NPV", "N", "hr*"),
    ("IPMT PPMT", "N", "h1nn"),
    ("SLN", "N", "nnn"),
    ("IRR", "N", "c"),
):  # fmt: skip
    CANDIDATES |= dict.fromkeys(_names.split(), (_results, _arguments))
_CANONICAL = {
    "n": NUMBER, "t": TEXT, "b": ("TRUE", "FALSE"), "0": ("0",), "1": ("1", "2"), "h": ("0.05", "0.5"),
    "d": ("45352", "45690.5"), "e": ("45700", "46000"), "u": ('"d"', '"m"', '"y"'), "D": ('"5"',),
    "j": ("2024", "2025"), "m": NUMBER, "p": ("2", "3"), "i": ("1", "2"), "k": ('">2"', "3", '"red"'),
    "q": ("Columns!A1:A6", "Columns!B1:B6"),
    "r": ("Columns!A1:A6", "Columns!B1:B6"), "s": ("Columns!B1:B6",),
    "c": ("Columns!A1:A6",), "g": ("TRUE", "FALSE"), "a": TEXT, "v": ("Columns!B1:C6", "Columns!N1:O6"),
    "w": ("Rows!A2:F3",),
}  # fmt: skip
LONG = frozenset({
    "AVERAGE", "COUNT", "COUNTIF", "MATCH", "MAX", "MIN", "SUM", "SUMIF", "SUMIFS",
})  # fmt: skip
"""The functions that are tried with whole columns; IronCalc takes very long for others."""
ALIKE = frozenset({
    "AVERAGEIF", "AVERAGEIFS", "CORREL", "COUNTIFS", "COVARIANCE.P", "COVARIANCE.S", "INTERCEPT", "MAXIFS", "MINIFS",
    "PEARSON", "RSQ", "SLOPE", "SUMIF", "SUMIFS", "SUMPRODUCT", "SUMX2MY2", "SUMX2PY2", "SUMXMY2", "XLOOKUP",
})  # fmt: skip
"""The functions whose ranges must have the same rows and columns."""
_RANGE_CODES = frozenset("rqscgavw")
_WHOLE_COLUMN = re.compile(r"![A-Z]:[A-Z]$")
"""An argument that would be an array of a million values where no range is expected."""
_ONLY = {"0": "0O", "p": "S0sF", "i": "SJI0sjiF", "m": "NSJI0nsjizFM", "k": "NSJIWUC0nsjiwucF"}
"""The kinds that are tried for some codes alone: others are rare there, and programs differ on many of them."""
_INFIX = set("+-*/^&=<>") | {"<>", "<=", ">="}
_WHOLE = (6, 10)
"""The columns that are also tried as a whole: IronCalc takes much memory for one."""
_RARITY = {"b": 3, "z": 3, "0": 3, "y": 6, "m": 6, "*": 6, "u": 8, "d": 10, "x": 12, "f": 12}
"""The kinds of arguments that everyday formulas can do without."""
_OPERATORS = _INFIX | {"NEGATIVE", "POSITIVE", "%", "VALUE_OF"}
_LETTERS = [*"NSJIBOWDYCXU", "0", "M", "F", *_CELL_KINDS, "z"]
_RANGES = [f"|{kind}" for kind in "nsjibwdycxuz*"]


@dataclass(frozen=True)
class Argument:
    """An argument, with its kinds: letters, those of a range behind ``|``."""

    text: str
    kinds: frozenset[str]

    @property
    def shape(self) -> str:
        """The form of a range; empty for a value or a cell."""
        if "!" not in self.text and self.text != "Wide":
            return ""
        if _WHOLE_COLUMN.search(self.text):
            return "whole"
        rows, block = self.text.startswith("Rows"), self.text in {"Columns!A1:B6", "Columns!M1:N6"}
        return ("row" if rows else "block" if block else "column") if ":" in self.text or self.text == "Wide" else ""


def arguments(kind_of: KindOf) -> list[Argument]:
    """List arguments of all kinds."""
    found = [
        Argument(_literal(value), frozenset("O" if value is False else "0" if value == 0 else kind))
        for kind, values in VALUES.items()
        for value in values
    ]
    found += [Argument(text, frozenset("N")) for text in EXPRESSIONS]
    found += [Argument("(1=1)", frozenset("B")), Argument("(1=2)", frozenset("O"))]
    found += [Argument("", frozenset("M")), *(Argument(f"({text})", frozenset("F")) for text in ERRORS)]
    for column, kind in enumerate(_CELL_KINDS, start=1):
        found += [
            Argument(f"Data!{get_column_letter(column)}{row}", frozenset(kind))
            for row in range(1, len(VALUES[kind.upper()]) + 1)
        ]
    found.append(Argument("Data!Z1", frozenset("z")))
    for number, values in enumerate(COLUMNS, start=1):
        letter, ranges = get_column_letter(number), frozenset(f"|{kind_of(value)}" for value in values)
        found += [Argument(f"Columns!{letter}1:{letter}6", ranges), Argument(f"Rows!$A${number}:$F${number}", ranges)]
        if number in _WHOLE:
            found.append(Argument(f"Columns!{letter}:{letter}", ranges | {"|z", "|*"}))
    for text, columns in (("Columns!A1:B6", (0, 1)), ("Columns!M1:N6", (12, 13)), ("Wide", (6,))):  # Wide is a name
        kinds = {f"|{kind_of(value)}" for column in columns for value in COLUMNS[column]}
        found.append(Argument(text, frozenset(kinds)))
    return found


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    return f'"{value}"' if isinstance(value, str) else repr(value).replace("e", "E")


def written(name: str, texts: Sequence[str]) -> str:
    """Write a call as a formula."""
    if name in _INFIX:
        return f"({texts[0]}{name}{texts[1]})"
    if name in {"NEGATIVE", "POSITIVE", "%"}:
        return {"NEGATIVE": f"(-{texts[0]})", "POSITIVE": f"(+{texts[0]})", "%": f"({texts[0]}%)"}[name]
    return texts[0] if name == "VALUE_OF" else f"{name}({','.join(texts)})"


def workbook(formulas: Sequence[str], stored: Callable[[str], str]) -> bytes:
    """Make a workbook with the arguments' cells, and the formulas in the first column of the sheet `Calc`."""
    book = openpyxl.Workbook()
    calc = book.active
    calc.title = "Calc"
    data, columns, rows = (book.create_sheet(title) for title in ("Data", "Columns", "Rows"))
    for column, kind in enumerate(_CELL_KINDS, start=1):
        for row, value in enumerate(VALUES[kind.upper()], start=1):
            _put(data.cell(row, column), value)
    for number, values in enumerate(COLUMNS, start=1):
        for index, value in enumerate(values, start=1):
            _put(columns.cell(index, number), value)
            _put(rows.cell(number, index), value)
    book.defined_names.add(openpyxl.workbook.defined_name.DefinedName("Wide", attr_text="Columns!$G$1:$G$6"))
    for row, formula in enumerate(formulas, start=1):
        calc.cell(row, 1).value = "=" + re.sub(r"\b([A-Z][A-Z0-9.]*)\(", lambda match: stored(match[1]) + "(", formula)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def _put(cell: openpyxl.cell.Cell, value: object) -> None:
    if isinstance(value, str):
        cell.value = "x"
        cell._value, cell.data_type = value, "s"  # noqa: SLF001 - a text such as "=" stays a text
    elif value is not None:
        cell.value = value


@dataclass(frozen=True)
class Trial:
    """A call of a function with some arguments."""

    name: str
    arguments: tuple[Argument, ...]

    @property
    def is_fair(self) -> bool:
        """True unless a function that needs ranges of one form has others."""
        return self.name not in ALIKE or len({argument.shape for argument in self.arguments} - {""}) <= 1

    @property
    def formula(self) -> str:
        """The call as a formula."""
        return written(self.name, [argument.text for argument in self.arguments])

    @property
    def kinds(self) -> set[tuple[int, str]]:
        """The kinds of its arguments, with their positions."""
        last = len(signature(self.name)[0]) - 1
        return {(min(at, last), kind) for at, argument in enumerate(self.arguments) for kind in argument.kinds}


def signature(name: str) -> tuple[str, int, bool]:
    """Return the codes of a function's arguments, the least number of them, and whether the last one repeats."""
    codes = CANDIDATES[name][1]
    first, _, more = codes.rstrip("*").partition("?")
    return first + more, len(first), codes.endswith("*")


def trials(name: str, chance: random.Random, pairs: int, kind_of: KindOf) -> Iterator[Trial]:
    """Try a function with arguments of all kinds."""
    return (trial for trial in _trials(name, chance, pairs, kind_of) if trial.is_fair)


def _trials(name: str, chance: random.Random, pairs: int, kind_of: KindOf) -> Iterator[Trial]:
    """Try each kind at each position beside canonical arguments, then random ones at all positions."""
    codes, least, repeats = signature(name)
    choices = [choice for choice in arguments(kind_of) if choice.text or name not in _OPERATORS]
    for count in range(least, len(codes) + 1 + repeats):
        used = [codes[min(at, len(codes) - 1)] for at in range(count)]
        for which in range(2 if count == len(codes) else 1):
            canonical = [Argument(_CANONICAL[code][which % len(_CANONICAL[code])], frozenset()) for code in used]
            yield Trial(name, tuple(canonical))
            if count < len(codes) and count > least:
                continue
            for at in range(count):
                for choice in choices:
                    if (used[at] in "rqs" and name in LONG) or not _WHOLE_COLUMN.search(choice.text):
                        yield Trial(name, (*canonical[:at], choice, *canonical[at + 1 :]))
    if name in {"MATCH", "VLOOKUP"}:
        yield from _found(name, kind_of)
    bounded = [choice for choice in choices if not _WHOLE_COLUMN.search(choice.text)]
    by_kind = {kind: [each for each in bounded if kind in each.kinds] for kind in [*_LETTERS, *_RANGES]}
    by_kind = {kind: found for kind, found in by_kind.items() if found}
    for _ in range((pairs if name not in _OPERATORS else 10 * pairs) if codes else 0):
        count = chance.randint(max(least, 1), len(codes) + 2 * repeats)
        kinds = [chance.choice(list(by_kind)) for _ in range(count)]
        yield Trial(name, tuple(chance.choice(by_kind[kind]) for kind in kinds))


def _found(name: str, kind_of: KindOf) -> Iterator[Trial]:
    """Look up each value of each column, as a value and as a cell, in it."""
    for number, values in enumerate(COLUMNS[:-1], start=1):
        width = {"MATCH": 1, "VLOOKUP": 2}[name]
        kinds = {f"|{kind_of(value)}" for column in COLUMNS[number - 1 : number - 1 + width] for value in column}
        first, last = get_column_letter(number), get_column_letter(number - 1 + width)
        area = Argument(f"Columns!{first}1:{last}6", frozenset(kinds))
        for row, value in enumerate(values, start=1):
            texts = [_literal(value), f"Columns!{first}{row}"] if value is not None else []
            kind = kind_of(value)
            for text, letter in zip(texts, ("O" if value is False else kind.upper(), kind), strict=False):
                wanted = Argument(text, frozenset(letter))
                if name == "MATCH":
                    yield Trial(name, (wanted, area, Argument("0", frozenset("0"))))
                else:
                    yield Trial(name, (wanted, area, Argument("2", frozenset("S")), Argument("FALSE", frozenset("O"))))


def leaks(result: Result, compared: Result) -> bool:
    """Return whether an error is none for another function that gets it, such as a comparison."""
    return result is not None and result[1] and not (compared is not None and compared[1])


def agree(light: Result, office: Result) -> bool:
    """Return whether a result may be believed: it is an error, or the other program's result, too."""
    if light is None:  # not a number
        return office is None
    if light[1]:
        return True
    if office is None or office[1]:
        return False
    one, other = light[0], office[0]
    if any(isinstance(value, str | bool) for value in (one, other)):
        return type(one) is type(other) and one == other
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)


def learned(name: str, outcomes: Sequence[tuple[Trial, Result, Result, Result]]) -> str:
    """Return the table's line for a function: the kinds on which both programs agree; empty for none.

    An outcome is a trial, its results by both programs, and the first one's result of a comparison with it.
    """
    codes, least, repeats = signature(name)
    allowed = {(at, kind) for at, code in enumerate(codes) for kind in _ONLY.get(code, _LETTERS)}
    allowed |= {(at, kind) for at, code in enumerate(codes) if code in _RANGE_CODES for kind in _RANGES}
    # A criterion may match a truth value or a text that reads like a number; programs differ on that.
    # Programs write a different number of digits where a text is expected.
    left_out = {"q": ["|b", "|d", "|y", "|x"], "t": ["N", "n"], "a": ["N", "n", "|n"]}
    allowed -= {(at, kind) for at, code in enumerate(codes) for kind in left_out.get(code, ())}
    wrong = [
        trial.kinds for trial, light, office, compared in outcomes if not agree(light, office) or leaks(light, compared)
    ]
    if any(not kinds for kinds in wrong):
        return ""
    while wrong := [kinds for kinds in wrong if kinds <= allowed]:
        blamed = Counter(kind for kinds in wrong for kind in kinds)
        # A kind that fails alone beside canonical arguments is to blame; else the one that is in most of them and rare.
        alone = [next(iter(kinds)) for kinds in wrong if len(kinds) == 1]
        worst = max(blamed, key=lambda kind: (blamed[kind] * _RARITY.get(kind[1].strip("|").lower(), 1), kind))
        allowed.discard(alone[0] if alone else worst)
    believed = [outcome for outcome in outcomes if outcome[0].kinds <= allowed]
    useful = {kind for trial, light, _, _ in believed if light and not light[1] for kind in trial.kinds}
    allowed &= useful | {(at, "F") for at in range(len(codes))}
    exact = all((light is None or light[1]) == (office is None or office[1]) for _, light, office, _ in believed)
    errors = [(next(iter(trial.kinds))[0], light) for trial, light, _, _ in outcomes if _is_error_alone(trial)]
    harmless = {at for at in range(len(codes)) if all(light and light[1] for place, light in errors if place == at)}
    harmless |= {at for at in range(len(codes)) if (name, at) in _BRANCHES}
    positions = []
    for at in range(len(codes)):
        values = "".join(kind for kind in _LETTERS if (at, kind) in allowed and kind != "F")
        values += ("F" if (at, "F") in allowed else "") + ("E" if at in harmless and (at, "F") in allowed else "")
        ranges = "".join(kind[1] for kind in _RANGES if (at, kind) in allowed)
        positions.append(f"{values}|{ranges}" if ranges else values)
    while positions and not positions[-1] and len(positions) > least:
        positions.pop()
    if not all(positions):
        return ""
    results, equals, passed = CANDIDATES[name][0].partition("=")
    written_results = f"{results}{'!' if exact else ''}{equals}{passed}" or "-"
    return " ".join([name, written_results, str(least), *positions, *(["*"] if repeats else [])])


def _is_error_alone(trial: Trial) -> bool:
    return len(trial.kinds) == 1 and next(iter(trial.kinds))[1] == "F"


_BRANCHES = {("IF", 1), ("IF", 2), ("IFERROR", 1), ("IFNA", 1), ("CHOOSE", 1), ("CHOOSE", 2), ("IFS", 1),
             ("XLOOKUP", 3)}  # fmt: skip
"""Arguments that are the result where they count: a false error there is a false error of the whole."""


def nested(chance: random.Random, kind_of: KindOf, depth: int = 2) -> str:
    """Make a random formula of calls within calls."""
    choices = [each for each in arguments(kind_of) if not _WHOLE_COLUMN.search(each.text)]
    names = list(CANDIDATES)

    def expression(code: str, depth: int) -> str:
        if code in "rqsvwc" or (code in "ga" and chance.random() < 0.5):
            return chance.choice([each.text for each in choices if any("|" in kind for kind in each.kinds)])
        if depth and chance.random() < 0.4:
            return call(chance.choice([name for name in names if _fits(name, code)]), depth - 1)
        if chance.random() < 0.5:
            return chance.choice(_CANONICAL[code])
        return chance.choice(
            [each.text for each in choices if each.text and not any("|" in kind for kind in each.kinds)]
        )

    def call(name: str, depth: int) -> str:
        codes, least, repeats = signature(name)
        count = chance.randint(least, len(codes) + repeats)
        return written(name, [expression(codes[min(at, len(codes) - 1)], depth) for at in range(count)])

    return call(chance.choice(names), depth)


def _fits(name: str, code: str) -> bool:
    """Return whether a function's results suit an argument."""
    results = CANDIDATES[name][0].partition("=")[0]
    return not results or code not in "tb" or results == {"t": "T", "b": "B"}[code]
