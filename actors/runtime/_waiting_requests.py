"""Requests that wait for people, as any thread may read them."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.messages import ApprovalRequest

if TYPE_CHECKING:
    from callboard.messages import Question, Seconds

_LONGEST_NAMES = 200
_HOW_TO_APPROVE = "decide with handle.approvals() and handle.approve(), in a console, or by a rule of the policy"
_HOW_TO_ANSWER = "answer with handle.questions() and handle.answer(), or in a console"


@dataclass(frozen=True)
class _WaitingRequest:
    task_id: str
    wish: str
    """The wish, such as `approval of delete_file`."""
    way: str
    """The way to answer."""
    since: float

    @property
    def hint(self) -> str:
        return f"waits for {self.wish}: {self.way}"


class WaitingRequests:
    """The open requests of all tasks, in words for the host program."""

    def __init__(self) -> None:
        """Create it, without requests."""
        self.is_looked_at = False
        """Whether the host program has ever listed the open requests: then it needs no hint."""
        self._waiting: dict[str, _WaitingRequest] = {}
        self._told_ids: set[str] = set()
        self._lock = threading.Lock()

    def add(self, ask: Question | ApprovalRequest) -> None:
        """Note a request that was opened."""
        if isinstance(ask, ApprovalRequest):
            names = ", ".join(dict.fromkeys(action.tool for action in ask.actions)) or "a decision"
            wish, way = f"approval of {names[:_LONGEST_NAMES]}", _HOW_TO_APPROVE
        else:
            wish, way = "an answer to a question", _HOW_TO_ANSWER
        with self._lock:
            self._waiting[ask.id] = _WaitingRequest(ask.task_id, wish, way, time.monotonic())

    def remove(self, request_id: str) -> None:
        """Note that a request is closed."""
        with self._lock:
            self._waiting.pop(request_id, None)
            self._told_ids.discard(request_id)

    def hint(self, task_id: str) -> str:
        """Return a task's first open request in words; empty without one."""
        with self._lock:
            return next((waiting.hint for waiting in self._waiting.values() if waiting.task_id == task_id), "")

    def unseen(self, task_id: str, seconds: Seconds) -> list[str]:
        """Return the hints of requests that wait for that long, each once."""
        if self.is_looked_at:
            return []
        with self._lock:
            latest = time.monotonic() - seconds
            ids = [
                request_id
                for request_id, waiting in self._waiting.items()
                if waiting.task_id == task_id and waiting.since <= latest and request_id not in self._told_ids
            ]
            self._told_ids.update(ids)
            return [self._waiting[request_id].hint for request_id in ids]
