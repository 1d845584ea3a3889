"""The outbox: one message of the root is one transaction, and its effects follow the commit."""

from __future__ import annotations

import pytest

from callboard.actors.root._outbox import Outbox
from callboard.actors.runtime import VirtualClock
from callboard.journal import MemoryJournal, Row
from callboard.messages import Answer, JournalError


class Slow(MemoryJournal):
    """A journal that keeps when it is told to, or fails to."""

    def __init__(self):
        super().__init__()
        self.waiting = []

    def append(self, rows, then=None, failed=None, *, lazy=False):
        self.waiting.append((tuple(rows), then, failed))

    def keep_all(self):
        """Keep the waiting rows, as a commit does."""
        waiting, self.waiting = self.waiting, []
        for _, then, _ in waiting:
            then()

    def fail(self, error):
        """Fail to keep the waiting rows."""
        waiting, self.waiting = self.waiting, []
        for _, _, failed in waiting:
            failed(error)


@pytest.fixture
def journal():
    return Slow()


class Agents:
    """Notes the messages to agents."""

    def __init__(self):
        self.messages = []

    def sender(self, address, message):
        return lambda: self.messages.append((address, message))


@pytest.fixture
def agents():
    return Agents()


@pytest.fixture
def outbox(journal, agents):
    return Outbox(journal, VirtualClock(1000.0), agents)


ONE, TWO = (Answer(id=text, task_id="t") for text in ("1", "2"))


def test_outbox_keeps_messages_back_until_it_is_flushed(outbox, journal):
    outbox.keep("t", "t~1", ONE)
    assert journal.waiting == []


def test_all_of_one_message_is_kept_in_one_piece(outbox, journal):
    outbox.keep("t", "t~1", ONE)
    outbox.keep("t", "", TWO)
    outbox.flush()
    [(rows, _, _)] = journal.waiting
    assert rows == (Row(1000.0, "t", "t~1", ONE), Row(1000.0, "t", "", TWO))


def test_outbox_runs_followers_in_order_once_all_is_kept(outbox, journal):
    told = []
    outbox.keep("t", "t~1", ONE, lambda: told.append("one"), lambda: told.append("one again"))
    outbox.tell(lambda: told.append("said"))
    outbox.keep("t", "t~1", TWO, lambda: told.append("two"))
    outbox.flush()
    assert told == []
    journal.keep_all()
    assert told == ["one", "one again", "said", "two"]


def test_outbox_runs_unkept_actions_in_their_turn(outbox, journal):
    told = []
    outbox.keep("t", "", ONE, lambda: told.append("kept"))
    outbox.flush()
    outbox.tell(lambda: told.append("told"))
    outbox.flush()
    journal.keep_all()
    assert told == ["kept", "told"]


def test_an_empty_outbox_leaves_the_journal_alone(outbox, journal):
    outbox.flush()
    assert journal.waiting == []


def test_outbox_keeps_a_flushed_message_once(outbox, journal):
    outbox.keep("t", "", ONE)
    outbox.flush()
    outbox.flush()
    assert len(journal.waiting) == 1


def test_an_answer_holds_once_all_is_kept(outbox, journal):
    outbox.keep("t", "", ONE)
    answer = outbox.answer("yes")
    outbox.flush()
    assert not answer.done()
    journal.keep_all()
    assert answer.result(0) == "yes"


def test_if_it_can_not_be_kept_nothing_follows_and_who_waits_hears_why(outbox, journal, tmp_path):
    told, error = [], JournalError(tmp_path, "can't be written")
    outbox.keep("t", "", ONE, lambda: told.append("one"), failed=told.append)
    answer = outbox.answer("yes")
    outbox.flush()
    journal.fail(error)
    assert told == [error]
    assert answer.exception(0) is error


def test_cancelled_answer_does_not_disturb_other_actions(outbox, journal):
    told = []
    answer = outbox.answer("yes")
    outbox.tell(lambda: told.append("told"))
    assert answer.cancel()
    outbox.flush()
    journal.keep_all()
    assert told == ["told"]


def test_outbox_sends_an_agent_a_message_once_its_row_is_safe(outbox, journal, agents):
    outbox.send("app/memo/one", "t", "t~1", ONE)
    outbox.flush()
    [(rows, _, _)] = journal.waiting
    assert (rows, agents.messages) == ((Row(1000.0, "t", "t~1", ONE),), [])
    journal.keep_all()
    assert agents.messages == [("app/memo/one", ONE)]


def test_outbox_forwards_a_message_without_a_row_after_the_rows_before_it(outbox, journal, agents):
    outbox.keep("t", "", ONE)
    outbox.forward("app/memo/one", TWO)
    outbox.flush()
    [(rows, _, _)] = journal.waiting
    assert (len(rows), agents.messages) == (1, [])
    journal.keep_all()
    assert agents.messages == [("app/memo/one", TWO)]
