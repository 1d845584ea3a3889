"""Text and attachments of a message, as mail programs show them."""

from __future__ import annotations

import functools
import mimetypes
import re
from dataclasses import dataclass, field
from email import policy
from typing import TYPE_CHECKING

from callboard.actors.servers.documents._encodings import decode_guessing, detect_encoding
from callboard.actors.servers.documents._html_text import html_to_text, merged_text
from callboard.actors.servers.documents._tables import short

if TYPE_CHECKING:
    from email.message import EmailMessage, MIMEPart

POLICY = policy.SMTP.clone(refold_source="none")
"""The headers of a file that was read are written as they were, so that an attached message stays the same."""
_ERRORS = (ValueError, IndexError, AttributeError, TypeError, LookupError)
"""The errors of Python's parser of headers."""
_SURROGATES = re.compile("[\udc80-\udcff\ufffd]")
_META = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_HEAD_BYTES = 4096
_SUPERSETS = {"iso-8859-1": "cp1252", "gb2312": "gb18030", "shift_jis": "cp932", "ks_c_5601-1987": "cp949"}
"""Encodings that programs name, and those that they mean."""


@dataclass
class MailContents:
    """The text and the attachments."""

    texts: list[str] = field(default_factory=list)
    attachments: list[EmailMessage] = field(default_factory=list)
    formatted: bool = False
    """True if a part of the text has formats."""
    guessed: list[str] = field(default_factory=list)
    """The encodings that were guessed."""

    @property
    def text(self) -> str:
        """The whole text."""
        return "\n".join(self.texts)

    def add(self, other: MailContents) -> None:
        """Append the texts and attachments of a later part."""
        for name in ("texts", "attachments", "guessed"):
            getattr(self, name).extend(getattr(other, name))
        self.formatted |= other.formatted


def contents_of(part: EmailMessage) -> MailContents:
    """Read a part: shown texts, and everything else as attachments.

    Of alternatives, the plain text and the formatted one are merged; an invitation among them is an attachment.
    """
    kind = part.get_content_type()
    contents = MailContents()
    if part.get_content_maintype() == "multipart" and part.is_multipart():
        parts = [contents_of(child) for child in part.get_payload()]  # type: ignore[arg-type]
        for child in parts:
            contents.add(child)
        if kind == "multipart/alternative":
            texts = [child.text for child in parts if child.texts]
            contents.texts = [functools.reduce(merged_text, texts)] if texts else []
    elif kind in {"text/plain", "text/html"} and not part.get_filename() and not part.is_attachment():
        text, guess = _text_of(part)
        contents = MailContents([text], [], kind == "text/html", [guess] if guess else [])
    elif part.get_payload():
        contents.attachments.append(part)
    return contents


def _text_of(part: EmailMessage) -> tuple[str, str]:
    """Decode a part's text.

    Returns:
        The text, and its encoding if that is a guess.
    """
    data, is_html = content_bytes(part), part.get_content_subtype() == "html"
    meta = _META.search(data[:_HEAD_BYTES]) if is_html else None
    charset = part.get_content_charset() or (meta[1].decode("ascii", "replace") if meta else "utf-8")
    charset, guess = charset.lower(), ""
    try:
        text = data.decode(_SUPERSETS.get(charset, charset))
    except (LookupError, UnicodeDecodeError):  # an encoding that does not exist, or is not that of the text
        text, guess = decode_guessing(data), detect_encoding(data)[0] or "latin-1"
    text = text.replace("\r\n", "\n")
    return (html_to_text(text) if is_html else text), guess


def content_bytes(part: MIMEPart) -> bytes:
    """Return the decoded content of a part."""
    if part.is_multipart():  # an attached message
        return b"".join(each.as_bytes() for each in part.get_payload())  # type: ignore[union-attr]
    data = part.get_payload(decode=True)
    return data if isinstance(data, bytes) else b""


def shown_header(message: EmailMessage, name: str) -> str:
    """Return a header's text; bytes without an encoding are decoded by detection."""
    try:
        values = [str(POLICY.header_fetch_parse(key, raw)) for key, raw in _raw_headers(message, name)]
    except _ERRORS as error:
        return f"(can't be read: {short(str(error))})"
    return short(", ".join(values), 2000)


def _raw_headers(message: EmailMessage, name: str) -> list[tuple[str, str]]:
    headers = [(key, raw) for key, raw in message.raw_items() if key.lower() == name.lower()]
    return [
        (key, decode_guessing(raw.encode("ascii", "surrogateescape")) if _SURROGATES.search(str(raw)) else raw)
        for key, raw in headers
    ]


def attachment_name(part: EmailMessage, number: int) -> str:
    """Return the attachment's name, without folders."""
    try:
        name = part.get_filename() or ""
        if _SURROGATES.search(name):
            headers = [*_raw_headers(part, "Content-Disposition"), *_raw_headers(part, "Content-Type")]
            params = {key: text for header in headers for key, text in POLICY.header_factory(*header).params.items()}
            name = params.get("filename") or params.get("name") or name
    except _ERRORS:
        name = ""
    name = "".join(letter for letter in name.replace("\\", "/").rpartition("/")[2] if letter.isprintable())
    kind = part.get_content_type()
    stem = "invite" if kind == "text/calendar" else f"attachment-{number}"
    return short(name, 200) or f"{stem}{mimetypes.guess_extension(kind) or '.bin'}"
