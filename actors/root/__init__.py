"""The root actor: one `match` over small parts without a thread."""

from callboard.actors.root._actor import Root
from callboard.actors.root._opening import Opened, open_journal
from callboard.actors.root._recovery import book_usage, recover_task
from callboard.actors.root._requests import (
    CloseIntake,
    GetProgress,
    GetStatus,
    GetTasks,
    GiveOutputType,
    GiveSecrets,
    JournalBroken,
    LeaseHung,
    Restore,
    StopAgents,
    Submit,
)
from callboard.actors.root._task_outcome import task_result
from callboard.actors.root._tasks import ended_progress

__all__ = [
    "CloseIntake",
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
