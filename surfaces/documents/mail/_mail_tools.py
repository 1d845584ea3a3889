"""Mail tools: read and write messages in ``.eml`` files; nothing is sent."""

from __future__ import annotations

import mimetypes
import re
from email.errors import MessageError
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from callboard.messages import Control, Effect, Target
from callboard.surfaces._surface import ToolError, tool
from callboard.surfaces.documents._formats import FormatTools, Limit, Offset, part_of
from callboard.surfaces.documents._real_format import OLE
from callboard.surfaces.documents._tables import Answer, ControlId, ControlName, Document, clean, short
from callboard.surfaces.documents.mail._addresses import address_header, set_addresses
from callboard.surfaces.documents.mail._headers import check_headers, header_text, with_headers
from callboard.surfaces.documents.mail._message_parts import (
    BEFORE_HEADERS,
    attachment_name,
    check_depth,
    content_bytes,
    message_contents,
    parse_message,
    shown_header,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from email.message import EmailMessage

    from pydantic import JsonValue

    from callboard.surfaces.documents._workspace import Snapshot

MAIL = ("mail",)
_HEADERS = ("From", "To", "Cc", "Date", "Subject")
_RARE_HEADERS = (
    "Reply-To", "Sender", "Bcc", "Message-ID", "In-Reply-To", "Resent-From", "Resent-To", "List-Unsubscribe",
)  # fmt: skip
"""Shown where a message has them."""
_PREVIEW = 1500
_MOST_LINKS = 50
_LINE_END = re.compile(rb"\r\n|\r|\n")

Addresses = Annotated[
    list[str] | None, Field(description="Addresses, such as ada@example.org or Ada <ada@example.org>; null to leave.")
]


class MailTools(FormatTools):
    """The tools of ``.eml`` files."""

    def controls(self, snapshot: Snapshot) -> list[Control]:
        """List the attachments."""
        return [
            Control(
                id=f"attachment-{number}",
                name=attachment_name(part, number),
                kind="attachment",
                detail={"type": part.get_content_type(), "bytes": len(content_bytes(part))},
            )
            for number, part in enumerate(_attachments(snapshot.once(_parse_message)), 1)
        ]

    @tool(effect=Effect.READ, roots=MAIL)
    def read_text(self, document: Document, *, offset: Offset = 0, limit: Limit = 20_000) -> Answer:
        """Read the headers and the text of the message.

        A formatted text that says more than the plain one is included. An answer goes to ``reply-to`` where there is
        one.
        """
        message = _parse_message(self._workspace.read(document))
        contents = message_contents(message)
        answer: Answer = {**_headers(message), **part_of(contents.text, offset, limit)}
        if contents.attachments:
            answer["attachments"] = [attachment_name(part, n) for n, part in enumerate(contents.attachments, 1)]
        if links := [link for link in contents.links if link.rpartition(": ")[2] not in contents.text]:
            answer["links"] = [*links[:_MOST_LINKS]]
        if contents.unseen:
            answer["not_shown"] = ", ".join(dict.fromkeys(contents.unseen))
        if contents.guessed:
            answer["encoding"] = f"{', '.join(dict.fromkeys(contents.guessed))} (a guess)"
        return answer

    @tool(effect=Effect.ONCE, roots=MAIL)
    def write_message(
        self,
        document: Document,
        *,
        to: Addresses = None,
        cc: Addresses = None,
        sender: Annotated[str | None, Field(description="The address it is from; null to leave it.")] = None,
        subject: Annotated[str | None, Field(description="Null to leave it.")] = None,
        text: Annotated[str | None, Field(description="The whole text; null to leave it.")] = None,
        html: Annotated[str, Field(description="The same text with formats, as HTML; empty for none.")] = "",
        attachments: Annotated[
            list[str], Field(max_length=50, description="Files of the workspace that are added, such as report.pdf.")
        ] = [],  # noqa: B006 - pydantic copies it
    ) -> Answer:
        """Write the message's addresses, subject, text and attachments.

        Nothing is sent.
        """
        files = [self._workspace.read(name, whole=True) for name in attachments]
        addresses_by_header = {"To": to, "Cc": cc, "From": None if sender is None else [sender]}
        names = [name for name, addresses in addresses_by_header.items() if addresses is not None]
        names += ["Subject"] if subject is not None else []
        if html and text is None:
            msg = "html is written beside a text: pass text, too, for those who read no HTML"
            raise ToolError(msg)
        if not files and text is None and not names:
            msg = "nothing to write: pass to, cc, sender, subject, text or attachments"
            raise ToolError(msg)
        with self._replacing(document) as file:
            message = _parse_message(file.snapshot)
            for name, addresses in addresses_by_header.items():
                if addresses is not None:
                    set_addresses(message, name, [address_header(address) for address in addresses])
            if subject is not None:
                del message["Subject"]
                if subject.strip():
                    message["Subject"] = short(header_text(short(subject, 900), "the subject"), 900)
            if text is not None:
                _set_text(message, clean(text), clean(html), document)
            for attached in files:
                _attach(message, attached)
            check_depth(message, document)
            file.data = _encode_message(message, file.snapshot, names if text is None and not files else None)
            count: JsonValue = sum(1 for _ in _attachments(message))
            return file.answers({**_headers(message), "attachments": count})

    @tool(effect=Effect.ONCE, roots=MAIL)
    def save_as(
        self,
        document: Document,
        path: Annotated[str, Field(description="The new path in the workspace, of the same kind; must not exist yet.")],
        *,
        control_id: ControlId = "",
        control_name: ControlName = "",
    ) -> Target:
        """Save a copy of the message, or one attachment, under another name.

        The message itself is unchanged.
        """
        snapshot = self._workspace.read_unchanged(document)
        data, suffix = snapshot.data, snapshot.path.suffix
        if control_id:
            parts_by_id = {
                f"attachment-{n}": (part, n) for n, part in enumerate(_attachments(_parse_message(snapshot)), 1)
            }
            part, number = parts_by_id.get(control_id, (None, 0))
            if part is None or (control_name and control_name != attachment_name(part, number)):
                names = ", ".join(parts_by_id) or "none"
                msg = f"there is no attachment {control_id!r} {control_name!r}; there are: {names}"
                raise ToolError(msg)
            data, suffix = content_bytes(part), PurePosixPath(attachment_name(part, number)).suffix
        if PurePosixPath(path).suffix.lower() != suffix.lower():
            msg = f"{path!r} is refused: it can only be saved as a {suffix} file"
            raise ToolError(msg)
        return self._workspace.create(path, data)  # refuses programs and other files that are no documents

    def not_writable(self, snapshot: Snapshot) -> str:
        """Explain why the message must not be written; empty if it may."""
        kind = snapshot.once(_parse_message).get_content_type()
        if kind in {"multipart/signed", "multipart/encrypted", "application/pkcs7-mime"}:
            return "it is signed or encrypted, which an edit would break"
        return ""

    def preview(self, snapshot: Snapshot) -> str:
        """Return the headers and the beginning of the text."""
        return message_text(snapshot, _PREVIEW)

    def facts(self, snapshot: Snapshot) -> dict[str, JsonValue]:
        """List the parts that can't be read."""
        unseen = message_contents(snapshot.once(_parse_message)).unseen
        return {"not_shown": ", ".join(dict.fromkeys(unseen))} if unseen else {}

    def overwrites(self, document: str, tool: str, arguments: Mapping[str, JsonValue]) -> bool:
        """Return whether a header or text is replaced."""
        message = _parse_message(self._workspace.read(document))
        names = {"to": "To", "cc": "Cc", "sender": "From", "subject": "Subject"}
        headers = any(
            arguments.get(argument) is not None and shown_header(message, name) for argument, name in names.items()
        )
        return headers or (arguments.get("text") is not None and bool(message_contents(message).text.strip()))

    def empty(self) -> bytes:
        """Return an empty draft."""
        return b"X-Unsent: 1\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n"


def message_text(snapshot: Snapshot, limit: int | None = None) -> str:
    """Return the headers, an empty line, and the text."""
    message = snapshot.once(_parse_message)
    lines = [f"{name}: {value}" for name, value in _headers(message).items() if value]
    return "\n".join([*lines, "", message_contents(message).text[:limit]]).strip()


def _parse_message(snapshot: Snapshot) -> EmailMessage:
    """Parse a message.

    Raises:
        ToolError: If it is malformed, or nested too deeply.
    """
    if snapshot.data.startswith(OLE):
        msg = f"{snapshot.document!r} is a message of Outlook (.msg), despite its name; save it as .eml there"
        raise ToolError(msg)
    return parse_message(snapshot.data, snapshot.document)


def _headers(message: EmailMessage) -> dict[str, JsonValue]:
    rare = [name for name in _RARE_HEADERS if name in message]
    return {name.lower(): shown_header(message, name) for name in (*_HEADERS, *rare)}


def _attachments(message: EmailMessage) -> list[EmailMessage]:
    return message_contents(message).attachments


def _set_text(message: EmailMessage, text: str, html: str, document: str) -> None:
    if html:
        _set_both_texts(message, text, html, document)
        return
    contents, body = message_contents(message), message.get_body(("plain",))
    if contents.formatted or len(contents.texts) > 1 or (body is None and message.is_multipart()):
        msg = f"{document!r} has a formatted text, or several, which can't be written; make a new message"
        raise ToolError(msg)
    part = message if body is None else body
    if part.get_content_maintype() == "multipart":
        msg = f"{document!r} is said to have several parts, but none can be read; make a new message"
        raise ToolError(msg)
    if body is None and message.get_payload():
        msg = f"{document!r} holds only an attachment and no text, which can't be written; make a new message"
        raise ToolError(msg)
    part.set_content(text.rstrip("\n") + "\n", cte="quoted-printable")


def _set_both_texts(message: EmailMessage, text: str, html: str, document: str) -> None:
    """Write a plain and a formatted text in place of all texts.

    Raises:
        ToolError: If the message has more than texts.
    """
    is_alternative = message.get_content_type() == "multipart/alternative"
    if message_contents(message).attachments or (message.is_multipart() and not is_alternative):
        msg = f"{document!r} has attachments, beside which no formatted text can be written; make a new message"
        raise ToolError(msg)
    message.clear_content()
    message.set_content(text.rstrip("\n") + "\n", cte="quoted-printable")
    message.add_alternative(html, subtype="html", cte="quoted-printable")


def _attach(message: EmailMessage, file: Snapshot) -> None:
    """Add a file; MIME does not allow to encode a message.

    Raises:
        ToolError: If its name can't be a header's.
    """
    if header_text(file.path.name, "the name") != file.path.name:
        msg = f"{file.path.name!r} can't be attached: its name has encoded words; rename it"
        raise ToolError(msg)
    if file.root == "mail":
        message.add_attachment(_parse_message(file), filename=file.path.name)
        return
    kind = (mimetypes.guess_type(file.path.name)[0] or "application/octet-stream").split("/")
    message.add_attachment(file.data, maintype=kind[0], subtype=kind[1], filename=file.path.name)


def _encode_message(message: EmailMessage, original: Snapshot, names: Collection[str] | None) -> bytes:
    """Write a message with the line ends of its file.

    Args:
        message: The changed message.
        original: The file before.
        names: The only changed headers; all else keeps its bytes. None if more has changed.
    """
    document, original_data = original.document, BEFORE_HEADERS.sub(b"", original.data)
    line_end = _LINE_END.search(original_data)
    separator = "\n" if line_end is not None and line_end[0] == b"\n" else "\r\n"
    rules = message.policy.clone(linesep=separator)
    try:
        if names is None:
            data = message.as_bytes(policy=rules)
        else:
            items = [(name, value) for name, value in message.raw_items() if name in names]
            data = with_headers(original_data, names, [rules.fold_binary(*item) for item in items], separator.encode())
    except (MessageError, ValueError, LookupError, AttributeError, TypeError, IndexError) as error:
        msg = f"{document!r} is not written: {short(str(error), 200)}"
        raise ToolError(msg) from error
    check_headers(message, data, document, parts=names is None)
    return data
