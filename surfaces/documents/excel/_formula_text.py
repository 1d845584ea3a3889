"""The grammar of references in formulas, and their translation to another cell."""

from __future__ import annotations

import re

from openpyxl.utils import column_index_from_string, get_column_letter

LAST_ROW, LAST_COLUMN = 1_048_576, 16_384
"""The limits of a sheet. Excel refuses a file with a cell beyond them."""
_COLUMN = r"(?:[A-Za-z]{1,2}|[A-Wa-w][A-Za-z]{2}|[Xx][A-Ea-e][A-Za-z]|[Xx][Ff][A-Da-d])"
_ROW = (
    r"(?:10(?:[0-3][0-9]{4}|4(?:[0-7][0-9]{3}|8(?:[0-4][0-9]{2}|5(?:[0-6][0-9]|7[0-6]))))"
    r"|[1-9][0-9]{0,5})(?![0-9])"
)
"""Up to `LAST_COLUMN` and `LAST_ROW`: what looks like a cell beyond them, such as ZIP1, is a name."""
_CELL = rf"\$?{_COLUMN}\$?{_ROW}"
_PLAIN = r"\w[\w.]*(?::\w[\w.]*)?"
_TITLE = rf"(?:'(?:[^']|'')+'|(?:\[[^\[\]]+\])?{_PLAIN}|\[[^\[\]]+\])!"
REFERENCE = re.compile(
    rf"""(?P<text>"(?:[^"]|"")*")
    |(?P<error>\#[A-Za-z/0]+[!?]?)
    |(?P<sheet>{_TITLE})?
     (?P<cells>(?<![\w.$])(?:{_CELL}(?::{_CELL})?
     |\$?{_COLUMN}:\$?{_COLUMN}|\$?{_ROW}:\$?{_ROW}))(?![\w.(\[!])
    |(?P<behind>{_TITLE})
    |(?P<quoted>'(?:[^']|'')+')
    |(?P<bracket>\[(?:'.|[^\[\]']|\[(?:'.|[^\[\]'])*\])*\])
    |(?P<word>[^\W\d][\w.]*)""",
    re.VERBOSE,
)
"""The parts of a formula. `sheet` stands before cells, `behind` before a name or an error; both end with ``!``."""
_END = re.compile(r"(\$?)([A-Za-z]*)(\$?)([0-9]*)")
_GONE = "#REF!"


def titles(prefix: str | None) -> list[str]:
    """Return the sheets that the text before a reference names.

    It is empty without a sheet, and for another workbook's. Two titles are the ends of a span of sheets.
    """
    name = (prefix or "").removesuffix("!")
    if name.startswith("'"):
        name = name[1:-1].replace("''", "'")
    return name.split(":") if name and "[" not in name else []


def translated(formula: str, down: int, right: int) -> str:
    """Let relative references follow a formula's cell, as in a copy.

    A reference that would leave the sheet becomes ``#REF!``.
    """

    def replace(match: re.Match[str]) -> str:
        cells = match["cells"]
        if cells is None:
            return match[0]
        ends = [_moved(end, down, right) for end in cells.split(":")]
        return (match["sheet"] or "") + (":".join(filter(None, ends)) if all(ends) else _GONE)

    return REFERENCE.sub(replace, formula) if down or right else formula


def leaves_sheet(before: str, after: str) -> bool:
    """Return whether `translated` replaced a reference by an error."""
    return after.count(_GONE) > before.count(_GONE)


def _moved(end: str, down: int, right: int) -> str | None:
    match = _END.fullmatch(end)
    if match is None:
        return end
    fixed, letters, fixed_row, digits = match.groups()
    if letters and not fixed:
        column = column_index_from_string(letters.upper()) + right
        letters = get_column_letter(column) if 1 <= column <= LAST_COLUMN else ""
    # before whole rows, like $1:$2, the first sign belongs to the row
    if digits and not (fixed_row if match[2] else fixed):
        row = int(digits) + down
        digits = str(row) if 1 <= row <= LAST_ROW else ""
    is_complete = bool(letters) == bool(match[2]) and bool(digits) == bool(match[4])
    return f"{fixed}{letters}{fixed_row}{digits}" if is_complete else None
