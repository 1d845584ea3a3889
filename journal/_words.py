"""The words of a text, for a search."""

from __future__ import annotations

import functools
import re
import unicodedata

_ASCII = re.compile("[a-z0-9]+")
_ACCENTS = re.compile("[\u0300-\u036f]")
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Ranges of the scripts whose words are not separated by spaces: Chinese and Japanese."""
_MARKS = range(0x370, 0x20000)
"""The range of the combining marks of all scripts, apart from accents."""


def words_of(text: str) -> list[str]:
    """Split a text into words, without regard to case and accents.

    Each character of a script without spaces is a word.
    """
    if text.isascii():
        return _ASCII.findall(text.lower())
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    return _pattern().findall(unicodedata.normalize("NFC", plain.casefold()))


@functools.cache
def _pattern() -> re.Pattern[str]:
    """Compile the pattern of a word.

    It needs a table of marks, which `re` has no name for.
    """
    marks = "".join(mark for mark in map(chr, _MARKS) if unicodedata.category(mark).startswith("M"))
    letter = rf"[^\W_{_UNSPACED}]"
    return re.compile(f"[{_UNSPACED}]|{letter}(?:{letter}|[{marks}])*")
