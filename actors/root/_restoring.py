"""Restoring: the switchboard takes up what another process began, as if it had begun it itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.actors.root._recovery import book_past
from callboard.messages import AgentKind, EventName, Pause, Recovered, Resume, agent_kind

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from callboard.actors.processing import Services
    from callboard.actors.root._handover import HandOver
    from callboard.actors.root._parts import Parts
    from callboard.actors.root._recovery import Past
    from callboard.actors.root._stops import Stops
    from callboard.actors.root._tasks import TaskRecord
    from callboard.messages import Assign

LOST_SECRETS = "its secrets were lost with their process"


def restore(past: Past, parts: Parts, services: Services) -> None:
    """Open a task's books again.

    What agents had said last, and nobody acted on, is left to the caller: it has the lease under which it was said.
    """
    record, task_id = past.record, past.record.task.id
    parts.tasks.restore(record)
    parts.outbox.keep(task_id, "", Recovered(task_id=task_id))
    parts.recorder.emit(
        EventName.TASK_RECOVERED, task_id=task_id, runs=len(record.runs), labels=dict(record.task.labels)
    )
    if record.stopping is None and (record.lacks or not record.paused):
        _pause(record, lacks(record, services, past.said), parts)
    _start_clocks(past, parts)
    book_past(past, services.budgets)
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
                if agent_kind(run.address) not in parts.agents and record.stopping is None:
                    continue  # the task is paused, and can't be resumed here
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


def _pause(record: TaskRecord, lacking: str, parts: Parts) -> None:
    """Pause a task until a process has what it lacks, or somebody says that it goes without; or let it go on."""
    task_id, before = record.task.id, record.paused
    record.lacks, record.paused = lacking, bool(lacking)
    if lacking:
        if not before:
            parts.outbox.keep(task_id, "", Pause(task_id=task_id, lacks=lacking))
        parts.recorder.emit(EventName.TASK_PAUSED, task_id=task_id, reason=lacking)
    elif before:
        parts.outbox.keep(task_id, "", Resume(task_id=task_id))
        parts.recorder.emit(EventName.TASK_RESUMED, task_id=task_id)


def lacks(record: TaskRecord, services: Services, said: Collection[str] = ()) -> str:
    """Say what is not there that a task of another process can't go on without; empty if all is.

    Its own secrets: what shows them could not be hidden. The models of its agents, and the servers of their targets: it
    would only fail.

    Args:
        record: The task.
        services: What there is.
        said: Runs whose agents have ended; they need nothing more, unless another round follows.
    """
    known = services.secrets.names(record.task.id)
    found = [LOST_SECRETS] if any(name not in known for name in record.task.secrets) else []
    servers = {server.name for server in services.toolbox.servers}
    for run in record.runs.values():
        if run.run_id in said and not record.has_next_round:
            continue
        kind = agent_kind(run.address)
        if kind not in services.agents:
            found.append(f"there is no kind of agent {kind!r}; there are: {', '.join(services.agents)}")
        elif kind not in services.models and not (kind == AgentKind.HOST and _follows(record)):
            found.append(f"no model is set for {kind} agents")
        if run.target is not None and run.target.server not in servers:
            found.append(f"no server is called {run.target.server!r}")
    return "; ".join(dict.fromkeys(found))


def _follows(record: TaskRecord) -> bool:
    """Whether a HostAgent's model is not asked any more: all that is left of the plan names its targets."""
    left = record.task.plan[max(0, record.round - 1) :]
    return bool(left) and all(step.target is not None for step in left)


def _start_clocks(past: Past, parts: Parts) -> None:
    record, task_id = past.record, past.record.task.id
    record.worked = past.worked
    parts.clocks.start(task_id, parts.limits.task_seconds, task_id, spent=past.worked.get(task_id, 0.0))
    if record.paused:
        parts.clocks.stop(task_id, "pause")
