"""Regular expressions of callers, matched in linear time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from callboard.surfaces._tool_function import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable

_GROUP = re.compile(r"\\(?:([0-9])|(\\))")
_DOLLAR = re.compile(r"\$[1-9]")
_MAX_LENGTH = 1_000


def compiled(pattern: str, *, match_case: bool) -> Any:
    """Compile a regular expression in the syntax of RE2.

    Python's own expressions, and those of the package regex, can take exponential time on a cell's text. RE2 takes
    linear time and bounded memory, so that a pattern that a model writes needs no time limit. It has no look-ahead and
    no back-references.

    Raises:
        ToolError: If it is malformed or too long, or the extra is not installed.
    """
    try:
        import re2
    except ImportError as error:
        msg = "patterns need the package google-re2, which comes with callboard[excel]"
        raise ToolError(msg) from error
    options = re2.Options()
    options.case_sensitive, options.log_errors = match_case, False
    try:
        if len(pattern) > _MAX_LENGTH:
            msg = f"it has more than {_MAX_LENGTH} characters"
            raise ToolError(msg)
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else str(error)
        msg = f"{pattern!r} is no regular expression: {reason}; look-ahead and back-references are not supported"
        raise ToolError(msg) from error


def expansion(pattern: Any, replacement: str) -> Callable[[Any], str]:
    r"""Make the function that fills a match's groups into a replacement.

    ``\1`` stands for the first group, ``\0`` for the whole match, and ``\\`` for a backslash.

    Raises:
        ToolError: If the replacement names a group that there is not, or one with a dollar sign.
    """
    numbers = [int(match[1]) for match in _GROUP.finditer(replacement) if match[1]]
    if any(number > pattern.groups for number in numbers):
        msg = f"{replacement!r} names the group {max(numbers)}, and the pattern has {pattern.groups}"
        raise ToolError(msg)
    if not numbers and pattern.groups and _DOLLAR.search(replacement):
        msg = rf"{replacement!r}: a group is written \1, and not $1"
        raise ToolError(msg)

    def fill(match: Any) -> str:
        return _GROUP.sub(lambda group: "\\" if group[2] else match[int(group[1])] or "", replacement)

    return fill
