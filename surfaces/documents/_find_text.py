"""Patterns that find a text in all its typographic forms."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._tables import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable

_VARIANTS = (
    "'\u2019\u2018\u02bc\u2032",
    '"\u201c\u201d\u201e\u201f\u2033',
    " \u00a0\u2002\u2003\u2007\u2009\u202f",
    "-\u2010\u2011\u2012\u2013",
)
_CLASSES = {letter: f"[{re.escape(letters)}]" for letters in _VARIANTS for letter in letters}
_INVISIBLE = "[\u00ad\u200b\u2060]*"
_NO_ACCENT = "(?![\u0300-\u036f])"
"""A letter is no match for the same one with an accent that follows it."""
_ELLIPSIS = "(?:\\.\\.\\.|\u2026)"


def find_pattern(
    text: str, *, match_case: bool = True, whole_words: bool = False, line_break: str = r"\n"
) -> re.Pattern[str]:
    """Make a pattern for a text and its typographic variants.

    Quotation marks, apostrophes, spaces, hyphens, dots and composed letters match in each form, and soft hyphens are
    skipped. A text without letters and digits is taken literally, since it may be about just these signs.
    """
    parts = [re.escape(text)]
    if any(map(str.isalnum, text)):
        pieces = re.split(r"(\.\.\.|\u2026)", text)
        parts = [part for piece in pieces for part in ([_ELLIPSIS] if piece in {"...", "\u2026"} else _forms(piece))]
    parts = [line_break if part in {"\n", "\\\n"} else part for part in parts]
    pattern = _INVISIBLE.join(parts) if len(parts) > 1 else parts[0].replace("\\\n", line_break)
    pattern += _NO_ACCENT
    bound = r"(?<!\w){}(?!\w)" if whole_words else "{}"
    return re.compile(bound.format(pattern), 0 if match_case else re.IGNORECASE)


def _forms(text: str) -> list[str]:
    forms: list[str] = []
    for letter in unicodedata.normalize("NFC", text):
        if _INVISIBLE[1:-2].find(letter) >= 0:
            continue
        parted = unicodedata.normalize("NFD", letter)
        composed = re.escape(letter)
        forms.append(_CLASSES.get(letter, composed if parted == letter else f"(?:{composed}|{re.escape(parted)})"))
    return forms


def no_match_error(find_text: str, skipped_places: str, words: Iterable[str]) -> ToolError:
    """Return the error of a replacement without matches.

    Args:
        find_text: The text that was looked for.
        skipped_places: The places where it stands and is left alone; empty for none.
        words: The words that were searched, for a suggestion.
    """
    if skipped_places:
        return ToolError(f"{find_text!r} stands only in {skipped_places}; nothing was replaced")
    return ToolError(f"{find_text!r} does not occur there; nothing was replaced{nearest(find_text, words)}")


def variants_in(matches: set[str], text: str) -> list[str]:
    """Return the matches with another spelling, but for capitals."""
    return sorted(match for match in matches if match.casefold() != text.casefold())
