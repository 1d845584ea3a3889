"""Jobs: one word each, and whether anything still works under a lease."""

from __future__ import annotations

import asyncio
import concurrent.futures
import queue
import threading

import pytest

from callboard.actors.runtime import Jobs, Leases, _jobs
from callboard.actors.runtime._lanes import Lane, calls_of_job
from callboard.messages import Captured
from interleaving import in_every_order
from support import HELD, PATIENCE

WORD = Captured(observation=None)


class Word:
    """Takes the jobs' messages."""

    def __init__(self):
        self._said = queue.SimpleQueue()

    def __call__(self, said):
        self._said.put(said)

    def get(self):
        return self._said.get(timeout=PATIENCE)

    @property
    def silent(self):
        return self._said.empty()


class Idle:
    """Notes the calls of `when_idle`, in order."""

    def __init__(self, jobs, token):
        self.told = []
        self.is_idle, self.is_stuck = threading.Event(), threading.Event()
        jobs.when_idle(token, self._idle, self._stuck)

    def _idle(self):
        self.told.append("idle")
        self.is_idle.set()

    def _stuck(self):
        self.told.append("stuck")
        self.is_stuck.set()


class Waiting:
    """A job that waits for ever once it has begun; it may refuse to be cancelled."""

    def __init__(self, says=None):
        self.begun = threading.Event()
        self._says = says

    async def __call__(self):
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if self._says is None:
                raise
        return self._says


class Blocking:
    """A call that has begun when `begun` is set, and returns when `let_go` is."""

    def __init__(self):
        self.begun, self.let_go = threading.Event(), threading.Event()

    def __call__(self):
        self.begun.set()
        assert self.let_go.wait(HELD)


@pytest.fixture
def lease():
    return Leases().grant("app/memo/one")


@pytest.fixture
def word():
    return Word()


@pytest.fixture
def block(jobs, lanes, lease, word):
    """Start a job with a call that blocks a lane; all of them return at the end."""
    calls = []

    def start(lane):
        call = Blocking()
        calls.append(call)
        jobs.start(lease, lambda: lanes.run(lane, call), word, word)
        assert call.begun.wait(PATIENCE)
        return call

    yield start
    for call in calls:
        call.let_go.set()


def settle(loop):
    """Let the loop do all that is due."""
    for _ in range(5):
        loop.submit(asyncio.sleep(0)).result(PATIENCE)


async def say():
    return WORD


def test_job_delivers_its_message_on_the_loops_thread(loop, jobs, lease):
    said = queue.SimpleQueue()
    jobs.start(lease, say, lambda message: said.put((message, threading.current_thread())), word)
    assert said.get(timeout=PATIENCE) == (WORD, loop.thread)


@pytest.mark.parametrize("how", [ValueError, SystemExit, KeyboardInterrupt, GeneratorExit])
def test_error_of_a_job_is_its_result_and_the_loop_lives_on(jobs, lease, word, how):
    async def fail():
        raise how

    jobs.start(lease, fail, word, word)
    assert isinstance(word.get(), how)
    jobs.start(lease, say, word, word)
    assert word.get() == WORD


def test_error_of_a_job_function_before_it_waits_is_its_result(jobs, lease, word):
    def fail():
        raise ValueError

    jobs.start(lease, fail, word, word)
    assert isinstance(word.get(), ValueError)


def test_job_that_raises_cancelled_without_a_cancel_ends_in_an_error(jobs, lease, word):
    async def fail():
        raise asyncio.CancelledError

    jobs.start(lease, fail, word, word)
    assert isinstance(word.get(), RuntimeError)


def test_cancelled_job_delivers_no_result(jobs, lease, word):
    work = Waiting()
    jobs.start(lease, work, word, word)
    assert work.begun.wait(PATIENCE)
    jobs.cancel(lease.token)
    assert Idle(jobs, lease.token).is_idle.wait(PATIENCE)
    assert word.silent


def test_a_job_that_outlives_its_cancel_still_delivers_its_result(jobs, lease, word):
    work = Waiting(WORD)
    jobs.start(lease, work, word, word)
    assert work.begun.wait(PATIENCE)
    jobs.cancel(lease.token)
    assert Idle(jobs, lease.token).is_idle.wait(PATIENCE)
    assert word.get() is WORD


def test_a_job_that_is_cancelled_before_it_begins_never_runs(loop, jobs, lease, word):
    gate = threading.Event()
    loop.call(lambda: gate.wait(PATIENCE))
    work = Waiting()
    jobs.start(lease, work, word, word)
    jobs.cancel(lease.token)
    idle = Idle(jobs, lease.token)
    gate.set()
    assert idle.is_idle.wait(PATIENCE)
    assert not work.begun.is_set()
    assert word.silent


def test_a_job_that_is_cancelled_just_as_its_task_is_made_ends(loop, jobs, lease, word):
    def cancel_then_make(running, coroutine, **options):
        running.set_task_factory(None)
        jobs.cancel(lease.token)
        return asyncio.Task(coroutine, loop=running, **options)

    loop.call(lambda: asyncio.get_running_loop().set_task_factory(cancel_then_make))
    jobs.start(lease, Waiting(), word, word)
    settle(loop)
    assert Idle(jobs, lease.token).is_idle.wait(PATIENCE)
    assert word.silent


