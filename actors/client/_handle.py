"""The handle: what a host program holds of one task."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from callboard.actors.root import GetStatus
from callboard.actors.runtime import refuse_own_thread
from callboard.messages import (
    Answer,
    ApprovalAnswer,
    ApprovalRequest,
    Cancel,
    Event,
    EventName,
    Pause,
    Question,
    Resume,
    Task,
    TaskResult,
)

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import AsyncIterator, Generator, Iterator

    from callboard.actors.client._submission import Submission
    from callboard.actors.runtime import Feed


class TaskHandle:
    """One task that was submitted. Everything here may be called from any thread."""

    def __init__(
        self, task: Task, done: concurrent.futures.Future[TaskResult], submission: Submission, before: int
    ) -> None:
        """Make it; `before` is the number of the last event before the task."""
        self.task = task
        self.task_id = task.id
        self.session = task.session or task.id
        """The conversation that the task belongs to: its own id, unless it is a follow-up."""
        self._done = done
        self._submission = submission
        self._client = submission.client
        self._stream = submission.stream
        self._before = before

    def done(self) -> bool:
        """Say whether the task is over."""
        return self._done.done()

    def result(self, timeout: float | None = None) -> TaskResult:
        """Wait for the end. A task that did not finish is no exception: the result says how it ended.

        Raises:
            TimeoutError: If it is not over in time; it goes on.
            SupervisorStoppedError: If the supervisor went down before.
        """
        if not self._done.done():
            refuse_own_thread("result")
        return self._done.result(timeout)

    def __await__(self) -> Generator[Any, None, TaskResult]:
        """Wait for the end in a coroutine; cancelling the waiting does not cancel the task."""
        return asyncio.shield(asyncio.wrap_future(self._done)).__await__()

    def events(self) -> Iterator[Event]:
        """Iterate over the task's events, from its submission to its end; those no longer kept are counted.

        Raises:
            WouldDeadlockError: If it would wait on one of our own threads.
        """
        if not self._done.done():
            refuse_own_thread("events")
        return self._events()

    def _events(self) -> Iterator[Event]:
        feed = self._feed()
        try:
            for event in feed:
                yield event
                if event.name is EventName.TASK_ENDED:
                    return
        finally:
            self._stream.drop(feed)

    def _feed(self) -> Feed:
        """Open a feed that ends with the task, also when its last event is no longer kept."""
        feed = self._stream.open(self.task_id, self._before)
        self._done.add_done_callback(lambda _done: self._stream.drop(feed))
        return feed

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Iterate over the task's events in a coroutine."""
        feed = self._feed()
        loop = asyncio.get_running_loop()
        changed = asyncio.Event()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the caller's loop may be closed before its iterator is
                loop.call_soon_threadsafe(changed.set)

        feed.on_change(wake)
        try:
            while True:
                changed.clear()
                while (event := feed.take()) is not None:
                    yield event
                    if event.name is EventName.TASK_ENDED:
                        return
                if feed.closed:
                    return
                await changed.wait()
        finally:
            self._stream.drop(feed)

    def cancel(self, reason: str = "cancelled by the host program") -> bool:
        """Stop the task, in whatever state it is. Idempotent.

        Returns:
            Whether this call stopped it; False if it was over, or is being stopped already.
        """
        if self._done.done():
            return False
        stopped: bool = self._client.settle(Cancel(task_id=self.task_id, reason=reason))
        return stopped

    def pause(self) -> bool:
        """Stop before the next action; a model call that runs is finished. Clocks stand still. Idempotent.

        Returns:
            Whether this call paused it; False if it was paused, being stopped, or over already.
        """
        return not self._done.done() and bool(self._client.settle(Pause(task_id=self.task_id)))

    def resume(self) -> bool:
        """Go on from where `pause` stopped. Idempotent.

        Returns:
            Whether this call resumed it.
        """
        return not self._done.done() and bool(self._client.settle(Resume(task_id=self.task_id)))

    def follow_up(self, request: str, **fields: Any) -> TaskHandle:
        """Go on with another request: the same HostAgent, its memory and the blackboard. It waits for its turn.

        Raises:
            TaskRefusedError: If the conversation is not kept any more (``limits.sessions``), or has no HostAgent.
        """
        return self._submission.submit(Task(request=request, session=self.session, **fields))

    def approvals(self) -> tuple[ApprovalRequest, ...]:
        """List the task's approvals that wait for a person."""
        return tuple(ask for ask in self._client.ask(GetStatus()).approvals if ask.task_id == self.task_id)

    def questions(self) -> tuple[Question, ...]:
        """List the task's questions that wait for a person."""
        return tuple(ask for ask in self._client.ask(GetStatus()).questions if ask.task_id == self.task_id)

    def approve(self, request_id: str, *, by: str = "", remember: bool = False) -> None:
        """Approve: the agent looks again and runs exactly the held actions, once.

        Args:
            request_id: Which approval.
            by: Who decided, for the record.
            remember: Whether the same tool, target and arguments are approved for the rest of this task.

        Raises:
            NotWaitingError: If it is not open (any more).
            AnswerRefusedError: If it is a question.
        """
        self._client.settle(
            ApprovalAnswer(id=request_id, task_id=self.task_id, approved=True, by=by, remember=remember)
        )

    def reject(self, request_id: str, reason: str = "", *, by: str = "") -> None:
        """Reject: the held actions never run.

        Raises:
            NotWaitingError: If it is not open (any more).
            AnswerRefusedError: If it is a question.
        """
        answer = ApprovalAnswer(id=request_id, task_id=self.task_id, approved=False, reason=reason, by=by)
        self._client.settle(answer)

    def answer(self, request_id: str, *texts: str, by: str = "") -> None:
        """Answer a question, one text for each of its parts.

        Raises:
            NotWaitingError: If it is not open (any more).
            AnswerRefusedError: If the number of texts is wrong, or one is none of the choices; it stays open.
        """
        self._client.settle(Answer(id=request_id, task_id=self.task_id, texts=texts, by=by))
