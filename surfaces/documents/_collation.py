"""The order of texts, as people know it from word lists."""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

UNICODE_ORDER = "Unicode's default order of texts (as in English, German, French, Italian, Spanish)"
CODE_ORDER = "by character codes, accented letters last: the order of dictionaries needs callboard[excel]"
_MONTHS = [
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
]  # fmt: skip
_DAYS = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"]
_CALENDAR = ([name[:3] for name in _MONTHS], _MONTHS, [name[:3] for name in _DAYS], _DAYS)
"""The lists by which Excel sorts the items of pivot tables."""


def order_of(texts: Iterable[str]) -> tuple[Callable[[str], Any], str]:
    """Choose the key by which texts are sorted; capitals do not count.

    Returns:
        The key, and the name of the order; the name is empty where all orders agree, for ASCII.
    """
    if all(map(str.isascii, texts)):
        return str.casefold, ""
    collator = _collator()
    if collator is None:
        return str.casefold, CODE_ORDER

    @functools.cache
    def key(text: str) -> Any:
        return collator.sort_key(text.lower())

    return key, UNICODE_ORDER


def calendar_key(texts: Sequence[str]) -> Callable[[str], int] | None:
    """Return the key that sorts names of months or days.

    All are short, or all are long; for other texts, it is None.
    """
    lists = (names for names in _CALENDAR if {text.lower() for text in texts} <= {*names})
    names = next(lists, None) if texts else None
    return None if names is None else lambda text: names.index(text.lower())


@functools.cache
def _collator() -> Any:
    """Load the table of the Unicode Collation Algorithm; None without pyuca."""
    try:
        return importlib.import_module("pyuca").Collator()
    except ImportError:
        return None
