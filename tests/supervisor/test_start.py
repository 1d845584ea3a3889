"""A start that fails leaves nothing: no thread, no claim on the journal."""

from __future__ import annotations

import logging
import threading

import pytest

from callboard import EventName
from callboard.actors.assembly import Assembly
from callboard.actors.runtime import EventStream
from callboard.messages import JournalError
from callboard.testing import Faults, disk_full
from support import FINISH, PATIENCE, lone


@pytest.mark.parametrize(
    "place",
    [
        pytest.param("_services", id="before the root exists"),
        pytest.param("_restore", id="before it has the tasks"),
    ],
)
def test_a_journal_that_breaks_at_the_start_fails_it_and_leaves_nothing(
    start, until, tmp_path, monkeypatch, caplog, place
):
    caplog.set_level(logging.CRITICAL)
    before, path, heard = set(threading.enumerate()), tmp_path / "journal.db", []
    first = start(app=[{"Status": "PENDING", "Comment": "which?"}, FINISH], journal={"path": path})
    until(first.submit(lone(id="t")), EventName.QUESTION_ASKED)
    first.stop()
    broken, going_on = threading.Event(), getattr(Assembly, place)

    def breaks(self, *given):
        if not broken.is_set():
            self.journal.append((), lambda: None, lambda _error: broken.set())
            assert broken.wait(PATIENCE)
        return going_on(self, *given)

    emit = EventStream.emit
    with monkeypatch.context() as patched, Faults() as faults:
        faults.before("in_force", disk_full)
        patched.setattr(EventStream, "emit", lambda self, name, **data: (heard.append(name), emit(self, name, **data)))
        patched.setattr(Assembly, place, breaks)
        with pytest.raises(JournalError, match="No space left"):
            start(app=[FINISH], journal={"path": path})
    assert EventName.JOURNAL_FAILED in heard
    assert EventName.TASK_RECOVERED not in heard
    assert set(threading.enumerate()) - before == set()
    second = start(app=lambda _: FINISH, journal={"path": path})
    handle = second.handle("t")
    handle.answer(handle.questions()[0].id, "this")
    assert handle.result(PATIENCE).ok
