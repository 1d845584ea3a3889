"""Patterns of the policy's rules: globs, and regular expressions without backtracking."""

from __future__ import annotations

import fnmatch
import functools
import re
from typing import Annotated

from pydantic import AfterValidator
from pydantic_core import SchemaError, SchemaValidator, core_schema

_MOST_STATES = 10_000
_REPEATED = re.compile(r"\{(\d+)(?:,(\d*))?\}")
EXPRESSION = "re:"
"""The prefix of a regular expression; any other pattern is a glob."""


def fits(pattern: str, text: str) -> bool:
    """Return whether a pattern matches a whole text.

    The time is linear in the text's length.
    """
    if pattern.startswith(EXPRESSION):
        return _expression(pattern.removeprefix(EXPRESSION)).isinstance_python(_valid(text))
    return fnmatch.fnmatchcase(text, pattern)


def found_in(expression: str, text: str) -> bool:
    """Return whether a regular expression matches a part of a text.

    The time is linear in the text's length.
    """
    return _expression(expression, full_match=False).isinstance_python(_valid(text))


def check_expression(expression: str) -> None:
    """Check a regular expression that is searched in texts of any length.

    Raises:
        ValueError: As `_expression`, or if it is too large.
    """
    _expression(expression, full_match=False)
    if expression_size(expression) > _MOST_STATES:
        msg = f"is too large: its repetitions add up to more than {_MOST_STATES:,}"
        raise ValueError(msg)


@functools.lru_cache(maxsize=1024)
def expression_size(expression: str) -> int:
    """Estimate the number of states of a valid regular expression.

    The time of a search is in proportion to it and to the text's length.
    """
    sizes, last, position = [0], 0, 0  # of the open groups, and of the last part
    while position < len(expression):
        repeated = _REPEATED.match(expression, position)
        if expression[position] == "(":
            sizes.append(0)
            position += 1
        elif repeated:
            position = repeated.end()
            times = max(int(repeated[1]), int(repeated[2] or 0), 1)
            sizes[-1] += last * (times - 1)
            last *= times
        else:
            last = sizes.pop() if expression[position] == ")" and len(sizes) > 1 else 1
            position += 2 if expression[position] == "\\" else 1
            sizes[-1] += last
    return sum(sizes)


@functools.lru_cache(maxsize=1024)
def _expression(expression: str, *, full_match: bool = True) -> SchemaValidator:
    """Compile a regular expression that matches a text.

    A dot matches line ends too. Python's engine backtracks, and takes hours for some expressions. The Rust engine that
    pydantic has takes linear time; so it supports no look-around and no back-references.

    Raises:
        ValueError: If it is invalid, or this engine does not support it; the message gives the reason.
    """
    try:
        _compile_expression(expression)  # by itself, too: one like `a)(b` is valid only inside the group below
        return _compile_expression(rf"\A(?s:{expression})\z" if full_match else expression)
    except SchemaError as error:
        why = str(error).strip().splitlines()[-1].strip().removeprefix("error: ").removeprefix("SchemaError: ")
        msg = f"is not a regular expression: {why.rstrip('.')}"
        raise ValueError(msg) from None


def _valid(text: str) -> str:
    """Replace lone surrogates, which the engine refuses."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _compile_expression(expression: str) -> SchemaValidator:
    return SchemaValidator(core_schema.str_schema(pattern=expression, regex_engine="rust-regex"))


def _validate_pattern(pattern: str) -> str:
    if pattern.startswith(EXPRESSION):
        _expression(pattern.removeprefix(EXPRESSION))
    return pattern


Pattern = Annotated[str, AfterValidator(_validate_pattern)]
"""A glob, or `re:` and a regular expression that must match the whole text, in Rust's syntax: no look-around and no
back-references."""
