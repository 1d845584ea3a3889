"""The delimiter of a CSV file, and limits of its cells."""

from __future__ import annotations

import csv
import io
import re
from itertools import accumulate

from callboard.surfaces._tool_function import ToolError

LONGEST_CELL = 1_000_000
_NAMED_DELIMITER = re.compile(r'("?)sep=([^\w"\r\n])\1(?:\r\n|\r|\n|$)', re.IGNORECASE)


def naming_line(text: str) -> re.Match[str] | None:
    """Match a first line that names the delimiter.

    Excel writes and reads it; it is no row.
    """
    return _NAMED_DELIMITER.match(text)


def delimiter_of(text: str, suffix: str) -> str:
    """Infer the delimiter: it splits the first rows into equally many cells.

    Args:
        text: The beginning of the file.
        suffix: The end of the file's name.
    """
    if match := naming_line(text):
        return match[2]
    if suffix.lower() == ".tsv":
        return "\t"
    first = text[:20_000].splitlines(keepends=True)[:20]
    best, most = ",", (0.0, False, 0)
    for delimiter in (",", ";", "\t", "|"):
        widths = [len(row) for row in csv.reader(first, delimiter=delimiter) if row]
        common = max(set(widths), key=widths.count, default=1)
        # Texts and numbers hold commas in equally many cells more often than they hold one of the other signs.
        score = (widths.count(common) / len(widths) if common > 1 else 0.0, delimiter != ",", common)
        if score > most:
            best, most = delimiter, score
    return best


def check_cells(document: str, text: str, delimiter: str, limit: int) -> None:
    """Refuse a table of too many cells, before it is parsed.

    Raises:
        ToolError: If it has more; the text names the setting.
    """
    if text.count(delimiter) + text.count("\n") + text.count("\r") < limit:  # a table has at most one cell more
        return
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    plain = '"' not in text and text.count(delimiter) > limit
    if plain or any(cells > limit for cells in accumulate(map(len, rows))):
        msg = (
            f"{document!r} is too large for this: it has more than {limit} cells (documents.max_csv_cells); "
            "split it, or ask a person to raise the limit"
        )
        raise ToolError(msg)
