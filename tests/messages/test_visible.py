"""Characters that a reader can't see are escaped, in all of Unicode."""

from __future__ import annotations

import sys
import unicodedata

import pytest

from callboard.messages import visible

CHARACTERS = [chr(code) for code in range(sys.maxunicode + 1)]
WITH_SHAPE = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
"""The format characters that are drawn: signs around numbers, and above letters."""
WITHOUT_SHAPE = (
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\ufe00\ufe0d\uffa0\U000e0100\U000e01ef"
)
"""Letters, marks and symbols that are drawn as nothing."""


def escaped(categories):
    """Return the escaped characters of some categories, and the others."""
    chosen = [character for character in CHARACTERS if unicodedata.category(character) in categories]
    hidden = {character for character in chosen if visible(character) != character}
    return hidden, set(chosen) - hidden


def test_controls_separators_and_formats_are_escaped():
    assert escaped({"Cc", "Zl", "Zp", "Cs"})[1] == set()
    assert set(map(ord, escaped({"Cf"})[1])) == WITH_SHAPE


@pytest.mark.parametrize("character", WITHOUT_SHAPE, ids=lambda character: f"{ord(character):x}")
def test_characters_without_a_shape_are_escaped(character):
    assert visible(f"a{character}b") == f"a{character.encode('unicode_escape').decode()}b"


def test_characters_with_a_shape_stay():
    hidden, _ = escaped(
        {"Lu", "Ll", "Lt", "Lm", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Po", "Sm", "Sc", "Sk", "Zs"}
    )
    assert hidden == set()
    assert escaped({"Lo", "Mn", "Mc", "So"})[0] <= {
        *WITHOUT_SHAPE,
        *map(chr, (*range(0xFE00, 0xFE0E), *range(0xE0100, 0xE01F0))),
    }


@pytest.mark.parametrize("text", ["naïve Größe", "שלום", "فاتورة", "\u2764\ufe0f", "a\N{NO-BREAK SPACE}b", "請求書"])
def test_text_of_any_language_stays(text):
    assert visible(text) == text


def test_line_separators_are_shown_on_one_line():
    assert visible("a\u2028b\u2029c\x85d\ne").splitlines() == ["a\\u2028b\\u2029c\\x85d\\ne"]
