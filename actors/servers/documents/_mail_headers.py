"""Texts in the headers of messages, decoded and checked.

A header may hold its text in encoded words (RFC 2047), such as ``=?utf-8?q?caf=C3=A9?=``. A reader decodes them, and so
does Python before it folds a header that it writes. So a line break in an encoded word would begin another header.
"""

from __future__ import annotations

import re
import unicodedata
from email import policy
from email.errors import MessageError
from email.header import decode_header
from email.parser import BytesParser
from typing import TYPE_CHECKING

from callboard.actors.servers._server import ToolError

if TYPE_CHECKING:
    from email.message import Message

_WORD = re.compile(r"=\?[^?]*\?[qb]\?[^?]*\?=", re.IGNORECASE)
_BETWEEN = re.compile(r"(\?=)\s+(?==\?)")
"""Blanks between two encoded words, which are no part of the text."""
_LEFT = re.compile(r"=\?.*\?=", re.DOTALL)
_MOST_LAYERS = 5
"""The most encoded words within encoded words that are decoded."""
_UNFIT = {"Cc", "Cs", "Zl", "Zp"}
"""Unicode's categories of control characters, halves of pairs, and separators of lines and paragraphs."""


def header_text(text: str, what: str) -> str:
    """Return the text that a reader of a header would see.

    The result has no encoded words, so that nothing in it is decoded again.

    Args:
        text: The text as it was given, in any form of encoded words.
        what: The part of the message, for the error.

    Raises:
        ToolError: If it has a line break or a control character, or an encoded word that can't be decoded.
    """
    seen = text
    for _ in range(_MOST_LAYERS):
        seen = _WORD.sub(_decoded, _BETWEEN.sub(r"\1", seen))
    if _LEFT.search(seen):
        msg = f"{what} {text!r} has an encoded word that can't be decoded; write the text itself"
        raise ToolError(msg)
    seen = seen.replace("\t", " ")
    unfit = next((sign for sign in seen if unicodedata.category(sign) in _UNFIT), None)
    if unfit is not None:
        msg = f"{what} {text!r} has the character {unfit!r}, which a header can't hold; remove it"
        raise ToolError(msg)
    return seen


def check_headers(message: Message, data: bytes, name: str) -> None:
    """Check that a written message has its own headers only.

    Raises:
        ToolError: If it has others, so that a text in it would be read as a header.
    """
    again: Message = BytesParser(policy=policy.compat32).parsebytes(data)
    if _names(again) != _names(message):
        msg = f"{name!r} is not written: a text in its headers would be read as a header of its own"
        raise ToolError(msg)


def _decoded(word: re.Match[str]) -> str:
    """Decode one encoded word; an undecodable one stays, and is refused."""
    try:
        ((content, charset),) = decode_header(word[0])
        return content if isinstance(content, str) else content.decode(charset or "ascii", "replace")
    except (MessageError, LookupError, ValueError):
        return word[0]


def _names(message: Message) -> list[list[str]]:
    return [[name.lower() for name in part.keys()] for part in message.walk()]  # noqa: SIM118 - one for each header
