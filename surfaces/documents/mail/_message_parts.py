"""Text and attachments of a message, as mail programs show them."""

from __future__ import annotations

import functools
import mimetypes
import re
from dataclasses import dataclass, field
from email.errors import MessageError
from email.parser import BytesParser
from typing import TYPE_CHECKING, Any, cast

from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.documents._encodings import decode_guessing, detect_encoding
from callboard.surfaces.documents._html_text import html_to_text, links_in, merged_text
from callboard.surfaces.documents._tables import short
from callboard.surfaces.documents.mail._bounded_policy import BoundedPolicy, pieces_of

if TYPE_CHECKING:
    from email.message import EmailMessage, MIMEPart
    from email.policy import EmailPolicy

POLICY = cast("EmailPolicy[EmailMessage]", BoundedPolicy(linesep="\r\n", refold_source="none"))
"""The headers of a file that was read are written as they were, so that an attached message stays the same."""
BEFORE_HEADERS = re.compile(rb"\A(?:\xef\xbb\xbf)?[\r\n]*(?=[!-9;-~]+:)")
"""Bytes before the headers that are ignored."""
_BOUNDARY = re.compile(rb"boundary\s{0,9}=\s{0,9}\"?([^\";\s]{1,70})", re.IGNORECASE)
_MOST_DEPTH = 20
_MOST_PARTS = 1000
_MOST_BOUNDARY_LINES = 3 * _MOST_PARTS
"""A boundary may begin another one, so that a line counts twice."""
_MOST_PIECES = 5_000
"""The most headers of one name, or addresses of a long list, that are read."""
_ERRORS = (ValueError, IndexError, AttributeError, TypeError, LookupError)
"""The errors of Python's parser of headers."""
_SURROGATES = re.compile("[\udc80-\udcff\ufffd]")
_META = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_SINGLE_BYTES = re.compile("us-ascii|iso-8859-|windows-125|cp125")
_CLOSED = {
    "application/pkcs7-mime": "the content of an encrypted or signed message (S/MIME)",
    "application/x-pkcs7-mime": "the content of an encrypted or signed message (S/MIME)",
    "application/ms-tnef": "what Outlook packed into winmail.dat",
    "application/vnd.ms-tnef": "what Outlook packed into winmail.dat",
}
"""Kinds of attachments that hold texts or attachments of the message."""
_PLAIN_ENCODINGS = frozenset({"", "7bit", "8bit", "binary"})
_ENCODINGS = _PLAIN_ENCODINGS | {"quoted-printable", "base64", "x-uuencode", "uuencode", "uue", "x-uue"}
"""The transfer encodings that Python decodes."""
_HEAD_BYTES = 4096
_SUPERSETS = {
    "iso-8859-1": "cp1252", "gb2312": "gb18030", "gbk": "gb18030", "x-gbk": "gb18030", "shift_jis": "cp932",
    "x-sjis": "cp932", "ks_c_5601-1987": "cp949", "euc-kr": "cp949", "windows-874": "cp874", "tis-620": "cp874",
    "iso-8859-9": "cp1254", "iso-8859-8-i": "iso-8859-8", "iso-8859-8-e": "iso-8859-8", "x-mac-roman": "mac_roman",
}  # fmt: skip
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
    links: list[str] = field(default_factory=list)
    """The targets of links that no text shows, with the links' words."""
    unseen: list[str] = field(default_factory=list)
    """The parts that can't be read."""

    @property
    def text(self) -> str:
        """The whole text."""
        return "\n".join(self.texts)

    def add(self, part_contents: MailContents) -> None:
        """Append the texts and attachments of a later part."""
        for name in ("texts", "attachments", "guessed", "links", "unseen"):
            getattr(self, name).extend(getattr(part_contents, name))
        self.formatted |= part_contents.formatted


