"""Approvals and questions: the first answer wins, and clocks stop meanwhile."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from callboard.actors.processing import AnsweredElsewhere, CallAsks, CallAsksNoMore
from callboard.messages import (
    Answer,
    AnswerRefusedError,
    ApprovalAnswer,
    ApprovalRequest,
    AtDeadline,
    EventName,
    NotWaitingError,
    Question,
    RequestExpired,
)

if TYPE_CHECKING:
    import concurrent.futures

    from pydantic import JsonValue

    from callboard.actors.commands import Approved
    from callboard.actors.root._clocks import RunWaits, Stopwatches
    from callboard.actors.root._dispatch import Dispatch
    from callboard.actors.root._outbox import Outbox
    from callboard.actors.root._recorder import Recorder
    from callboard.actors.root._tasks import TaskBook, TaskRecord
    from callboard.actors.runtime import Alarm, Clock, WaitingRequests


Ask = Question | ApprovalRequest
Reply = Callable[[Answer | None], None]


@dataclass(frozen=True)
class _OpenRequest:
    ask: Ask
    alarm: Alarm | None
    reply: Reply | None
    """Takes the answer to a running call's question, which goes neither to the agent nor into the journal."""


class OpenRequests:
    """The open approvals and questions.

    Runs on the root's thread, so that the order of its messages decides all races.
    """

    def __init__(
        self,
        recorder: Recorder,
        outbox: Outbox,
        clock: Clock,
        post: Callable[[RequestExpired], None],
        waiting: WaitingRequests,
    ) -> None:
        self._waiting = waiting
        self._outbox = outbox
        self._recorder = recorder
        self._clock = clock
        self._post = post
        self._open_requests: dict[str, _OpenRequest] = {}

    def ask(self, ask: Ask, reply: Reply | None = None) -> None:
        """Open a request with a deadline alarm, and emit its event."""
        self.put(ask, reply)
        name = EventName.QUESTION_ASKED if isinstance(ask, Question) else EventName.APPROVAL_REQUESTED
        hidden = {"observation", "token", "picture", "before"}
        content = ask.model_dump(mode="json", exclude=hidden, exclude_defaults=True)
        picture = ask.picture if isinstance(ask, Question) else ask.observation.annotated or ask.observation.picture
        path = {} if picture is None else {"picture": self._recorder.picture_path(picture)}
        self._recorder.emit(name, task_id=ask.task_id, run_id=ask.run_id, agent=ask.address, request=content, **path)

    def put(self, ask: Ask, reply: Reply | None = None) -> None:
        """Open a request with an alarm for its deadline."""
        alarm = None
        if ask.deadline is not None:
            deadline_action = ask.at_deadline if isinstance(ask, ApprovalRequest) else AtDeadline.FAIL
            expired = RequestExpired(id=ask.id, task_id=ask.task_id, at_deadline=deadline_action)
            alarm = self._clock.after(ask.deadline - self._clock.now(), lambda: self._post(expired))
        self._open_requests[ask.id] = _OpenRequest(ask, alarm, reply)
        self._waiting.add(ask)

    def has(self, request_id: str) -> bool:
        """Return whether a request is open."""
        return request_id in self._open_requests

    def asked(self, answer: Answer | ApprovalAnswer) -> Ask:
        """Return the open request that an answer is for.

        Raises:
            NotWaitingError: If no such request is open.
            AnswerRefusedError: If the answer does not fit the request, which stays open.
        """
        entry = self._open_requests.get(answer.id)
        if entry is None or entry.ask.task_id != answer.task_id:
            msg = f"{answer.id!r} is not open: it was answered, reached its deadline, was cancelled, or never existed"
            raise NotWaitingError(msg)
        _check(entry.ask, answer)
        return entry.ask

    def answer(self, answer: Answer | ApprovalAnswer) -> Ask:
        """Close a request, and send its answer to the agent.

        Returns:
            The request.

        Raises:
            NotWaitingError: If no such request is open.
            AnswerRefusedError: If the answer does not fit the request, which stays open.
        """
        self.asked(answer)
        return self._settle(answer, answer.model_dump(mode="json", exclude_defaults=True))

    def expire(self, expired: RequestExpired) -> Ask | None:
        """Close a request that reached its deadline, and notify the agent.

        Returns:
            The request; None if it was answered just before.
        """
        if expired.id not in self._open_requests:
            return None
        return self._settle(expired, {"id": expired.id, "expired": True, "then": expired.at_deadline.value})

    def withdraw(self, task_id: str, run_id: str = "*") -> tuple[Ask, ...]:
        """Withdraw and return the requests of a task, or of one run."""
        asks = [entry.ask for entry in self._open_requests.values() if entry.ask.task_id == task_id]
        return tuple(self._withdraw(ask.id) for ask in asks if run_id in {"*", ask.run_id})

    def withdraw_calls(self, task_id: str, request_id: str = "*") -> tuple[Ask, ...]:
        """Withdraw and return the questions of running calls, or one question."""
        open_ = [
            entry.ask
            for entry in self._open_requests.values()
            if entry.reply is not None and entry.ask.task_id == task_id
        ]
        return tuple(self._withdraw(ask.id) for ask in open_ if request_id in {"*", ask.id})

    def _withdraw(self, request_id: str) -> Ask:
        reply = self._open_requests[request_id].reply
        ask = self._close(request_id)
        if reply is not None:
            reply(None)
        self._tell_answered(ask, {"id": ask.id, "withdrawn": True})
        return ask

    def _settle(self, answer: Answer | ApprovalAnswer | RequestExpired, content: dict[str, JsonValue]) -> Ask:
        reply = self._open_requests[answer.id].reply
        ask = self._close(answer.id)
        if reply is None:
            self._outbox.send(ask.address, ask.task_id, ask.run_id, answer)
        else:
            reply(answer if isinstance(answer, Answer) and not answer.nobody else None)
        self._tell_answered(ask, content)
        return ask

    def _tell_answered(self, ask: Ask, content: dict[str, JsonValue]) -> None:
        name = EventName.QUESTION_ANSWERED if isinstance(ask, Question) else EventName.APPROVAL_ANSWERED
        self._recorder.emit(name, task_id=ask.task_id, run_id=ask.run_id, agent=ask.address, answer=content)

    def _close(self, request_id: str) -> Ask:
        entry = self._open_requests.pop(request_id)
        self._waiting.remove(request_id)
        if entry.alarm is not None:
            entry.alarm.cancel()
        return entry.ask

    @property
    def approvals(self) -> tuple[ApprovalRequest, ...]:
        """The open approvals."""
        return tuple(entry.ask for entry in self._open_requests.values() if isinstance(entry.ask, ApprovalRequest))

    @property
    def questions(self) -> tuple[Question, ...]:
        """The open questions."""
        return tuple(entry.ask for entry in self._open_requests.values() if isinstance(entry.ask, Question))


