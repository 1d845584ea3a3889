"""The watchdog: a loop that does not answer is reported, with the cause."""

from __future__ import annotations

import queue
import threading

import pytest

from callboard.actors.runtime import EventLoop, Lanes, Watchdog, refuse_own_thread, stack_of
from callboard.messages import WouldDeadlockError
from support import HELD, PATIENCE

HUNG = 0.05


class Held:
    """A call that has begun when `begun` is set, and returns when `let_go` is."""

    def __init__(self):
        self.begun = threading.Event()
        self.let_go = threading.Event()

    def waits_for_the_printer(self):
        self.begun.set()
        assert self.let_go.wait(HELD)


class Reports(queue.SimpleQueue):
    """The reports of a watchdog, in order."""

    def blocked(self, thread_name, stack_text, seconds):
        self.put(("blocked", thread_name, stack_text, seconds))

    def free(self, thread_name):
        self.put(("free", thread_name))

    def until(self, kind):
        """Wait for a report; gives its values, and the kinds of all up to it."""
        kinds = []
        while True:
            said, *values = self.get(timeout=PATIENCE)
            kinds.append(said)
            if said == kind:
                return values, kinds


class LoopThatAnswersAtOnce:
    """Answers on the thread that asks: never late, however slow the machine is."""

    thread = threading.main_thread()

    def __init__(self):
        self.asked = 0
        self.asked_often = threading.Event()

    def call(self, function):
        function()
        self.asked += 1
        if self.asked == 20:
            self.asked_often.set()


@pytest.fixture
def held():
    call = Held()
    yield call
    call.let_go.set()


@pytest.fixture
def reports():
    return Reports()


@pytest.fixture
def watch(reports):
    """Start watchdogs; all are stopped."""
    started = []

    def begin(loop, hung_seconds=HUNG, on_blocked=reports.blocked, on_free=reports.free, watched=()):
        dog = Watchdog("test-watchdog", loop, hung_seconds, on_blocked=on_blocked, on_free=on_free, watched=watched)
        dog.start()
        started.append(dog)
        return dog

    yield begin
    for dog in started:
        assert dog.stop(PATIENCE)


def block(loop, call):
    loop.call(call.waits_for_the_printer)
    assert call.begun.wait(PATIENCE)


def test_blocked_loop_is_reported_with_its_thread_and_its_stack(loop, held, reports, watch):
    block(loop, held)
    watch(loop)
    (thread_name, stack, _), _ = reports.until("blocked")
    assert thread_name == "test-loop"
    assert "in waits_for_the_printer" in stack


def test_loop_that_blocks_while_it_is_watched_is_reported(loop, held, reports, watch):
    watch(loop)
    block(loop, held)
    stacks = [reports.until("blocked")[0][1]]
    while "in waits_for_the_printer" not in stacks[-1]:  # a slow machine may have been told of before
        stacks.append(reports.until("blocked")[0][1])
    assert "in waits_for_the_printer" in stacks[-1]


def test_report_has_the_seconds_for_which_the_loop_is_blocked(loop, held, reports, watch):
    block(loop, held)
    watch(loop)
    (_, _, seconds), _ = reports.until("blocked")
    assert seconds >= HUNG


def test_blocked_loop_is_reported_once_however_long_it_is(loop, held, reports, watch):
    block(loop, held)
    watch(loop)
    reports.until("blocked")
    later = Reports()
    watch(loop, on_blocked=later.blocked, on_free=later.free)
    later.until("blocked")  # as long again
    held.let_go.set()
    assert reports.until("free") == (["test-loop"], ["free"])


