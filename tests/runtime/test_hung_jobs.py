"""Hung jobs: each is found once, and none while a person is asked."""

from __future__ import annotations

import asyncio

import pytest

from callboard.actors.runtime import HungJobs, Jobs, Leases
from interleaving import in_every_order
from support import PATIENCE


@pytest.fixture
def lease():
    return Leases().grant("app/memo/one")


@pytest.fixture
def hung(jobs, clock, lease):
    """Start a job that never ends, and look for those that hang; all are ended afterwards."""
    jobs.start(lease, wait, drop, drop)
    yield HungJobs(jobs, clock)
    jobs.cancel(lease.token)
    assert jobs.drain(PATIENCE)


async def wait():
    await asyncio.Event().wait()


def drop(_word):
    """Take a job's message."""


def test_a_job_that_runs_for_too_long_is_found_once(hung, lease, clock):
    clock.advance(10)
    assert hung.find(10) == []
    clock.advance(1)
    assert hung.find(10) == [lease.token]
    assert hung.find(10) == []


def test_a_job_that_has_ended_does_not_hang(jobs, hung, lease, clock):
    clock.advance(11)
    jobs.cancel(lease.token)
    assert jobs.drain(PATIENCE)
    assert hung.find(10) == []


def test_a_job_that_waits_for_a_person_hangs_only_later(hung, lease, clock):
    lease.asking = True
    clock.advance(100)
    assert hung.find(10) == []
    lease.asking = False
    clock.advance(10)
    assert hung.find(10) == []
    clock.advance(1)
    assert hung.find(10) == [lease.token]


def test_jobs_may_start_while_the_late_ones_are_looked_for(loop, clock):
    def scenario():
        jobs, leases = Jobs(loop, clock), Leases()
        late = leases.grant("app/memo/one")
        jobs.start(late, wait, drop, drop)
        clock.advance(11)
        hung, found = HungJobs(jobs, clock), []
        other = leases.grant("app/memo/two")
        yield (lambda: found.extend(hung.find(10))), (lambda: jobs.start(other, wait, drop, drop))
        assert found == [late.token]
        for lease in (late, other):
            jobs.cancel(lease.token)
        assert jobs.drain(PATIENCE)

    in_every_order(scenario)
