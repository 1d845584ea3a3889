"""Tools that send messages: each is sent at most once."""

from __future__ import annotations

import contextlib
import re
import secrets
import smtplib
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, JsonValue

from callboard.messages import Effect, Hazard, JournalError, LeaseVoidError
from callboard.surfaces import InDoubtError, ToolError, committing, current_call, tool
from callboard.surfaces.documents.mail import named_files
from callboard.surfaces.mailbox._folder_names import encode_folder
from callboard.surfaces.mailbox._mail_account import MailAccount  # noqa: TC001 - type checkers alone would do
from callboard.surfaces.mailbox._mail_connection import BoundedSmtp, bounded, quoted, reply_text
from callboard.surfaces.mailbox._mail_folder import MessageReference
from callboard.surfaces.mailbox._other_message import OtherMessage
from callboard.surfaces.mailbox._outgoing_mail import (
    MailThread,
    OutgoingMail,
    addresses_in,
    checked_subject,
    forward_subject,
    parsed_addresses,
    read_files,
    reply_subject,
)
from callboard.surfaces.mailbox._sent_record import SendState, SentRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from callboard.config import SmtpSettings
    from callboard.surfaces.documents import Workspace

_SECONDS = 600.0
"""The longest that sending may take: large attachments over a slow line."""
_MOST_TEXT = 1_000_000
_FIRST_DOTS = re.compile(rb"(?m)^\.")
SENDING = frozenset({"send_message", "reply_to_message", "forward_message"})

Mailbox = Annotated[str, Field(description="The mailbox's name.")]
MessageName = Annotated[str, Field(description="The `message` of one that find_messages lists, such as INBOX/17.4.")]
Recipients = Annotated[
    list[str],
    Field(min_length=1, max_length=1000, description="Such as ada@example.org or Ada <ada@example.org>."),
]
Copies = Annotated[list[str], Field(max_length=1000, description="Further recipients.")]
HiddenCopies = Annotated[list[str], Field(max_length=1000, description="Recipients whom the others do not see.")]
Text = Annotated[str, Field(max_length=_MOST_TEXT, description="The whole text, without formats.")]
Html = Annotated[str, Field(max_length=_MOST_TEXT, description="The same text with formats, as HTML; empty for none.")]
Files = Annotated[
    list[str], Field(max_length=50, description="Files of the workspace that are sent with it, such as report.pdf.")
]


