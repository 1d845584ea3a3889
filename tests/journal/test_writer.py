"""The writer: one thread keeps all rows, those needed together in one commit, and calls back in order."""

from __future__ import annotations

import queue
import sys
import threading
from pathlib import Path

import pytest

from callboard.journal import FileJournal, JournalFile, _file_journal
from callboard.journal._file_journal import LAZY_SECONDS
from callboard.journal._writer_thread import ReadRequest
from callboard.messages import Answer, JournalError, SupervisorStoppedError, Task
from callboard.messages.events import StepStarted
from support import HELD, PATIENCE


class Notebook:
    """A file that notes the calls to it; it can be held up in a commit, and fail."""

    def __init__(self):
        self.path, self.durable, self.identity = Path("notebook.db"), True, "0"
        self.written, self.commits = [], []
        self.done = []
        self.hold, self.holding, self.go = threading.Event(), threading.Event(), threading.Event()
        self.fail_write = self.fail_commit = None
        self.refuse = set()

    def write(self, rows):
        if self.fail_write is not None:
            raise self.fail_write
        for row in rows:
            if row.message.id in self.refuse:
                raise ValueError(row.message.id)
        self.written.extend(row.message for row in rows)

    def write_events(self, facts, _refused):
        self.written.extend(facts)

    def commit(self):
        if self.hold.is_set():
            self.holding.set()
            assert self.go.wait(HELD)
        if self.fail_commit is not None:
            raise self.fail_commit
        self.commits.append(self.written)
        self.written = []

    def rollback(self):
        self.done.append("rollback")
        self.written = []

    def close(self):
        self.done.append("close")


class Later:
    """A clock's `after`, whose time comes when a test says so."""

    def __init__(self):
        self.due = queue.SimpleQueue()

    def __call__(self, seconds, callback):
        self.due.put((seconds, callback))


class Office:
    """A journal on a notebook, and all that it tells."""

    def __init__(self):
        self.file, self.later = Notebook(), Later()
        self.broken, self.told, self.failures = [], [], []
        self.journal = FileJournal(self.file, broken=self.broken.append, later=self.later)

    def keep(self, *rows):
        """Append rows; the callback notes the last one's message."""
        message = rows[-1].message
        self.journal.append(
            rows, lambda: self.told.append(message), lambda error: self.failures.append((message, error))
        )

    def keep_lazily(self, *rows):
        """Append rows that nothing depends on."""
        self.journal.append(rows, lazy=True)

    def settled(self):
        """Wait until all that the writer has got is dealt with, its commit too."""
        for _ in range(2):
            looked(lambda then: self.journal._writer.put(ReadRequest(lambda _file: None, then)))


def looked(look):
    """Have the writer look at something, and give its finding."""
    found = queue.SimpleQueue()
    look(found.put)
    return found.get(timeout=PATIENCE)


@pytest.fixture
def office():
    made = Office()
    yield made
    made.file.go.set()
    assert made.journal.close(PATIENCE)


@pytest.fixture
def say(a_row):
    return lambda text: a_row(Answer(id=text, task_id="t"))


def ids(messages):
    return [message.id for message in messages]


# Group commit


def test_callback_runs_after_the_commit_of_its_rows(office, say):
    office.file.hold.set()
    office.keep(say("one"))
    assert office.file.holding.wait(PATIENCE)
    assert office.told == []
    office.file.go.set()
    office.settled()
    assert ids(office.told) == ["one"]


def test_all_that_comes_while_the_disk_is_busy_is_committed_together(office, say):
    office.file.hold.set()
    office.keep(say("first"))
    assert office.file.holding.wait(PATIENCE)
    for number in range(50):
        office.keep(say(str(number)))
    office.file.go.set()
    office.settled()
    assert [len(commit) for commit in office.file.commits] == [1, 50]
    assert ids(office.told) == ["first", *map(str, range(50))]


