"""The codes of number formats, checked before they reach a workbook.

Excel calls a workbook damaged if one of its codes is malformed.
"""

from __future__ import annotations

import re

from callboard.surfaces._surface import ToolError
from callboard.surfaces.documents._tables import clean

_WORDS = {
    "general": "General",
    "number": "#,##0.00",
    "currency": '"$"#,##0.00_);("$"#,##0.00)',  # built in: Excel shows it with the user's currency
    "percent": "0.00%",
    "date": "yyyy-mm-dd",
    "time": "h:mm:ss",
    "duration": "[h]:mm:ss",
    "text": "@",
}
_MAX_SECTIONS = 4
_TOKEN = re.compile(
    r"""(?P<literal>"[^"]*"|\\.|_.|\*.)
    |(?P<bracket>\[(?:\$[^\[\]]*|(?:[<>]=?|<>|=)-?[0-9.]+|color\ ?[0-9]{1,2}|dbnum[0-9]|natnum[0-9]{1,2}
     |black|blue|cyan|green|magenta|red|white|yellow)\])
    |(?P<word>general)
    |(?P<date>\[(?:h+|m+|s+)\](?:\.0+)?|y{1,4}|m{1,5}|d{1,4}|h{1,2}|s{1,2}(?:\.0+)?|am/pm|a/p|aaaa?|g{1,3}(?:e{1,2})?)
    |(?P<digit>[0\#?](?:[0\#?.,]*[0\#?])?(?:e[+-][0\#?]+)?)
    |(?P<end>;)
    |(?P<other>[^\W_A-Za-z]|[^\w"\\*\[\]])""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


def number_code(text: str) -> str:
    """Return the code of a number format or of its word.

    Raises:
        ToolError: If Excel would not accept it.
    """
    code = clean(text)
    if (word := code.strip().casefold()) in _WORDS:
        return _WORDS[word]
    position, sections = 0, [set[str]()]
    while position < len(code):
        token = _TOKEN.match(code, position)
        if token is None or (token.lastgroup == "other" and token[0].isalpha()):
            raise _refusal(text, f"{code[position:]!r} is no part of a code")
        if token.lastgroup == "end":
            sections.append(set())
        sections[-1].add(str(token.lastgroup))
        position = token.end()
    if any({"date", "digit"} <= section for section in sections):
        raise _refusal(text, "it mixes digits with the letters of dates")
    if len(sections) > _MAX_SECTIONS:
        raise _refusal(text, f"it has more than {_MAX_SECTIONS} parts")
    return code


def _refusal(text: str, why: str) -> ToolError:
    return ToolError(
        f"{text!r} is no number format: {why}; write a word ({', '.join(_WORDS)}) or a code, "
        'like #,##0.00, 0%, yyyy-mm-dd or 0.0 "kg" (other texts stand in quotes)'
    )
