"""Brace expansion of words, which bash does before all other expansions."""

from __future__ import annotations

import re

from callboard.surfaces.shell.judging._word_expansion import PIECES, UnclearError

_MOST_WORDS = 1_000
_SIGN = re.compile(rb"[{},]|[^{},]+")
_NUMBERS = re.compile(rb"(-?[0-9]{1,9})\.\.(-?[0-9]{1,9})(?:\.\.(-?[0-9]{1,9}))?")
_LETTERS = re.compile(rb"(?:([a-z])\.\.([a-z])|([A-Z])\.\.([A-Z]))(?:\.\.(-?[0-9]{1,9}))?")
_ZEROS = re.compile(rb"-?0[0-9]")


def expand_braces(raw: bytes) -> list[bytes]:
    """Expand a word's braces like bash: ``{a,b}c`` to ``ac``, ``bc``.

    The words are not evaluated: quotes, escapes and variables stay, as bash expands these later. Braces that bash
    keeps in an irregular way, such as those without a partner, are refused if there is a comma or ``..`` too.

    Args:
        raw: The word before its expansion, a token of `tokens`.

    Raises:
        UnclearError: If the expansion is unknown, or has too many words.
    """
    signs: list[tuple[bytes, bool]] = []
    """The braces, commas and texts, each with whether it is without quotes."""
    for match in PIECES.finditer(raw):
        if match.lastgroup == "plain":
            signs += [(sign, True) for sign in _SIGN.findall(match[0])]
        else:
            signs.append((match[0], False))
    plain = [sign for sign, bare in signs if bare]
    if b"{" not in plain or not any(sign == b"," or b".." in sign for sign in plain):
        return [raw]
    return _Braces(raw, signs).words()


class _Braces:
    """A parser of one word with braces."""

    def __init__(self, raw: bytes, signs: list[tuple[bytes, bool]]) -> None:
        self._raw = raw
        self._signs = signs
        self._index = 0

    def words(self) -> list[bytes]:
        """Expand all that follows, up to the end of an alternative.

        Raises:
            UnclearError: If the expansion is unknown.
        """
        words, depth = [b""], self._index
        while self._index < len(self._signs):
            sign, bare = self._signs[self._index]
            if depth and bare and sign in {b",", b"}"}:
                break
            if bare and sign == b"}":
                raise self._unclear()
            self._index += 1
            ends = self._group() if bare and sign == b"{" else [sign]
            if len(words) * len(ends) > _MOST_WORDS:
                raise self._unclear()
            words = [word + end for word in words for end in ends]
        return words

    def _group(self) -> list[bytes]:
        """Expand what follows an opening brace, up to the closing one."""
        start = self._index
        words = self.words()
        several = False
        while self._next() == b",":
            several = True
            words += self.words()
        if len(words) > _MOST_WORDS or self._signs[self._index - 1] != (b"}", True):
            raise self._unclear()
        if several:
            return words
        inner = self._signs[start : self._index - 1]
        if len(inner) != 1 or not inner[0][1]:
            raise self._unclear()
        return self._sequence(inner[0][0])

    def _next(self) -> bytes:
        """Step over the comma or brace that ends an alternative."""
        if self._index == len(self._signs):
            raise self._unclear()
        self._index += 1
        return self._signs[self._index - 1][0]

    def _sequence(self, text: bytes) -> list[bytes]:
        """Expand a sequence, such as ``1..3``, ``01..10`` or ``a..g..2``."""
        numbers, letters = _NUMBERS.fullmatch(text), _LETTERS.fullmatch(text)
        if numbers is not None:
            first, last, step = int(numbers[1]), int(numbers[2]), numbers[3]
            padded = _ZEROS.match(numbers[1]) or _ZEROS.match(numbers[2])
            width = max(len(numbers[1]), len(numbers[2])) if padded else 1
        elif letters is not None:
            first, last, step = ord(letters[1] or letters[3]), ord(letters[2] or letters[4]), letters[5]
        else:
            raise self._unclear()
        stride = abs(int(step or 1)) or 1
        if abs(last - first) // stride >= _MOST_WORDS:
            raise self._unclear()
        values = range(first, last + 1, stride) if first <= last else range(first, last - 1, -stride)
        if letters is not None:
            return [bytes([value]) for value in values]
        return [f"{value:0{width}d}".encode() for value in values]

    def _unclear(self) -> UnclearError:
        return UnclearError(f"the expansion of {self._raw.decode(errors='replace')!r} is not supported")
