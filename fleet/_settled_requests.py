"""Requests of other machines' tasks that were settled on this one."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING

from callboard.messages import Answer, ApprovalAnswer, AtDeadline, EventName, RequestExpired

if TYPE_CHECKING:
    from callboard.fleet._work_messages import Settled
    from callboard.messages import Fact

MOST_SETTLED = 20
"""The most settled requests that are told of a task. Its submitter waits for one at a time."""

_ANSWERED: dict[EventName, type[Answer | ApprovalAnswer]] = {
    EventName.QUESTION_ANSWERED: Answer,
    EventName.APPROVAL_ANSWERED: ApprovalAnswer,
}


class SettledRequests:
    """The last answers to the requests of each task.

    It belongs to the event loop. It forgets those of an earlier process: the submitter learns only that such a request
    is not open any more.
    """

    def __init__(self, *, approvals_here: bool) -> None:
        """Create it; `approvals_here` leaves out approvals, which are not the submitter's."""
        self._approvals_here = approvals_here
        self._tasks: dict[str, dict[str, Settled]] = collections.defaultdict(dict)

    def add(self, fact: Fact) -> None:
        """Take note of an event that tells of an answer."""
        answer_type = _ANSWERED.get(fact.name)
        if answer_type is None or (answer_type is ApprovalAnswer and self._approvals_here):
            return
        answer = fact.data.get("answer", {})
        if answer.get("withdrawn"):
            return
        settled: Settled
        if answer.get("expired"):
            settled = RequestExpired(
                id=answer["id"], task_id=fact.task_id, at_deadline=AtDeadline(answer.get("then", AtDeadline.FAIL))
            )
        else:
            settled = answer_type.model_validate(answer, strict=False)  # it comes from JSON
        answers = self._tasks[fact.task_id]
        answers[settled.id] = settled
        while len(answers) > MOST_SETTLED:
            del answers[next(iter(answers))]

    def of(self, task_id: str) -> tuple[Settled, ...]:
        """Return those of a task, the last one last."""
        return tuple(self._tasks.get(task_id, {}).values())

    def forget(self, task_id: str) -> None:
        """Forget those of a task that is over."""
        self._tasks.pop(task_id, None)
