"""A program is killed while it sends a message: no message is ever sent twice."""

from __future__ import annotations

import json
import random
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from dovecot import dovecot
from smtp_sink import SmtpSink, smtp_sink

import forks
from callboard import EventName, Outcome
from callboard.actors.states import WAS_DONE, WAS_NOT_DONE
from callboard.testing import assert_replays
from nats_certificates import Authority
from support import PATIENCE, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dovecot import Dovecot

PROGRAM = Path(__file__).with_name("mail_program.py")
TASK, supervised = map(runpy.run_path(str(PROGRAM)).__getitem__, ("TASK", "supervised"))
MOMENTS = [
    *("before the end of the message" for _ in range(4)),
    *("before the answer" for _ in range(6)),
    *("after the answer" for _ in range(10)),
]

ANY_TIME = "at any time"


@pytest.fixture(scope="module")
def imap_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dovecot]:
    with dovecot(Authority(tmp_path_factory.mktemp("mail")).certificate("mail")) as server:
        yield server


def kill(folder: Path, section: str, sink: SmtpSink, moment: str) -> None:
    """Start a program that sends a message, and kill it at a moment of that."""
    command = [sys.executable, PROGRAM, folder, section]
    pipe = subprocess.PIPE
    come = threading.Event()
    with forks.Program(command, stdin=pipe, stdout=pipe, stderr=pipe) as child:

        def end() -> None:
            child.send_signal(signal.SIGKILL)

        def arrived() -> None:
            if moment == "before the answer":
                end()
            come.set()

        sink.on_data = arrived
        sink.on_recipient = end if moment == "before the end of the message" else lambda: None
        assert child.stdout is not None
        assert child.stdout.readline() == b"taken\n", child.stderr.read().decode() if child.stderr else ""
        if moment == "after the answer":
            assert come.wait(PATIENCE)
            time.sleep(random.uniform(0, 0.02))  # noqa: S311 - no secret
            end()
        if moment == ANY_TIME:
            time.sleep(random.uniform(0, 0.15))  # noqa: S311 - no secret
            end()
        child.wait(PATIENCE)
    wait_for(lambda: not sink.connections)  # what was sent before the kill has come
    sink.on_data = sink.on_recipient = lambda: None


def resume(folder: Path, section: str, sink: SmtpSink) -> tuple[Any, list[str]]:
    """Let another program continue; a person who is asked looks at what has come."""
    was_sent = bool(sink.mails)
    with supervised(folder, section) as supervisor:
        handle = supervisor.submit(TASK)
        for event in handle.events():
            if event.name is EventName.QUESTION_ASKED:
                for question in handle.questions():
                    handle.answer(question.id, WAS_DONE if was_sent else WAS_NOT_DONE)
        result = handle.result(PATIENCE)
        return result, [event.data["probe"] for event in handle.events() if event.name is EventName.COMMAND_IN_DOUBT]


@pytest.mark.parametrize(
    ("moment", "count"), [*Counter(MOMENTS).items(), pytest.param(ANY_TIME, 200, marks=pytest.mark.slow)]
)
def test_message_is_never_sent_twice(tmp_path: Path, moment: str, count: int) -> None:
    """Without the slow one, 20 kills."""
    probes: list[str] = []
    for number in range(count):
        folder = tmp_path / str(number)
        folder.mkdir()
        with smtp_sink() as (sink, port):
            section = json.dumps({"smtp": {"host": "127.0.0.1", "port": port, "tls": "none"}})
            kill(folder, section, sink, moment)
            result, probes_of_run = resume(folder, section, sink)
            assert len(sink.mails) == 1, f"sent {len(sink.mails)} times: {probes_of_run}"
            assert result.outcome is Outcome.FINISHED, result.causes
        probes += probes_of_run[:1]
        assert_replays(folder / "journal.db", "send")
    print(f"{count} kills {moment}: {dict(Counter(probes))}")  # noqa: T201 - a test's report
    expected = {
        "before the end of the message": {"not_done"},
        "before the answer": {"unknown"},
        "after the answer": {"unknown", "done"},
        ANY_TIME: {"not_done", "unknown", "done"},
    }
    assert set(probes) <= expected[moment]


def test_folder_of_sent_messages_tells_what_was_sent(tmp_path: Path, imap_server: Dovecot) -> None:
    imap = {"host": "127.0.0.1", "port": imap_server.port, "tls": "none", "user": "office", "secret": "mail"}
    with smtp_sink() as (sink, port):
        section = json.dumps({"smtp": {"host": "127.0.0.1", "port": port, "tls": "none"}, "imap": imap})
        kill(tmp_path, section, sink, "before the answer")
        imap_server.deliver("office", sink.mails[0].content, folder=".Sent")  # as providers do
        result, probes = resume(tmp_path, section, sink)
    assert (len(sink.mails), probes) == (1, ["done"])
    assert result.outcome is Outcome.FINISHED, result.causes
