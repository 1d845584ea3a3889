"""Names of IMAP folders: modified UTF-7 (RFC 3501, section 5.1.3)."""

from __future__ import annotations

import base64
import re

from callboard.surfaces import ToolError

_LONGEST = 500
"""The most characters of a folder's name."""
_OTHERS = re.compile(r"[^\x20-\x7e]+|&")
_ENCODED = re.compile(rb"&([^-&]*)-")


def encode_folder(name: str) -> str:
    """Encode a folder's name for a command, without quotes.

    >>> encode_folder("Entwürfe & mehr")
    'Entw&APw-rfe &- mehr'

    Raises:
        ToolError: If it has a control character.
    """
    if not is_folder_name(name):
        msg = f"{name[:100]!r} is no folder; list the folders to see which there are"
        raise ToolError(msg)
    return _OTHERS.sub(_encode, name)


def decode_folder(name: bytes) -> str:
    """Decode a folder's name; parts that can't be decoded stay.

    >>> decode_folder(b"Entw&APw-rfe &- mehr")
    'Entwürfe & mehr'
    """
    return _ENCODED.sub(_decode, name).decode("utf-8", "replace")


def is_folder_name(name: str) -> bool:
    """Return whether a text can name a folder."""
    return 0 < len(name) <= _LONGEST and name.isprintable()


def _encode(match: re.Match[str]) -> str:
    if match[0] == "&":
        return "&-"
    coded = base64.b64encode(match[0].encode("utf-16-be")).decode().rstrip("=").replace("/", ",")
    return f"&{coded}-"


def _decode(match: re.Match[bytes]) -> bytes:
    if not match[1]:
        return b"&"
    coded = match[1].replace(b",", b"/")
    try:
        return base64.b64decode(coded + b"=" * (-len(coded) % 4)).decode("utf-16-be").encode()
    except ValueError:
        return match[0]
