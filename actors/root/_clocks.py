"""Time limits of work, and deadlines in wall time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from callboard.messages import Cancel, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from callboard.actors.root._tasks import TaskBook
    from callboard.actors.runtime import Alarm, Clock
    from callboard.messages import Task


@dataclass
class _ClockWatch:
    remaining_seconds: float
    cancel: Cancel
    since: float
    alarm: Alarm | None
    stop_reasons: set[str] = field(default_factory=set)


class Stopwatches:
    """Deadlines in seconds of work, not of wall time.

    A watch has a key: the id of a task or of a run. Several reasons may stop it; it resumes when the last one is gone.
    Runs on the root's thread.
    """

    def __init__(self, clock: Clock, post: Callable[[Cancel], None]) -> None:
        self._clock = clock
        self._post = post
        self._watches: dict[str, _ClockWatch] = {}

    def has(self, key: str) -> bool:
        """Return whether a key has a watch."""
        return key in self._watches

    def start(self, key: str, seconds: float | None, task_id: str, run_id: str = "*", *, spent: float = 0.0) -> None:
        """Start a watch that cancels a task, or one of its runs.

        Args:
            key: The watch's key.
            seconds: Seconds of work until the cancel; None sets no deadline.
            task_id: The task.
            run_id: The run, or ``*`` for the whole task.
            spent: Seconds of work in earlier processes, which count too.
        """
        if seconds is None:
            return
        reason = f"the {'task' if run_id == '*' else 'subtask'} took longer than {seconds:g} s"
        timeout_cancel = Cancel(task_id=task_id, run_id=run_id, outcome=Outcome.TIMED_OUT, reason=reason)
        remaining_seconds = max(0.0, seconds - spent)
        watch = _ClockWatch(remaining_seconds, timeout_cancel, self._clock.elapsed(), None)
        self._watches[key] = watch
        watch.alarm = self._clock.after(remaining_seconds, lambda: self._post(timeout_cancel))

    def stop(self, key: str, reason: str) -> None:
        """Stop a watch, for a reason."""
        watch = self._watches.get(key)
        if watch is None:
            return
        if not watch.stop_reasons and watch.alarm is not None:
            watch.alarm.cancel()
            watch.remaining_seconds -= self._clock.elapsed() - watch.since
        watch.stop_reasons.add(reason)

    def go_on(self, key: str, reason: str) -> None:
        """Remove a reason; without any the watch resumes."""
        watch = self._watches.get(key)
        if watch is None or reason not in watch.stop_reasons:
            return
        watch.stop_reasons.discard(reason)
        if not watch.stop_reasons:
            watch.since = self._clock.elapsed()
            watch.alarm = self._clock.after(max(0.0, watch.remaining_seconds), lambda: self._post(watch.cancel))

    def drop(self, key: str) -> None:
        """Forget a watch."""
        watch = self._watches.pop(key, None)
        if watch is not None and watch.alarm is not None:
            watch.alarm.cancel()


QUEUE = "queue"
"""The reason of a run that waits for its target."""


class RunWaits:
    """The waits of a task's runs, for people or for targets.

    The task's watch stops only while all of its active runs wait: beside a run that waits others may work. Runs on the
    root's thread.
    """

    def __init__(self, clocks: Stopwatches, tasks: TaskBook) -> None:
        self._clocks = clocks
        self._tasks = tasks
        self._reasons: dict[str, dict[str, set[str]]] = {}
        """The reasons, by task and by run."""

    def stop(self, task_id: str, run_id: str, reason: str) -> None:
        """Note that a run waits."""
        self._reasons.setdefault(task_id, {}).setdefault(run_id, set()).add(reason)
        self.update(task_id)

    def go_on(self, task_id: str, run_id: str, reason: str) -> None:
        """Note that a run no longer waits for a reason."""
        reasons = self._reasons.get(task_id, {})
        if run_id in reasons:
            reasons[run_id].discard(reason)
            if not reasons[run_id]:
                del reasons[run_id]
        self.update(task_id)

    def update(self, task_id: str) -> None:
        """Stop or resume the task's watch, after a change of its runs."""
        record = self._tasks.get(task_id)
        active_runs = () if record is None else record.active_runs
        waiting_runs = self._reasons.get(task_id, {})
        if active_runs and all(run_id in waiting_runs for run_id in active_runs):
            self._clocks.stop(task_id, "its runs wait")
        else:
            self._clocks.go_on(task_id, "its runs wait")

    def drop(self, task_id: str) -> None:
        """Forget a task."""
        self._reasons.pop(task_id, None)


@dataclass(frozen=True)
class DeadlineDue:
    """The deadline of a task may have passed."""

    task_id: str


LOOK_SECONDS = 60.0
"""The most seconds between two looks at the wall clock, which may be set, and passes while the machine sleeps."""


class Deadlines:
    """Deadlines of tasks in wall time.

    They pass also while a task waits. Runs on the root's thread.
    """

    def __init__(self, clock: Clock, post: Callable[[DeadlineDue], None]) -> None:
        self._clock = clock
        self._post = post
        self._alarms: dict[str, Alarm] = {}

    def passed(self, deadline: datetime | None) -> bool:
        """Return whether a deadline has passed; False without one."""
        return deadline is not None and deadline.timestamp() <= self._clock.now()

    def watch(self, task: Task) -> Cancel | None:
        """Wait for a task's deadline; once it has passed, return the cancel."""
        if task.deadline is None:
            return None
        if self.passed(task.deadline):
            reason = f"its deadline {task.deadline.isoformat()} has passed"
            return Cancel(task_id=task.id, outcome=Outcome.TIMED_OUT, reason=reason)
        seconds = min(LOOK_SECONDS, task.deadline.timestamp() - self._clock.now())
        self._alarms[task.id] = self._clock.after(seconds, lambda: self._post(DeadlineDue(task.id)))
        return None

    def drop(self, task_id: str) -> None:
        """Forget the deadline of a task."""
        alarm = self._alarms.pop(task_id, None)
        if alarm is not None:
            alarm.cancel()