def parse_message(data: bytes, name: str) -> EmailMessage:
    """Parse a message.

    Args:
        data: Its bytes.
        name: Its name, for the error.

    Raises:
        ToolError: If it is malformed, or nested too deeply.
    """
    boundaries = {boundary[1] for boundary in _BOUNDARY.finditer(data)}
    lines = (data.count(b"\n--" + boundary) for boundary in boundaries)
    if len(boundaries) > _MOST_PARTS or sum(lines) > _MOST_BOUNDARY_LINES:  # more would be parsed for minutes
        msg = f"{name!r} is refused: it has more than {_MOST_PARTS} parts"
        raise ToolError(msg)
    try:
        message = BytesParser(policy=POLICY).parsebytes(BEFORE_HEADERS.sub(b"", data))
        check_depth(message, name)
    except (MessageError, ValueError, LookupError, RecursionError, IndexError, AttributeError, TypeError) as error:
        msg = f"{name!r} is damaged and can't be read as a message ({short(str(error), 200)})"
        raise ToolError(msg) from error
    return message


def check_depth(message: EmailMessage, name: str) -> None:
    """Check the number and the depth of a message's parts.

    Raises:
        ToolError: If there are too many, or they are nested too deeply.
    """
    level, depth, count = [message], 0, 0
    while level:
        depth, count = depth + 1, count + len(level)
        if depth > _MOST_DEPTH or count > _MOST_PARTS:
            msg = f"{name!r} is refused: its parts are nested too deeply, or there are more than {_MOST_PARTS}"
            raise ToolError(msg)
        level = [part for container in level if container.is_multipart() for part in container.get_payload()]  # type: ignore[misc]


def message_contents(message: EmailMessage) -> MailContents:
    """Read a whole message; nothing of one with odd headers."""
    try:
        return contents_of(message)
    except _ERRORS:  # a message that is no multipart, or has odd headers
        return MailContents(unseen=["a text or files behind headers that can't be read"])


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
    elif is_shown_text(part):
        text, guess, links = _text_of(part)
        contents = MailContents([text], [], kind == "text/html", [guess] if guess else [], links)
    elif part.get_content_maintype() == "multipart" and isinstance(part.get_payload(), str):  # its boundary is missing
        text = decode_guessing(str(part.get_payload()).encode("utf-8", "surrogateescape"))
        contents = MailContents([text], unseen=["the parts of a damaged message, shown as they are"])
    elif part.get_payload() or part.get_filename() or part.is_attachment():  # a file may be empty
        contents.attachments.append(part)
        if kind in _CLOSED:
            contents.unseen.append(_CLOSED[kind])
    if kind == "multipart/encrypted":
        contents.unseen.append("an encrypted text")
    elif _is_damaged(part):
        contents.unseen.append(_damage(part))
    return contents


def _is_damaged(part: EmailMessage) -> bool:
    """Return whether a part is damaged or can't be decoded."""
    encoding = str(part.get("Content-Transfer-Encoding", "")).strip().lower()
    if part.get_content_maintype() == "message" and encoding not in _PLAIN_ENCODINGS:
        return True  # the parser reads an encoded message as if it were none
    if part.get_content_maintype() == "multipart":
        return bool(part.defects or getattr(part["Content-Type"], "defects", ()))
    if part.is_multipart():
        return not content_bytes(part) or bool(part.defects)
    part.get_payload(decode=True)  # records defects of the encoding
    return bool(part.defects) or encoding not in _ENCODINGS


def _damage(part: EmailMessage) -> str:
    if part.get_content_maintype() == "multipart":
        return "parts that may be missing (the message is damaged)"
    name = part.get_filename()
    label = f"the file {short(name, 100)!r}" if name else f"a part ({part.get_content_type()})"
    return f"{label}, whose transfer encoding is damaged or unknown"


def is_shown_text(part: EmailMessage) -> bool:
    """Return whether mail programs show a part as the message's text."""
    is_text = part.get_content_type() in {"text/plain", "text/html"}
    return is_text and not part.is_multipart() and not part.get_filename() and not part.is_attachment()


