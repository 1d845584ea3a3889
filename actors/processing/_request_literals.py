"""The texts, numbers, files and cells that a request names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_LITERALS = 20
"""The number of literals of a request that count, the first ones."""
MOST_CHARACTERS = 8000
"""The length of the beginning of a request that is searched."""
_MOST_SPANS = 200
"""The number of places that may be literals, since each one is judged by its clause."""

_ENDINGS = (
    "csv|tsv|xlsx|xlsm|xls|ods|docx|doc|odt|rtf|pptx|ppt|odp|pdf|txt|md|html?|json|ya?ml|xml|eml|ics|vcf|zip|log|"
    "png|jpe?g|gif|svg"
)
_FILE = re.compile(rf"(?<![\w/\\.*?{{}}<$-])(?:[\w.~-]+[/\\])*[\w-][\w.-]*\.(?:{_ENDINGS})(?![\w*])", re.IGNORECASE)
_CELL = re.compile(
    r"(?:\b(?P<named>cells?|range)|\b(?:in|into|to|at|[Ss]et|[Cc]hange|[Uu]pdate|[Cc]lear|[Ff]ill|[Ff]ormat))\s+"
    r"(?P<text>\$?[A-Z]{1,3}\$?[1-9]\d{0,6}(?::\$?[A-Z]{1,3}\$?[1-9]\d{0,6})?)(?![\w:])"
)
_NO_CELL = re.compile(r"Q[1-4]|H[12]|A[3-5]")
"""Quarters, halves of a year and sizes of paper."""
_QUOTED = re.compile(
    r"(?<!\w)\"(?P<straight>[^\"\n]{1,400})\"(?!\w)|“(?P<english>[^”\n]{1,400})”|„(?P<german>[^“”\n]{1,400})[“”]"
    r"|«(?P<french>[^»\n]{1,400})»"
    r"|(?<![\w)])['\u2018](?P<single>[^'\u2019\n]{1,400})['\u2019](?!\w)|`[^`]{1,400}`"
)
"""A text in backticks is code, and no literal."""
_SAID = re.compile(
    r"\b(?:says?|saying|reads|reading|the\s+(?:text|sentence|words|line|paragraph)|"
    r"(?:this|following)\s+(?:text|sentence|words|line|paragraph|heading|title)\b[^.:;\n]{0,60})\s*:\s*(?P<text>[^\W_][^\n]*?)"
    r"(?=[.!?](?:\s|$)|\n|$)"
)
_CAPITALS = r"(?!(?:The|An?|It|This|In|I)\b)[A-Z0-9À-Þ][\w&/-]*(?:\s+[A-Z0-9À-Þ][\w&/-]*)*(?!\w*\.\w)"
_NAMED = re.compile(
    rf"\b(?:called|named|titled|entitled|headed|name|title|heading|subject|caption)\s+(?P<text>{_CAPITALS})"
)
_RENAMED = re.compile(
    rf"(?:\b[Rr]ename\b[^.;:\n]{{0,80}}?\bto|\b[Rr]eplace\b[^.;:\n]{{0,80}}?\b(?:with|by))\s+(?P<text>{_CAPITALS})"
)
_NUMERAL = r"[-+]?(?:\d[\d.,'\u2019\u00a0\u202f]*\d|\d)(?:[ \u00a0]?%)?"
_VALUE = re.compile(
    r"(?:\b(?:to|be|now|becomes?|equals|write|enter|type|put|fill in)|=)\s+(?:exactly\s+)?[€$£]?"
    rf"(?P<text>{_NUMERAL})(?=\s*(?:[.,;!?)](?:\s|$)|\n|$)|\s+(?:€|euros?|dollars?|in|into|for|at|on|everywhere|instead)\b)",
    re.IGNORECASE,
)
_NO_VALUE = re.compile(
    r"\b(?:up|equal|compared|close|next|according|down|back|than|count|between|within|rounded|round\s+\w+|"
    r"(?<![\w-])\d[\d.,]*%?)\s+$",
    re.IGNORECASE,
)
_LIST = re.compile(r"\b(?:add|append|insert|write|enter|put)\b[^.;:\n]*?[:,](?P<items>[^\n]+)", re.IGNORECASE)
_ITEM = re.compile(
    r"(?:[:,]|\band)\s+(?:(?!(?:rows?|columns?|levels?|pages?|slides?|steps?|top|first|last|size|width|height|week|part)\b)[a-z]+\s+)?"
    rf"[€$£]?(?P<text>{_NUMERAL})(?=,\s|\s+and\b|[.!;](?:\s|$)|$|\n)"
)

_CONDITION = re.compile(r"\b(?:if|unless|otherwise|whether|when|whenever|wherever|depending|else)\b", re.IGNORECASE)
_EXCEPTION = re.compile(
    r"n['\u2019]t\b|\b(?:not|cannot|never|no|none|nothing|without|except|besides|apart|instead|rather|keep|leave|ignore|skip|"
    r"avoid|than|example|such as|like|similar|e\.g|neither|nor|later|used|remains?|stays?)\b",
    re.IGNORECASE,
)
_MAKES = re.compile(
    r"\b(?:saved?|creat\w+|makes?|export\w*|stored?|new|rename|convert\w*|generate|produce|called|named|write|copy)\b",
    re.IGNORECASE,
)
_USES = re.compile(
    r"\b(?:from|of|with|using|on|by|see|per|than|and|to use)\s+(?:the\s+)?(?:\w+\s+)?[\"'“„«\u2018\0]?$", re.IGNORECASE
)
_PATTERN = re.compile(r"[{}<>*|$\\…]|\.\.\.|\s--?\w")
"""A text with one of these is a pattern, a placeholder or a command."""
_DATE = re.compile(
    r"\d\s*(?:jan|feb|mar|apr|may|june?|july?|aug|sep|oct|nov|dec)|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w*\.?\s+\d"
    r"|\d{1,4}[-./]\d{1,2}[-./]\d{1,4}|\d{1,2}:\d{2}",
    re.IGNORECASE,
)
"""A date or a time is written in many ways."""
_ALTERNATIVE = re.compile(r"\bor[\s\W]*$"), re.compile(r"[\W]*\bor\b")
_CLAUSE_END = re.compile(r"[.!?;](?=\s|$)|\n|\b(?:but|then)\b")
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|\n")


class LiteralKind(StrEnum):
    """The kinds of literals, which are looked for in different ways."""

    TEXT = "text"
    """A quoted text, a name or a heading."""
    NUMBER = "number"
    """A number that is to be written."""
    FILE = "file"
    """The name of a file that is to be made."""
    CELL = "cell"
    """A cell or a range of a sheet."""


@dataclass(frozen=True)
class RequestLiteral:
    """A literal as the request writes it, without quotation marks."""

    kind: LiteralKind
    text: str


def request_literals(request: str) -> tuple[RequestLiteral, ...]:
    """Find the literals that the outcome of a request must contain.

    In doubt there is none: literals of conditions, exceptions, examples and alternatives do not count, and a number
    counts only as a value to be written.

    Example:
        >>> [literal.text for literal in request_literals('Add a sheet "Archive" and save it as May.xlsx')]
        ['Archive', 'May.xlsx']
    """
    request = request[:MOST_CHARACTERS]
    plain = _QUOTED.sub(_blank, request)
    spans = [*_quoted(request), *_named(plain)]
    first_spans = sorted(spans, key=lambda span: span[1])[:_MOST_SPANS]
    literals = [
        RequestLiteral(kind, request[start:end].strip().rstrip(",.;:!?"))
        for kind, start, end in first_spans
        if _counts(kind, plain, start, end)
    ]
    return tuple(dict.fromkeys(literals))[:MOST_LITERALS]


def _blank(match: re.Match[str]) -> str:
    return "\0" * len(match[0])


def _quoted(request: str) -> Iterator[tuple[LiteralKind, int, int]]:
    for match in _QUOTED.finditer(request):
        if (
            match.lastgroup
            and re.search(r"\w", match[match.lastgroup])
            and not (_PATTERN.search(match[match.lastgroup]) or _DATE.search(match[match.lastgroup]))
        ):
            is_file = _FILE.fullmatch(match[match.lastgroup].strip())
            yield LiteralKind.FILE if is_file else LiteralKind.TEXT, *match.span(match.lastgroup)


def _named(plain: str) -> Iterator[tuple[LiteralKind, int, int]]:
    """Find the literals of a request without its quoted texts."""
    for kind, pattern in (
        (LiteralKind.FILE, _FILE),
        (LiteralKind.TEXT, _SAID),
        (LiteralKind.TEXT, _NAMED),
        (LiteralKind.TEXT, _RENAMED),
        (LiteralKind.CELL, _CELL),
        (LiteralKind.NUMBER, _VALUE),
    ):
        for match in pattern.finditer(plain):
            text = match["text"] if "text" in pattern.groupindex else match[0]
            if (
                "\0" in text
                or _DATE.search(text)
                or (pattern is _CELL and not match["named"] and _NO_CELL.fullmatch(text))
            ):
                continue
            if not (pattern is _VALUE and _NO_VALUE.search(plain, 0, match.start())):
                yield kind, *match.span("text" if "text" in pattern.groupindex else 0)
        if pattern in {_FILE, _SAID}:
            plain = pattern.sub(_blank, plain)
    for match in _LIST.finditer(plain):
        for item in _ITEM.finditer(plain, match.start("items") - 1, match.end("items")):
            yield LiteralKind.NUMBER, *item.span("text")


def _counts(kind: LiteralKind, plain: str, start: int, end: int) -> bool:
    """Return whether the outcome must contain a literal."""
    sentence_start = max((match.end() for match in _SENTENCE_END.finditer(plain, 0, start)), default=0)
    sentence_end = _SENTENCE_END.search(plain, end)
    if _CONDITION.search(plain, sentence_start, sentence_end.start() if sentence_end else len(plain)):
        return False
    clause_start = max((match.end() for match in _CLAUSE_END.finditer(plain, 0, start)), default=0)
    clause = plain[clause_start:start]
    before, after = _ALTERNATIVE
    if _EXCEPTION.search(clause) or before.search(clause) or after.match(plain, end):
        return False
    return kind is not LiteralKind.FILE or bool(_MAKES.search(clause) and not _USES.search(clause))
