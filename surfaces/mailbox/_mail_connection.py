"""Connections to mail servers: TLS, login, and limits on time and bytes.

The standard library's clients wait for each line separately, and keep all that a server sends. So a server could hold a
call for ever by one byte now and then, or fill the memory.
"""

from __future__ import annotations

import contextlib
import functools
import imaplib
import smtplib
import socket
import ssl
import threading
import time
from typing import TYPE_CHECKING, Any, Self

from callboard.messages import one_line
from callboard.surfaces import ToolError, current_call

if TYPE_CHECKING:
    from collections.abc import Iterator

    from callboard.config import ImapSettings, MailSettings, SmtpSettings

_ANSWER_BYTES = 1_000_000
"""The most bytes of a server's answer to one command, unless more are expected."""
_MOST_WAITS = 10
"""The most times `timeout` that all commands of one call take together."""
_POLL_SECONDS = 0.05
_QUIT_SECONDS = 1.0
"""The longest wait for the answer to the last command, which changes nothing."""
_LOCAL_NAME = "[127.0.0.1]"
"""The name in EHLO: the real one would tell recipients about this machine."""
_PORTS = {
    "smtp": {"implicit": 465, "starttls": 587, "none": 25, "unencrypted": 25},
    "imap": {"implicit": 993, "starttls": 143, "none": 143, "unencrypted": 143},
}


class _TooMuchError(OSError):
    """A server sends more than a command's answer may have."""

    def __init__(self) -> None:
        super().__init__("the server sends too much")


