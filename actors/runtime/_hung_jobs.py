"""Find hung jobs: those that run long past their deadline."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from callboard.actors.runtime._clock import Clock
    from callboard.actors.runtime._jobs import Jobs
    from callboard.messages import Seconds


class HungJobs:
    """A search for jobs that ignore their deadline and their cancel.

    A step has a time limit of its own, which ends it on the event loop. A job that is still there some time later
    blocks a thread, or swallows its cancellation: nothing in it can report that. So the watchdog looks for it, on a
    thread that no job can block.
    """

    def __init__(self, jobs: Jobs, clock: Clock) -> None:
        self._jobs = jobs
        self._clock = clock

    def find(self, seconds: Seconds) -> list[int]:
        """Return the tokens of leases with a job older than `seconds`.

        A task's own limit on its steps may make that longer, or shorter. Each job is found once. The time of a job that
        waits for a person starts again after the answer. Only one thread may call this.
        """
        running, now = self._jobs.running, self._clock.elapsed()
        for job in running:
            if job.lease.asking:
                job.started = now
        late_jobs = [job for job in running if not job.hung and now - job.started > seconds + job.lease.extra_seconds]
        for job in late_jobs:
            job.hung = True
        return [job.token for job in late_jobs]
