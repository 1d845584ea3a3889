"""Restoring: the switchboard takes up what another process began, as if it had begun it itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.actors.root._recovery import used_by
from callboard.messages import EventName, Pause, Recovered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from callboard.actors.processing import Services
    from callboard.actors.root._handover import HandOver
    from callboard.actors.root._parts import Parts
    from callboard.actors.root._recovery import Past
    from callboard.actors.root._stops import Stops
    from callboard.messages import Assign, Task


def restore(past: Past, parts: Parts, services: Services) -> None:
    """Open a task's books again.

    What agents had said last, and nobody acted on, is left to the caller: it has the lease under which it was said.
    """
    record, task_id, budgets = past.record, past.record.task.id, services.budgets
    parts.tasks.restore(record)
    parts.outbox.keep(task_id, "", Recovered(task_id=task_id))
    parts.recorder.emit(EventName.TASK_RECOVERED, task_id=task_id, runs=len(record.runs))
    if not record.paused and record.stopping is None and _lost_secrets(record.task, services):
        record.paused = True  # until they are given again, or somebody says that it goes without
        parts.outbox.keep(task_id, "", Pause(task_id=task_id))
        parts.recorder.emit(EventName.TASK_PAUSED, task_id=task_id, reason="its secrets were lost with their process")
    _start_clocks(past, parts)
    for run_id, used in used_by(past):
        budgets.run(task_id, run_id).settle(**used)
    for approved in past.approved:
        parts.people.remember(approved)
    for word in past.said.values():
        record.runs[word.run_id] = record.runs[word.run_id].model_copy(update={"token": word.token})


def place(pasts: Sequence[Past], parts: Parts, hands: HandOver, stops: Stops) -> None:
    """Place the work of restored tasks: first what agents had begun, of all tasks, then what was queued."""
    for begun in (True, False):
        for past in pasts:
            record = past.record
            waiting = [run for run in record.runs.values() if not run.token and (run.run_id in past.begun) is begun]
            for run in waiting:
                if record.stopping is not None and not begun:
                    stops.stop_queued(record, run, record.stopping)
                else:
                    hands.place(record, _whole(run, past), known=True)
    for ask in (ask for past in pasts for ask in past.asks.values()):
        parts.people.restore(ask)


def _whole(assign: Assign, past: Past) -> Assign:
    """Put back what the journal had left out of an assignment."""
    host = past.host if assign.host is not None else None
    if host is not None:
        return assign.model_copy(update={"subtasks": host.subtasks, "made": host.made})
    return assign if assign.subtasks else assign.model_copy(update={"subtasks": tuple(past.record.subtasks)})


def _lost_secrets(task: Task, services: Services) -> bool:
    """Whether a task had secrets of its own that nobody knows any more: what shows them could not be hidden."""
    known = services.secrets.names(task.id)
    return any(name not in known for name in task.secrets)


def _start_clocks(past: Past, parts: Parts) -> None:
    record, task_id = past.record, past.record.task.id
    record.worked = past.worked
    parts.clocks.start(task_id, parts.limits.task_seconds, task_id, spent=past.worked.get(task_id, 0.0))
    if record.paused:
        parts.clocks.stop(task_id, "pause")
