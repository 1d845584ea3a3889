"""A journal that can't be written any more stops everything before the next action, loudly; nothing is lost by it."""

from __future__ import annotations

import errno
import json
import sqlite3

import pytest

from callboard import EventName, Outcome, Task
from callboard.journal import JournalFile
from callboard.messages import JournalError, UnknownTaskError
from callboard.testing import Faults, MemoryServer, disk_full
from support import ASSIGN, FINISH, PATIENCE

TEXTS = ["one", "two", "three", "four"]


def host(request):
    return FINISH if request.subtasks or request.task_id == "over" else ASSIGN


def app(request):
    if request.step > len(TEXTS):
        return FINISH
    text = TEXTS[request.step - 1]
    return {"Status": "CONTINUE", "Function": "append", "Args": {"control_id": "field-1", "text": text}}


@pytest.fixture
def surface():
    return MemoryServer(MemoryServer.window())


@pytest.fixture
def begin(begin, tmp_path, surface):
    """Start supervisors with models, one after the other, on a journal in a folder of its own."""
    path = tmp_path / "kept" / "journal.db"
    return lambda **given: begin(host=host, app=app, servers=[surface], journal={"path": path}, **given)


@pytest.fixture
def done(surface):
    """Tell which texts were appended, in order."""
    return lambda: [text for _, _, text in surface.effects]


PLACES = [
    ("assign", 1),
    ("assign", 3),
    ("answered", 2),
    ("decided", 2),
    ("intent", 3),
    ("command_result", 2),
    ("step_done", 4),
    ("subtask_finished", 1),
    ("subtask_finished", 2),
    ("round_ended", 1),
    ("task_result", 1),
    ("event", 9),
    ("event", 30),
]


@pytest.mark.parametrize(("kind", "nth"), PLACES)
def test_a_full_disk_stops_the_work_which_later_resumes_without_repeating(begin, done, kind, nth):
    at_failure = []

    def full():
        at_failure.append(done())
        disk_full()

    with Faults() as faults:
        faults.before(kind, full, nth=nth)
        broken = begin()
        heard = []
        broken.subscribe(heard.append)
        try:
            handle = broken.submit(Task(id="t", request="do it"))
        except JournalError:
            handle = None  # it broke before the task was safe: then it was not accepted
        else:
            with pytest.raises(JournalError, match="No space left"):
                handle.result(PATIENCE)
        for late in (Task(id="u", request="do more"), Task(id="t", request="do it")):
            with pytest.raises(JournalError):
                broken.submit(late)
        with pytest.raises(JournalError):
            broken.handle("t")
        assert broken.status().accepting is False
        broken.stop()
    assert done() in (at_failure[0], TEXTS[: len(at_failure[0]) + 1])  # an action whose intent was safe may still end
    assert EventName.JOURNAL_FAILED in {event.name for event in heard}
    again = begin()
    handle = again.submit(Task(id="t", request="do it")) if handle is None else again.handle("t")
    assert handle.result(PATIENCE).outcome is Outcome.FINISHED
    assert done() == TEXTS


@pytest.mark.parametrize("level", ["warning", "error"])
def test_a_full_disk_is_seen_in_a_log_of_what_is_important_alone(start, surface, tmp_path, level):
    log = tmp_path / "other" / "callboard.log"
    with Faults() as faults:
        faults.before("intent", disk_full)
        broken = start(
            app=app,
            servers=[surface],
            journal={"path": tmp_path / "journal.db"},
            log={"file": log, "level": level},
        )
        with pytest.raises(JournalError, match="No space left"):
            broken.submit(Task(request="do it", target="memo:one")).result(PATIENCE)
        broken.stop()
    told = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    assert [(line["event"], line["level"]) for line in told if "No space left" in str(line)] == [
        ("journal.failed", "error")
    ]


@pytest.fixture
def connection(monkeypatch):
    """Give the connection to the journal file that was opened last."""
    opened, connect = [], sqlite3.connect

    def kept(*arguments, **options):
        opened.append(connect(*arguments, **options))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", kept)
    return lambda: opened[-1]


