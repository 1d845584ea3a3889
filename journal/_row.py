"""One row of a journal."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from callboard.messages import Message, Timestamp


class Row(NamedTuple):
    """A message in the journal."""

    at: Timestamp
    """The wall time at the start of the process plus the monotonic time since: jumps of the clock don't show."""
    task_id: str
    """The task of the message; empty if it belongs to none."""
    run_id: str
    """The run that the message is applied to; empty if it is applied to the task."""
    message: Message
    job: int = 0
    """The number of the run's job that returned it; 0 for a message of no job."""
