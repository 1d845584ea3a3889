"""Messages to be sent: recipients, texts, attachments and threads."""

from __future__ import annotations

import hashlib
import mimetypes
import re
from dataclasses import dataclass
from email.errors import MessageError
from email.message import EmailMessage
from email.utils import format_datetime, formataddr, localtime
from typing import TYPE_CHECKING

from callboard.surfaces import ToolError
from callboard.surfaces._user_files import read_upload
from callboard.surfaces.documents.mail import (
    POLICY,
    AttachedFile,
    check_headers,
    header_text,
    headers_of,
    parse_address,
    set_addresses,
    shown_header,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from callboard.surfaces.documents import Workspace

_MESSAGE_ID = re.compile(r"<[!-;=?-~]{1,250}>")
_MOST_REFERENCES = 20
_MOST_SUBJECT = 900
_LINE_END = re.compile(rb"\r\n|\r|\n")
_REPLY = re.compile(r"(?:re|aw|sv|antw|rif|odp)\s*:", re.IGNORECASE)
_FORWARD = re.compile(r"(?:fwd?|wg|tr|rv|vs)\s*:", re.IGNORECASE)

Address = tuple[str, str]
"""A name, which may be empty, and a plain address."""


@dataclass(frozen=True)
class MailThread:
    """The place of a message in a conversation by mail."""

    answered: str = ""
    references: tuple[str, ...] = ()

    @classmethod
    def of(cls, original: EmailMessage) -> MailThread:
        """Return the place of an answer to a message."""
        ids = _MESSAGE_ID.findall(shown_header(original, "Message-ID"))
        if not ids:
            return cls()
        earlier = _MESSAGE_ID.findall(shown_header(original, "References"))
        return cls(ids[0], (*earlier[-_MOST_REFERENCES:], ids[0]))


@dataclass(frozen=True, kw_only=True)
class OutgoingMail:
    """One message, without its sender and its id."""

    to: tuple[Address, ...]
    cc: tuple[Address, ...] = ()
    bcc: tuple[Address, ...] = ()
    subject: str
    text: str
    html: str = ""
    files: tuple[AttachedFile, ...] = ()
    thread: MailThread = MailThread()
    quoted_text: str = ""
    """The part of the text that comes from another message."""
    unread: tuple[str, ...] = ()
    """The parts of the other message that can't be read, or are not quoted."""

    @property
    def recipients(self) -> list[str]:
        """The plain addresses of all recipients, each once."""
        by_address = {address.lower(): address for _, address in (*self.to, *self.cc, *self.bcc)}
        return list(by_address.values())

    @property
    def digest(self) -> str:
        """A digest of what recipients see; equal for an equal message."""
        files = [(file.name, hashlib.sha256(file.data).hexdigest()) for file in self.files]
        people = sorted(address.lower() for address in self.recipients)
        return hashlib.sha256(
            repr((people, self.subject, self.text, self.quoted_text, self.html, files, self.thread)).encode()
        ).hexdigest()

    def described(self) -> str:
        """Describe the message to the person who is asked to approve it.

        The call's arguments, which are shown too, have the text.
        """
        people = {"": self.to, "cc ": self.cc, "bcc ": self.bcc}
        parts = [f"{kind}{', '.join(address for _, address in group)}" for kind, group in people.items() if group]
        parts.append(f"subject {self.subject!r}")
        if self.quoted_text:
            parts.append(f"{len(self.quoted_text):,} characters of the other message are quoted")
        parts.append(f"attached: {', '.join(map(str, self.files))}" if self.files else "nothing attached")
        if self.unread:
            parts.append(f"not read or quoted of the other message: {', '.join(self.unread)}")
        return "; ".join(parts)

    def encode(self, sender: Address, message_id: str) -> bytes:
        """Encode it as SMTP sends it, without the recipients in `bcc`.

        Raises:
            ToolError: If it can't be encoded, or a text in it would be read as a header.
        """
        message = EmailMessage(policy=POLICY)
        set_addresses(message, "From", [formataddr(sender)])
        set_addresses(message, "To", [formataddr(address) for address in self.to])
        set_addresses(message, "Cc", [formataddr(address) for address in self.cc])
        message["Subject"] = self.subject
        message["Date"] = format_datetime(localtime())
        message.set_raw("Message-ID", message_id)
        if self.thread.answered:
            message.set_raw("In-Reply-To", self.thread.answered)
            message.set_raw("References", "\n ".join(self.thread.references))
        try:
            message.set_content(f"{self.text}{self.quoted_text}".rstrip("\n") + "\n", cte="quoted-printable")
            if self.html:
                message.add_alternative(self.html, subtype="html", cte="quoted-printable")
            for file in self.files:
                file.attach_to(message)
            data = _LINE_END.sub(b"\r\n", message.as_bytes())  # a bare one could end the message for some servers
            data = data if data.endswith(b"\r\n") else data + b"\r\n"
        except (MessageError, ValueError, LookupError, AttributeError, TypeError) as error:
            msg = f"the message can't be encoded: {str(error)[:200]}"
            raise ToolError(msg) from error
        check_headers(message, data, "the message", parts=True)
        return data


def checked_subject(text: str) -> str:
    """Check the subject of a message.

    Raises:
        ToolError: If it has a line break, or is too long.
    """
    subject = header_text(text.strip(), "the subject")
    if len(subject) > _MOST_SUBJECT:
        msg = f"the subject has {len(subject)} characters; {_MOST_SUBJECT} are allowed"
        raise ToolError(msg)
    return subject


def parsed_addresses(texts: Iterable[str]) -> tuple[Address, ...]:
    """Parse the addresses of an argument.

    Raises:
        ToolError: If one is no address.
    """
    return tuple(map(parse_address, texts))


def addresses_in(message: EmailMessage, *names: str) -> tuple[Address, ...]:
    """Return the plain addresses in headers of a message of others.

    Raises:
        ToolError: If one can't be answered.
    """
    try:
        addresses = [
            address.addr_spec for name in names for header in headers_of(message, name) for address in header.addresses
        ]
    except (ValueError, IndexError, AttributeError, TypeError, LookupError):
        msg = "the message's addresses can't be read; use send_message with the addresses"
        raise ToolError(msg) from None
    return tuple(("", parse_address(address)[1]) for address in addresses if address != "<>")


def reply_subject(original: EmailMessage) -> str:
    """Return the subject of a reply."""
    return _prefixed(original, "Re: ", _REPLY)


def forward_subject(original: EmailMessage) -> str:
    """Return the subject of a forwarded message."""
    return _prefixed(original, "Fwd: ", _FORWARD)


def _prefixed(original: EmailMessage, prefix: str, prefixes: re.Pattern[str]) -> str:
    try:
        subject = header_text(shown_header(original, "Subject"), "the subject")[: _MOST_SUBJECT - 10]
    except ToolError:  # it is no text that a header may have
        subject = ""
    return subject if prefixes.match(subject) else f"{prefix}{subject}".strip()


def read_files(workspace: Workspace | None, names: Sequence[str], max_bytes: int) -> tuple[AttachedFile, ...]:
    """Read files of the workspace, of any kind.

    Raises:
        ToolError: If one is missing, leads out of the workspace, or all are too large together.
    """
    if not names:
        return ()
    if workspace is None:
        msg = "nothing can be attached: there is no workspace (documents.workspace)"
        raise ToolError(msg)
    files: list[AttachedFile] = []
    for name in names:
        remaining = max_bytes - sum(len(file.data) for file in files)
        files.append(_read_file(workspace, name, remaining))
    return tuple(files)


def _read_file(workspace: Workspace, name: str, max_bytes: int) -> AttachedFile:
    path = workspace.resolve(name)
    if header_text(path.name, "the name") != path.name:
        msg = f"{name!r} can't be attached: its name has encoded words; rename it"
        raise ToolError(msg)
    try:
        data = read_upload(path, max_bytes, f"{name!r} can't be attached")
    except OSError as error:
        msg = f"{name!r} can't be attached: {error.strerror}"
        raise ToolError(msg) from error
    if len(data) > max_bytes:
        msg = f"{name!r} is too large: all attachments may have {max_bytes:,} bytes more (smtp.max_bytes)"
        raise ToolError(msg)
    return AttachedFile(path.name, mimetypes.guess_type(path.name)[0] or "application/octet-stream", data)
