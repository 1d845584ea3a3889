"""Secrets within texts that may be long, and of others."""

from __future__ import annotations

import pytest

from callboard.config import MASK, in_url, masked


@pytest.mark.parametrize("letter", ["x", "x.", "1x", "x:", "x:/"])
def test_long_text_without_an_address_is_searched_once(letter):
    text = letter * 300_000  # quadratic work would take minutes
    assert in_url(text) == []


@pytest.mark.parametrize("before", ["", "see ", "1", "(", "x" * 100])
def test_secrets_of_an_address_are_found_in_any_text(before):
    text = f"{before}https://user:password@host/path?token=abc"
    assert masked(text, in_url(text)) == f"{before}https://{MASK}@host/path?token={MASK}"
