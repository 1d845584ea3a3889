"""The journal in memory: the same order and the same reading, and gone with the process."""

from __future__ import annotations

import threading

import pytest

from callboard.journal import MemoryJournal, Row
from callboard.messages import Answer, Cancel, Task
from support import PATIENCE


@pytest.fixture
def journal():
    return MemoryJournal()


def read(journal, task_id, **how):
    found = []
    journal.read(task_id, found.append, **how)
    [rows] = found
    return [row.message for row in rows]


def test_memory_journal_does_not_outlive_the_process(journal):
    assert not journal.survives


def test_rows_are_read_in_the_order_in_which_they_were_kept(journal, a_row):
    answers = [Answer(id=str(number), task_id="t") for number in range(3)]
    journal.append([a_row(answers[0]), a_row(answers[1])])
    journal.append([a_row(answers[2])])
    assert read(journal, "t") == answers
    assert read(journal, "another") == []


def test_callback_runs_at_once_after_the_rows_are_stored(journal, a_row):
    then = []
    journal.append([a_row(Cancel(task_id="t"))], lambda: then.append(read(journal, "t")))
    assert then == [[Cancel(task_id="t")]]


def test_callback_may_append_more_rows(journal, a_row):
    first, second = Answer(id="1", task_id="t"), Answer(id="2", task_id="t")
    journal.append([a_row(first)], lambda: journal.append([a_row(second)]))
    assert read(journal, "t") == [first, second]


def test_callbacks_of_several_threads_run_in_row_order(journal, a_row):
    told = []

    def keep(name):
        for number in range(100):
            answer = Answer(id=f"{name}-{number}", task_id="t")
            journal.append([a_row(answer)], lambda answer=answer: told.append(answer))

    threads = [threading.Thread(target=keep, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert read(journal, "t") == told
    assert len(told) == 400


def test_a_conversation_is_read_as_a_whole_from_any_of_its_tasks(journal, a_task):
    for row in (a_task("one"), a_task("other"), a_task("two", session="one"), a_task("three", session="one")):
        journal.append([row])
    for task_id in ("one", "two", "three"):
        assert [task.id for task in read(journal, task_id, conversation=True)] == ["one", "two", "three"]
    assert [task.id for task in read(journal, "other", conversation=True)] == ["other"]


def test_feed_delivers_stored_rows_of_given_tasks_and_all_new_rows(journal, a_task):
    fed = []
    for task_id in ("one", "two"):
        journal.append([a_task(task_id)])
    journal.feed(lambda rows: fed.extend(row.message.id for row in rows), ["two"])
    journal.append([a_task("three")])
    assert fed == ["two", "three"]


def test_a_new_reader_takes_the_place_of_the_last(journal, a_task):
    first, second = [], []
    journal.feed(first.extend)
    journal.feed(second.extend)
    journal.append([a_task("one")])
    assert (len(first), len(second)) == (0, 1)


def test_feed_delivers_rows_before_their_callback_runs(journal, a_task):
    order = []
    journal.feed(lambda _rows: order.append("fed"))
    journal.append([a_task("one")], lambda: order.append("told"))
    assert order == ["fed", "told"]


def test_forgotten_tasks_are_gone_and_others_stay(journal, a_task):
    for task_id in ("one", "two"):
        journal.append([a_task(task_id)])
    journal.forget(["one", "never there"])
    assert (read(journal, "one"), len(read(journal, "two"))) == ([], 1)


def test_a_task_is_known_by_its_id_and_its_key_also_when_it_is_over(journal, a_task, a_result):
    journal.append([a_task("one", key="k")])
    assert journal.find(Task(request="do it", key="k")) == "one"
    assert journal.ended("one") is None
    result = a_result("one")
    journal.append([result])
    journal.forget(["one"])
    for again in (Task(id="one", request="do it"), Task(request="do it", key="k")):
        assert journal.find(again) == "one"
    assert journal.ended("one") == (Task(id="one", request="do it", key="k"), result.message)
    assert journal.find(Task(id="two", request="do it", key="another")) is None


def test_a_task_without_an_id_of_its_callers_is_known_too(journal, a_result):
    task, result = Task(request="do it"), a_result("t")
    task = task.model_copy(update={"id": "t"})
    journal.append([Row(1.0, task.id, "", task), result])
    assert (journal.find(task), journal.ended(task.id)) == ("t", (task, result.message))


def test_an_id_or_a_key_that_was_used_is_not_kept_again(journal, a_task, a_row):
    journal.append([a_task("one", key="k")])
    for again in (a_task("one", request="another"), a_task("two", key="k")):
        told, failed, fed = [], [], []
        journal.feed(fed.extend)
        journal.append([again, a_row(Cancel(task_id="t"))], lambda told=told: told.append(1), failed.append)
        assert (told, fed) == ([], [])
        assert "was used before" in str(failed[0])
    assert (len(read(journal, "one")), read(journal, "two"), read(journal, "t")) == (1, [], [])


def test_only_the_latest_tasks_that_are_over_are_known(a_task, a_result):
    journal = MemoryJournal(kept_tasks=2)
    for name in "abcd":
        journal.append([a_task(name, key=f"key-{name}")])
    for name in "dab":
        journal.append([a_result(name)])
    known = [name for name in "abcd" if journal.find(Task(id=name, request="do it"))]
    assert (
        known == [name for name in "abcd" if journal.find(Task(request="do it", key=f"key-{name}"))] == ["a", "b", "c"]
    )
    assert [name for name in "abcd" if journal.ended(name)] == ["a", "b"]


async def test_a_coroutine_and_a_thread_may_wait_until_rows_are_kept(journal, a_row):
    await journal.keep(a_row(Answer(id="1", task_id="t")))
    journal.keep_now(a_row(Answer(id="2", task_id="t")))
    assert [answer.id for answer in read(journal, "t")] == ["1", "2"]


def test_closing_takes_no_time(journal):
    assert journal.close(0)
