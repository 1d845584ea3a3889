"""A cancel right when a job's messages are to be kept: they are late, in the journal as for the live agent."""

from __future__ import annotations

import queue
import sqlite3
import threading
import time
from contextlib import closing

import pytest

from callboard import EventName, Outcome, Task
from callboard.actors.late_results import JobResults
from callboard.journal import JournalReader
from callboard.messages import Cancel
from callboard.testing import assert_replays
from support import ASSIGN, FINISH, PATIENCE

WRITE = {"Status": "FINISH", "Function": "write", "Args": {"control_id": "field-1", "text": "hello"}}
PHASES = ["data_collection", "llm_interaction", "action_execution", "memory_update"]


def cancel_and_wait(handles, lease):
    """Cancel the task on another thread once it is submitted, and wait until the lease is void."""
    threading.Thread(target=handles.get(timeout=PATIENCE).cancel, daemon=True).start()
    end = time.monotonic() + PATIENCE
    while lease.valid and time.monotonic() < end:
        time.sleep(0.001)


@pytest.fixture
def cancelled_at(start, tmp_path, monkeypatch):
    """Give a function that cancels a task when a step of some agent is to be kept, and gives its journal."""

    def cancelled(address):
        decided_next, happened = vars(JobResults)["_decided_next"], threading.Event()
        handles = queue.SimpleQueue()

        def decided(results, ahead, lease, processing):
            then = decided_next(results, ahead, lease, processing)
            if results.address.startswith(address) and then is not None and not happened.is_set():
                happened.set()
                cancel_and_wait(handles, lease)
            return then

        monkeypatch.setattr(JobResults, "_decided_next", decided)
        journal = tmp_path / "journal.db"
        with start(host=[ASSIGN, FINISH], app=[WRITE], journal={"path": journal}) as supervisor:
            handle = supervisor.submit(Task(request="say hello"))
            handles.put(handle)
            result = handle.result(PATIENCE)
        assert happened.is_set()
        assert result.outcome is Outcome.CANCELLED
        return journal, handle.task_id

    return cancelled


@pytest.mark.parametrize("address", ["host/", "app/"])
def test_no_message_of_a_step_stands_behind_the_cancel_that_made_it_late(cancelled_at, address):
    journal, task_id = cancelled_at(address)
    number = 0 if address == "host/" else 1
    with JournalReader.open(journal) as reader:
        rows = [row for row in reader.rows(task_id, events=False) if row.run_id in {"", f"{task_id}~{number}"}]
    cancel = next(place for place, row in enumerate(rows) if isinstance(row.message, Cancel))
    kinds = [row.message.kind for row in rows[cancel + 1 :] if row.job]
    assert "step_done" not in kinds
    assert "assign" not in kinds


@pytest.mark.parametrize("address", ["host/", "app/"])
def test_a_task_that_was_cancelled_at_such_a_moment_recovers(cancelled_at, start, address):
    journal, task_id = cancelled_at(address)
    with closing(sqlite3.connect(journal)) as connection, connection:  # as a crash right after the cancel leaves it
        [last] = connection.execute("SELECT min(id) FROM rows WHERE kind = 'cancel'").fetchone()
        connection.execute("DELETE FROM rows WHERE id > ?", (last,))
        connection.execute("UPDATE tasks SET ended = NULL, outcome = NULL")
    with start(host=[ASSIGN, FINISH], app=[WRITE], journal={"path": journal}) as supervisor:
        result = supervisor.handle(task_id).result(PATIENCE)
    assert result.outcome is Outcome.CANCELLED
    assert [done.outcome for done in result.subtasks] == ([] if address == "host/" else [Outcome.CANCELLED])


@pytest.mark.parametrize("address", ["host/", "app/"])
def test_a_task_that_was_cancelled_at_such_a_moment_is_replayed(cancelled_at, address):
    assert_replays(*cancelled_at(address))


def test_phases_of_a_step_that_a_cancel_made_late_have_events(start, monkeypatch):
    happened, take_word, handles = threading.Event(), vars(JobResults)["take"], queue.SimpleQueue()

    def take(results, send, run, lease, processing, valid, said):
        if results.address.startswith("app/") and said.kind == "step_done" and not happened.is_set():
            happened.set()
            cancel_and_wait(handles, lease)
        take_word(results, send, run, lease, processing, valid, said)

    monkeypatch.setattr(JobResults, "take", take)
    supervisor = start(host=[ASSIGN, FINISH], app=[WRITE])
    handle = supervisor.submit(Task(request="say hello"))
    handles.put(handle)
    handle.result(PATIENCE)
    assert happened.is_set()
    ended = [event for event in handle.events() if event.name is EventName.PHASE_ENDED]
    assert [event.phase for event in ended if event.agent.startswith("app/") and event.state != "FAIL"] == PHASES