def test_a_cancel_reaches_only_the_jobs_of_its_lease(jobs, word):
    leases = Leases()
    one, other = leases.grant("app/memo/one"), leases.grant("app/memo/two")
    let_go = asyncio.Event()
    begun = threading.Event()

    async def wait():
        begun.set()
        await let_go.wait()
        return WORD

    jobs.start(other, wait, word, word)
    assert begun.wait(PATIENCE)
    jobs.cancel(one.token)
    jobs._loop.call(let_go.set)
    assert word.get() == WORD


def test_a_lease_without_jobs_is_idle_at_once(jobs):
    assert Idle(jobs, 99).told == ["idle"]


def test_a_lease_is_idle_only_when_all_of_its_jobs_have_ended(loop, jobs, lease, word):
    works = Waiting(), Waiting()
    for work in works:
        jobs.start(lease, work, word, word)
        assert work.begun.wait(PATIENCE)
    first = asyncio.Event()

    async def end():
        await first.wait()
        return WORD

    jobs.start(lease, end, word, word)
    idle = Idle(jobs, lease.token)
    loop.call(first.set)
    assert word.get() == WORD
    settle(loop)
    assert idle.told == []
    jobs.cancel(lease.token)
    assert idle.is_idle.wait(PATIENCE)
    assert idle.told == ["idle"]


def test_a_lease_is_stuck_until_a_call_that_outlives_its_job_returns(jobs, lease, word, block):
    call = block("one")
    jobs.cancel(lease.token)
    idle = Idle(jobs, lease.token)
    assert idle.is_stuck.wait(PATIENCE)
    assert not idle.is_idle.is_set()
    call.let_go.set()
    assert idle.is_idle.wait(PATIENCE)
    assert idle.told == ["stuck", "idle"]
    assert word.silent


def test_waiter_learns_that_the_job_is_already_stuck(loop, jobs, lease, block):
    call = block("one")
    jobs.cancel(lease.token)
    settle(loop)
    idle = Idle(jobs, lease.token)
    assert idle.told == ["stuck"]
    call.let_go.set()
    assert idle.is_idle.wait(PATIENCE)


def test_waiter_learns_of_a_job_that_gets_stuck_at_that_moment(jobs, lease, word):
    asked = []

    class AskedMeanwhile(concurrent.futures.Future):
        """A call; the waiter for the lease asks just when the job sees that it has not returned."""

        def add_done_callback(self, fn):
            if not asked:
                asked.append(Idle(jobs, lease.token))
            super().add_done_callback(fn)

    call = AskedMeanwhile()
    call.set_running_or_notify_cancel()

    async def leave_a_call_behind():
        calls_of_job.get()[call] = Lane("one", threading.Lock(), lambda _lane: None)
        return WORD

    jobs.start(lease, leave_a_call_behind, word, word)
    assert word.get() == WORD
    jobs._loop.submit(asyncio.sleep(0)).result(PATIENCE)
    call.set_result(None)
    assert asked[0].is_idle.wait(PATIENCE)
    assert asked[0].told == ["stuck", "idle"]


def test_two_blocking_calls_of_one_lease_make_it_stuck_once(loop, jobs, lease, block):
    calls = block("one"), block("two")
    idle = Idle(jobs, lease.token)
    jobs.cancel(lease.token)
    settle(loop)
    for call in calls:
        call.let_go.set()
    assert idle.is_idle.wait(PATIENCE)
    assert idle.told == ["stuck", "idle"]


def test_a_job_that_abandons_its_call_reports_at_once_and_keeps_the_lease(jobs, lanes, lease, word):
    call = Blocking()

    async def give_up():
        waiting = asyncio.create_task(lanes.run("one", call))
        await asyncio.to_thread(call.begun.wait, PATIENCE)
        waiting.cancel()
        await asyncio.wait([waiting])
        return WORD

    jobs.start(lease, give_up, word, word)
    assert word.get() == WORD
    idle = Idle(jobs, lease.token)
    assert idle.is_stuck.wait(PATIENCE)
    call.let_go.set()
    assert idle.is_idle.wait(PATIENCE)


@pytest.mark.parametrize("error", [LookupError, SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError])
def test_a_result_that_can_not_be_delivered_is_reported(jobs, lease, word, error):
    def deliver(_said):
        raise error

    jobs.start(lease, say, deliver, word)
    assert isinstance(word.get(), error)
    assert Idle(jobs, lease.token).is_idle.wait(PATIENCE)


def test_work_without_a_message_is_an_error(jobs, lease, word):
    async def work():
        return None

    jobs.start(lease, work, word, word)
    assert str(word.get()) == "the work of a state returned no message"


def test_a_coroutine_that_ended_without_a_report_is_reaped(loop, jobs, lease, word, monkeypatch):
    monkeypatch.setattr(Jobs, "_coroutine_ended", lambda *_: None)
    jobs.start(lease, say, word, word)
    assert word.get() == WORD
    settle(loop)
    assert jobs.running
    jobs.reap()
    assert not jobs.running


