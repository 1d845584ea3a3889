"""Prompts and answer schemas of requests to live models."""

from callboard.models.prompt._answer_schema import (
    MOST_ACTIONS,
    answer_schema,
    legal_statuses,
    own_steps,
    parts_of,
)
from callboard.models.prompt._fence import cut, tamed, written
from callboard.models.prompt._labels import chosen, labelled
from callboard.models.prompt._prompt import CHARACTERS, Prompt, prompt_of
from callboard.models.prompt._short import copied, shortened_request
from callboard.models.prompt._strict import is_free, without_nulls
from callboard.models.prompt._system import examples

__all__ = [
    "CHARACTERS",
    "MOST_ACTIONS",
    "Prompt",
    "answer_schema",
    "chosen",
    "copied",
    "cut",
    "examples",
    "is_free",
    "labelled",
    "legal_statuses",
    "own_steps",
    "parts_of",
    "prompt_of",
    "shortened_request",
    "tamed",
    "without_nulls",
    "written",
]
