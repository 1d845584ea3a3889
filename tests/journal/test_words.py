"""Words of texts: the same for each way to write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.journal._words import words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Sum the Sales!", ["sum", "the", "sales"]),
        ("report_2026-05.xlsx", ["report", "2026", "05", "xlsx"]),
        ('"NEAR(" * AND -', ["near", "and"]),
        ("Café cafe\u0301 CAFÉ", ["cafe", "cafe", "cafe"]),
        ("Straße STRASSE", ["strasse", "strasse"]),
        ("İstanbul", ["istanbul"]),
        ("ΟΔΟΣ οδος", ["οδοσ", "οδοσ"]),
        ("Привет, мир", ["привет", "мир"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("ภาษาไทย", ["ภาษาไทย"]),
        ("売上レポート", ["売", "上", "レ", "ポ", "ー", "ト"]),
        ("한국어", ["한국어"]),
        ("ﬁle ②", ["file", "2"]),
        ("✓ \ue000 \ud800 \0 …", []),
        ("", []),
    ],
)
def test_text_is_split_into_words_without_case_and_accents(text, words):
    assert words_of(text) == words


@given(st.text())
def test_words_of_any_text_stay_as_they_are_when_split_again(text):
    words = words_of(text)
    assert words_of(" ".join(words)) == words


@given(st.text(), st.text())
def test_words_of_a_text_do_not_depend_on_its_neighbours(first, second):
    assert words_of(f"{first}\n{second}") == words_of(first) + words_of(second)
