"""Mailboxes in the settings: the servers that send and keep mail."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from callboard.config._fleet_settings import is_loopback
from callboard.config._section import NamedPath, Section, Span

_ADDRESS = r"[^@\s<>\",;:()\\]+@[^@\s<>\",;:()\\]+"
Sender = Annotated[str, StringConstraints(pattern=rf"^(?:{_ADDRESS}|[^\r\n<>,;\"]*<{_ADDRESS}>)$", max_length=300)]
"""An address, with or without a name: `Ada <ada@example.org>`."""
Host = Annotated[str, StringConstraints(pattern=r"^[^\s/@\[\]]{1,253}$")]
"""The name or the IP address of a server."""


class _MailServer(Section):
    """The fields of both kinds of servers."""

    host: Host
    """Its name, which its certificate must have, or its IP address."""
    port: int | None = Field(default=None, ge=1, le=65_535)
    """Its port. None: the usual one for `tls`."""
    tls: Literal["implicit", "starttls", "none", "unencrypted"] = "implicit"
    """`implicit`: TLS from the first byte. `starttls`: TLS before anything else is sent; a server that does not offer
    it is refused. `none`: without TLS, to this machine alone. `unencrypted`: without TLS, also to another machine:
    each machine on the way can read and change the password and the mail."""
    user: str | None = None
    """The name of the login. None: the address in `sender`."""
    secret: str | None = None
    """The name of the secret, one of `secrets`, that has the password or token. None: no login."""
    auth: Literal["password", "xoauth2"] = "password"
    """`password`: the secret is a password. `xoauth2`: it is a token of OAuth 2."""

    @model_validator(mode="after")
    def _is_encrypted(self) -> Self:
        if self.tls == "none" and not is_loopback(self.host):
            msg = (
                f"`tls: none` is for a server on this machine, and {self.host} is another one: write `implicit` or "
                "`starttls`, or `unencrypted` if all machines on the way may read the password and the mail"
            )
            raise ValueError(msg)
        return self


class SmtpSettings(_MailServer):
    """The server that sends mail."""

    max_bytes: int = Field(default=25_000_000, ge=1000)
    """The largest message that is sent, in bytes, attachments encoded."""
    max_recipients: int = Field(default=50, ge=1, le=1000)
    """The most recipients of one message."""


class ImapSettings(_MailServer):
    """The server that keeps mail."""

    max_bytes: int = Field(default=25_000_000, ge=1000)
    """The largest message that is read, in bytes."""
    may_mark: bool = False
    """Whether agents may mark messages as read or unread, and with a flag. Otherwise folders are opened read-only, and
    nothing that agents read is marked as read."""
    sent: str | None = None
    """The folder of sent messages, in which a message is looked for after a crash. None: the folder that the server
    marks as such."""
    save_sent: bool = False
    """Whether a copy of each sent message is saved in that folder. Leave it out for providers that do so themselves."""


class MailSettings(Section):
    """One mailbox, for AppAgents."""

    sender: Sender
    """The address that messages are from, such as `Ada Lovelace <ada@example.org>`. No agent can write as another."""
    smtp: SmtpSettings | None = None
    """The server that sends mail. None: nothing can be sent."""
    imap: ImapSettings | None = None
    """The server that keeps mail. None: nothing can be read."""
    ca: NamedPath | None = None
    """A file with the certificates of the authorities that are trusted. None: those of the system."""
    timeout: Span = 30.0
    """The longest that a server may take to answer, in seconds."""

    @model_validator(mode="after")
    def _has_a_server(self) -> Self:
        if self.smtp is None and self.imap is None:
            msg = "needs `smtp` to send mail, or `imap` to read it"
            raise ValueError(msg)
        return self
