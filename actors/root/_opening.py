"""Opening the journal: earlier tasks are read before anything starts."""

from __future__ import annotations

import contextlib
import time
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from callboard.actors.root._handover import received_at
from callboard.actors.root._recovery import RecoveredTask, recover_task, used_by
from callboard.actors.runtime import day_began
from callboard.actors.states import fold
from callboard.config import in_force
from callboard.journal import FileJournal, Journal, JournalFile, MemoryJournal, Row
from callboard.messages import IllegalMoveError, InForce

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from callboard.actors.runtime import Clock
    from callboard.actors.states import AgentStateManager, Run
    from callboard.config import Limits, Settings
    from callboard.messages import Event, Fact, Seconds, Timestamp


@dataclass(frozen=True)
class Opened:
    """An open journal, and its state at the start."""

    journal: Journal
    recovered_tasks: tuple[RecoveredTask, ...] = ()
    """The tasks that are not over."""
    token: int = 0
    """The highest fencing token."""
    seq: int = 0
    """The number of the last event."""
    queue: tuple[deque[Fact], Callable[[], None]] | None = None
    """Takes events, if the journal keeps them: the arguments of `EventStream.add_queue`."""
    events: Callable[[int, int], list[Event]] | None = None
    """Reads older events, if the journal keeps them."""
    behind: Seconds = 0.0
    """The time by which the wall clock is behind the journal's last entry."""
    today: tuple[DayUsage, ...] = ()
    """The usage of the current day, by task, if there are daily budgets."""


def open_journal(
    settings: Settings, clock: Clock, broken: Callable[[Exception], None], hosts: type[AgentStateManager]
) -> Opened:
    """Open the journal that the settings name, or create one in memory.

    Tasks past their retention are dropped.

    Args:
        settings: The settings.
        clock: The clock.
        broken: Called with the error once the journal can't be written any longer.
        hosts: The state machine of the HostAgents.

    Raises:
        JournalError: If it is in use, damaged, newer, or can't be read or written; nothing was changed.
    """
    where = settings.journal
    if where.path is None:
        return Opened(MemoryJournal(settings.limits.kept_tasks))
    file = JournalFile.open(settings.path(where.path), durability=where.durability)

    def counted_since() -> Timestamp | None:
        """Return the beginning of the day that daily budgets count.

        The next start reads the tasks that ended since then again.
        """
        return day_began(clock.now()) if settings.budget.daily else None

    try:
        began = counted_since()
        today = () if began is None else tuple(usage_since(file, began))
        file.prune(days=where.days, max_bytes=where.max_bytes, kept_since=began)
        recovered_tasks = tuple(_recovered_tasks(file, settings.limits, clock, hosts))
        token, seq = max((recovered.token for recovered in recovered_tasks), default=0), file.last_seq
    except BaseException:
        file.close()
        raise
    journal = FileJournal(file, broken=broken, later=clock.after)
    journal.retain(where.days, where.max_bytes, counted_since)
    in_use = InForce(sections=in_force(settings))
    journal.append((Row(time.time(), "", "", in_use),), lazy=True)  # the start does not wait for its commit
    queue = journal.facts, journal.keep_soon
    return Opened(journal, recovered_tasks, token, seq, queue, journal.events, file.behind, today)


def _recovered_tasks(
    file: JournalFile, limits: Limits, clock: Clock, hosts: type[AgentStateManager]
) -> Iterator[RecoveredTask]:
    """Read the tasks that are not over."""
    for task_id in file.unfinished():
        rows = tuple(file.rows(task_id))
        recovered = recover_task(rows, clock.elapsed())
        if recovered is None:
            continue
        recovered.conversation = file.session_tasks(recovered.record.session)
        if any(run.host is not None for run in recovered.record.runs.values()):
            earlier_tasks = recovered.conversation[: recovered.conversation.index(task_id)]
            earlier = [row for earlier_task in earlier_tasks for row in file.rows(earlier_task)]
            recovered.host = _host(recovered.record.host, [*earlier, *rows], limits, hosts)
        yield recovered


def _host(address: str, rows: Sequence[Row], limits: Limits, machine: type[AgentStateManager]) -> Run | None:
    """Fold the run of a conversation's HostAgent.

    It is None if the rows make an illegal move: the state machine has changed, and the agent itself fails on it later.
    """
    with contextlib.suppress(IllegalMoveError):
        return fold(received_at(address, rows), limits, machine)
    return None


class DayUsage(NamedTuple):
    """A task's usage since the day began."""

    labels: Mapping[str, str]
    """The task's labels."""
    used: Mapping[str, float]
    """The amounts, by kind of budget."""
    unpriced: bool
    """Whether it includes a call of unknown price."""


def usage_since(file: JournalFile, began: Timestamp) -> Iterator[DayUsage]:
    """Read the usage of each task since a time.

    A task that began and ended after that time has it in its result. All rows of the others are read.

    Raises:
        JournalDamagedError: If a row can't be read; the message names it.
    """
    for task, ended in file.tasks_since(began):
        if ended is not None:
            usage = ended.usage
            tokens = usage.input_tokens + usage.output_tokens
            used = {"steps": usage.steps, "model_calls": usage.model_calls, "tokens": tokens, "cost": usage.cost}
            used["rounds"] = ended.rounds if task.target is None else 0  # only HostAgents' rounds count
            yield DayUsage(task.labels, used, usage.unpriced_calls > 0)
            continue
        rows = tuple(file.rows(task.id))
        total, old_amounts = _amounts(rows), _amounts([row for row in rows if row.at < began])
        used = {kind: amount - old_amounts[kind] for kind, amount in total.items()}
        yield DayUsage(task.labels, used, used.pop("unpriced", 0) > 0)


def _amounts(rows: Sequence[Row]) -> defaultdict[str, float]:
    """Add up the usage in a task's first rows.

    The kind `unpriced` is the number of calls of unknown price.
    """
    total: defaultdict[str, float] = defaultdict(float)
    recovered = recover_task(rows, 0.0)
    if recovered is None:
        return total
    answers = [answer for run in recovered.answers.values() for answer in run.values()]
    for used in (*(used for _, used in used_by(recovered)), *(answer.used for answer in answers)):
        for kind, amount in used.items():
            total[kind] += amount
    total["unpriced"] += sum(answer.cost is None for answer in answers)
    total["unpriced"] += sum(usage.unpriced_calls for usage in recovered.used.values())
    return total
