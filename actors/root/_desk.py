"""The desk: open approvals and questions. The first answer wins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.messages import Answer, AnswerRefusedError, ApprovalAnswer, ApprovalRequest, NotWaitingError, Question

if TYPE_CHECKING:
    from callboard.actors.runtime import Alarm

Ask = Question | ApprovalRequest


@dataclass(frozen=True)
class _Open:
    ask: Ask
    alarm: Alarm | None


class Desk:
    """What waits for a person. Part of the switchboard; runs on its thread, which decides all races."""

    def __init__(self) -> None:
        self._open: dict[str, _Open] = {}

    def open(self, ask: Ask, alarm: Alarm | None) -> None:
        """Put something on the desk."""
        self._open[ask.id] = _Open(ask, alarm)

    def answer(self, answer: Answer | ApprovalAnswer) -> Ask:
        """Close what an answer is for, and return it.

        Raises:
            NotWaitingError: If it is not open (any more).
            AnswerRefusedError: If the answer does not fit; it stays open.
        """
        entry = self._open.get(answer.id)
        if entry is None or entry.ask.task_id != answer.task_id:
            msg = f"{answer.id!r} is not open: it was answered, reached its deadline, was cancelled, or never was"
            raise NotWaitingError(msg)
        _check(entry.ask, answer)
        return self._close(answer.id)

    def expire(self, request_id: str) -> Ask | None:
        """Close what reached its deadline; None if it was answered just before."""
        return self._close(request_id) if request_id in self._open else None

    def withdraw(self, task_id: str) -> None:
        """Take away all of a task."""
        for request_id in [key for key, entry in self._open.items() if entry.ask.task_id == task_id]:
            self._close(request_id)

    def _close(self, request_id: str) -> Ask:
        entry = self._open.pop(request_id)
        if entry.alarm is not None:
            entry.alarm.cancel()
        return entry.ask

    @property
    def approvals(self) -> tuple[ApprovalRequest, ...]:
        """Approvals that wait."""
        return tuple(entry.ask for entry in self._open.values() if isinstance(entry.ask, ApprovalRequest))

    @property
    def questions(self) -> tuple[Question, ...]:
        """Questions that wait."""
        return tuple(entry.ask for entry in self._open.values() if isinstance(entry.ask, Question))


def _check(ask: Ask, answer: Answer | ApprovalAnswer) -> None:
    if isinstance(ask, Question) is not isinstance(answer, Answer):
        what = "a question: answer it" if isinstance(ask, Question) else "an approval: approve or reject it"
        msg = f"{ask.id!r} is {what}"
        raise AnswerRefusedError(msg)
    if not isinstance(ask, Question) or not isinstance(answer, Answer):
        return
    if len(answer.texts) != len(ask.questions):
        msg = f"{ask.id!r} asks {len(ask.questions)} questions, and got {len(answer.texts)} answers"
        raise AnswerRefusedError(msg)
    for question, text in zip(ask.questions, answer.texts, strict=True):
        if question.choices and text not in question.choices:
            msg = f"{text!r} is no answer to {question.text!r}; choose one of: {', '.join(question.choices)}"
            raise AnswerRefusedError(msg)