def test_callbacks_run_in_row_order(office, say):
    threads = [
        threading.Thread(target=lambda name=name: [office.keep(say(f"{name}{number}")) for number in range(50)])
        for name in "abcd"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    office.settled()
    assert ids(office.told) == ids(message for commit in office.file.commits for message in commit)
    assert len(office.told) == 200


def test_callback_without_rows_waits_for_its_turn(office, say):
    office.keep(say("one"))
    order = []
    office.journal.append((), lambda: order.extend(office.told))
    office.settled()
    assert ids(order) == ["one"]


def test_callback_that_fails_does_not_affect_others(office, say, caplog):
    def fail():
        raise LookupError

    office.journal.append([say("one")], fail)
    office.keep(say("two"))
    office.settled()
    assert ids(office.told) == ["two"]
    assert "a callback of the journal failed" in caplog.messages


# Lazy rows


def test_lazy_rows_wait_for_the_next_commit(office, say):
    office.keep_lazily(say("lazy"))
    office.settled()
    assert office.file.commits == []
    office.keep(say("needed"))
    office.keep_lazily(say("later"))
    office.settled()
    assert [ids(commit) for commit in office.file.commits] == [["lazy", "needed"]]


def test_lazy_rows_are_committed_after_a_short_time(office, say):
    office.keep_lazily(say("one"))
    office.keep_lazily(say("two"))
    seconds, callback = office.later.due.get(timeout=PATIENCE)
    assert (seconds, office.later.due.empty()) == (LAZY_SECONDS, True)
    callback()
    office.settled()
    assert [ids(commit) for commit in office.file.commits] == [["one", "two"]]


def test_events_without_a_row_are_committed_soon(office, an_event, say):
    for number in (1, 2):
        office.journal.facts.append(an_event(number))
        office.journal.keep_soon()
    _, callback = office.later.due.get(timeout=PATIENCE)
    assert office.later.due.empty()
    callback()
    office.settled()
    office.journal.facts.append(an_event(3))
    office.keep(say("one"))
    office.settled()
    assert [[getattr(kept, "seq", "row") for kept in commit] for commit in office.file.commits] == [[1, 2], [3, "row"]]


def test_next_lazy_rows_start_a_new_wait(office, say):
    office.keep_lazily(say("one"))
    office.later.due.get(timeout=PATIENCE)[1]()
    office.settled()
    office.keep_lazily(say("two"))
    office.later.due.get(timeout=PATIENCE)[1]()
    office.settled()
    assert [ids(commit) for commit in office.file.commits] == [["one"], ["two"]]


def test_wake_after_the_end_is_ignored(office, say):
    office.keep_lazily(say("one"))
    _, wake = office.later.due.get(timeout=PATIENCE)
    assert office.journal.close(PATIENCE)
    wake()
    assert [ids(commit) for commit in office.file.commits] == [["one"]]


def test_only_the_unserializable_lazy_row_is_dropped(office, say, caplog):
    office.file.refuse = {"bad"}
    office.keep_lazily(say("one"), say("bad"), say("three"))
    office.keep(say("needed"))
    office.settled()
    assert [ids(commit) for commit in office.file.commits] == [["one", "three", "needed"]]
    assert "a row was left out of the journal: bad" in caplog.messages


# Failures


def test_a_message_that_can_not_be_written_down_fails_alone(office, say):
    office.file.hold.set()
    office.keep(say("one"))
    assert office.file.holding.wait(PATIENCE)
    office.file.refuse = {"bad"}
    office.keep(say("two"), say("bad"))
    office.keep(say("three"))
    office.file.go.set()
    office.settled()
    assert ids(office.told) == ["one", "three"]
    assert [(message.id, type(error)) for message, error in office.failures] == [("bad", ValueError)]
    assert [ids(commit) for commit in office.file.commits] == [["one"], ["three"]]
    assert office.broken == []


@pytest.mark.parametrize("where", ["write", "commit"])
def test_a_disk_that_fails_breaks_the_journal_for_good(office, say, tmp_path, where):
    full = JournalError(tmp_path, "can't be written: the disk is full")
    office.keep(say("kept"))
    office.settled()
    setattr(office.file, f"fail_{where}", full)
    office.keep(say("lost"))
    office.settled()
    setattr(office.file, f"fail_{where}", None)
    office.keep(say("later"))
    office.settled()
    assert ids(office.told) == ["kept"]
    assert [(message.id, error) for message, error in office.failures] == [("lost", full), ("later", full)]
    assert office.broken == [full]
    assert office.file.done == ["rollback"]


def test_failed_commit_is_reported_to_all_of_its_group(office, say, tmp_path):
    office.file.hold.set()
    office.keep(say("first"))
    assert office.file.holding.wait(PATIENCE)
    full = office.file.fail_commit = JournalError(tmp_path, "can't be written")
    office.keep(say("second"))
    office.keep(say("third"))
    office.file.go.set()
    office.settled()
    assert ids(message for message, _ in office.failures) == ["first", "second", "third"]
    assert (office.told, office.broken) == ([], [full])


@pytest.mark.parametrize("where", ["write", "commit"])
def test_a_systemexit_breaks_the_journal_but_ends_no_thread(office, say, where):
    setattr(office.file, f"fail_{where}", SystemExit(3))
    office.keep(say("lost"))
    office.settled()
    office.keep(say("later"))
    office.settled()
    assert ids(message for message, _ in office.failures) == ["lost", "later"]
    assert [str(error) for error in office.broken] == ["the journal's thread was asked to exit: SystemExit(3)"]
    assert office.journal.thread.is_alive()


def test_callback_that_raises_systemexit_does_not_affect_others(office, say, caplog):
    office.journal.append([say("one")], lambda: sys.exit(3))
    found = looked(lambda then: office.journal._writer.put(ReadRequest(lambda _file: sys.exit(4), then)))
    office.keep(say("two"))
    office.settled()
    assert (ids(office.told), str(found)) == (["two"], "the journal's thread was asked to exit: SystemExit(4)")
    assert "a callback of the journal failed" in caplog.messages


async def test_failed_commit_raises_in_waiting_coroutines_and_threads(office, say, tmp_path):
    office.file.fail_commit = JournalError(tmp_path, "can't be written")
    with pytest.raises(JournalError, match="can't be written"):
        await office.journal.keep(say("one"))
    with pytest.raises(JournalError, match="can't be written"):
        office.journal.keep_now(say("two"))


async def test_cancelled_coroutine_does_not_affect_other_waiters(office, say):
    office.file.hold.set()
    kept = office.journal._append_durably([say("one")])
    assert kept.cancel()
    office.keep(say("two"))
    office.file.go.set()
    office.settled()
    assert ids(office.told) == ["two"]


# The end


def test_closing_stores_pending_rows_and_closes_the_file(office, say):
    office.keep_lazily(say("one"))
    assert office.journal.close(PATIENCE)
    assert [ids(commit) for commit in office.file.commits] == [["one"]]
    assert office.file.done == ["close"]


def test_closing_reports_a_timeout(office, say):
    office.file.hold.set()
    office.keep(say("one"))
    assert office.file.holding.wait(PATIENCE)
    assert not office.journal.close(0)


def test_append_after_the_end_is_refused_and_reported(office, say):
    assert office.journal.close(PATIENCE)
    office.keep(say("late"))
    [(message, error)] = office.failures
    assert (message.id, type(error)) == ("late", SupervisorStoppedError)
    with pytest.raises(SupervisorStoppedError):
        office.journal.find(Task(id="t", request="x"))


@pytest.fixture
def ending(office, say):
    """The office, whose writer is in a commit, with its end next in the queue."""
    office.file.hold.set()
    office.keep(say("one"))
    assert office.file.holding.wait(PATIENCE)
    assert not office.journal.close(0)
    return office


@pytest.mark.parametrize(
    "call",
    [
        lambda journal, _row: journal.find(Task(id="t", request="x")),
        lambda journal, _row: journal.ended("t"),
        lambda journal, _row: journal.conversation("t"),
        lambda journal, _row: journal.events(0, 10),
        lambda journal, row: journal.keep_now(row),
    ],
    ids=["find", "ended", "conversation", "events", "keep_now"],
)
def test_calls_during_the_end_of_the_writer_are_refused(ending, say, call):
    with pytest.raises(SupervisorStoppedError):
        call(ending.journal, say("late"))


def test_appends_after_the_stop_are_refused_and_not_stored(ending, say):
    found = queue.SimpleQueue()
    ending.journal.append([say("late")], pytest.fail, found.put)
    ending.journal.read("t", found.put)
    ending.file.go.set()
    assert [type(found.get(timeout=PATIENCE)) for _ in range(2)] == [SupervisorStoppedError] * 2
    assert ending.journal.close(PATIENCE)
    assert [ids(commit) for commit in ending.file.commits] == [["one"]]


def test_pruning_due_during_the_end_is_ignored(ending, caplog):
    ending.journal.retain(1, None)
    ending.later.due.get(timeout=PATIENCE)[1]()
    ending.file.go.set()
    looked(lambda then: ending.journal.read("t", then))
    assert ending.journal.close(PATIENCE)
    assert caplog.messages == []


def test_failure_callback_of_a_closed_journal_may_append_again(office, say):
    assert office.journal.close(PATIENCE)
    found = queue.SimpleQueue()

    def again(error):
        found.put(error)
        office.journal.append([say("again")], pytest.fail, found.put)

    office.journal.append([say("late")], pytest.fail, again)
    office.journal.read("t", found.put)
    assert [type(found.get(timeout=PATIENCE)) for _ in range(3)] == [SupervisorStoppedError] * 3


def test_hanging_disk_does_not_block_callers_for_ever(office, say, monkeypatch):
    monkeypatch.setattr(_file_journal, "ANSWER_SECONDS", 0.01)
    office.file.hold.set()
    office.keep(say("one"))
    assert office.file.holding.wait(PATIENCE)
    with pytest.raises(SupervisorStoppedError, match=r"did not answer within 0\.01 s"):
        office.journal.find(Task(id="t", request="x"))


def test_read_that_raises_a_timeout_error_passes_it_on(office):
    def events(_after, _limit):
        msg = "the disk"
        raise TimeoutError(msg)

    office.file.events = events
    with pytest.raises(TimeoutError, match="the disk"):
        office.journal.events(0, 10)


# On a real file


@pytest.fixture
def journal(place):
    made = FileJournal(JournalFile.open(place), broken=pytest.fail, later=lambda _seconds, _callback: None)
    yield made
    assert made.close(PATIENCE)


def test_read_sees_rows_appended_before_it(journal, a_task, say):
    journal.append([a_task("t")], lazy=True)
    journal.append([say("one")], lazy=True)
    rows = looked(lambda then: journal.read("t", then))
    assert [row.message.id for row in rows] == ["t", "one"]


def test_a_conversation_is_read_as_a_whole(journal, a_task):
    for row in (a_task("one"), a_task("other"), a_task("two", session="one")):
        journal.append([row], lazy=True)
    rows = looked(lambda then: journal.read("two", then, conversation=True))
    assert [row.task_id for row in rows] == ["one", "two"]


def test_a_task_is_found_by_its_id_and_its_key(journal, a_task):
    journal.append([a_task("t", key="monday")], lazy=True)
    assert journal.find(Task(id="t", request="x")) == "t"
    assert journal.find(Task(id="u", request="x", key="monday")) == "t"
    assert journal.find(Task(id="u", request="x")) is None


def test_an_ended_task_is_given_with_its_result(journal, a_task, a_result):
    journal.append([a_task("t")], lazy=True)
    assert journal.ended("t") is None
    journal.append([a_result("t")], lazy=True)
    task, result = journal.ended("t")
    assert (task.id, result.ok) == ("t", True)


def test_events_are_kept_and_read_by_number(journal, an_event):
    for number in (1, 2, 3):
        journal.facts.append(an_event(number))
    found = journal.events(1, 10)
    assert [(type(event), event.seq) for event in found] == [(StepStarted, 2), (StepStarted, 3)]


def test_feed_delivers_stored_and_new_rows_once_each(journal, a_task, say):
    fed, done = [], threading.Event()
    journal.append([a_task("t")], lazy=True)
    journal.append([say("one")])
    journal.feed(lambda rows: fed.extend(row.message.id for row in rows), ["t"])
    journal.append([say("two")], done.set)
    assert done.wait(PATIENCE)
    assert fed == ["t", "one", "two"]


def test_feed_delivers_rows_before_their_callback_runs(journal, say, a_task):
    fed, seen, done = [], [], threading.Event()
    journal.feed(lambda rows: fed.extend(row.message.id for row in rows))

    def then():
        seen.extend(fed)
        done.set()

    journal.append([a_task("t"), say("one")], then)
    assert done.wait(PATIENCE)
    assert seen == ["t", "one"]


def test_a_reader_that_fails_does_not_stop_what_follows(journal, say, a_task, caplog):
    def fail(_rows):
        raise LookupError

    done = threading.Event()
    journal.feed(fail)
    journal.append([a_task("t"), say("one")], done.set)
    assert done.wait(PATIENCE)
    assert "a callback of the journal failed" in caplog.messages


def test_failed_read_is_reported_to_its_caller_and_the_writer_continues(office, say):
    office.file.rows = lambda _task_id, **_how: 1 // 0
    assert isinstance(looked(lambda then: office.journal.read("t", then)), ZeroDivisionError)
    office.keep(say("one"))
    office.settled()
    assert ids(office.told) == ["one"]
