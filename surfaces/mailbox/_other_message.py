"""A message of a mailbox that is answered or sent on.

Each of its parts is quoted, or goes along as a file. If a part can't be read, the whole message goes along as it came:
then a reader has all of it, whatever this program can make of it.
"""

from __future__ import annotations

import re
from email.message import EmailMessage
from email.parser import BytesHeaderParser
from email.policy import compat32
from functools import cached_property
from typing import TYPE_CHECKING

from callboard.surfaces import ToolError
from callboard.surfaces.documents.mail import (
    BEFORE_HEADERS,
    POLICY,
    AttachedFile,
    MailContents,
    attachment_name,
    content_bytes,
    contents_of,
    is_shown_text,
    parse_message,
    shown_header,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MOST_QUOTED = 50_000
"""The most characters of another message that are quoted."""
_MOST_UNREAD = 10
"""The most parts that can't be read that are named."""
_MOST_LISTED = 20
"""The most files within the whole message that are named."""
_SEALED = frozenset({"multipart/signed", "multipart/encrypted"})
"""Kinds of parts that are worth nothing once they are taken apart."""
_NEEDED = frozenset({"from", "to", "cc", "reply-to", "date", "subject", "message-id", "references"})
_NO_NAME = re.compile(r"[^\w ()-]+")
_HEADER_BLOCK = re.compile(rb".*?(?:\r?\n(?=\r?\n)|\Z)", re.DOTALL)
_HIDDEN_RECIPIENTS = re.compile(rb"^(?:resent-)?bcc[ \t]*:.*\n?(?:[ \t].*\n?)*", re.MULTILINE | re.IGNORECASE)
_ERRORS = (ValueError, IndexError, AttributeError, TypeError, LookupError)


class OtherMessage:
    """A message that is answered, or sent on.

    Args:
        data: Its bytes, as the server has them.
        name: Its name, for errors.
    """

    def __init__(self, data: bytes, name: str) -> None:
        self._data = BEFORE_HEADERS.sub(b"", data)
        try:
            self.message = parse_message(data, name)
            self._contents = contents_of(self.message)
            self._is_parsed = True
        except (ToolError, *_ERRORS) as error:  # too many parts, or odd headers: its headers are enough to send it on
            self.message = _headers_alone(self._data)
            reason = str(error) if isinstance(error, ToolError) else "its headers are damaged"
            self._contents = MailContents(unseen=[f"its text and files ({reason})"])
            self._is_parsed = False

    def reply(self) -> tuple[str, tuple[AttachedFile, ...], tuple[str, ...]]:
        """Quote its text for an answer.

        Returns:
            The quotation, the files that go along, and what can't be read. The whole message goes along if nothing of
            it can be quoted.
        """
        text, unread = self._quotable(), self._unread()
        if len(self._contents.text) > _MOST_QUOTED:
            unread = (*unread, f"all of its text but {_MOST_QUOTED:,} of {len(self._contents.text):,} characters")
        lines = text.splitlines()
        date, sender = (shown_header(self.message, name).strip() for name in ("Date", "From"))
        introduction = f"{f'On {date}, ' if date else ''}{sender or 'the sender'} wrote:"
        quotation = "\n".join(("", "", introduction, *(f"> {line}" if line else ">" for line in lines)))
        return quotation, () if text.strip() or not unread else (self._whole(),), unread

    def forward(self) -> tuple[str, tuple[AttachedFile, ...], tuple[str, ...]]:
        """Quote its headers and its text for another recipient.

        Returns:
            The quotation, the files that go along, and what can't be read. All of the message is in one of the first
            two.
        """
        headers = [
            f"{name}: {shown_header(self.message, name)}"
            for name in ("From", "Date", "Subject", "To", "Cc")
            if name in self.message
        ]
        text = self._quotable()
        quotation = "\n".join(("", "", "---------- Forwarded message ----------", *headers, "", text))
        changing_parts = self._changing_parts()
        if self._contents.unseen or changing_parts:
            return quotation, (self._whole(),), self._unread(changing_parts)
        return quotation, (*self._unquoted_texts(text), *self._attachments()), self._unread()

    def _quotable(self) -> str:
        text = self._contents.text
        return text if len(text) <= _MOST_QUOTED else f"{text[:_MOST_QUOTED]}\n…"

    def _unread(self, changing_parts: Sequence[str] = ()) -> tuple[str, ...]:
        """Name the parts that can't be read, or only by a guess."""
        guesses = (f"a text's encoding, which is taken for {name}" for name in self._contents.guessed)
        names = tuple(dict.fromkeys((*self._contents.unseen, *changing_parts, *guesses)))
        more = (f"{len(names) - _MOST_UNREAD} more parts",) if len(names) > _MOST_UNREAD else ()
        return (*names[:_MOST_UNREAD], *more)

    def _changing_parts(self) -> list[str]:
        """Name the parts that would change if sent on by themselves."""
        names: list[str] = []
        for number, part in self._parts():
            kind, has_parts = part.get_content_type(), part.is_multipart()
            if kind in _SEALED:
                names.append(f"what is signed or encrypted as a whole ({kind})")
            elif has_parts and part.get_content_maintype() != "multipart" and not self._is_unchanged(part):
                names.append(f"the attached message {attachment_name(part, number)!r}")
        return names

    def _is_unchanged(self, part: EmailMessage) -> bool:
        """Return whether an attached message is written as it came."""
        return content_bytes(part).replace(b"\r\n", b"\n").rstrip(b"\n") in self._plain_lines

    @cached_property
    def _plain_lines(self) -> bytes:
        return self._data.replace(b"\r\n", b"\n")

    def _parts(self) -> Iterator[tuple[int, EmailMessage]]:
        """Iterate over the parts, without those of attached messages."""
        parts, number = [self.message], 0
        while parts and self._is_parsed:
            part = parts.pop(0)
            number += 1
            yield number, part
            if part.get_content_maintype() == "multipart" and part.is_multipart():
                parts = [*part.get_payload(), *parts]

    def _attachments(self) -> list[AttachedFile]:
        return [
            AttachedFile(
                attachment_name(part, number),
                part.get_content_type(),
                content_bytes(part),
                _charset(part),
            )
            for number, part in enumerate(self._contents.attachments, 1)
        ]

    def _unquoted_texts(self, quoted_text: str) -> list[AttachedFile]:
        """Return the texts that the quotation lacks, such as formatted ones."""
        quoted_letters = "".join(quoted_text.split())
        files: list[AttachedFile] = []
        for _, part in self._parts():
            if not is_shown_text(part) or not content_bytes(part).strip():
                continue
            contents, is_html = contents_of(part), part.get_content_subtype() == "html"
            if is_html or contents.guessed or "".join(contents.text.split()) not in quoted_letters:
                name = f"{'formatted text' if is_html else 'text'}{f' {len(files) + 1}' if files else ''}"
                charset = _charset(part)
                suffix = ".html" if is_html else ".txt"
                files.append(AttachedFile(f"{name}{suffix}", part.get_content_type(), content_bytes(part), charset))
        return files

    def _whole(self) -> AttachedFile:
        """Return the message as a file, without its hidden recipients."""
        subject = " ".join(_NO_NAME.sub(" ", shown_header(self.message, "Subject")).split())[:60].strip()
        files = self._attachments()
        names = [f"{file.name}, {len(file.data):,} bytes" for file in files[:_MOST_LISTED]]
        if len(files) > _MOST_LISTED:
            names.append(f"{len(files) - _MOST_LISTED} more")
        remark = "the whole other message" + (f" with {'; '.join(names)}" if names else "")
        return AttachedFile(
            f"{subject or 'message'}.eml", "message/rfc822", _without_hidden_recipients(self._data), remark=remark
        )


def _without_hidden_recipients(data: bytes) -> bytes:
    """Leave out the recipients that other ones may not see."""
    headers = _HEADER_BLOCK.match(data)
    end = headers.end() if headers is not None else 0
    return _HIDDEN_RECIPIENTS.sub(b"", data[:end]) + data[end:]


def _headers_alone(data: bytes) -> EmailMessage:
    """Read the headers that an answer needs, without the others."""
    message = EmailMessage(policy=POLICY)
    for name, value in BytesHeaderParser(policy=compat32).parsebytes(data).raw_items():
        if name.lower() in _NEEDED:
            message.set_raw(name, value)
    return message


def _charset(part: EmailMessage) -> str:
    try:
        return str(part.get_content_charset() or "")
    except _ERRORS:
        return ""