def suspended(jobs):
    """Wait until the coroutines that run have come to where they wait."""
    turn = threading.Event()
    jobs._loop.call(turn.set)
    assert turn.wait(PATIENCE)


def test_of_a_job_the_place_where_it_waits_can_be_seen(jobs, lease, word):
    work = Waiting()
    jobs.start(lease, work, word, word)
    assert work.begun.wait(PATIENCE)
    suspended(jobs)
    assert "await asyncio.Event().wait()" in jobs.stack(lease.token)
    jobs.cancel(lease.token)
    assert Idle(jobs, lease.token).is_idle.wait(PATIENCE)
    assert jobs.stack(lease.token) == ""


def test_a_job_waiting_for_a_blocking_call_shows_the_stack_of_the_call(jobs, lease, block):
    block("one")
    suspended(jobs)
    assert "in __call__" in jobs.stack(lease.token)


def test_draining_waits_until_the_last_job_has_ended(jobs, lease, word):
    assert jobs.drain(0)
    jobs.start(lease, Waiting(), word, word)
    assert not jobs.drain(0)
    jobs.cancel(lease.token)
    assert jobs.drain(PATIENCE)


def test_jobs_of_many_threads_all_end(jobs, word):
    leases = Leases()
    tokens = queue.SimpleQueue()

    def start_some():
        for _ in range(50):
            lease = leases.grant("app/memo/one")
            jobs.start(lease, say, word, word)
            jobs.cancel(lease.token)
            tokens.put(lease.token)

    threads = [threading.Thread(target=start_some) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    for _ in range(200):
        assert Idle(jobs, tokens.get(timeout=PATIENCE)).is_idle.wait(PATIENCE)


# At once


class Ending:
    """A job that ends when `end` is called; calls that it began may be left behind."""

    def __init__(self, jobs, lease, *calls):
        self._jobs, self._calls = jobs, calls
        self._go, self._begun = asyncio.Event(), threading.Event()
        jobs.start(lease, self._work, lambda _word: None, lambda _word: None)
        assert self._begun.wait(PATIENCE)

    async def _work(self):
        calls_of_job.get().update(dict.fromkeys(self._calls, Lane("one", threading.Lock(), lambda _lane: None)))
        self._begun.set()
        await self._go.wait()
        return WORD

    def end(self):
        self._jobs._loop.call(self._go.set)
        settle(self._jobs._loop)


def running_call():
    call = concurrent.futures.Future()
    call.set_running_or_notify_cancel()
    return call


def test_a_job_that_starts_just_as_the_last_one_ends_keeps_the_lease(loop, clock, lease):
    def scenario():
        jobs, new = Jobs(loop, clock), Waiting()
        last = Ending(jobs, lease)
        yield (lambda: jobs.start(lease, new, lambda _word: None, lambda _word: None)), last.end
        assert not jobs.drain(0)
        jobs.cancel(lease.token)
        assert jobs.drain(PATIENCE)

    in_every_order(scenario)


def test_waiter_learns_once_of_a_last_job_that_ends_at_that_moment(loop, clock, lease):
    def scenario():
        jobs, idle = Jobs(loop, clock), []
        last = Ending(jobs, lease)
        yield (lambda: idle.append(Idle(jobs, lease.token))), last.end
        assert idle[0].is_idle.wait(PATIENCE)
        assert idle[0].told == ["idle"]

    in_every_order(scenario)


def test_one_who_asks_as_a_call_is_left_behind_hears_at_once(loop, clock, lease, monkeypatch):
    monkeypatch.setattr(_jobs, "GRACE_SECONDS", HELD)

    def scenario():
        jobs, idle, call = Jobs(loop, clock), [], running_call()
        job = Ending(jobs, lease, call)
        yield (lambda: idle.append(Idle(jobs, lease.token))), job.end
        assert idle[0].is_stuck.wait(PATIENCE)
        call.set_result(None)
        assert idle[0].is_idle.wait(PATIENCE)
        assert idle[0].told == ["stuck", "idle"]

    in_every_order(scenario)


def test_calls_that_return_at_once_end_their_job_once(loop, clock, lease, caplog):
    def scenario():
        jobs, calls = Jobs(loop, clock), (running_call(), running_call())
        Ending(jobs, lease, *calls).end()
        idle = Idle(jobs, lease.token)
        yield (lambda: calls[0].set_result(None)), (lambda: calls[1].set_result(None))
        assert idle.is_idle.wait(PATIENCE)
        assert caplog.records == []

    in_every_order(scenario)


def test_a_cancel_just_as_another_job_starts_fails_in_no_order(loop, clock, lease):
    def scenario():
        jobs, works = Jobs(loop, clock), (Waiting(), Waiting())
        jobs.start(lease, works[0], lambda _word: None, lambda _word: None)
        yield (
            (lambda: jobs.cancel(lease.token)),
            (lambda: jobs.start(lease, works[1], lambda _word: None, lambda _word: None)),
        )
        jobs.cancel(lease.token)
        assert jobs.drain(PATIENCE)

    in_every_order(scenario)
