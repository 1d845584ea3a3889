"""Obedience to the submitter of a task that this machine does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from callboard.config import HostLog
from callboard.messages import Answer, AnswerRefusedError, ApprovalAnswer, NotWaitingError

if TYPE_CHECKING:
    from callboard.actors.client import TaskHandle
    from callboard.fleet._work_messages import TaskSignals, Verdict
    from callboard.messages import Question, Task

_log = HostLog()


class Submitting(Protocol):
    """The part of a supervisor that does the work.

    Its methods may block.
    """

    def submit(self, task: Task) -> TaskHandle[Any]:
        """Submit a task; an earlier one of the same id is returned."""

    def handle(self, task_id: str) -> TaskHandle[Any]:
        """Return an earlier task.

        Raises:
            UnknownTaskError: If there is none.
        """

    def pending(self) -> tuple[TaskHandle[Any], ...]:
        """Return the unfinished tasks."""

    def confirm(self, task_id: str) -> None:
        """Resume a task of an earlier process that waits for its submitter."""

    def decline(self, question: Question, by: str) -> None:
        """Answer a question of a task whose submitter asks no person."""


class Obedience:
    """Follow the words of a submitter to a task, each once."""

    def __init__(
        self, submitting: Submitting, handle: TaskHandle[Any], submitter: str, *, approvals_here: bool
    ) -> None:
        self._submitting = submitting
        self._handle = handle
        self._submitter = submitter
        self._approvals_here = approvals_here
        self._paused: bool | None = None
        self._told_ids: set[str] = set()

    def follow(self, signals: TaskSignals) -> None:
        """Follow the new part of all that was said. Blocks."""
        handle = self._handle
        if signals.cancel is not None:
            handle.cancel(signals.cancel)
            return
        if signals.paused is not self._paused:
            self._paused = signals.paused
            _ = handle.pause() if signals.paused else handle.resume()
        for verdict in signals.verdicts:
            if verdict.id not in self._told_ids:
                self._told_ids.add(verdict.id)
                self._answer(verdict)

    def _answer(self, verdict: Verdict) -> None:
        handle = self._handle
        if self._approvals_here and isinstance(verdict, ApprovalAnswer):
            refusal = "the verdict of the machine %s on %s is refused: only people here decide (fleet.approvals: here)"
            _log.error(refusal, self._submitter, verdict.id)
            return
        try:
            if isinstance(verdict, Answer) and verdict.nobody:
                for question in handle.questions():
                    if question.id == verdict.id:
                        self._submitting.decline(question, self._submitter)
            elif isinstance(verdict, Answer):
                handle.answer(verdict.id, *verdict.texts, by=verdict.by)
            elif verdict.approved:
                handle.approve(verdict.id, by=verdict.by, remember=verdict.remember)
            else:
                handle.reject(verdict.id, verdict.reason, by=verdict.by)
        except NotWaitingError:
            _log.debug("%s was answered before", verdict.id)  # here, or before a restart
        except AnswerRefusedError as error:
            _log.error("the answer of the machine that asked for %s is refused: %s", verdict.id, error)
