"""Requests that need an answer, and results that are none."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import JsonValue

_MOST_CHARACTERS = 8000
"""The length of the longest request that is judged: one with more is no plain question."""
_LONGEST_REPORT = 120
_SIZE_OF_DATA = re.compile(r"\d+ (?:rows|items), the first ")
"""The beginning of what a short prompt shows of data, which small models copy."""
_QUESTION = re.compile(
    r"(?:^|[.!?:;\n])\W*(?:(?:and|so|please|at|in|on|to|for|by|from|of|after|since)\s+)*"
    r"(?:what|which|how|when|who|whom|whose|where|why|is|are|was|were|does|do|did|has|have)\b[^?\n]*\?",
    re.IGNORECASE,
)
_READING = re.compile(
    r"\W*(?:please\s+|(?:can|could|would|will)\s+you\s+(?:please\s+)?)?"
    r"(?:read|tell\s+me|tell|count|list|report|find\s+out|find|look\s+up|give\s+me)\b",
    re.IGNORECASE,
)
_CHANGE = re.compile(
    r"\b(?:write|put|set|change|replace|add|append|insert|delete|remove|move|copy|rename|create|make|save|send|fill|"
    r"sort|format|highlight|mark|draw|enter|type|correct|fix|update|export|convert|post|reply|forward|"
    r"extract|download|clean|merge|split|store|into)\b",
    re.IGNORECASE,
)
_END_WORD = re.compile(r"\b(?:ok|okay|done|finished|completed?|success(?:ful(?:ly)?)?|answered|read|found|finish)\b")
_EMPTY_WORDS = re.compile(
    r"\b(?:it|its|is|the|an?|task|subtask|request|question|work|has|have|been|was|were|all|everything|now|already|"
    r"successfully|completed?|done|finished|success|successful|ok|okay|answered|read|found|table|document|file|i|and|"
    r"status|finish|text|data|contents?|sheet)\b|\W"
)


class AnswerNeed(StrEnum):
    """The answers that requests need."""

    WORDS = "words"
    """An answer to a question."""
    DATA = "data"
    """The data that was read."""
    NOTHING = "nothing"


def answer_need(request: str) -> AnswerNeed:
    """Return the answer that a request needs.

    A request that asks for a change, too, needs none, and a very long one.

    Example:
        >>> answer_need("How much does the stove cost?").value, answer_need("Read the table of the revenue").value
        ('words', 'data')
    """
    if len(request) > _MOST_CHARACTERS or _CHANGE.search(request):
        return AnswerNeed.NOTHING
    if _QUESTION.search(request):
        return AnswerNeed.WORDS
    return AnswerNeed.DATA if _READING.match(request) else AnswerNeed.NOTHING


def reports_only_the_end(result: JsonValue) -> bool:
    """Return whether a result only says that work is done.

    The size of data that was read says no more.

    Example:
        >>> reports_only_the_end("The task is done."), reports_only_the_end("Done: 45")
        (True, False)
    """
    if not isinstance(result, str):
        return False
    if _SIZE_OF_DATA.match(result):
        return True
    text = result.casefold()
    return len(text) <= _LONGEST_REPORT and bool(_END_WORD.search(text)) and not _EMPTY_WORDS.sub("", text)
