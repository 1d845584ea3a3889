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

from callboard.surfaces._tool_function import ToolError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from email.message import Message

_WORD = re.compile(r"=\?[^?]*\?[qb]\?[^?]*\?=", re.IGNORECASE)
_BETWEEN = re.compile(r"(\?=)\s+(?==\?)")
"""Blanks between two encoded words, which are no part of the text."""
_UNDECODED_WORD = re.compile(r"=\?.*\?=", re.DOTALL)
_HEADER_LINE = re.compile(rb"(?:From |[!-9;-~]*:|[ \t])[^\r\n]*(?:\r\n|\r|\n|\Z)")
"""A line of a message's headers, as Python's parser takes it."""
_MOST_LAYERS = 5
"""The most encoded words within encoded words that are decoded."""
_UNFIT = {"Cc", "Cs", "Zl", "Zp"}
"""Unicode's categories of control characters, halves of pairs, and separators of lines and paragraphs."""


def header_text(text: str, part_name: str) -> str:
    """Return the text that a reader of a header would see.

    The result has no encoded words, so that nothing in it is decoded again.

    Args:
        text: The text as it was given, in any form of encoded words.
        part_name: The part of the message, for the error.

    Raises:
        ToolError: If it has a line break or a control character, or an encoded word that can't be decoded.
    """
    decoded_text = text
    for _ in range(_MOST_LAYERS):
        decoded_text = _WORD.sub(_decode_word, _BETWEEN.sub(r"\1", decoded_text))
    if _UNDECODED_WORD.search(decoded_text):
        msg = f"{part_name} {text!r} has an encoded word that can't be decoded; write the text itself"
        raise ToolError(msg)
    decoded_text = decoded_text.replace("\t", " ")
    unfit = next((sign for sign in decoded_text if unicodedata.category(sign) in _UNFIT), None)
    if unfit is not None:
        msg = f"{part_name} {text!r} has the character {unfit!r}, which a header can't hold; remove it"
        raise ToolError(msg)
    return decoded_text


def check_headers(message: Message, data: bytes, name: str, *, parts: bool) -> None:
    """Check that a written message has its own headers only.

    Args:
        message: The message as it should be.
        data: The message as it was written.
        name: The file's name, for the error.
        parts: Whether the parts were written too, and are checked.

    Raises:
        ToolError: If it has others, so that a text in it would be read as a header.
    """
    parsed_message: Message = BytesParser(policy=policy.compat32).parsebytes(data)
    if not _has_same_names(parsed_message, message, parts=parts):
        msg = f"{name!r} is not written: a text in its headers would be read as a header of its own"
        raise ToolError(msg)


def with_headers(data: bytes, names: Collection[str], headers: Iterable[bytes], line_end: bytes) -> bytes:
    """Replace some headers of a message; all its other bytes stay.

    A header that is not there yet goes to the end of the headers.
    """
    blocks: list[bytes] = []
    offset = 0
    for line in _HEADER_LINE.finditer(data):
        if line.start() != offset:
            break
        if blocks and line[0][:1] in b" \t":
            blocks[-1] += line[0]
        else:
            blocks.append(line[0])
        offset = line.end()
    if blocks and not blocks[-1].endswith((b"\r", b"\n")):
        blocks[-1] += line_end
    for header in headers:
        index = next((n for n, block in enumerate(blocks) if _name_of(block) == _name_of(header)), None)
        blocks = [block for n, block in enumerate(blocks) if n == index or _name_of(block) != _name_of(header)]
        blocks[len(blocks) if index is None else index : None if index is None else index + 1] = [header]
    new_names = {_name_of(header) for header in headers}
    removed_names = {name.lower().encode() for name in names} - new_names
    body = data[offset:]
    if not offset and body and not body.startswith((b"\r", b"\n")):
        body = line_end + body  # it has had no headers
    return b"".join(block for block in blocks if _name_of(block) not in removed_names) + (body or line_end)


def _name_of(header: bytes) -> bytes:
    return header.partition(b":")[0].lower()


def _decode_word(word: re.Match[str]) -> str:
    """Decode one encoded word; an undecodable one stays, and is refused."""
    try:
        ((content, charset),) = decode_header(word[0])
        return content if isinstance(content, str) else content.decode(charset or "ascii", "replace")
    except (MessageError, LookupError, ValueError):
        return word[0]


def _has_same_names(parsed_message: Message, message: Message, *, parts: bool) -> bool:
    """Compare the names of headers, in all parts or the first.

    An attached message that was written as it is (its payload is a text) keeps its own headers.
    """
    if _names(parsed_message) != _names(message):
        return False
    if not parts:
        return True
    if not message.is_multipart():
        return not parsed_message.is_multipart() or message.get_content_type() == "message/rfc822"
    children, parsed_children = message.get_payload(), parsed_message.get_payload()
    if not isinstance(children, list) or not isinstance(parsed_children, list) or len(children) != len(parsed_children):
        return False
    pairs = zip(parsed_children, children, strict=True)
    return all(_has_same_names(parsed_child, child, parts=True) for parsed_child, child in pairs)


def _names(message: Message) -> list[str]:
    return sorted(name.lower() for name in message.keys())  # noqa: SIM118 - each of a header
