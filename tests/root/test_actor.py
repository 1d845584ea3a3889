"""The root actor within a running supervisor: a message that comes late, and a failure of its own."""

from __future__ import annotations

import queue

import pytest

from callboard import EventName, Task
from callboard.actors.root._actor import Root
from callboard.actors.root._intake import NotKept
from callboard.journal import MemoryJournal
from callboard.messages import SubtaskEnding, SupervisorStoppedError
from support import FINISH, PATIENCE, lone, write


def test_request_during_the_refusal_of_a_task_does_not_get_that_task(start, monkeypatch):
    supervisor = start(app=[write(status="FINISH")])

    def ask():
        return supervisor.submit(Task(request="write hello", target="memo:one", key="order-17"))

    first = ask()
    assert first.result(PATIENCE).ok
    receive, held = Root._receive, []

    def late(root, message):
        return held.append((root, message)) if isinstance(message, NotKept) else receive(root, message)

    monkeypatch.setattr(Root, "_receive", late)
    for _ in range(2):  # the first of them is taken, and refused by the journal; the second comes before that is known
        with monkeypatch.context() as once:
            once.setattr(MemoryJournal, "find", lambda _journal, _task, once=once: once.undo())
            assert ask().task_id == first.task_id
    assert len(held) == 1
    monkeypatch.setattr(Root, "_receive", receive)
    for root, message in held:  # otherwise a stop waits for the task
        root.send(message)


def test_of_a_task_that_the_journal_refuses_no_secret_is_kept(start, monkeypatch):
    supervisor, heard = start(app=lambda _request: FINISH), queue.SimpleQueue()

    def ask():
        return supervisor.submit(lone(key="order-17", secrets={"pin": "vault-4711"}))

    ask().result(PATIENCE)
    supervisor.subscribe(heard.put)
    with monkeypatch.context() as once:  # the journal does not know of the first yet, and then refuses this one
        once.setattr(MemoryJournal, "find", lambda *_: once.undo())
        ask()
    while heard.get(timeout=PATIENCE).name is not EventName.TASK_ENDED:
        continue
    supervisor.status()  # the root has handled the refusal, which has that event
    assert not supervisor._assembly.secrets.known


def test_if_the_root_itself_breaks_waiting_callers_get_an_error(start, monkeypatch):
    original = Root._receive

    def broken(self, message):
        if isinstance(message, SubtaskEnding):
            msg = "a bug of ours"
            raise TypeError(msg)
        return original(self, message)

    monkeypatch.setattr(Root, "_receive", broken)
    supervisor = start(app=lambda _request: FINISH)
    handle = supervisor.submit(lone())
    with pytest.raises(SupervisorStoppedError):
        handle.result(PATIENCE)