class SendTools:
    """The tools that send messages.

    Args:
        account: Returns a mailbox by its name.
        workspace: The folder of attachments; None: nothing can be attached.
    """

    def __init__(self, account: Callable[[str], MailAccount], workspace: Workspace | None) -> None:
        self._account = account
        self._workspace = workspace

    @tool(effect=Effect.ONCE, hazards=(Hazard.SENDS,), seconds=_SECONDS)
    def send_message(
        self,
        mailbox: Mailbox,
        to: Recipients,
        subject: str,
        text: Text,
        *,
        cc: Copies = [],  # noqa: B006 - pydantic copies it
        bcc: HiddenCopies = [],  # noqa: B006 - as above
        html: Html = "",
        attachments: Files = [],  # noqa: B006 - as above
    ) -> dict[str, JsonValue]:
        """Send a new message."""
        arguments = {
            "to": to, "cc": cc, "bcc": bcc, "subject": subject, "text": text, "html": html, "attachments": attachments
        }  # fmt: skip
        return self._send(mailbox, "send_message", arguments)

    @tool(effect=Effect.ONCE, hazards=(Hazard.SENDS,), seconds=_SECONDS)
    def reply_to_message(
        self,
        mailbox: Mailbox,
        message: MessageName,
        text: Text,
        *,
        to_all: Annotated[bool, Field(description="Whether its other recipients get the reply, too.")] = False,
        attachments: Files = [],  # noqa: B006 - as above
    ) -> dict[str, JsonValue]:
        """Reply to a message; its text is quoted below yours."""
        arguments = {"message": message, "text": text, "to_all": to_all, "attachments": attachments}
        return self._send(mailbox, "reply_to_message", arguments)

    @tool(effect=Effect.ONCE, hazards=(Hazard.SENDS,), seconds=_SECONDS)
    def forward_message(
        self,
        mailbox: Mailbox,
        message: MessageName,
        to: Recipients,
        *,
        text: Text = "",
        cc: Copies = [],  # noqa: B006 - as above
        attachments: Files = [],  # noqa: B006 - as above
    ) -> dict[str, JsonValue]:
        """Send a message on to others, with its attachments."""
        arguments = {"message": message, "to": to, "text": text, "cc": cc, "attachments": attachments}
        return self._send(mailbox, "forward_message", arguments)

    def draft(self, account: MailAccount, tool_name: str, arguments: Mapping[str, Any]) -> OutgoingMail:
        """Make the message that a call would send.

        Raises:
            ToolError: If it would be refused.
        """
        server = account.smtp_settings
        files = read_files(self._workspace, arguments["attachments"], server.max_bytes)
        text = arguments["text"].replace("\r\n", "\n").replace("\r", "\n")
        if tool_name == "send_message":
            to, cc, bcc = (parsed_addresses(arguments[name]) for name in ("to", "cc", "bcc"))
            subject, html = checked_subject(arguments["subject"]), arguments["html"]
            mail = OutgoingMail(to=to, cc=cc, bcc=bcc, subject=subject, text=text, html=html, files=files)
        else:
            reference = MessageReference.parse(arguments["message"])
            other = OtherMessage(account.message_data(reference), str(reference))
            original, thread = other.message, MailThread.of(other.message)
            if tool_name == "reply_to_message":
                to = addresses_in(original, "Reply-To") or addresses_in(original, "From")
                if not to:
                    msg = "nothing was sent: the message names no one to reply to; use send_message with the addresses"
                    raise ToolError(msg)
                copies = addresses_in(original, "To", "Cc") if arguments["to_all"] else ()
                excluded_addresses = {account.sender[1].lower(), *(address.lower() for _, address in to)}
                cc = tuple(address for address in copies if address[1].lower() not in excluded_addresses)
                subject = reply_subject(original)
                quotation, other_files, unread = other.reply()
            else:
                to, cc = parsed_addresses(arguments["to"]), parsed_addresses(arguments["cc"])
                subject = forward_subject(original)
                quotation, other_files, unread = other.forward()
            mail = OutgoingMail(
                to=to,
                cc=cc,
                subject=subject,
                text=text,
                files=(*other_files, *files),
                thread=thread,
                quoted_text=quotation,
                unread=unread,
            )
        if not 0 < len(mail.recipients) <= server.max_recipients:
            allowed = f"1 to {server.max_recipients} are allowed (smtp.max_recipients)"
            msg = f"nothing was sent: the message has {len(mail.recipients)} recipients; {allowed}"
            raise ToolError(msg)
        _check_size(mail, sum(len(file.data) for file in mail.files), server)
        return mail

    def _send(self, mailbox: str, tool_name: str, arguments: Mapping[str, Any]) -> dict[str, JsonValue]:
        account = self._account(mailbox)
        mail = self.draft(account, tool_name, arguments)
        server, record = account.smtp_settings, account.record
        if record is None:
            msg = "the mailbox is not open"
            raise ToolError(msg)
        call = current_call()
        message_id = account.message_id(call.id or secrets.token_hex(16))
        data = mail.encode(account.sender, message_id)
        _check_size(mail, len(data), server)
        record.check_new(message_id, mail.digest, call.task_id)
        with account.smtp() as smtp:
            _offer(smtp, server, account.sender[1], mail.recipients, data)
            record.begin(message_id, mail.digest, call.task_id)
            _commit(smtp, record, message_id)
        account.changes += 1
        answer: dict[str, JsonValue] = {
            "sent": True,
            "recipients": [*mail.recipients],
            "subject": mail.subject,
            "message_id": message_id,
            "bytes": len(data),
            "attached": [file.name for file in mail.files],
        }
        if mail.unread:
            answer["not_read"] = list(mail.unread)
        if account.section.imap is not None and account.section.imap.save_sent:
            answer["copy"] = _save_copy(account, data)
        return answer


