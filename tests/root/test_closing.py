"""Windows opened by a conversation are closed some time after its last task."""

from __future__ import annotations

import logging
import queue
import threading

import pytest

from callboard import Server, Task
from callboard.messages import Control, Observation, Target, TargetKind
from callboard.surface import ToolError, current_call
from callboard.testing import VirtualClock
from support import FINISH, PATIENCE, call

OPENS = call("open_in_desk", application="editor")


class Desk(Server):
    """A desktop with one application; `left` are windows that an earlier process had opened."""

    name = "desk"
    settles = False
    closes_after = 60.0

    def __init__(self, **left):
        self.windows = left
        self.closed = threading.Semaphore(0)

    def targets(self):
        editor = Target(
            id="editor", name="Editor", kind=TargetKind.APPLICATION, address="app/editor/*", server=self.name
        )
        return (editor, *(self.window(name) for name in self.windows))

    def window(self, name):
        return Target(
            id=name,
            name=name,
            kind=TargetKind.WINDOW,
            address=f"app/editor/{name}",
            server=self.name,
            owner=self.windows[name],
        )

    def start(self, target, arguments):
        name = f"untitled-{len(self.windows) + 1}"
        self.windows[name] = current_call().session
        return self.window(name)

    def stop(self, target):
        if target.id == "stuck":
            msg = "it asks whether to save"
            raise ToolError(msg)
        del self.windows[target.id]
        self.closed.release()

    def observe(self, target, look):
        return Observation(controls=(Control(id="page", name="Page", kind="text"),))


@pytest.fixture
def opened(start):
    """Start a supervisor on a desktop; `host` is its HostAgent, which by default opens a window."""

    def open_(desk, clock, host=lambda request: OPENS if request.call == 1 else FINISH):
        return start(host=host, servers=[desk], clock=clock, policy=[{"verdict": "allow"}])

    return open_


def work(supervisor, **task):
    return supervisor.submit(Task(request="write", **task)).result(PATIENCE)


def test_target_that_a_task_opened_is_closed_once_its_time_is_over(opened):
    desk, clock = Desk(nobodys=""), VirtualClock()
    supervisor = opened(desk, clock)
    assert work(supervisor, id="t").ok
    clock.advance(59)
    assert not desk.closed.acquire(blocking=False)
    clock.advance(1)
    assert desk.closed.acquire(timeout=PATIENCE)
    assert desk.windows == {"nobodys": ""}


def test_a_follow_up_keeps_what_was_opened_until_it_is_over(opened):
    desk, clock = Desk(), VirtualClock()
    begun, may_end = threading.Event(), threading.Event()

    def host(request):
        if request.task_id == "t":
            return OPENS if request.call == 1 else FINISH
        begun.set()
        assert may_end.wait(PATIENCE)
        return FINISH

    supervisor = opened(desk, clock, host)
    assert work(supervisor, id="t").ok
    handle = supervisor.submit(Task(request="and more", session="t"))
    assert begun.wait(PATIENCE)
    clock.advance(60)
    may_end.set()
    assert handle.result(PATIENCE).ok
    assert desk.windows == {"untitled-1": "t"}
    clock.advance(60)
    assert desk.closed.acquire(timeout=PATIENCE)
    assert desk.windows == {}


def test_target_that_an_earlier_process_left_open_is_closed(opened):
    class Clock(VirtualClock):
        def after(self, seconds, callback):
            alarm = super().after(seconds, callback)
            if seconds == Desk.closes_after:
                planned.release()
            return alarm

    planned = threading.Semaphore(0)
    desk, clock = Desk(theirs="ended", nobodys=""), Clock()
    opened(desk, clock)
    assert planned.acquire(timeout=PATIENCE)
    clock.advance(60)
    assert desk.closed.acquire(timeout=PATIENCE)
    assert desk.windows == {"nobodys": ""}


def test_target_that_does_not_close_is_logged(opened):
    class Log(logging.Handler):
        def emit(self, record):
            told.put(record.getMessage())

    told, log = queue.Queue(), Log(logging.WARNING)
    desk, clock = Desk(stuck="t"), VirtualClock()
    logging.getLogger("callboard").addHandler(log)
    try:
        assert work(opened(desk, clock, lambda _: FINISH), id="t").ok
        clock.advance(60)
        assert told.get(timeout=PATIENCE) == "stuck could not be closed: it asks whether to save"
    finally:
        logging.getLogger("callboard").removeHandler(log)
