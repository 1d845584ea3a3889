"""A mailbox passes the tests that every surface should pass."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from smtp_sink import SmtpSink, smtp_sink

from callboard.config import MailSettings
from callboard.surfaces.mailbox import MailSurface
from callboard.testing import SurfaceCall, SurfaceCase
from short_suite import short_suite

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SERVERS: list[tuple[SmtpSink, int]] = []
"""Servers of one test; each case takes one."""

MOST_CASES = 30


def outbox(folder: Path) -> SurfaceCase:
    """A mailbox with a server of its own; an action done once is a message there."""
    sink, port = SERVERS.pop()
    started = threading.Event()
    sink.on_recipient = started.set
    section = MailSettings.model_validate(
        {"sender": "ada@example.org", "smtp": {"host": "127.0.0.1", "port": port, "tls": "none"}}
    )
    message = {"to": ["Bob <bob@example.org>"], "subject": "The report", "text": "It is done."}
    return SurfaceCase(
        server=lambda: MailSurface({"office": section}),
        target="office",
        once=SurfaceCall("send_message", message),
        done=lambda: len(sink.mails),
        slow=SurfaceCall("send_message", {**message, "to": ["slow@example.org"]}),
        started=started.is_set,
        same=(
            SurfaceCall("send_message", message),
            SurfaceCall("send_message", {**message, "to": ["BOB@Example.org"]}),
        ),
    )


class TestMailbox(short_suite(outbox)):  # type: ignore[misc]  # made here
    """With a server for each case."""

    @pytest.fixture(autouse=True)
    def _serve(self) -> Iterator[None]:
        with ExitStack() as stack:
            SERVERS[:] = [stack.enter_context(smtp_sink()) for _ in range(MOST_CASES)]
            yield
