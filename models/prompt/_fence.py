"""Mark untrusted text.

A model then does not read it as instructions.
"""

from __future__ import annotations

import json
import re
from typing import Any

OPEN, CLOSE = "<data>", "</data>"

_LEAST = 20
"""Minimum number of characters for a member of an object."""

_MARKS = re.compile(
    r"<(?=[a-z/|｜!?<]|0x|\s*/?\s*data)"  # noqa: RUF001 - DeepSeek's bar
    r"|\[(?=/?(?!(?:true|false|null)\])[a-z_]{3,}\])"
    r"|\](?=~)",
    re.IGNORECASE,
)
"""Text that could close or open a fence, or act as a control token of a chat template.

It matches any tag, any word in brackets (except JSON's own), and a closing bracket before a tilde. The pattern is
broad, because control tokens differ from model to model.
"""


def fenced(text: str) -> str:
    """Put text between the marks and escape marks within it."""
    return f"{OPEN}\n{tamed(text)}\n{CLOSE}"


def tamed(text: str) -> str:
    """Escape marks as JSON does, so that parsing JSON restores the text."""
    return _MARKS.sub(lambda mark: f"\\u{ord(mark[0]):04x}", text)


def written(value: Any) -> str:
    """Serialise a value as one line of JSON without ASCII escapes."""
    return json.dumps(value, ensure_ascii=False, default=str)


def cut(text: str, most: int) -> str:
    """Truncate a text to `most` characters and append the number left out."""
    if len(text) <= most:
        return text
    return f"{text[:most]} … ({len(text) - most} of {len(text)} characters left out)"


def shortened(value: Any, most: int) -> str:
    """Serialise a value as JSON in about `most` characters.

    Lists and texts are truncated.
    """
    full_text = written(value)
    if len(full_text) <= most:
        return full_text
    if isinstance(value, list):
        shown_parts: list[str] = []
        room = most
        for item in value:
            text = written(item)
            room -= len(text) + 2
            if room < 0 and shown_parts:
                break
            shown_parts.append(shortened(item, most))
        omitted_count = len(value) - len(shown_parts)
        omission = f", … ({omitted_count} of {len(value)} items left out)" if omitted_count else ""
        return f"[{', '.join(shown_parts)}{omission}]"
    if isinstance(value, dict) and most >= _LEAST * len(value):
        return f"{{{', '.join(_members(value, most))}}}"
    return cut(full_text, most)


def _members(value: dict[str, Any], most: int) -> list[str]:
    """Serialise an object's members.

    Short ones are written in full; long ones share the remaining room.
    """
    lengths = sorted(len(written(part)) for part in value.values())
    room, remaining_count = most - sum(len(key) + 6 for key in value), len(value)
    for length in lengths:
        if length > room // remaining_count:
            break
        room, remaining_count = room - length, remaining_count - 1
    share = max(_LEAST, room // max(1, remaining_count))
    return [f"{written(key)}: {shortened(part, share)}" for key, part in value.items()]
