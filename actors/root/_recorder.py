"""The recorder: what the switchboard writes down, as events and on the blackboard."""

from __future__ import annotations

import concurrent.futures
from typing import TYPE_CHECKING, Any

from callboard.actors.blackboard import Blackboard, Read
from callboard.messages import (
    BlackboardEntry,
    BlackboardPost,
    BlackboardQuery,
    BlackboardView,
    Board,
    EventName,
    TaskForgotten,
)

if TYPE_CHECKING:
    import pykka
    from pydantic import JsonValue

    from callboard.actors.runtime import Clock, EventStream
    from callboard.config import BlackboardSettings
    from callboard.messages import Assign


class Recorder:
    """Events and the blackboard. Part of the switchboard; runs on its thread."""

    def __init__(self, settings: BlackboardSettings, stream: EventStream, clock: Clock) -> None:
        self._stream = stream
        self._clock = clock
        self._blackboard: pykka.ActorRef[Blackboard] = Blackboard.start(settings)

    def emit(self, name: EventName, **fields: object) -> None:
        """Record that something happened."""
        self._stream.emit(name, **fields)

    def emit_of(self, name: EventName, assign: Assign, **data: object) -> None:
        """Record that something happened to an assignment."""
        self._stream.emit(name, task_id=assign.task_id, run_id=assign.run_id, agent=assign.address, **data)

    def stale(self, task_id: str, what: str) -> None:
        """Record that a message came too late."""
        self._stream.emit(EventName.MESSAGE_STALE, task_id=task_id, agent="supervisor", message=what)

    def note(self, task_id: str, board: Board, author: str, content: JsonValue) -> None:
        """Add a row to a task's blackboard."""
        entry = BlackboardEntry(at=self._clock.now(), author=author, content=content)
        self.post(BlackboardPost(task_id=task_id, board=board, entry=entry))

    def post(self, message: BlackboardPost | TaskForgotten) -> None:
        """Hand a message on to the blackboard."""
        self._blackboard.tell(message)

    def read(self, query: BlackboardQuery, session: str) -> concurrent.futures.Future[BlackboardView]:
        """Ask the blackboard for the page of a task's conversation; its answer comes into the future."""
        future: concurrent.futures.Future[BlackboardView] = concurrent.futures.Future()
        self._blackboard.tell(Read(query.model_copy(update={"task_id": session}), future.set_result))
        return future

    def stop(self) -> pykka.Future[Any]:
        """Stop the blackboard. Returns what to wait for."""
        return self._blackboard.stop(block=False)

    def close(self) -> None:
        """End the event stream: subscribers come to their end."""
        self._stream.close()
