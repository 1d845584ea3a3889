"""E-mail addresses as tools get them, and as headers hold them."""

from __future__ import annotations

import re
from email.utils import formataddr, unquote
from typing import TYPE_CHECKING

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._tables import clean
from callboard.surfaces.documents.mail._headers import header_text

if TYPE_CHECKING:
    from email.message import EmailMessage

_NAME = re.compile(r"[^\r\n,;<>]*")
_QUOTED = re.compile(r'"(?:[^"\\\r\n]|\\[^\r\n])*"')
_ADDRESS = re.compile(r"[^@\s<>\",;:()\\]+@[^@\s<>\",;:()\\]+")


def parse_address(text: str) -> tuple[str, str]:
    """Return the name and the plain address of a text.

    Raises:
        ToolError: If it is no address, or more than one.
    """
    name, bracket, address = clean(text).strip().rpartition("<")
    name, plain = name.strip(), (address.removesuffix(">") if bracket else address).strip()
    quoted = _QUOTED.fullmatch(name)
    if not _ADDRESS.fullmatch(plain) or "=?" in plain or not (quoted or _NAME.fullmatch(name)):
        msg = (
            f"{text!r} is no e-mail address; write ada@example.org, Ada <ada@example.org> "
            'or "Lovelace, Ada" <ada@example.org>'
        )
        raise ToolError(msg)
    if not plain.isascii():
        msg = f"{plain!r} has letters other than A to Z, which an address can't have; write its domain as xn--…"
        raise ToolError(msg)
    return header_text(unquote(name) if quoted else name, "the name in the address"), plain


def address_header(text: str) -> str:
    """Format an address with an optional name for a header.

    Raises:
        ToolError: As `parse_address`.
    """
    return formataddr(parse_address(text))


def set_addresses(message: EmailMessage, name: str, addresses: list[str]) -> None:
    """Replace a header by formatted addresses; without any, it is removed."""
    del message[name]
    if addresses:  # where Python folds such a header, names with commas and letters beyond ASCII become addresses
        message.set_raw(name, ",\n ".join(addresses))