def _text_of(part: EmailMessage) -> tuple[str, str, list[str]]:
    """Decode a part's text.

    Returns:
        The text, its encoding if that is a guess, and its links.
    """
    data, is_html = content_bytes(part), part.get_content_subtype() == "html"
    meta = _META.search(data[:_HEAD_BYTES]) if is_html else None
    charset = part.get_content_charset() or (meta[1].decode("ascii", "replace") if meta else "utf-8")
    charset, guess = charset.lower(), ""
    try:
        text = data.decode(_SUPERSETS.get(charset, charset))
        is_wrong = _SINGLE_BYTES.match(charset) is not None and _is_utf8(data)
    except (LookupError, UnicodeDecodeError):  # an encoding that does not exist, or is not that of the text
        text, is_wrong = "", True
    if is_wrong:
        text, guess = decode_guessing(data), detect_encoding(data)[0] or "latin-1"
    text = text.replace("\r\n", "\n")
    if is_html:
        return html_to_text(text), guess, links_in(text)
    if str(part.get_param("format", "")).lower() == "flowed":
        text = _join_lines(text, "" if str(part.get_param("delsp", "")).lower() == "yes" else " ")
    return text, guess, []


def _is_utf8(data: bytes) -> bool:
    """Return whether bytes are UTF-8 beyond ASCII.

    Texts in other encodings hardly ever are.
    """
    return not data.isascii() and detect_encoding(data) == ("utf-8", False)


def _join_lines(text: str, blank: str) -> str:
    """Join the lines of paragraphs, which end with a blank (RFC 3676)."""
    lines: list[str] = []
    is_open, depth = False, 0
    for raw in text.split("\n"):
        content = raw.lstrip(">")
        quoted, content = len(raw) - len(content), content.removeprefix(" ")
        if is_open and quoted == depth and content != "-- ":
            lines[-1] += content
        else:
            lines.append(f"{'>' * quoted} {content}" if quoted else content)
        is_open, depth = content.endswith(" ") and content != "-- ", quoted
        lines[-1] = lines[-1][:-1] + blank if is_open else lines[-1]
    return "\n".join(lines)


def content_bytes(part: MIMEPart) -> bytes:
    """Return the decoded content of a part; empty for a damaged message."""
    if part.is_multipart():  # an attached message
        try:
            return b"".join(attached_message.as_bytes() for attached_message in part.get_payload())  # type: ignore[union-attr]
        except _ERRORS:
            return b""
    data = part.get_payload(decode=True)
    return data if isinstance(data, bytes) else b""


def shown_header(message: EmailMessage, name: str) -> str:
    """Return a header's text; bytes without an encoding are decoded by detection."""
    try:
        values = [str(header) for header in headers_of(message, name)]
    except _ERRORS as error:
        return f"(can't be read: {short(str(error))})"
    return short(", ".join(values), 2000)


def headers_of(message: EmailMessage, name: str) -> list[Any]:
    """Parse all headers of a name.

    Each address of a long list is one of its own.

    Raises:
        ValueError: If one is too long, or nested too deeply. Other errors of the parser are possible.
    """
    pieces = [(key, piece) for key, raw in _raw_headers(message, name) for piece in pieces_of(key, raw)]
    if len(pieces) > _MOST_PIECES:
        msg = f"there are {len(pieces):,} of {name}; at most {_MOST_PIECES:,} are read"
        raise ValueError(msg)
    return [POLICY.header_fetch_parse(key, piece) for key, piece in pieces]


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
            params = {key: text for head in headers for key, text in POLICY.header_fetch_parse(*head).params.items()}
            name = params.get("filename") or params.get("name") or name
    except _ERRORS:
        name = ""
    name = "".join(letter for letter in name.replace("\\", "/").rpartition("/")[2] if letter.isprintable())
    kind = part.get_content_type()
    stem = "invite" if kind == "text/calendar" else f"attachment-{number}"
    return short(name, 200) or f"{stem}{mimetypes.guess_extension(kind) or '.bin'}"
