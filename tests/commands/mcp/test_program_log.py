"""Standard error of MCP servers: each line is an event, within bounds."""

from __future__ import annotations

import asyncio
import queue
import sys
from types import SimpleNamespace

import pytest

from callboard import EventName
from callboard.actors.commands.mcp import _program_log
from callboard.actors.commands.mcp._program_log import LINES_A_SECOND, LONGEST_LINE, ProgramLog
from support import PATIENCE


@pytest.fixture
def now(monkeypatch):
    """Give the time, which stands still."""
    now = [100.0]
    monkeypatch.setattr(_program_log, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


async def told_of(*chunks):
    told = []
    log = ProgramLog(lambda text, dropped: told.append((text, dropped)))
    for chunk in chunks:
        stream = asyncio.StreamReader()
        stream.feed_data(chunk)
        stream.feed_eof()
        await log.read(stream)
    return told, log


async def test_each_line_is_reported_without_its_line_end():
    told, log = await told_of(b"loading\n\n  two \r\nthe last")
    assert told == [("loading", 0), ("  two", 0), ("the last", 0)]
    assert list(log.last) == ["loading", "  two", "the last"]


async def test_a_line_without_end_is_cut_and_takes_no_memory(now):
    told, log = await told_of(b"x" * 5_000_000 + b"\nnext\n")
    assert told == [("x" * LONGEST_LINE + "…", 0), ("next", 0)]
    assert len(log._line) <= LONGEST_LINE + 1


async def test_lines_above_the_rate_limit_are_counted(now):
    told, log = await told_of(b"spam\n" * (LINES_A_SECOND + 500))
    assert told == [*[("spam", 0)] * LINES_A_SECOND, ("", 500)]
    assert list(log.last) == ["spam"] * 5


async def test_lines_are_reported_again_in_the_next_second(now):
    told = []

    def tell(text, dropped):
        told.append((text, dropped))
        if text == "the last of this second":
            now[0] += 1

    stream = asyncio.StreamReader()
    stream.feed_data(b"spam\n" * (LINES_A_SECOND - 1) + b"the last of this second\nagain\n")
    stream.feed_eof()
    await ProgramLog(tell).read(stream)
    assert told[LINES_A_SECOND:] == [("again", 0)]


async def test_bytes_that_are_not_text_are_still_reported():
    told, _ = await told_of(b"\xff\x00\x1b[31m\n")
    assert told == [("�\x00\x1b[31m", 0)]


def test_a_servers_standard_error_becomes_events_without_secrets(start):
    noisy = "import os, sys; print('my key is', os.environ['API_KEY'], file=sys.stderr); sys.exit(1)"
    server = {"command": sys.executable, "args": ["-I", "-S", "-c", noisy], "env": {"API_KEY": "xyzzy-4711"}}
    supervisor = start(mcpServers={"noisy": {**server, "optional": True}})
    said = queue.SimpleQueue()
    supervisor.subscribe(lambda event: said.put(event) if event.name is EventName.SERVER_SAID else None, after=0)
    assert said.get(timeout=PATIENCE).data == {"server": "noisy", "text": "my key is **********"}


async def test_line_carries_the_count_of_lines_dropped_before_it(now):
    told = []
    log = ProgramLog(lambda text, dropped: told.append((text, dropped)))
    for byte in b"spam\n" * (LINES_A_SECOND + 3):
        log._add(bytes([byte]).strip())
        if byte == ord("\n"):
            log._end_line()
    now[0] += 1
    log._add(b"again")
    log._end_line()
    assert told[LINES_A_SECOND:] == [("again", 3)]
