"""Repair of answers: an invalid one goes back to the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from callboard.messages import AgentStatus, EventName, FailedSubtaskError, InvalidAnswerError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from callboard.actors.models import ModelAnswer
    from callboard.actors.processing._phases import Context
    from callboard.actors.states import Run
    from callboard.messages import Decision


UNDONE = (
    "it says FINISH, and nothing was done yet: no action was run. Do what the request asks for; if looking was enough "
    "for that, say FINISH again, with the answer in Result"
)


class AnswerRepair:
    """The answers of one step that went back to the model.

    The model gets all reasons so far with each request. At most ``limits.repairs`` invalid answers go back. A FINISH
    before any action goes back once more, and does not count as one of them.
    """

    def __init__(self, context: Context, run: Run) -> None:
        self.reasons: tuple[str, ...] = ()
        """The reasons, in the order of the answers."""
        self._context = context
        self._run = run
        self._pending = False
        """Whether the last answer was invalid, and the next one is its repair."""
        self._insisted = False

    def count(self) -> None:
        """Count a repair, once the answer to an invalid one is there."""
        if self._pending:
            self._context.meter.amounts["repairs"] += 1
            self._pending = False

    def send_back(self, error: InvalidAnswerError, taken: Mapping[str, Any]) -> None:
        """Send an invalid answer back.

        Args:
            error: The reason, written for the model.
            taken: The usage and duration of the call, for the event.

        Raises:
            InvalidAnswerError: If all repairs are used up; a `FailedSubtaskError` if the model insisted on one.
        """
        self._pending = True
        self._insisted = self._insisted or isinstance(error, FailedSubtaskError)
        self._add(str(error), taken)
        most = self._run.limits.repairs
        if len(self.reasons) - self._context.meter.sent_back > most:
            msg = f"the model's answer is invalid: {error} (after {most} repairs)"
            raise (FailedSubtaskError if self._insisted else InvalidAnswerError)(msg, self.reasons) from error

    def sends_back_undone(self, answer: ModelAnswer, decision: Decision, taken: Mapping[str, Any]) -> bool:
        """Send back a FINISH before any action; return whether it was."""
        meter = self._context.meter
        if not answer.offered or meter.sent_back or not _finishes_undone(self._run, decision):
            return False
        meter.sent_back = True
        self._add(UNDONE, taken)
        return True

    def _add(self, reason: str, taken: Mapping[str, Any]) -> None:
        self.reasons = (*self.reasons, reason)
        self._context.tell(EventName.MODEL_REPAIRED, self._run, reason=reason, attempt=len(self.reasons), **taken)


def _finishes_undone(run: Run, decision: Decision) -> bool:
    """Return whether a FINISH comes before any action.

    False if one was sent back before.
    """
    if decision.status != AgentStatus.FINISH or decision.actions or run.sent_back:
        return False
    return not any(record.acted or record.decision.sent_back for record in run.records)
