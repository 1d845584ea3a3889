"""Limits on headers that others wrote.

Python's parser is slow for some of them, and calls itself.
"""

from __future__ import annotations

import re
from email.headerregistry import HeaderRegistry
from email.policy import EmailPolicy
from itertools import pairwise
from typing import Any

_MOST_CHARACTERS = 5_000
"""The most characters of a header that has a grammar. The time of its parser grows with the square of the length."""
_MOST_TEXT = 100_000
"""The most characters of another header, such as a subject."""
_GRAMMARS = frozenset(HeaderRegistry().registry) - {"subject"}
_LISTS = frozenset({"to", "cc", "bcc", "reply-to", "resent-to", "resent-cc", "resent-bcc"})
_SIGN = re.compile(r'\\.|[",]', re.DOTALL)
"""A sign that matters for the end of an address, or an escaped one."""


class BoundedPolicy(EmailPolicy):
    """Parse headers whose length and depth are limited."""

    def header_fetch_parse(self, name: str, value: str) -> Any:
        """Parse a header.

        Raises:
            ValueError: If it is too long, or nested too deeply.
        """
        most = _MOST_CHARACTERS if name.lower() in _GRAMMARS else _MOST_TEXT
        if len(value) > most:
            msg = f"the header {name} has {len(value):,} characters; at most {most:,} are read"
            raise ValueError(msg)
        try:
            return super().header_fetch_parse(name, value)
        except RecursionError:
            msg = f"the header {name} is nested too deeply"
            raise ValueError(msg) from None


def pieces_of(name: str, value: str) -> list[str]:
    """Split a long list of addresses; another header stays whole."""
    if name.lower() not in _LISTS or len(value) <= _MOST_CHARACTERS:
        return [value]
    ends, is_quoted = [-1], False
    for sign in _SIGN.finditer(value):
        is_quoted ^= sign[0] == '"'
        if sign[0] == "," and not is_quoted:
            ends.append(sign.start())
    entries = (value[start + 1 : end].strip() for start, end in pairwise((*ends, len(value))))
    return [entry for entry in entries if entry]
