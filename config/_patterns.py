"""Patterns of the policy's rules: globs, and regular expressions of an engine that never backtracks."""

from __future__ import annotations

import fnmatch
import functools
from typing import Annotated

from pydantic import AfterValidator
from pydantic_core import SchemaError, SchemaValidator, core_schema

EXPRESSION = "re:"
"""What a regular expression begins with; all else is a glob."""


def fits(pattern: str, text: str) -> bool:
    """Say whether a pattern fits a whole text. Takes time in proportion to the text, whatever the pattern is."""
    if pattern.startswith(EXPRESSION):
        writable = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")  # half a pair is no Unicode
        return _expression(pattern.removeprefix(EXPRESSION)).isinstance_python(writable)
    return fnmatch.fnmatchcase(text, pattern)


@functools.lru_cache(maxsize=1024)
def _expression(expression: str) -> SchemaValidator:
    """Compile a regular expression for a whole text, in which a dot stands for a line's end too.

    Python's own engine tries every way in which a text may be divided, and takes hours for some expressions. The one of
    pydantic, Rust's, takes time in proportion to the text; so it knows no look-around and no back-references.

    Raises:
        ValueError: If it is none, or none that this engine knows; the text says why.
    """
    try:
        _compiled(expression)  # alone, too: with what stands around it an unbalanced one may be another one
        return _compiled(rf"\A(?s:{expression})\z")
    except SchemaError as error:
        why = str(error).strip().splitlines()[-1].strip().removeprefix("error: ").removeprefix("SchemaError: ")
        msg = f"is no regular expression: {why.rstrip('.')}"
        raise ValueError(msg) from None


def _compiled(expression: str) -> SchemaValidator:
    return SchemaValidator(core_schema.str_schema(pattern=expression, regex_engine="rust-regex"))


def _checked(pattern: str) -> str:
    if pattern.startswith(EXPRESSION):
        _expression(pattern.removeprefix(EXPRESSION))
    return pattern


Pattern = Annotated[str, AfterValidator(_checked)]
"""A glob, or `re:` and a regular expression that must match the whole text, in Rust's syntax: no look-around and no
back-references."""
