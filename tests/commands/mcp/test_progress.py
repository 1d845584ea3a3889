"""Progress that a third-party server tells of a call becomes events of that call."""

from __future__ import annotations

import asyncio
import math

import pytest

from callboard import EventName
from callboard.actors.commands.mcp._server_session import _progress_of
from callboard.actors.runtime import Lease
from callboard.messages import Command
from callboard.surfaces import EffectGuard
from support import PATIENCE, call, lone


class Kept:
    """A keeper that keeps progress."""

    session = ""

    def __init__(self):
        self.told = []

    def progress(self, text, share):
        self.told.append((text, share))


def told_of(*progress):
    kept = Kept()
    command = Command(task_id="one", run_id="one~1", token=1, call_id="1", tool="notes.count", timeout=PATIENCE)
    for each in progress:
        guard = EffectGuard(Lease("app/mcp/notes", 1), command, kept)  # each tells ten times a second at most
        asyncio.run(_progress_of(guard)(*each))
    return kept.told


def test_a_servers_progress_is_an_event_of_its_call(start, over_http, until):
    supervisor = start(
        app=[call("notes.count", "FINISH", steps=1, total=4)],
        mcpServers={"notes": {**over_http, "surface": True}},
        policy=[{"verdict": "allow", "tool": "notes.*"}],
    )
    handle = supervisor.submit(lone("notes"))
    told = until(handle, EventName.TOOL_PROGRESS)
    assert handle.result(PATIENCE).output == {"result": 1}
    assert (told.task_id, told.agent) == (handle.task_id, "app/mcp/notes")
    assert {**told.data, "call": ""} == {"tool": "notes.count", "text": "1 of 4", "share": 0.25, "call": ""}


@pytest.mark.parametrize(
    ("progress", "text", "share"),
    [
        ((3.0, None, "reading"), "reading", None),
        ((3.0, None, None), "3", None),
        ((3.0, 0.0, ""), "3 of 0", None),
        ((9.0, 4.0, None), "9 of 4", 1.0),
        ((-1.0, 4.0, None), "-1 of 4", 0.0),
        ((math.inf, 4.0, "far"), "far", None),
        ((math.nan, 4.0, "far"), "far", None),
        ((1.0, 2.0, "x" * 100_000), "x" * 500, 0.5),
    ],
)
def test_progress_of_any_form_is_reported_within_bounds(progress, text, share):
    assert told_of(progress) == [(text, share)]


def test_flood_of_progress_is_not_reported():
    kept = Kept()
    command = Command(task_id="one", run_id="one~1", token=1, call_id="1", tool="notes.count", timeout=PATIENCE)
    guard = EffectGuard(Lease("app/mcp/notes", 1), command, kept)
    guard.quiet_until = math.inf
    asyncio.run(_progress_of(guard)(1.0, 2.0, "again"))
    assert kept.told == []


def test_call_without_a_record_requests_no_progress():
    assert _progress_of(None) is None
    assert _progress_of(EffectGuard(Lease("app/mcp/notes", 1))) is None
