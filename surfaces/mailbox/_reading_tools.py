"""Tools that read a mailbox."""

from __future__ import annotations

import datetime as dt  # noqa: TC003 - schemas are made of it
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, JsonValue

from callboard.messages import Effect, Hazard, Target, one_line
from callboard.surfaces import ToolError, tool
from callboard.surfaces.documents.mail import (
    attachment_name,
    content_bytes,
    message_contents,
    parse_message,
    shown_header,
)
from callboard.surfaces.mailbox._mail_folder import (
    ListedMessage,
    MailFolder,
    MessageReference,
    folders_of,
    imap_date,
)
from callboard.surfaces.mailbox._send_tools import Mailbox, MessageName  # noqa: TC001 - as above

if TYPE_CHECKING:
    from collections.abc import Callable
    from email.message import EmailMessage

    from callboard.surfaces.documents import Workspace
    from callboard.surfaces.mailbox._mail_account import MailAccount

_SECONDS = 180.0
_MOST_LINKS = 50
_MOST_ATTACHMENTS = 100
_SHOWN = ("From", "To", "Cc", "Date", "Subject", "Reply-To", "Message-ID")
SEEN, FLAGGED = "\\Seen", "\\Flagged"

Answer = dict[str, JsonValue]
Part = Annotated[str, Field(max_length=300, description="A part of it; empty for any.")]