def _check_size(mail: OutgoingMail, size_bytes: int, server: SmtpSettings) -> None:
    """Check the size of a message.

    Raises:
        ToolError: If it is too large.
    """
    if size_bytes > server.max_bytes:
        files = f" with {named_files(mail.files)}" if mail.files else ""
        allowed = f"{server.max_bytes:,} are allowed (smtp.max_bytes)"
        msg = f"nothing was sent: the message has {size_bytes:,} bytes{files}; {allowed}"
        raise ToolError(msg)


def _offer(smtp: BoundedSmtp, server: SmtpSettings, sender: str, recipients: list[str], data: bytes) -> None:
    """Give a server all of a message but its end.

    Raises:
        ToolError: If the server refuses it, or one of its recipients. Nothing was sent.
        OSError: If the connection fails.
    """
    largest = smtp.esmtp_features.get("size", "")
    if largest.isdigit() and 0 < int(largest) < len(data):
        msg = f"nothing was sent: the message has {len(data):,} bytes, and {server.host} takes {int(largest):,}"
        raise ToolError(msg)
    options = [f"SIZE={len(data)}"] if smtp.has_extn("size") else []
    _expect(smtp.mail(sender, options), 250, f"the sender {sender}")
    replies = {recipient: smtp.rcpt(recipient) for recipient in recipients}
    refusals = {name: reply for name, reply in replies.items() if reply[0] not in {250, 251}}
    if refusals:
        reasons = "; ".join(f"{name} ({reply_text(*reply)})" for name, reply in refusals.items())
        accepting_names = ", ".join(name for name in recipients if name not in refusals) or "none"
        msg = f"nothing was sent: the server refuses {bounded(reasons)}; it accepts: {accepting_names}"
        raise ToolError(msg)
    _expect(smtp.docmd("DATA"), 354, "the message")
    smtp.send(_FIRST_DOTS.sub(b"..", data))


def _commit(smtp: BoundedSmtp, record: SentRecord, message_id: str) -> None:
    """Send a message's end, upon which the server sends it on.

    Raises:
        ToolError: If the server refuses the message.
        InDoubtError: If the server's answer is unknown.
        LeaseVoidError: If the call is void; nothing was sent.
        JournalError: If its id can't be journaled; nothing was sent.
    """
    try:
        current_call().note(message_id)
        with committing():
            smtp.send(b".\r\n")
        code, reply = smtp.getreply()
    except (LeaseVoidError, JournalError):
        record.settle(message_id, SendState.REFUSED)
        raise
    except (OSError, smtplib.SMTPException) as error:
        reason = bounded(str(error))
        msg = f"whether the message was sent is in doubt: the connection was lost before the server's answer ({reason})"
        raise InDoubtError(msg) from None
    if 400 <= code < 600:
        record.settle(message_id, SendState.REFUSED)
        msg = f"nothing was sent: the server refuses the message ({reply_text(code, reply)})"
        raise ToolError(msg)
    if code != 250:
        msg = f"whether the message was sent is in doubt: the server answers {reply_text(code, reply)}"
        raise InDoubtError(msg)
    with contextlib.suppress(OSError):  # the call's result will be journaled, too
        record.settle(message_id, SendState.SENT)


def _expect(reply: tuple[int, bytes], code: int, part: str) -> None:
    if reply[0] != code:
        msg = f"nothing was sent: the server refuses {part} ({reply_text(*reply)})"
        raise ToolError(msg)


def _save_copy(account: MailAccount, data: bytes) -> str:
    """Save a sent message; a failure is no failure of the call."""
    try:
        with account.imap() as imap:
            folder = account.sent_folder(imap)
            imap.expect()
            status, _ = imap.append(quoted(encode_folder(folder)), r"(\Seen)", "", data)
    except ToolError as error:
        return f"not saved: {error}"
    return f"saved in {folder}" if status == "OK" else f"not saved: the server refuses it for {folder}"
