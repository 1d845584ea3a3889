"""The handle of a submitted task, for the host program."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from typing import TYPE_CHECKING, Any, Generic, Protocol

from callboard.actors.root import GetProgress, GetStatus, ended_progress
from callboard.actors.runtime import refuse_own_thread
from callboard.config import HostLog
from callboard.messages import (
    Answer,
    ApprovalAnswer,
    ApprovalRequest,
    Cancel,
    Event,
    EventName,
    OutputT,
    Pause,
    Question,
    Resume,
    Task,
    TaskProgress,
    TaskResult,
)

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import AsyncIterator, Callable, Generator, Iterator

    from pydantic import JsonValue
    from typing_extensions import TypeVar

    from callboard.actors.client._client import RootClient
    from callboard.actors.commands import OutputType
    from callboard.actors.runtime import Budgets, EventFeed, EventStream, WaitingRequests

    NextT = TypeVar("NextT", default=JsonValue)


_UNSEEN_SECONDS = 5.0
"""The time after which a request that no one looks at is told to the log."""

_LOOKS = 5
"""The number of looks at the requests in that time."""

_log = HostLog()


class Submitter(Protocol):
    """The part of `Submission` that handles use."""

    client: RootClient
    stream: EventStream
    budgets: Budgets
    waiting: WaitingRequests

    abandon: Callable[[str], None]
    """Do not wait for the ends of a cancelled task's subtasks on other machines."""

    def build_model(self, task: Task) -> None:
        """Build the model that a task names."""
        ...

    def submit(self, task: Task, output_type: type[NextT] | None = None) -> TaskHandle[NextT]:
        """Submit a task."""
        ...


