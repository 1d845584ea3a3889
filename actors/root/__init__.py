"""The root actor: the switchboard, one `match` over small parts without a thread."""

from callboard.actors.root._actor import Root
from callboard.actors.root._handle import Line, TaskHandle
from callboard.actors.root._intake import Intake, check_writable
from callboard.actors.root._opening import Opened, open_journal
from callboard.actors.root._recovery import book_past, past_of
from callboard.actors.root._requests import (
    CloseIntake,
    GetStatus,
    JournalBroken,
    LeaseHung,
    Restore,
    StopAgents,
)

__all__ = [
    "CloseIntake",
    "GetStatus",
    "Intake",
    "JournalBroken",
    "LeaseHung",
    "Line",
    "Opened",
    "Restore",
    "Root",
    "StopAgents",
    "TaskHandle",
    "book_past",
    "check_writable",
    "open_journal",
    "past_of",
]