def _check(ask: Ask, answer: Answer | ApprovalAnswer) -> None:
    if isinstance(ask, Question) is not isinstance(answer, Answer):
        kind = "a question: answer it" if isinstance(ask, Question) else "an approval: approve or reject it"
        msg = f"{ask.id!r} is {kind}"
        raise AnswerRefusedError(msg)
    if not isinstance(ask, Question) or not isinstance(answer, Answer) or answer.nobody:
        return
    if len(answer.texts) != len(ask.questions):
        msg = f"{ask.id!r} asks {len(ask.questions)} questions, and got {len(answer.texts)} answers"
        raise AnswerRefusedError(msg)
    for question, text in zip(ask.questions, answer.texts, strict=True):
        if question.choices and text not in question.choices:
            msg = f"{text!r} is not an answer to {question.text!r}; choose one of: {', '.join(question.choices)}"
            raise AnswerRefusedError(msg)


@dataclass(frozen=True, kw_only=True, eq=False)
class PeopleClocks:
    """The open requests, the clocks that they stop, and the remembered approvals.

    Runs on the root's thread.
    """

    tasks: TaskBook
    open_requests: OpenRequests
    clocks: Stopwatches
    run_waits: RunWaits
    outbox: Outbox
    recorder: Recorder
    approved: Approved

    def register(self, dispatch: Dispatch) -> None:
        """Add the handlers of this part's messages."""
        dispatch.on(Question, self._take)
        dispatch.on(ApprovalRequest, self._take)
        dispatch.on(CallAsks, self._take_call)
        dispatch.on(CallAsksNoMore, lambda message: self.withdraw_calls(message.question.task_id, message.question.id))
        dispatch.on(Answer, self._take_answer)
        dispatch.on(ApprovalAnswer, self._take_answer)
        dispatch.on(AnsweredElsewhere, self._take_elsewhere)
        dispatch.on(RequestExpired, self.expire)

    def _take(self, ask: Ask) -> None:
        record = self._running(ask)
        if record is not None and record.stopping is None and not self.open_requests.has(ask.id):
            self.ask(ask)

    def _take_call(self, asks: CallAsks) -> None:
        record = self._running(asks.question)
        if record is None or record.stopping is not None or record.suspended:
            asks.reply(None)
        else:
            self.ask(asks.question, asks.reply)

    def _running(self, ask: Ask) -> TaskRecord | None:
        record = self.tasks.running(ask.task_id, ask.run_id, ask.token)
        if record is None:
            self.recorder.stale(ask)
        return record

    def _take_answer(self, answer: Answer | ApprovalAnswer) -> concurrent.futures.Future[Any]:
        self.answer(answer)
        return self.outbox.answer(None)

    def _take_elsewhere(self, elsewhere: AnsweredElsewhere) -> None:
        """Take the answer of another machine's person, unless one here was first.

        An answer that does not fit closes the request, too: it is no longer open there.
        """
        answer = elsewhere.answer
        with contextlib.suppress(NotWaitingError):
            try:
                self.answer(answer)
            except AnswerRefusedError:
                self.expire(RequestExpired(id=answer.id, task_id=answer.task_id))

    def ask(self, ask: Ask, reply: Reply | None = None) -> None:
        """Ask a person, and stop the clocks of the task and run.

        `reply` takes the answer to a question that a running call asks.
        """
        self.open_requests.ask(ask, reply)
        self._stop_clocks(ask)

    def restore(self, ask: Ask) -> None:
        """Reopen a request of an earlier process, without an event."""
        self.open_requests.put(ask)
        self._stop_clocks(ask)

    def _stop_clocks(self, ask: Ask) -> None:
        self.clocks.stop(ask.run_id, ask.id)
        self.run_waits.stop(ask.task_id, ask.run_id, ask.id)

    def answer(self, answer: Answer | ApprovalAnswer) -> None:
        """Take a person's answer, and resume the clocks.

        Raises:
            NotWaitingError: If no such request is open: the first answer wins.
            AnswerRefusedError: If the answer does not fit the request, which stays open.
        """
        ask = self.open_requests.asked(answer)
        remembers = isinstance(answer, ApprovalAnswer) and answer.remember and answer.approved
        if remembers and isinstance(ask, ApprovalRequest):
            self.remember(ask)
        self.open_requests.answer(answer)
        self._resume_clocks(ask)

    def remember(self, ask: ApprovalRequest) -> None:
        """Approve the same actions for the rest of the task."""
        for action in ask.actions:
            self.approved.remember(ask.task_id, ask.address, ask.target, action, ask.observation)

    def expire(self, expired: RequestExpired) -> None:
        """Close a request that reached its deadline, unless it was just answered."""
        ask = self.open_requests.expire(expired)
        if ask is not None:
            self._resume_clocks(ask)

    def withdraw(self, task_id: str, run_id: str = "*") -> None:
        """Withdraw the requests of an ended run, and resume the task's clock."""
        for ask in self.open_requests.withdraw(task_id, run_id):
            self._resume_clocks(ask)

    def withdraw_calls(self, task_id: str, request_id: str = "*") -> None:
        """Withdraw the questions of calls that are over or must stop."""
        for ask in self.open_requests.withdraw_calls(task_id, request_id):
            self._resume_clocks(ask)

    def _resume_clocks(self, ask: Ask) -> None:
        self.clocks.go_on(ask.run_id, ask.id)
        self.run_waits.go_on(ask.task_id, ask.run_id, ask.id)
