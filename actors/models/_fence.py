"""The fence around what is no instruction: what documents, screens and tools say stands between two marks."""

from __future__ import annotations

import json
import re
from typing import Any

OPEN, CLOSE = "<data>", "</data>"

_MARKS = re.compile(r"<(?=[/|｜]|data|s>|(?:start|end)_of_turn)|\[(?=/?INST\])", re.IGNORECASE)  # noqa: RUF001 - DeepSeek's bar
"""What could close the fence, open another, or end a turn in a chat template."""


def fenced(text: str) -> str:
    """Put text between the marks. It can't close them: every ``<`` of a mark in it becomes an escape of JSON's."""
    return f"{OPEN}\n{tamed(text)}\n{CLOSE}"


def tamed(text: str) -> str:
    """Write marks so that they are read as text, and are the same text again once JSON is read."""
    return _MARKS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def written(value: Any) -> str:  # noqa: ANN401 - any JSON
    """Write a value as JSON, on one line, as people would."""
    return json.dumps(value, ensure_ascii=False, default=str)


def cut(text: str, most: int) -> str:
    """Leave out what is too long, and say so."""
    if len(text) <= most:
        return text
    return f"{text[:most]} … ({len(text) - most} of {len(text)} characters left out)"
