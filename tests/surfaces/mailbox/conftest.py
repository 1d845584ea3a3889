"""Mailboxes with servers on loopback."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from dovecot import Dovecot, dovecot
from smtp_sink import PASSWORD, TOKEN, SmtpSink, smtp_sink

from callboard.config import MailSettings
from callboard.surfaces import Stage
from callboard.surfaces.mailbox import MailSurface
from nats_certificates import Authority

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ADA = "ada@example.org"
SECRETS = {"mail": PASSWORD, "token": TOKEN}


class Mailbox:
    """A surface with one mailbox, ``office``, whose tools are called without an agent."""

    def __init__(self, surface: MailSurface) -> None:
        self.surface = surface
        self.target = surface.targets()[0]

    def __call__(self, tool: str, **arguments: Any) -> Any:
        entry = next(entry for entry in self.surface.tools() if entry.name == tool).tool
        return entry.fn(**entry.validate({"mailbox": "office", **arguments}))

    def arguments(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The validated arguments of a call, as the policy gets them."""
        entry = next(entry for entry in self.surface.tools() if entry.name == tool).tool
        validated = entry.validate({"mailbox": "office", **arguments})
        del validated["mailbox"]
        return validated


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("mail"), "mail-ca")


@pytest.fixture(scope="session")
def certificate(authority: Authority) -> tuple[Path, Path]:
    return authority.certificate("mail")


@pytest.fixture(scope="session")
def imap_server(certificate: tuple[Path, Path]) -> Iterator[Dovecot]:
    with dovecot(certificate) as server:
        yield server


@pytest.fixture
def sink() -> Iterator[tuple[SmtpSink, int]]:
    with smtp_sink(enable_SMTPUTF8=False) as server:
        yield server


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def mailbox(tmp_path: Path, workspace: Path) -> Iterator[Callable[..., Mailbox]]:
    """Open mailboxes; each ends with the test."""
    surfaces = []

    def make(**section: Any) -> Mailbox:
        settings = MailSettings.model_validate({"sender": f"Ada Lovelace <{ADA}>", **section})
        surface = MailSurface({"office": settings}, workspace=workspace, secrets=SECRETS)
        surface.open(Stage("mail", tmp_path / "journal.db"))
        surfaces.append(surface)
        return Mailbox(surface)

    yield make
    for surface in surfaces:
        surface.close()


@pytest.fixture
def outbox(mailbox: Callable[..., Mailbox], sink: tuple[SmtpSink, int]) -> Mailbox:
    """A mailbox that can send alone, without TLS."""
    return mailbox(smtp={"host": "127.0.0.1", "port": sink[1], "tls": "none"})
