"""People: what they are asked, and what their word sets going again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.messages import ApprovalAnswer, ApprovalRequest

if TYPE_CHECKING:
    from callboard.actors.commands import Approved
    from callboard.actors.root._clocks import Stopwatches
    from callboard.actors.root._desk import Ask, Desk, Reply
    from callboard.messages import Answer, RequestExpired


class People:
    """The desk, the clocks that stand still while somebody is asked, and what was approved for good.

    Part of the switchboard; runs on its thread.
    """

    def __init__(self, desk: Desk, clocks: Stopwatches, approved: Approved) -> None:
        self._desk = desk
        self._clocks = clocks
        self._approved = approved

    def ask(self, ask: Ask, reply: Reply | None = None) -> None:
        """Ask a person; the clocks of the task and of the run stand still. `reply` is a running call's."""
        self._desk.ask(ask, reply)
        self._stand_still(ask)

    def restore(self, ask: Ask) -> None:
        """Go on asking what another process had asked; nothing new is told."""
        self._desk.put(ask)
        self._stand_still(ask)

    def _stand_still(self, ask: Ask) -> None:
        for key in (ask.task_id, ask.run_id):
            self._clocks.stop(key, ask.id)

    def answer(self, answer: Answer | ApprovalAnswer) -> None:
        """Settle what a person said: the first word wins, and the clocks go on.

        Raises:
            NotWaitingError: If it is not open (any more).
            AnswerRefusedError: If the answer does not fit; it stays open.
        """
        ask = self._desk.asked(answer)
        wants = isinstance(answer, ApprovalAnswer) and answer.remember and answer.approved
        if wants and isinstance(ask, ApprovalRequest):
            self.remember(ask)
        self._desk.answer(answer)
        self._go_on(ask)

    def remember(self, ask: ApprovalRequest) -> None:
        """Approve the same actions for the rest of the task."""
        for action in ask.actions:
            self._approved.remember(ask.task_id, ask.address, ask.target, action, ask.observation)

    def expire(self, expired: RequestExpired) -> None:
        """Settle what reached its deadline, unless it was answered just before."""
        ask = self._desk.expire(expired)
        if ask is not None:
            self._go_on(ask)

    def withdraw(self, task_id: str, run_id: str = "*") -> None:
        """Take away what a run that is stopped or over asked; the task's clock goes on."""
        for ask in self._desk.withdraw(task_id, run_id):
            self._go_on(ask)

    def withdraw_calls(self, task_id: str, request_id: str = "*") -> None:
        """Take away what running calls ask: they are over, or the supervisor stops."""
        for ask in self._desk.withdraw_calls(task_id, request_id):
            self._go_on(ask)

    def _go_on(self, ask: Ask) -> None:
        for key in (ask.task_id, ask.run_id):
            self._clocks.go_on(key, ask.id)
