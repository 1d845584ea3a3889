"""The recorder: the root's events, and the blackboard fed from the journal."""

from __future__ import annotations

import concurrent.futures
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pykka

from callboard.actors.blackboard import SHOWN, Blackboard, Filled, Read, ReadShared, RowsKept
from callboard.messages import BlackboardQuery, BlackboardView, EventName

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from callboard.actors.processing import Services
    from callboard.actors.root._dispatch import Dispatch
    from callboard.actors.root._tasks import TaskBook
    from callboard.actors.runtime import Scheduler
    from callboard.journal import Row
    from callboard.messages import (
        ApprovalRequest,
        Assign,
        AssignGroup,
        Question,
        RoundEnding,
        SharedEntry,
        SubtaskEnding,
        SubtaskResult,
    )


@dataclass(frozen=True)
class BlackboardCrashed:
    """The blackboard's actor died."""

    error: BaseException


class Recorder:
    """Events and the blackboard. Runs on the root's thread."""

    def __init__(
        self,
        services: Services,
        tasks: TaskBook,
        post: Callable[[object], None],
        scheduler: Scheduler,
    ) -> None:
        self._settings = services.settings.blackboard
        self._tasks = tasks
        self._stream = services.stream
        self._journal = services.journal
        self._post = post
        self._scheduler = scheduler
        self._shared = services.shared
        self._shared.pages = self._start(())
        self._shared.ask = lambda query, answer: _tell(self._blackboard, ReadShared(query, answer))

    def register(self, dispatch: Dispatch) -> None:
        """Add the handlers of this part's messages."""
        dispatch.on(BlackboardQuery, self.read)
        dispatch.on(BlackboardCrashed, lambda _: self.rebuild())

    def _start(self, task_ids: Sequence[str]) -> dict[str, tuple[SharedEntry, ...]]:
        """Start a blackboard, and return the entries that it publishes to agents."""
        pages: dict[str, tuple[SharedEntry, ...]] = {}
        self._blackboard = Blackboard.start(self._settings, self._crashed, self._scheduler, pages)
        self.fill(task_ids)
        return pages

    def _crashed(self, error: BaseException) -> None:
        self._shared.pages = None  # steps that read now wait for the next blackboard
        self._post(BlackboardCrashed(error))

    def rebuild(self) -> None:
        """Replace a dead blackboard by one filled from the journal."""
        task_ids = self._tasks.conversations(self._settings.tasks)
        pages, blackboard = self._start(task_ids), self._blackboard

        def rebuilt() -> None:
            self._stream.emit(EventName.BLACKBOARD_REBUILT, tasks=len(task_ids))
            _tell(blackboard, Filled(lambda: self._publish(pages)))

        self._journal.append((), rebuilt)

    def _publish(self, pages: dict[str, tuple[SharedEntry, ...]]) -> None:
        self._shared.pages = pages

    def picture_path(self, picture: bytes) -> str:
        """Return the path of a picture in the journal; empty without one."""
        return self._journal.picture_path(picture)

    def fill(self, task_ids: Sequence[str]) -> None:
        """Feed the blackboard the journal rows of some tasks."""
        self._journal.feed(partial(_feed, self._blackboard), task_ids)

    def emit(self, name: EventName, **fields: Any) -> None:
        """Emit an event."""
        self._stream.emit(name, **fields)

    def emit_of(self, name: EventName, assign: Assign, **data: Any) -> None:
        """Emit an event of an assignment."""
        self._stream.emit(name, task_id=assign.task_id, run_id=assign.run_id, agent=assign.address, **data)

    def planned(self, assign: Assign) -> None:
        """Emit the event of a group's member."""
        member = assign.member
        if member is not None:
            self.emit_of(
                EventName.SUBTASK_PLANNED,
                assign,
                request=assign.request,
                group=member.first,
                after=list(member.after),
                after_any=list(member.after_any),
            )

    def ended(self, assign: Assign, result: SubtaskResult) -> None:
        """Emit the event of a subtask's end."""
        self.emit_of(
            EventName.SUBTASK_ENDED,
            assign,
            outcome=result.outcome.value,
            causes=[cause.reason for cause in result.causes],
            duration=result.usage.seconds,
            machine=result.machine,
            steps=result.usage.steps,
        )

    def stale(self, message: Assign | AssignGroup | SubtaskEnding | RoundEnding | Question | ApprovalRequest) -> None:
        """Emit an event for a message that came too late."""
        self._stream.emit(
            EventName.MESSAGE_STALE,
            task_id=message.task_id,
            run_id=message.run_id,
            agent="supervisor",
            message=type(message).__name__,
        )

    def read(self, query: BlackboardQuery) -> concurrent.futures.Future[BlackboardView]:
        """Ask the blackboard for the page of a task's conversation."""
        future: concurrent.futures.Future[BlackboardView] = concurrent.futures.Future()
        if not _tell(self._blackboard, Read(query, future.set_result)):
            future.set_result(BlackboardView(task_id=query.task_id))  # it crashed, and is being rebuilt
        return future

    def stop(self) -> pykka.Future[Any]:
        """Stop the blackboard, and return a future for its end."""
        return self._blackboard.stop(block=False)

    def close(self) -> None:
        """Close the event stream, which ends all subscriptions."""
        self._stream.close()


def _feed(blackboard: pykka.ActorRef[Blackboard], rows: Sequence[Row]) -> None:
    blackboard_rows = [row for row in rows if type(row.message) in SHOWN]
    if blackboard_rows:
        _tell(blackboard, RowsKept(blackboard_rows))


def _tell(blackboard: pykka.ActorRef[Blackboard], message: RowsKept | Filled | Read | ReadShared) -> bool:
    try:
        blackboard.tell(message)
    except pykka.ActorDeadError:
        return False  # it crashed, and is rebuilt from the journal
    return True