class TaskHandle(Generic[OutputT]):
    """A submitted task. All methods may be called from any thread."""

    def __init__(
        self,
        task: Task,
        done: concurrent.futures.Future[TaskResult],
        submission: Submitter,
        previous_seq: int,
        output_type: OutputType[OutputT] | None = None,
    ) -> None:
        """Create it; `previous_seq` numbers the last event before the task."""
        self.task = task
        """The submitted task."""
        self.task_id = task.id
        """The task's id."""
        self.session = task.session or task.id
        """The id of the task's conversation: the task's own id, unless it is a follow-up."""
        self._done = done
        self._submission = submission
        self._client = submission.client
        self._stream = submission.stream
        self._previous_seq = previous_seq
        self._output_type = output_type

    def __repr__(self) -> str:
        """Show the task's id, state and steps.

        It waits for no thread, so a debugger may call it anywhere.
        """
        if not self._done.done():
            state, steps = "running", self._submission.budgets.steps(self.task_id)
        elif self._done.exception(0) is None:
            result = self._done.result(0)
            state, steps = result.outcome.value, result.usage.steps
        else:
            return f"<{type(self).__name__} {self.task_id} without a result: the supervisor stopped>"
        hint = self._submission.waiting.hint(self.task_id)
        steps_text = f"{steps} step{'' if steps == 1 else 's'}"
        return f"<{type(self).__name__} {self.task_id} {', '.join(filter(None, (state, steps_text, hint)))}>"

    def done(self) -> bool:
        """Return whether the task is over.

        Example:
            >>> handle = supervisor.submit(Task(request="Add 2 and 2", target="memo:one"))
            >>> handle.result().ok and handle.done()
            True
        """
        return self._done.done()

    def result(self, timeout: float | None = None) -> TaskResult[OutputT]:
        """Wait for the task's result.

        An unsuccessful task raises nothing: its outcome and causes are in the result.

        Raises:
            OutputTypeError: If the output is not of this handle's `output_type`, since the task was submitted with
                another one, or with none.
            TimeoutError: If the task is not over in time; it keeps running. The text says if it waits for a person.
            SupervisorStoppedError: If the supervisor stopped before.

        Example:
            >>> result = supervisor.submit(Task(request="Add 2 and 2", target="memo:one")).result(timeout=30)
            >>> result.outcome.value, result.output
            ('finished', 4)
        """
        if not isinstance(timeout, int | float | None):
            msg = f"result: timeout is a number of seconds, or None, not of the type {type(timeout).__name__}"
            raise TypeError(msg)
        if not self._done.done():
            refuse_own_thread("result")
        return self._typed(self._waited(timeout))

    def __await__(self) -> Generator[Any, None, TaskResult[OutputT]]:
        """Wait in a coroutine; cancelling the wait does not cancel the task."""
        return self._typed((yield from self._awaited().__await__()))

    def _waited(self, timeout: float | None) -> TaskResult[Any]:
        end = math.inf if timeout is None else time.monotonic() + timeout
        while True:
            try:
                return self._done.result(max(0.0, min(_UNSEEN_SECONDS / _LOOKS, end - time.monotonic())))
            except TimeoutError:
                if time.monotonic() >= end:
                    hint = self._submission.waiting.hint(self.task_id)
                    msg = f"the task {self.task_id} is not over after {timeout:g} s{hint and '; it '}{hint}"
                    raise TimeoutError(msg) from None
                self._tell_unseen()

    async def _awaited(self) -> TaskResult[Any]:
        future = asyncio.wrap_future(self._done)
        future.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # if this wait is cancelled
        while not (await asyncio.wait({future}, timeout=_UNSEEN_SECONDS / _LOOKS))[0]:
            self._tell_unseen()
        return future.result()

    def _tell_unseen(self) -> None:
        """Warn of requests that no one has looked at."""
        if not self._stream.is_read(self.task_id):
            for hint in self._submission.waiting.unseen(self.task_id, _UNSEEN_SECONDS):
                _log.warning("%s %s", self.task_id, hint)

    def _typed(self, result: TaskResult[Any]) -> TaskResult[OutputT]:
        """Turn the output of a finished task into the program's type."""
        if self._output_type is None or not result.ok:
            return result
        return result.model_copy(update={"output": self._output_type.output_of(self.task_id, result.output)})

    def events(self) -> Iterator[Event]:
        """Iterate over the task's events, from its submission to its end.

        An `events.missed` with their count replaces events that are no longer kept.

        Raises:
            WouldDeadlockError: If the caller runs on one of the supervisor's own threads, and would have to wait.

        Example:
            >>> handle = supervisor.submit(Task(request="Add 2 and 2", target="memo:one"))
            >>> [event.name.value for event in handle.events()][-1]
            'task.ended'
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

    def _feed(self) -> EventFeed:
        """Open a feed that ends with the task.

        It does so even if the task's last event is no longer kept.
        """
        feed = self._stream.open(self.task_id, self._previous_seq)
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

    def progress(self) -> TaskProgress:
        """Return the task's rounds, subtasks and steps so far.

        Raises:
            SupervisorStoppedError: If the supervisor stopped before the task was over.

        Example:
            >>> handle = supervisor.submit(Task(request="Add 2 and 2", target="memo:one"))
            >>> handle.result().ok, handle.progress().steps
            (True, 1)
        """
        if not self._done.done():
            progress: TaskProgress | None = self._client.ask(GetProgress(self.task_id))
            if progress is not None:
                return progress
        return ended_progress(self.task, self._done.result(self._client.seconds))

    def cancel(self, reason: str = "cancelled by the host program", *, abandon: bool = False) -> bool:
        """Stop the task, in any state. Idempotent.

        Subtasks on other machines of the fleet end once these have stopped them, so that the result tells everything
        that was done.

        Args:
            reason: The reason, for the record.
            abandon: Whether the machines are not waited for, such as one that is away for long. They stop the work when
                they read the cancel; the result says that what they did is not known. May follow an earlier cancel.

        Returns:
            Whether this call stopped it; False if the task was over or already being stopped.

        Example:
            >>> handle = supervisor.submit(Task(request="Ask", target="memo:one"))
            >>> handle.cancel()
            True
            >>> handle.result().outcome.value
            'cancelled'
        """
        if self._done.done():
            return False
        stopped: bool = self._client.settle(Cancel(task_id=self.task_id, reason=reason))
        if abandon:
            self._submission.abandon(self.task_id)
        return stopped

    def pause(self) -> bool:
        """Pause the task before its next action, and stop its clocks. Idempotent.

        A running model call is finished first.

        Returns:
            Whether this call paused it; False if the task was already paused, being stopped, or over.

        Example:
            >>> handle = supervisor.submit(Task(request="Ask", target="memo:one"))
            >>> handle.pause(), handle.cancel()
            (True, True)
        """
        return not self._done.done() and bool(self._client.settle(Pause(task_id=self.task_id)))

    def resume(self) -> bool:
        """Resume the paused task. Idempotent.

        A model of its own that could not be built is tried again; if that fails, the task ends as an error.

        Returns:
            Whether this call resumed it.

        Example:
            >>> handle = supervisor.submit(Task(request="Ask", target="memo:one"))
            >>> handle.pause(), handle.resume()
            (True, True)
            >>> handle.cancel()
            True
        """
        if self._done.done():
            return False
        self._submission.build_model(self.task)
        return bool(self._client.settle(Resume(task_id=self.task_id)))

    def follow_up(self, request: str, *, output_type: type[NextT] | None = None, **fields: Any) -> TaskHandle[NextT]:
        """Submit another request in this task's conversation.

        It waits for its turn with the same HostAgent, which has its memory and the blackboard.

        Raises:
            TaskRefusedError: If the conversation is no longer kept (``limits.sessions``), or has no HostAgent.

        Example:
            >>> first = supervisor.submit(Task(request="Add 2 and 2"))
            >>> first.result().ok
            True
            >>> first.follow_up("And once more").result().output
            4
        """
        return self._submission.submit(Task(request=request, session=self.session, **fields), output_type)

    def approvals(self) -> tuple[ApprovalRequest, ...]:
        """List the task's open approvals.

        Example:
            >>> handle = supervisor.submit(Task(request="Write", target="memo:one"))
            >>> next(event for event in handle.events() if event.name == "approval.requested").name.value
            'approval.requested'
            >>> [action.tool for request in handle.approvals() for action in request.actions]
            ['write']
            >>> handle.cancel()
            True
        """
        return tuple(ask for ask in self._client.ask(GetStatus()).approvals if ask.task_id == self.task_id)

    def questions(self) -> tuple[Question, ...]:
        """List the task's open questions.

        Example:
            >>> handle = supervisor.submit(Task(request="Ask", target="memo:one"))
            >>> next(event for event in handle.events() if event.name == "question.asked").name.value
            'question.asked'
            >>> [part.text for question in handle.questions() for part in question.questions]
            ['Which number?']
            >>> handle.cancel()
            True
        """
        return tuple(ask for ask in self._client.ask(GetStatus()).questions if ask.task_id == self.task_id)

    def approve(self, request_id: str, *, by: str = "", remember: bool = False) -> None:
        """Approve held actions.

        The agent observes its target again, then runs exactly these actions, once.

        Args:
            request_id: The id of the approval.
            by: The person who decided, for the record.
            remember: Whether the same tool, target and arguments are approved for the rest of this task.

        Raises:
            NotWaitingError: If the request is not open.
            AnswerRefusedError: If the request is a question.

        Example:
            >>> handle = supervisor.submit(Task(request="Write", target="memo:one"))
            >>> next(event for event in handle.events() if event.name == "approval.requested").name.value
            'approval.requested'
            >>> (request,) = handle.approvals()
            >>> handle.approve(request.id, by="Ms Kim")
            >>> handle.result().ok
            True
        """
        id_ = _id_of(request_id, "approve(request.id)")
        self._client.settle(ApprovalAnswer(id=id_, task_id=self.task_id, approved=True, by=by, remember=remember))

    def reject(self, request_id: str, reason: str = "", *, by: str = "") -> None:
        """Reject held actions, which never run.

        Raises:
            NotWaitingError: If the request is not open.
            AnswerRefusedError: If the request is a question.

        Example:
            >>> handle = supervisor.submit(Task(request="Write", target="memo:one"))
            >>> next(event for event in handle.events() if event.name == "approval.requested").name.value
            'approval.requested'
            >>> handle.reject(handle.approvals()[0].id, "not today")
            >>> handle.result().outcome.value
            'rejected'
        """
        id_ = _id_of(request_id, "reject(request.id)")
        answer = ApprovalAnswer(id=id_, task_id=self.task_id, approved=False, reason=reason, by=by)
        self._client.settle(answer)

    def answer(self, request_id: str, *texts: str, by: str = "") -> None:
        """Answer a question, with one text for each of its parts.

        Raises:
            NotWaitingError: If the question is not open.
            AnswerRefusedError: If the number of texts is wrong, or a text is not among the choices; the question stays
                open.

        Example:
            >>> handle = supervisor.submit(Task(request="Ask", target="memo:one"))
            >>> next(event for event in handle.events() if event.name == "question.asked").name.value
            'question.asked'
            >>> (question,) = handle.questions()
            >>> question.questions[0].text
            'Which number?'
            >>> handle.answer(question.id, "4")
            >>> handle.result().ok
            True
        """
        id_ = _id_of(request_id, "answer(question.id, text)")
        self._client.settle(Answer(id=id_, task_id=self.task_id, texts=texts, by=by))


def _id_of(request_id: object, how: str) -> str:
    """Return the id of a request.

    Raises:
        TypeError: If it is none, such as the request itself; the message has the call.
    """
    if not isinstance(request_id, str):
        msg = f"pass the id of one request: handle.{how}; this is of the type {type(request_id).__name__}"
        raise TypeError(msg)
    return request_id