class _CutOff:
    """Shuts a connection down once its call must end."""

    def __init__(self, seconds: float) -> None:
        self._call = current_call()
        self._end = time.monotonic() + seconds
        self._done = threading.Event()
        self._sockets: list[socket.socket] = []
        self._thread = threading.Thread(target=self._watch, name="mail connection", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        for duplicate in self._sockets:
            duplicate.close()

    def connect(self, host: str, port: int, timeout: float) -> socket.socket:
        """Connect to a server, and watch the connection."""
        connection = socket.create_connection((host, port), timeout)
        # TLS replaces the socket object; a duplicate stays valid.
        self._sockets.append(socket.fromfd(connection.fileno(), connection.family, connection.type))
        return connection

    def _watch(self) -> None:
        while not self._done.wait(_POLL_SECONDS):
            if self._call.given_up or time.monotonic() > self._end:
                for duplicate in self._sockets:
                    with contextlib.suppress(OSError):  # the server closed it first
                        duplicate.shutdown(socket.SHUT_RDWR)


class _Opening:
    """The facts by which a client connects."""

    def __init__(self, section: MailSettings, server: SmtpSettings | ImapSettings, kind: str, cut_off: _CutOff) -> None:
        self.server = server
        self.timeout = section.timeout
        self.port = server.port or _PORTS[kind][server.tls]
        self._authorities = section.ca
        self._cut_off = cut_off

    @functools.cached_property
    def context(self) -> ssl.SSLContext:
        """The rules of TLS: the certificate must have the server's name."""
        return ssl.create_default_context(cafile=str(self._authorities) if self._authorities is not None else None)

    def connect(self) -> socket.socket:
        """Connect, with TLS if that comes first.

        Raises:
            OSError: If the server can't be reached, or its certificate is not valid for its name.
        """
        connection = self._cut_off.connect(self.server.host, self.port, self.timeout)
        if self.server.tls != "implicit":
            return connection
        try:
            return self.context.wrap_socket(connection, server_hostname=self.server.host)
        except BaseException:
            connection.close()
            raise


class _BoundedReader:
    """Reads the lines of a connection, up to a number of bytes."""

    def __init__(self, connection: socket.socket) -> None:
        self._file = connection.makefile("rb")
        self.remaining = _ANSWER_BYTES

    def readline(self, size: int = -1) -> bytes:
        """Read a line."""
        line = self._file.readline(size)
        self.remaining -= len(line)
        if self.remaining < 0:
            raise _TooMuchError
        return line

    def close(self) -> None:
        """Close it."""
        self._file.close()


class BoundedSmtp(smtplib.SMTP):
    """A client of SMTP that reads bounded answers."""

    file: Any

    def __init__(self, opening: _Opening) -> None:
        self._opening = opening
        super().__init__(opening.server.host, opening.port, local_hostname=_LOCAL_NAME, timeout=opening.timeout)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        return self._opening.connect()

    def getreply(self) -> tuple[int, bytes]:
        """Read the answer to a command."""
        if self.sock is None:
            msg = "not connected"
            raise smtplib.SMTPServerDisconnected(msg)
        if self.file is None:  # a new connection, or one that has TLS now
            self.file = _BoundedReader(self.sock)
        self.file.remaining = _ANSWER_BYTES
        return super().getreply()


class BoundedImap(imaplib.IMAP4):
    """A client of IMAP that reads bounded answers."""

    _remaining = _ANSWER_BYTES

    def __init__(self, opening: _Opening) -> None:
        self._opening = opening
        super().__init__(opening.server.host, opening.port, opening.timeout)

    def _create_socket(self, timeout: float | None) -> socket.socket:
        return self._opening.connect()

    def expect(self, size: int = 0) -> None:
        """Allow the usual bytes, and some more, for the next answer."""
        self._remaining = _ANSWER_BYTES + size

    def read(self, size: int) -> bytes:
        """Read bytes whose number the server has announced."""
        self._spend(size)
        return super().read(size)

    def readline(self) -> bytes:
        """Read a line."""
        line = super().readline()
        self._spend(len(line))
        return line

    def _spend(self, size: int) -> None:
        self._remaining -= size
        if self._remaining < 0:
            raise _TooMuchError


@contextlib.contextmanager
def open_smtp(section: MailSettings, server: SmtpSettings, password: str) -> Iterator[BoundedSmtp]:
    """Connect to the server that sends mail, and log in.

    Raises:
        ToolError: If that fails. Errors in the body that are the connection's become one, too.
    """
    with _explained(server), _CutOff(_MOST_WAITS * section.timeout) as cut_off:
        opening = _Opening(section, server, "smtp", cut_off)
        smtp = BoundedSmtp(opening)
        try:
            smtp.ehlo_or_helo_if_needed()
            if server.tls == "starttls":
                smtp.starttls(context=opening.context)
                smtp.ehlo()
            if server.secret is not None:
                _log_in_smtp(smtp, section, server, password)
            yield smtp
            if smtp.sock is not None:
                smtp.sock.settimeout(_QUIT_SECONDS)
            with contextlib.suppress(OSError):  # all is done; the server may have gone
                smtp.quit()
        finally:
            smtp.close()


@contextlib.contextmanager
def open_imap(section: MailSettings, server: ImapSettings, password: str) -> Iterator[BoundedImap]:
    """Connect to the server that keeps mail, and log in.

    Raises:
        ToolError: As `open_smtp`.
    """
    with _explained(server), _CutOff(_MOST_WAITS * section.timeout) as cut_off:
        opening = _Opening(section, server, "imap", cut_off)
        imap = BoundedImap(opening)
        try:
            if server.tls == "starttls":
                imap.starttls(opening.context)
                imap.untagged_responses.clear()  # a machine on the way may have sent them before TLS
            if server.secret is not None:
                _log_in_imap(imap, section, server, password)
            yield imap
            with contextlib.suppress(OSError, imaplib.IMAP4.error):  # all is done; the server may have gone
                imap.logout()
        finally:
            with contextlib.suppress(OSError):  # it is closed already
                imap.shutdown()


def _log_in_smtp(smtp: BoundedSmtp, section: MailSettings, server: SmtpSettings, password: str) -> None:
    """Log in.

    An error never quotes the server, which may repeat the password.
    """
    user = server.user or address_of(section)
    try:
        if server.auth == "xoauth2":
            smtp.auth("XOAUTH2", lambda challenge=None: _xoauth2(user, password) if challenge is None else "")
        else:
            smtp.login(user, password)
    except UnicodeError:
        msg = f"{server.host} can't be logged in to: the name or the password has letters other than ASCII"
        raise ToolError(msg) from None
    except smtplib.SMTPNotSupportedError:
        raise
    except smtplib.SMTPException as error:
        code = f" (code {error.smtp_code})" if isinstance(error, smtplib.SMTPResponseException) else ""
        msg = f"{server.host} refuses the login of {user}, or ends the connection{code}"
        raise ToolError(msg) from None


def _log_in_imap(imap: BoundedImap, section: MailSettings, server: ImapSettings, password: str) -> None:
    """Log in.

    An error never quotes the server, which may repeat the password.
    """
    user = server.user or address_of(section)
    has_token = server.auth == "xoauth2"
    mechanism, answer = ("XOAUTH2", _xoauth2(user, password)) if has_token else ("PLAIN", f"\0{user}\0{password}")
    answers = iter((answer.encode(),))
    try:
        if has_token or "AUTH=PLAIN" in imap.capabilities:
            imap.authenticate(mechanism, lambda _: next(answers, b""))
        else:
            imap.login(quoted(user), password)
    except imaplib.IMAP4.abort:
        msg = f"{server.host} ends the connection during the login of {user}"
        raise ToolError(msg) from None
    except imaplib.IMAP4.error:
        msg = f"{server.host} refuses the login of {user}"
        raise ToolError(msg) from None


def quoted(text: str) -> str:
    """Quote a text for a command of IMAP.

    Raises:
        ToolError: If it has a character that would end the command.
    """
    if not text.isprintable():
        msg = f"{text!r} has a control character, which no mail server takes; remove it"
        raise ToolError(msg)
    return '"{}"'.format(text.replace("\\", "\\\\").replace('"', '\\"'))


def _xoauth2(user: str, token: str) -> str:
    return f"user={user}\1auth=Bearer {token}\1\1"


def address_of(section: MailSettings) -> str:
    """Return the plain address of a mailbox."""
    return section.sender.rpartition("<")[2].removesuffix(">").strip()


@contextlib.contextmanager
def _explained(server: SmtpSettings | ImapSettings) -> Iterator[None]:
    """Convert errors of a connection to one with a bounded text.

    Raises:
        ToolError: If the body raises such an error.
    """
    where = f"the mail server {server.host}"
    try:
        yield
    except ssl.SSLCertVerificationError as error:
        msg = f"{where} has no valid certificate: {error.verify_message}"
        raise ToolError(msg) from None
    except smtplib.SMTPNotSupportedError as error:
        msg = f"{where} is refused: {error}"
        raise ToolError(msg) from None
    except smtplib.SMTPResponseException as error:
        msg = f"{where} answers with an error: {reply_text(error.smtp_code, error.smtp_error)}"
        raise ToolError(msg) from None
    except (OSError, smtplib.SMTPException, imaplib.IMAP4.error, UnicodeError, ValueError) as error:
        reason = bounded(str(error)) or type(error).__name__
        msg = f"{where} can't be used: {reason}"
        raise ToolError(msg) from None


def reply_text(code: int, reply: bytes | str) -> str:
    """Return a server's reply as one bounded line."""
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else reply
    return bounded(f"{code} {text}")


def bounded(text: str) -> str:
    """Shorten a server's text to one line."""
    return one_line(text, 300)
