"""The functions that formulas may use, and their names in files."""

from __future__ import annotations

import re

from openpyxl.utils import FORMULAE

from callboard.messages import did_you_mean
from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents.excel._cell_references import functions

_NEWER = frozenset({
    "ACOT", "ACOTH", "AGGREGATE", "ARABIC", "BASE", "BETA.DIST", "BETA.INV", "BINOM.DIST", "BINOM.DIST.RANGE",
    "BINOM.INV", "BITAND", "BITLSHIFT", "BITOR", "BITRSHIFT", "BITXOR", "CEILING.MATH", "CEILING.PRECISE", "CHISQ.DIST",
    "CHISQ.DIST.RT", "CHISQ.INV", "CHISQ.INV.RT", "CHISQ.TEST", "COMBINA", "CONCAT", "CONFIDENCE.NORM", "CONFIDENCE.T",
    "COT", "COTH", "COVARIANCE.P", "COVARIANCE.S", "CSC", "CSCH", "DAYS", "DECIMAL", "ERF.PRECISE", "ERFC.PRECISE",
    "EXPON.DIST", "F.DIST", "F.DIST.RT", "F.INV", "F.INV.RT", "F.TEST", "FLOOR.MATH", "FLOOR.PRECISE", "FORECAST.ETS",
    "FORECAST.ETS.CONFINT", "FORECAST.ETS.SEASONALITY", "FORECAST.ETS.STAT", "FORECAST.LINEAR", "FORMULATEXT", "GAMMA",
    "GAMMA.DIST", "GAMMA.INV", "GAMMALN.PRECISE", "GAUSS", "HYPGEOM.DIST", "IFNA", "IFS", "IMCOSH", "IMCOT", "IMCSC",
    "IMCSCH", "IMSEC", "IMSECH", "IMSINH", "IMTAN", "ISFORMULA", "ISOWEEKNUM", "LOGNORM.DIST", "LOGNORM.INV", "MAXIFS",
    "MINIFS", "MODE.SNGL", "NEGBINOM.DIST", "NORM.DIST", "NORM.INV", "NORM.S.DIST", "NORM.S.INV", "NUMBERVALUE",
    "PDURATION", "PERCENTILE.EXC", "PERCENTILE.INC", "PERCENTRANK.EXC", "PERCENTRANK.INC", "PERMUTATIONA", "PHI",
    "POISSON.DIST", "QUARTILE.EXC", "QUARTILE.INC", "RANK.AVG", "RANK.EQ", "RRI", "SEC", "SECH", "SHEET", "SHEETS",
    "SKEW.P", "STDEV.P", "STDEV.S", "SWITCH", "T.DIST", "T.DIST.2T", "T.DIST.RT", "T.INV", "T.INV.2T", "T.TEST",
    "TEXTJOIN", "UNICHAR", "UNICODE", "VAR.P", "VAR.S", "WEIBULL.DIST", "XLOOKUP", "XMATCH", "XOR", "Z.TEST",
})  # fmt: skip
"""Functions newer than the file format; in a file their names have the prefix ``_xlfn.``, which Excel hides."""
_DYNAMIC = frozenset({
    "ANCHORARRAY", "BYCOL", "BYROW", "CHOOSECOLS", "CHOOSEROWS", "DROP", "EXPAND", "FILTER", "GROUPBY", "HSTACK",
    "LAMBDA", "LET", "MAKEARRAY", "MAP", "MODE.MULT", "MUNIT", "PIVOTBY", "RANDARRAY", "REDUCE", "SCAN", "SEQUENCE",
    "SORT", "SORTBY", "TAKE", "TEXTSPLIT", "TOCOL", "TOROW", "UNIQUE", "VSTACK", "WRAPCOLS", "WRAPROWS",
})  # fmt: skip
"""Functions that fill several cells, or define names: formulas with them have another form in files."""
SPILLING = frozenset({"FILTER", "SEQUENCE", "SORT", "SORTBY", "UNIQUE"})
"""Those that are written."""
_WORKSHEET = frozenset({"FILTER", "SORT"})
_OUTWARD = frozenset({
    "CALL", "CUBEKPIMEMBER", "CUBEMEMBER", "CUBEMEMBERPROPERTY", "CUBERANKEDMEMBER", "CUBESET", "CUBESETCOUNT",
    "CUBEVALUE", "FILTERXML", "HYPERLINK", "IMAGE", "REGISTER", "REGISTER.ID", "RTD", "SQL.REQUEST", "STOCKHISTORY",
    "WEBSERVICE",
})  # fmt: skip
"""Functions that access data outside the workbook."""
_ABOUT = frozenset({"CELL", "FORMULATEXT", "GETPIVOTDATA", "INFO", "ISFORMULA"})
"""Functions that read more of a workbook than its values."""
_COMPUTED = (FORMULAE | _NEWER | _DYNAMIC) - _OUTWARD - _ABOUT
_ELSEWHERE = re.compile(r"(?<![\w.@\[])\[[0-9]+\](?![\]:,])")
"""The number of another workbook, and not a table's column that is called like a number."""
_TEXT = re.compile(r'"(?:[^"]|"")*"')


def named_in_files(function: str, formula: str) -> str:
    """Return the name of a function as files hold it.

    Raises:
        ToolError: If the function is unknown, needs a newer form of the file, or accesses data outside the workbook.
    """
    name = function.upper().removeprefix("_XLFN.").removeprefix("_XLWS.")
    if name in _OUTWARD:
        msg = f"{name} is refused: it accesses data outside the workbook"
        raise ToolError(msg)
    if name in _DYNAMIC - SPILLING:
        msg = (
            f"{formula!r} is refused: {name} needs the form of files for dynamic arrays, which is not written here; "
            "use other functions, or a tool such as filter_rows, sort_range or summarize"
        )
        raise ToolError(msg)
    if name in _NEWER | SPILLING:
        return f"_xlfn._xlws.{name}" if name in _WORKSHEET else f"_xlfn.{name}"
    if name and name not in FORMULAE:
        suggestion = did_you_mean(name, sorted(FORMULAE | _NEWER), cutoff=0.8)
        msg = f"{formula!r} is refused: {name!r} is not a known function; use English names{suggestion}"
        raise ToolError(msg)
    return name


def stored_name(function: str) -> str:
    """Return the name of a function as files hold it, unchecked."""
    name = function.upper()
    if name in _WORKSHEET:
        return f"_xlfn._xlws.{name}"
    return f"_xlfn.{name}" if name in _NEWER | _DYNAMIC else name


def may_be_computed(formula: str) -> bool:
    """Return whether a program may compute a formula.

    It may not if it accesses data outside the workbook, or reads formulas, formats or the file itself: the program
    gets values in place of most of these.
    """
    bare = _TEXT.sub('""', formula)
    return "|" not in bare and not _ELSEWHERE.search(bare) and _COMPUTED.issuperset(functions(formula))
