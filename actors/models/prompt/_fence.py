"""The fence around what is no instruction: what documents, screens and tools say stands between two marks."""

from __future__ import annotations

import json
import re
from typing import Any

OPEN, CLOSE = "<data>", "</data>"

_LEAST = 20
"""Characters of a member of an object, at least."""

_MARKS = re.compile(
    r"<(?=[a-z/|｜!?<]|0x|\s*/?\s*data)"  # noqa: RUF001 - DeepSeek's bar
    r"|\[(?=/?(?!(?:true|false|null)\])[a-z_]{3,}\])"
    r"|\](?=~)",
    re.IGNORECASE,
)
"""What could close the fence, open another, or begin or end something in a chat template: any tag, any word in brackets
(but JSON's own), and what begins one between brackets and tildes. Which ones models know changes with each of them."""


def fenced(text: str) -> str:
    """Put text between the marks. It can't close them: every ``<`` of a mark in it becomes an escape of JSON's."""
    return f"{OPEN}\n{tamed(text)}\n{CLOSE}"


def tamed(text: str) -> str:
    """Write marks so that they are read as text, and are the same text again once JSON is read."""
    return _MARKS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def written(value: Any) -> str:
    """Write a value as JSON, on one line, as people would."""
    return json.dumps(value, ensure_ascii=False, default=str)


def cut(text: str, most: int) -> str:
    """Leave out what is too long, and say so."""
    if len(text) <= most:
        return text
    return f"{text[:most]} … ({len(text) - most} of {len(text)} characters left out)"


def shortened(value: Any, most: int) -> str:
    """Write a value as JSON in about so many characters: the beginning of lists and texts, and how much is left out."""
    whole = written(value)
    if len(whole) <= most:
        return whole
    if isinstance(value, list):
        kept: list[str] = []
        room = most
        for item in value:
            text = written(item)
            room -= len(text) + 2
            if room < 0 and kept:
                break
            kept.append(shortened(item, most))
        left = len(value) - len(kept)
        return f"[{', '.join(kept)}{f', … ({left} of {len(value)} items left out)' if left else ''}]"
    if isinstance(value, dict) and most >= _LEAST * len(value):
        return f"{{{', '.join(_members(value, most))}}}"
    return cut(whole, most)


def _members(value: dict[str, Any], most: int) -> list[str]:
    """Share the room: what is short is told in full, what is long gets what that leaves."""
    lengths = sorted(len(written(part)) for part in value.values())
    room, left = most - sum(len(key) + 6 for key in value), len(value)
    for length in lengths:
        if length > room // left:
            break
        room, left = room - length, left - 1
    share = max(_LEAST, room // max(1, left))
    return [f"{written(key)}: {shortened(part, share)}" for key, part in value.items()]