def test_blockages_are_reported_with_their_ends(loop, reports, watch):
    watch(loop)
    kinds = []
    for _ in range(2):
        call = Held()
        block(loop, call)
        kinds += reports.until("blocked")[1]
        call.let_go.set()
        kinds += reports.until("free")[1]
    assert len(kinds) >= 4
    assert kinds == ["blocked", "free"] * (len(kinds) // 2)


def test_answering_loop_is_asked_repeatedly_and_never_reported(reports, watch):
    loop = LoopThatAnswersAtOnce()
    watch(loop)
    assert loop.asked_often.wait(PATIENCE)
    assert reports.empty()


def test_ended_loop_is_reported_without_a_stack(reports, watch):
    loop = EventLoop("ended-loop")
    loop.start()
    assert loop.stop(PATIENCE)
    watch(loop)
    (thread_name, stack, _), _ = reports.until("blocked")
    assert (thread_name, stack) == ("ended-loop", "")


def test_a_report_that_fails_does_not_end_the_watch(loop, held, reports, watch, caplog):
    def fail(*values):
        reports.blocked(*values)
        raise LookupError

    block(loop, held)
    dog = watch(loop, on_blocked=fail)
    reports.until("blocked")
    held.let_go.set()
    reports.until("free")
    assert dog.stop(PATIENCE)
    assert "a report of the watchdog failed" in caplog.messages


def test_report_of_a_free_loop_may_fail_too(loop, held, reports, watch, caplog):
    def fail(_thread):
        reports.free(_thread)
        raise LookupError

    block(loop, held)
    dog = watch(loop, on_free=fail)
    reports.until("blocked")
    held.let_go.set()
    reports.until("free")
    again = Held()
    block(loop, again)
    reports.until("blocked")
    again.let_go.set()
    assert dog.stop(PATIENCE)
    assert "a report of the watchdog failed" in caplog.messages


def test_a_watchdog_can_be_stopped_while_the_loop_is_blocked(loop, held, reports, watch):
    block(loop, held)
    dog = watch(loop)
    reports.until("blocked")
    assert dog.stop(PATIENCE)
    assert reports.empty()


def test_watchdog_can_be_stopped_before_its_first_report(loop, held, reports, watch):
    block(loop, held)
    dog = watch(loop, hung_seconds=3600)
    assert dog.stop(PATIENCE)
    assert reports.empty()


def test_a_watchdog_whose_report_does_not_return_is_reported_by_stop(loop, held, watch):
    reporting, let_go = threading.Event(), threading.Event()

    def report(*_):
        reporting.set()
        assert let_go.wait(HELD)

    block(loop, held)
    dog = watch(loop, on_blocked=report)
    assert reporting.wait(PATIENCE)
    assert not dog.stop(0.01)
    let_go.set()
    assert dog.stop(PATIENCE)


def test_a_watchdog_that_was_never_started_can_be_stopped(loop, reports):
    dog = Watchdog("idle-watchdog", loop, HUNG, on_blocked=reports.blocked, on_free=reports.free)
    assert dog.stop(PATIENCE)


def test_a_watchdog_can_be_stopped_twice(loop, watch):
    dog = watch(loop)
    assert dog.stop(PATIENCE)
    assert dog.stop(PATIENCE)


def test_a_watchdogs_thread_is_one_of_ours_and_a_daemon(loop, held, watch):
    seen = queue.SimpleQueue()

    def report(*_):
        try:
            refuse_own_thread("stop")
        except WouldDeadlockError as error:
            seen.put((threading.current_thread(), error))

    block(loop, held)
    watch(loop, on_blocked=report)
    thread, _ = seen.get(timeout=PATIENCE)
    assert (thread.name, thread.daemon) == ("test-watchdog", True)


def test_a_stack_ends_with_what_the_thread_does_now():
    lines = stack_of(threading.current_thread()).splitlines()
    assert any("in test_a_stack_ends_with_what_the_thread_does_now" in line for line in lines[-6:])


def test_a_thread_that_does_not_run_has_no_stack():
    thread = threading.Thread(target=lambda: None)
    before = stack_of(thread)
    thread.start()
    thread.join(PATIENCE)
    assert (before, stack_of(thread)) == ("", "")


def test_an_ended_thread_is_not_taken_for_one_that_reuses_its_number():
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join(PATIENCE)
    thread._ident = threading.get_ident()  # systems give numbers again
    assert stack_of(thread) == ""


def test_a_deep_stack_is_cut_from_the_outside():
    def inner():
        return stack_of(threading.current_thread())

    def outer(depth):
        return other(depth - 1) if depth else inner()

    def other(depth):
        return outer(depth - 1) if depth else inner()

    stack = outer(400)
    assert len(stack) <= 8000
    assert stack.count("in outer") + stack.count("in other") <= 40
    assert "in inner" in stack


def test_the_stack_of_a_lane_shows_the_call_that_does_not_return(held):
    lanes = Lanes()
    call = lanes.submit("printer", held.waits_for_the_printer)
    assert held.begun.wait(PATIENCE)
    assert "in waits_for_the_printer" in lanes.stack("printer")
    held.let_go.set()
    call.result(PATIENCE)
    assert lanes.close(PATIENCE) == ()


def test_a_lane_that_was_never_used_has_no_stack(lanes):
    assert lanes.stack("printer") == ""


class Busy:
    """A thread that says for how long it has been busy."""

    def __init__(self, thread=None):
        self.thread = thread
        self.busy = 0.0


def test_busy_thread_is_reported_once_and_again_when_it_continues(held, reports, watch):
    thread = threading.Thread(target=held.waits_for_the_printer, name="test-busy")
    thread.start()
    assert held.begun.wait(PATIENCE)
    busy = Busy(thread)
    busy.busy = 5.0
    loop = LoopThatAnswersAtOnce()
    watch(loop, watched=(Busy(threading.main_thread()), busy))
    (thread_name, stack, seconds), _ = reports.until("blocked")
    assert (thread_name, seconds) == ("test-busy", 5.0)
    assert "in waits_for_the_printer" in stack
    assert loop.asked_often.wait(PATIENCE)
    busy.busy = 0.0
    assert reports.until("free") == (["test-busy"], ["free"])
    held.let_go.set()
    thread.join(PATIENCE)


def test_watched_part_without_a_thread_is_never_reported(reports, watch):
    nothing = Busy()
    nothing.busy = 5.0
    loop = LoopThatAnswersAtOnce()
    watch(loop, watched=(nothing,))
    assert loop.asked_often.wait(PATIENCE)
    assert reports.empty()
