"""Secrets within addresses and arguments of MCP servers.

These are plain text in `mcpServers`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import unquote, unquote_plus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Span: TypeAlias = tuple[int, int]
"""The position of a secret in a text: its first character, and the one after its last."""

MASK = "**********"
"""The replacement for a secret, the same as pydantic's."""

_LONG = 8
_NAME = r"[\w.-]*(?:key|token|secret|passw|credential|authorization)[\w.-]*"
_OPTION = re.compile(rf"-+{_NAME}", re.IGNORECASE)
_NAMED = re.compile(rf"-*{_NAME}\s*[=:]\s*(?P<value>.+)", re.IGNORECASE | re.DOTALL)
_QUOTED = re.compile(rf'"{_NAME}"\s*:\s*"(?P<value>(?:[^"\\]|\\.)+)"', re.IGNORECASE)
_URL = re.compile(r"[a-z][a-z0-9+.-]{0,40}://(?:(?P<user>[^\s/?#]+)@)?[^\s?#]*(?:\?(?P<query>[^\s#]+))?", re.IGNORECASE)
_ITEM = re.compile(r"(?:(?P<name>[^=&]*)=)?(?P<value>[^&]+)")
_SCHEME = re.compile(r"(?:basic|bearer|token)\s+(?P<value>.+)", re.IGNORECASE)


def like_a_key(name: str) -> bool:
    """Return whether a name is like a key's or a password's.

    It is the name of a variable, header or option.
    """
    return re.fullmatch(_NAME, name, re.IGNORECASE) is not None


def in_url(text: str) -> list[Span]:
    """Find the secrets in each URL of a text.

    They are the user, the password and query values.
    """
    spans = []
    for url in _URL.finditer(text):
        if url["user"]:
            spans.append(url.span("user"))
        spans += [(start, end) for start, end, _ in _query(url)]
    return spans


def in_arguments(arguments: Sequence[str]) -> list[list[Span]]:
    """Find the secrets in each argument of a program.

    Secrets are values with a name like a key's (``--api-key X``, ``--token=X``, ``API_KEY=X``, ``Authorization: X``,
    ``"apiKey": "X"``), and those in URLs.
    """
    spans, previous_argument = [], ""
    for argument in arguments:
        if _OPTION.fullmatch(previous_argument) and not argument.startswith("--"):
            spans.append([(0, len(argument))])
        elif named := _NAMED.match(argument):
            spans.append([named.span("value")])
        else:
            spans.append([match.span("value") for match in _QUOTED.finditer(argument)] + in_url(argument))
        previous_argument = argument
    return spans


def masked(text: str, spans: Iterable[Span]) -> str:
    """Replace the secrets in a text with a mask."""
    for start, end in sorted(spans, reverse=True):
        text = text[:start] + MASK + text[end:]
    return text


def secrets_in_url(text: str) -> Iterator[str]:
    """Yield the parts of a text's URLs to redact anywhere.

    Each is given both encoded and decoded. A short query value without a name like a key's (``?version=2``) is secret
    only within its query, since on its own it would match ordinary text. A user's name is secret only if it is the
    whole user part, since it may then be a token.
    """
    for url in _URL.finditer(text):
        if user := url["user"]:
            yield from (user, unquote(user))
            password = user.partition(":")[2]
            yield from (password, unquote(password))
        if url["query"]:
            yield url["query"]
            for start, end, alone in _query(url):
                if alone:
                    yield from (text[start:end], unquote_plus(text[start:end]))


def secrets_in_arguments(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the parts of a program's arguments to redact anywhere."""
    for argument, spans in zip(arguments, in_arguments(arguments), strict=True):
        urls = in_url(argument)
        for start, end in spans:
            if (start, end) not in urls:
                yield from with_bare(argument[start:end])
        yield from secrets_in_url(argument)


def with_bare(secret: str) -> Iterator[str]:
    """Yield a secret, and the part after its scheme.

    For ``Bearer X``, that is also ``X``.
    """
    yield secret
    if scheme := _SCHEME.fullmatch(secret):
        yield scheme["value"]


def _query(url: re.Match[str]) -> Iterator[tuple[int, int, bool]]:
    """Find the values of a URL's query.

    Each comes with whether it is secret in any context.
    """
    if not url["query"]:
        return
    for item in _ITEM.finditer(url.string, *url.span("query")):
        start, end = item.span("value")
        yield start, end, like_a_key(item["name"] or "") or end - start >= _LONG