@pytest.mark.parametrize(
    ("pragma", "why"), [("max_page_count = 1", "full"), ("query_only = ON", "readonly")], ids=["full", "read-only"]
)
def test_when_sqlite_can_not_write_the_work_stops_and_no_task_is_lost(begin, done, connection, pragma, why):
    with Faults() as faults:
        faults.before("intent", lambda: connection().execute(f"PRAGMA {pragma}"), nth=2)
        broken = begin()
        over = broken.submit(Task(id="over", request="look")).result(PATIENCE)
        handle = broken.submit(Task(id="t", request="do it " + "x" * 20_000))  # each row needs pages of its own
        with pytest.raises(JournalError, match=why):
            handle.result(PATIENCE)
        broken.stop()
    assert done() == TEXTS[: len(done())]
    assert len(done()) < len(TEXTS)
    again = begin()
    assert [handle.task_id for handle in again.pending()] == ["t"]
    assert again.handle("t").result(PATIENCE).ok
    assert again.handle("over").result(0) == over
    assert done() == TEXTS


@pytest.fixture
def deleted(begin, done, tmp_path):
    """Delete a file of a journal in use, and see the work stop before the next action."""

    def delete(suffix):
        with Faults() as faults:
            faults.before("intent", (tmp_path / "kept" / f"journal.db{suffix}").unlink, nth=3)
            broken = begin()
            handle = broken.submit(Task(id="t", request="do it"))
            with pytest.raises(JournalError, match="was deleted or replaced"):
                handle.result(PATIENCE)
            with pytest.raises(JournalError, match="was deleted or replaced"):
                broken.submit(Task(request="do more"))
            broken.stop()
        assert done() == TEXTS[:2]

    return delete


@pytest.mark.parametrize("suffix", ["-wal", ".lock"])
def test_deleting_a_file_beside_the_journal_stops_work_but_loses_no_task(begin, done, deleted, suffix):
    deleted(suffix)
    again = begin()
    assert [handle.task_id for handle in again.pending()] == ["t"]
    assert again.handle("t").result(PATIENCE).ok
    assert done() == TEXTS


def test_a_journal_deleted_in_use_is_missed_by_the_next_process_too(begin, deleted, tmp_path):
    deleted("")
    with pytest.raises(JournalError, match=r"is gone or empty, but rows of it are left in .*-wal: put it back"):
        begin()
    (tmp_path / "kept" / "journal.db-wal").unlink()
    again = begin()  # without those files too, it begins again, with no task
    assert again.pending() == ()
    with pytest.raises(UnknownTaskError):
        again.handle("t")


def test_a_slow_disk_holds_the_action_back_until_its_intent_is_safe(begin, done):
    seen = []
    with Faults() as faults:
        faults.after("intent", lambda: seen.append(done()), nth=2)
        assert begin().submit(Task(request="do it")).result(PATIENCE).ok
    assert seen == [TEXTS[:1]]


def test_no_room_for_a_document_is_a_failed_action_that_the_model_sees(start, tmp_path):
    told = []

    def host_of_documents(request):
        told.extend(request.observation.notes)
        if request.step > 2:
            return FINISH
        return {"Status": "CONTINUE", "Function": "create_document", "Args": {"path": "new.docx"}}

    with Faults() as faults:
        faults.before("effect", disk_full)
        supervisor = start(host=host_of_documents, servers=[], documents={"workspace": tmp_path})
        assert supervisor.submit(Task(request="do it")).result(PATIENCE).ok
    assert any("No space left" in note for note in told)
    assert [path.name for path in tmp_path.iterdir()] == ["new.docx"]


def test_a_fault_that_is_over_leaves_everything_as_it_was(begin, done):
    before = (JournalFile.write, JournalFile.commit, JournalFile.rollback)
    with Faults() as faults:
        faults.before("task", disk_full)
    assert (JournalFile.write, JournalFile.commit, JournalFile.rollback) == before
    assert begin().submit(Task(request="do it")).result(PATIENCE).ok
    assert faults.passed == {}


def test_faults_count_what_is_passed(begin):
    with Faults() as faults:
        supervisor = begin()
        assert supervisor.submit(Task(request="do it")).result(PATIENCE).ok
        supervisor.stop()
    for when in ("before", "after"):
        assert faults.passed[when, "intent"] == len(TEXTS)
        assert faults.passed[when, "effect"] == len(TEXTS)
        assert faults.passed[when, "task"] == faults.passed[when, "task_result"] == 1
        assert faults.passed[when, "event"] > len(TEXTS)


def test_a_fault_may_fail_in_any_way_that_a_system_call_does(begin):
    def broken_disk():
        raise OSError(errno.EIO, "Input/output error")

    with Faults() as faults:
        faults.before("decided", broken_disk)
        with pytest.raises(JournalError, match="Input/output error"):
            begin().submit(Task(request="do it")).result(PATIENCE)
