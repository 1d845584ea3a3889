"""A list of actions that was paused in its middle, and then broken off by a crash, is done to its end."""

from __future__ import annotations

import threading

import pytest
from docx import Document

from callboard import EventName, Task
from callboard.messages import JournalError
from callboard.testing import Faults, disk_full
from support import PATIENCE

TEXTS = ["one", "two", "three"]


def app(request):
    if any(not record.resumed for record in request.memory):
        return {"Status": "FINISH"}
    return {
        "Status": "CONTINUE",
        "Actions": [{"function": "insert_paragraph", "arguments": {"text": t}} for t in TEXTS],
    }


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("kind", ["intent", "foreseen", "command_result"])
def test_after_a_pause_and_a_crash_own_edits_are_not_taken_for_others(start, tmp_path, until, kind, nth):
    Document().save(str(tmp_path / "one.docx"))
    begun, paused = threading.Event(), threading.Event()

    def hold():
        begun.set()
        paused.wait(PATIENCE)

    given = {
        "app": app,
        "servers": [],
        "documents": {"workspace": tmp_path},
        "journal": {"path": tmp_path / "journal.db"},
    }
    with Faults() as faults:
        faults.before("effect", hold)
        supervisor = start(**given)
        handle = supervisor.submit(Task(id="t", request="do it", target="one.docx"))
        assert begun.wait(PATIENCE)
        handle.pause()
        paused.set()
        until(handle, EventName.STEP_ENDED)
        faults.before(kind, disk_full, nth=faults.passed["before", kind] + nth)
        handle.resume()
        with pytest.raises(JournalError):
            handle.result(PATIENCE)
        supervisor.stop()
    assert start(**given).handle("t").result(PATIENCE).ok
    found = [paragraph.text for paragraph in Document(str(tmp_path / "one.docx")).paragraphs]
    assert [text for text in found if text] == TEXTS