class ReadingTools:
    """The tools that read a mailbox, and mark its messages.

    Args:
        account: Returns a mailbox by its name.
        workspace: The folder in which messages and attachments are saved; None: nothing can be saved.
    """

    def __init__(self, account: Callable[[str], MailAccount], workspace: Workspace | None) -> None:
        self._account = account
        self._workspace = workspace

    @tool(effect=Effect.READ, seconds=_SECONDS)
    def list_folders(self, mailbox: Mailbox) -> list[str]:
        """List the folders of the mailbox."""
        account = self._account(mailbox)
        with account.imap() as imap:
            names = [name for name, attributes in folders_of(imap) if b"\\noselect" not in attributes]
        account.note_answer("list_folders", names)
        return names

    @tool(effect=Effect.READ, seconds=_SECONDS)
    def find_messages(
        self,
        mailbox: Mailbox,
        *,
        folder: Annotated[str, Field(description="As list_folders names it.")] = "INBOX",
        sender: Part = "",
        recipient: Part = "",
        subject: Part = "",
        text: Part = "",
        since: Annotated[dt.date | None, Field(description="The first day; null for any.")] = None,
        before: Annotated[dt.date | None, Field(description="The day after the last one; null for any.")] = None,
        unread: Annotated[bool, Field(description="Whether only unread ones are wanted.")] = False,
        limit: Annotated[int, Field(ge=1, le=50)] = 20,
        skip: Annotated[int, Field(ge=0, description="How many of the newest are left out.")] = 0,
    ) -> Answer:
        """Find messages, the newest first; without criteria, the latest ones."""
        account = self._account(mailbox)
        texts = {"FROM": sender, "TO": recipient, "SUBJECT": subject, "TEXT": text}
        criteria = [(key, value) for key, value in texts.items() if value]
        criteria += [("SINCE", imap_date(since))] if since is not None else []
        criteria += [("BEFORE", imap_date(before))] if before is not None else []
        criteria += [("UNSEEN", "")] if unread else []
        with account.imap() as imap:
            mail_folder = MailFolder(imap, folder)
            uids = mail_folder.search(criteria)
            rows = mail_folder.listed(uids[skip : skip + limit])
            validity = mail_folder.validity
        messages: list[JsonValue] = [_row(folder, validity, row) for row in rows]
        answer: Answer = {"found": len(uids), "messages": messages}
        account.note_answer(repr((folder, criteria, limit, skip)), answer)
        return answer

    @tool(effect=Effect.READ, seconds=_SECONDS)
    def read_message(
        self,
        mailbox: Mailbox,
        message: MessageName,
        *,
        offset: Annotated[int, Field(ge=0, description="How many characters to skip.")] = 0,
        limit: Annotated[int, Field(ge=1, le=50_000, description="How many characters to read at most.")] = 20_000,
    ) -> Answer:
        """Read a message: headers, text and the names of its attachments.

        It stays unread.
        """
        parsed = self._account(mailbox).message(MessageReference.parse(message))
        contents = message_contents(parsed)
        part = contents.text[offset : offset + limit]
        answer: Answer = {name.lower(): shown_header(parsed, name) for name in _SHOWN if name in parsed}
        left_out = max(0, len(contents.text) - offset - len(part))
        answer |= {"text": part, "characters": len(contents.text), "left_out": left_out}
        answer["attachments"] = [
            {"name": attachment_name(attached, number), "bytes": len(content_bytes(attached))}
            for number, attached in enumerate(contents.attachments[:_MOST_ATTACHMENTS], 1)
        ]
        if len(contents.attachments) > _MOST_ATTACHMENTS:
            answer["more_attachments"] = len(contents.attachments) - _MOST_ATTACHMENTS
        if links := [link for link in contents.links if link.rpartition(": ")[2] not in contents.text]:
            answer["links"] = [one_line(link, 500) for link in links[:_MOST_LINKS]]
        if contents.unseen:
            answer["not_shown"] = ", ".join(dict.fromkeys(contents.unseen))
        if contents.guessed:
            answer["encoding"] = f"{', '.join(dict.fromkeys(contents.guessed))} (a guess)"
        return answer

    @tool(effect=Effect.ONCE, hazards=(Hazard.DOWNLOADS,), seconds=_SECONDS)
    def save_message(
        self,
        mailbox: Mailbox,
        message: MessageName,
        path: Annotated[str, Field(description="The new path in the workspace; must not exist yet.")],
        *,
        attachment: Annotated[str, Field(description="Its name; empty for the whole message, as .eml.")] = "",
    ) -> Target:
        """Save a message or one of its attachments in the workspace."""
        if self._workspace is None:
            msg = "nothing can be saved: there is no workspace (documents.workspace)"
            raise ToolError(msg)
        account, reference = self._account(mailbox), MessageReference.parse(message)
        data, suffix = account.message_data(reference), ".eml"
        if attachment:
            data, suffix = _attachment(parse_message(data, message), attachment)
        if PurePosixPath(path).suffix.lower() != suffix.lower():
            msg = f"{path!r} is refused: it can only be saved as a {suffix} file"
            raise ToolError(msg)
        window = self._workspace.create(path, data)  # refuses programs and other files that are no documents
        account.changes += 1
        return window

    @tool(effect=Effect.IDEMPOTENT, seconds=_SECONDS)
    def mark_message(
        self,
        mailbox: Mailbox,
        message: MessageName,
        *,
        read: Annotated[bool | None, Field(description="Whether it counts as read; null to leave it.")] = None,
        flagged: Annotated[bool | None, Field(description="Whether it has the flag; null to leave it.")] = None,
    ) -> Answer:
        """Mark a message as read or unread, or with a flag."""
        account, reference = self._account(mailbox), MessageReference.parse(message)
        if account.section.imap is None or not account.section.imap.may_mark:
            msg = f"messages of {mailbox!r} can't be marked: the settings do not allow it (imap.may_mark)"
            raise ToolError(msg)
        flags = {SEEN: read, FLAGGED: flagged}
        with account.imap() as imap:
            folder = account.open_folder(imap, reference, writable=True)
            for flag, is_set in flags.items():
                if is_set is not None:
                    folder.mark(reference.uid, flag, is_set=is_set)
            rows = folder.listed([reference.uid])
        if not rows:
            msg = f"there is no such message in {reference.folder!r} any more; find it again"
            raise ToolError(msg)
        account.changes += 1
        return _row(reference.folder, reference.validity, rows[0])


def _row(folder: str, validity: int, row: ListedMessage) -> Answer:
    """Describe a message of a list by its headers."""
    headers = parse_message(row.headers, "the headers")
    texts: dict[str, Any] = {
        name.lower(): one_line(shown_header(headers, name), 300) for name in ("From", "To", "Date", "Subject")
    }
    return {
        "message": str(MessageReference(folder, validity, row.uid)),
        **texts,
        "unread": SEEN.lower().encode() not in row.flags,
        "flagged": FLAGGED.lower().encode() in row.flags,
        "bytes": row.size_bytes,
    }


def _attachment(message: EmailMessage, name: str) -> tuple[bytes, str]:
    """Return the content and the suffix of an attachment.

    Raises:
        ToolError: If there is none of that name, or there are several.
    """
    parts = list(enumerate(message_contents(message).attachments, 1))
    fitting = [part for number, part in parts if attachment_name(part, number) == name]
    if len(fitting) != 1:
        names = ", ".join(attachment_name(part, number) for number, part in parts[:_MOST_ATTACHMENTS]) or "none"
        count = "several attachments have" if fitting else "no attachment has"
        msg = f"{count} the name {name!r}; the message has: {names}"
        raise ToolError(msg)
    return content_bytes(fitting[0]), PurePosixPath(name).suffix
