"""A server that takes mail on loopback and keeps it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from typing import TYPE_CHECKING, Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import MISSING, SMTP, AuthResult, Envelope, Session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PASSWORD = "a-password-of-mail"
TOKEN = "a-token-of-mail"


class SmtpSink:
    """Takes mail for all but addresses that begin with ``refused`` or, after an hour, with ``slow``.

    Attributes:
        mails: Those that it has accepted.
        logins: The mechanisms of successful logins.
        connections: The number of open ones.
        ends: What happens at the end of a message: ``accept``, ``refuse``, ``drop`` (accepted, and the connection is
            cut) or ``wait`` (accepted, and never answered).
        on_data: Called when a message has come whole, before it is answered.
        on_recipient: Called when a recipient has come, before it is answered.
    """

    def __init__(self) -> None:
        self.mails: list[Envelope] = []
        self.logins: list[str] = []
        self.connections = 0
        self.ends = "accept"
        self.on_data: Callable[[], object] = lambda: None
        self.on_recipient: Callable[[], object] = lambda: None

    async def handle_RCPT(self, server: SMTP, session: Session, envelope: Envelope, address: str, options: Any) -> str:  # noqa: N802
        self.on_recipient()
        if address.startswith("slow"):
            await asyncio.sleep(3600)
        if address.startswith("refused"):
            return "550 no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        if self.ends == "refuse":
            return "554 looks like spam"
        self.mails.append(envelope)
        self.on_data()
        if self.ends == "drop":
            server.transport.abort()
        if self.ends == "wait":
            await asyncio.sleep(3600)
        return "250 OK"

    async def auth_XOAUTH2(self, server: SMTP, args: list[str]) -> Any:  # noqa: N802
        import base64

        answer = base64.b64decode(args[1]).decode()
        if answer == f"user=ada@example.org\1auth=Bearer {TOKEN}\1\1":
            self.logins.append("XOAUTH2")
            return AuthResult(success=True, auth_data="ada")
        return MISSING

    def authenticate(self, server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
        is_right = data.password == PASSWORD.encode()
        if is_right:
            self.logins.append(mechanism)
        return AuthResult(success=is_right, handled=False)


class _Session(SMTP):
    def connection_made(self, transport: Any) -> None:
        self.event_handler.connections += 1
        super().connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self.event_handler.connections -= 1


class _Server(Controller):
    def factory(self) -> SMTP:
        return _Session(self.handler, **self.SMTP_kwargs)


def free_port() -> int:
    with contextlib.closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@contextlib.contextmanager
def smtp_sink(
    *,
    certificate: tuple[Path, Path] | None = None,
    implicit: bool = False,
    login: bool = False,
    **options: Any,
) -> Iterator[tuple[SmtpSink, int]]:
    """Run a server; yield what it keeps, and its port.

    Args:
        certificate: The files with its key and its certificate; without them it does not offer TLS.
        implicit: Whether TLS comes first; else by STARTTLS.
        login: Whether a login is possible, and after STARTTLS required.
        options: Further options of `SMTP`.
    """
    context = None
    if certificate is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate[1], certificate[0])
    sink, port = SmtpSink(), free_port()
    if login:
        by_starttls = context is not None and not implicit  # with implicit TLS the server knows of no TLS
        options |= {
            "authenticator": sink.authenticate, "auth_required": by_starttls, "auth_require_tls": by_starttls
        }  # fmt: skip
    if context is not None and not implicit:
        options |= {"tls_context": context, "require_starttls": True}
    server = _Server(
        sink, hostname="127.0.0.1", port=port, ssl_context=context if implicit else None, ready_timeout=30, **options
    )
    server.start()
    try:
        yield sink, port
    finally:
        server.stop()
