"""Sessions: conversations whose HostAgents are kept for follow-ups."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from callboard.actors.root._children import Children
    from callboard.actors.root._tasks import TaskBook, TaskRecord


class Sessions:
    """Keeps the HostAgents of the latest conversations. Part of the switchboard; runs on its thread."""

    def __init__(self, tasks: TaskBook, children: Children, limit: int) -> None:
        self._tasks = tasks
        self._children = children
        self._limit = limit
        self._kept: dict[str, None] = {}  # the oldest first

    def has(self, session: str) -> bool:
        """Say whether a conversation can be gone on with."""
        running = (record.session for record in self._tasks.records if record.target is None)
        return session in self._kept or session in running

    def keep(self, record: TaskRecord) -> None:
        """Keep the HostAgent of a task that ended, if it lives; past the limit the one idle for longest is stopped."""
        self._kept.pop(record.session, None)
        if record.host in self._children.addresses:
            self._kept[record.session] = None
        busy = {other.session for other in self._tasks.records}
        idle = [session for session in self._kept if session not in busy]
        for session in idle[: max(0, len(idle) - self._limit)]:
            del self._kept[session]
            self._children.stop(f"host/{session}")
