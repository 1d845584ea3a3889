"""One mailbox of the settings, with its servers and its record."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from callboard.surfaces import ToolError
from callboard.surfaces.documents.mail import parse_address, parse_message
from callboard.surfaces.mailbox._mail_connection import open_imap, open_smtp
from callboard.surfaces.mailbox._mail_folder import SENT, MailFolder, MessageReference, folders_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager
    from email.message import EmailMessage

    from callboard.config import ImapSettings, MailSettings, SmtpSettings
    from callboard.surfaces.mailbox._mail_connection import BoundedImap, BoundedSmtp
    from callboard.surfaces.mailbox._outgoing_mail import Address
    from callboard.surfaces.mailbox._sent_record import SentRecord

_MOST_KEPT = 4
"""The most messages that are kept after they were read."""
_MOST_ANSWERS = 64
"""The most calls whose last answers are compared with the next."""


class MailAccount:
    """A mailbox.

    Args:
        name: Its name in the settings.
        section: Its settings.
        secrets: The passwords and tokens, by name.
    """

    def __init__(self, name: str, section: MailSettings, secrets: Mapping[str, str]) -> None:
        self.name = name
        self.section = section
        self.sender: Address = parse_address(section.sender)
        self.record: SentRecord | None = None
        """The record of sent messages, while the surface is open."""
        self.salt = ""
        """A random text that makes the ids of messages unique among journals."""
        self.changes = 0
        """The number of calls with another answer than before, or with an effect."""
        self._secrets = secrets
        self._messages: dict[MessageReference, bytes] = {}
        self._answers: dict[str, str] = {}

    @property
    def smtp_settings(self) -> SmtpSettings:
        """The settings of the server that sends mail.

        Raises:
            ToolError: If there is none.
        """
        if self.section.smtp is None:
            msg = f"the mailbox {self.name!r} can't send: its settings have no `smtp`"
            raise ToolError(msg)
        return self.section.smtp

    @property
    def imap_settings(self) -> ImapSettings:
        """The settings of the server that keeps mail.

        Raises:
            ToolError: If there is none.
        """
        if self.section.imap is None:
            msg = f"the mailbox {self.name!r} can't be read: its settings have no `imap`"
            raise ToolError(msg)
        return self.section.imap

    def smtp(self) -> AbstractContextManager[BoundedSmtp]:
        """Connect to the server that sends mail.

        Raises:
            ToolError: If that fails, or there is none.
        """
        return open_smtp(self.section, self.smtp_settings, self._password(self.smtp_settings))

    def imap(self) -> AbstractContextManager[BoundedImap]:
        """Connect to the server that keeps mail.

        Raises:
            ToolError: If that fails, or there is none.
        """
        return open_imap(self.section, self.imap_settings, self._password(self.imap_settings))

    def _password(self, server: SmtpSettings | ImapSettings) -> str:
        return self._secrets.get(server.secret or "", "")

    def message_id(self, call_id: str) -> str:
        """Return the Message-ID of a call, which is the same if repeated."""
        digest = hashlib.sha256(repr((self.salt, self.name, call_id)).encode()).hexdigest()[:40]
        return f"<{digest}@{self.sender[1].rpartition('@')[2]}>"

    def message_data(self, reference: MessageReference) -> bytes:
        """Read a message.

        A message never changes, so the latest ones are kept.

        Raises:
            ToolError: If it can't be read.
        """
        data = self._messages.pop(reference, None)
        if data is None:
            with self.imap() as imap:
                data = self.open_folder(imap, reference).read(reference.uid, self.imap_settings.max_bytes)
        self._messages[reference] = data
        if len(self._messages) > _MOST_KEPT:
            del self._messages[next(iter(self._messages))]
        return data

    def message(self, reference: MessageReference) -> EmailMessage:
        """Read and parse a message.

        Raises:
            ToolError: If it can't be read.
        """
        return parse_message(self.message_data(reference), str(reference))

    @staticmethod
    def open_folder(imap: BoundedImap, reference: MessageReference, *, writable: bool = False) -> MailFolder:
        """Open the folder of a message.

        Raises:
            ToolError: If it has numbered its messages again.
        """
        folder = MailFolder(imap, reference.folder, writable=writable)
        if folder.validity != reference.validity:
            msg = f"the folder {reference.folder!r} has numbered its messages again; find the message again"
            raise ToolError(msg)
        return folder

    def sent_folder(self, imap: BoundedImap) -> str:
        """Name the folder of sent messages.

        Raises:
            ToolError: If it is unknown.
        """
        if self.imap_settings.sent is not None:
            return self.imap_settings.sent
        name = next((name for name, attributes in folders_of(imap) if SENT in attributes), "")
        if not name:
            msg = f"the folder of sent messages is unknown; name it (mail.{self.name}.imap.sent)"
            raise ToolError(msg)
        return name

    def has_sent(self, message_id: str) -> bool:
        """Return whether the folder of sent messages has a message.

        Raises:
            ToolError: If the folder can't be searched.
        """
        with self.imap() as imap:
            folder = MailFolder(imap, self.sent_folder(imap))
            return bool(folder.search([("HEADER Message-ID", message_id)]))

    def note_answer(self, call: str, answer: object) -> None:
        """Count an answer as a change if it differs from the last.

        So an agent that waits for a message is not taken for one that makes no progress.
        """
        digest = hashlib.sha256(repr(answer).encode()).hexdigest()
        if self._answers.pop(call, digest) != digest:
            self.changes += 1
        self._answers[call] = digest
        if len(self._answers) > _MOST_ANSWERS:
            del self._answers[next(iter(self._answers))]
