"""The blackboard: what agents leave for each other and for the host program."""

from __future__ import annotations

import collections
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pykka

from callboard.messages import BlackboardEntry, BlackboardPost, BlackboardQuery, BlackboardView, Board, TaskForgotten

if TYPE_CHECKING:
    from collections.abc import Callable

    from callboard.config import BlackboardSettings


@dataclass
class _Page:
    rows: collections.deque[tuple[Board, BlackboardEntry]] = field(default_factory=collections.deque)
    dropped: int = 0
    ended: bool = False


@dataclass(frozen=True)
class Read:
    """A query, and where its answer goes."""

    query: BlackboardQuery
    answer: Callable[[BlackboardView], None]


class Blackboard(pykka.ThreadingActor):
    """One page a task, bounded: the oldest rows go first, and the longest ended tasks' pages.

    Runs on its own thread; everything here is quick. Only the switchboard talks to it.
    """

    use_daemon_thread = True

    def __init__(self, settings: BlackboardSettings) -> None:
        super().__init__()
        self._settings = settings
        self._pages: dict[str, _Page] = {}

    def on_receive(self, message: BlackboardPost | Read | TaskForgotten) -> None:
        """Handle one message."""
        match message:
            case BlackboardPost():
                self._post(message)
            case Read():
                message.answer(self._view(message.query.task_id))
            case TaskForgotten():
                self._end(message.task_id)

    def _post(self, post: BlackboardPost) -> None:
        page = self._pages.setdefault(post.task_id, _Page())
        page.ended = False
        page.rows.append((post.board, post.entry))
        while len(page.rows) > self._settings.rows:
            page.rows.popleft()
            page.dropped += 1

    def _view(self, task_id: str) -> BlackboardView:
        page = self._pages.get(task_id, _Page())
        rows = {board.value: tuple(entry for at, entry in page.rows if at is board) for board in Board}
        return BlackboardView(task_id=task_id, dropped=page.dropped, **rows)

    def _end(self, task_id: str) -> None:
        page = self._pages.pop(task_id, None)
        if page is None:
            return
        page.ended = True
        self._pages[task_id] = page  # ended pages stand in the order of their ends
        ended = [task for task, old in self._pages.items() if old.ended]
        for task in ended[: max(0, len(ended) - self._settings.tasks)]:
            del self._pages[task]
