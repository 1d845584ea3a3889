"""The replay of a task on its recorded data, for its page."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from callboard.actors.processing import named_agents
from callboard.actors.replay import RecordedTask, replay
from callboard.config import text
from callboard.messages import SettingsError, StepDone

if TYPE_CHECKING:
    from pathlib import Path

    from callboard.actors.replay import Difference, Replay
    from callboard.config import Settings
    from callboard.history import TaskHistory

_MOST_FACTS = 20_000
"""The most entries and events of a task that is replayed here. 5,600 take about five seconds."""


class ReplayedTask(NamedTuple):
    """The result of a replay, or the reason why there is none."""

    replay: Replay | None
    reason: str = ""
    entry: int = 0
    """The number of the history's entry in which the first difference is; 0 without one."""


def replayed_task(journal: Path, history: TaskHistory, settings: Settings | None) -> ReplayedTask:
    """Replay a task on its recorded data.

    Nothing is executed.

    Args:
        journal: The journal.
        history: The task in it.
        settings: The settings of the supervisor that works on it here, for kinds of agents that they name and for
            processes that did not record their own; None for a journal that is only shown.

    Raises:
        JournalError: If the journal can't be read.
    """
    if len(history.entries) + len(history.events) > _MOST_FACTS:
        return ReplayedTask(None, text("replay_too_long"))
    try:
        agents = [] if settings is None else named_agents(settings)
        result = replay(RecordedTask.load(journal, history.task.id), otherwise=settings, agents=agents)
    except SettingsError as error:
        return ReplayedTask(None, str(error))
    entry = 0 if result.difference is None else _entry_of(result.difference, history)
    return ReplayedTask(result, entry=entry)


def _entry_of(difference: Difference, history: TaskHistory) -> int:
    """Find the entry of a difference.

    It is its step, or else the last entry of its run.
    """
    last = 0
    for number, entry in enumerate(history.entries, 1):
        if entry.run_id == difference.run_id:
            last = number
            if isinstance(entry.message, StepDone) and entry.message.record.step == difference.step:
                break
    return last
