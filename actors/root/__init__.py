"""The root actor and its parts, each for some messages."""

from callboard.actors.root._actor import (
    CloseIntake,
    GetProgress,
    GetStatus,
    GetTasks,
    JournalBroken,
    Root,
    StopAgents,
)
from callboard.actors.root._agent_restarts import LeaseHung
from callboard.actors.root._intake import Submit
from callboard.actors.root._opening import Opened, open_journal
from callboard.actors.root._recovery import book_usage, recover_task
from callboard.actors.root._restore import ConfirmTask, GiveOutputType, GiveSecrets, Restore
from callboard.actors.root._task_end import task_result
from callboard.actors.root._tasks import ended_progress

__all__ = [
    "CloseIntake",
    "ConfirmTask",
    "GetProgress",
    "GetStatus",
    "GetTasks",
    "GiveOutputType",
    "GiveSecrets",
    "JournalBroken",
    "LeaseHung",
    "Opened",
    "Restore",
    "Root",
    "StopAgents",
    "Submit",
    "book_usage",
    "ended_progress",
    "open_journal",
    "recover_task",
    "task_result",
]
