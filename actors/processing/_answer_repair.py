"""Repair of answers: an invalid one goes back to the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from callboard.messages import (
    AgentStatus,
    EventName,
    FailedSubtaskError,
    InvalidAnswerError,
    Outcome,
    ResultStatus,
    UnfoundedFinishError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from callboard.actors.models import ModelAnswer
    from callboard.actors.processing._phases import Context
    from callboard.actors.states import Run
    from callboard.messages import CommandResult, Decision


UNDONE = (
    "it says FINISH, and nothing was done yet: no action was run. Do what the request asks for; if looking was enough "
    "for that, say FINISH again, with the answer in Result"
)


UNFOUNDED = "it says FINISH, and none of the actions so far succeeded ({failed})"
_INSTEAD = ": do what the request asks for in another way, or say FAIL with the reason in Comment"
_NAMED = 3
"""The number of failed actions that the reason names, the latest ones."""


class AnswerRepair:
    """The answers of one step that went back to the model.

    The model gets all reasons so far with each request. At most ``limits.repairs`` invalid answers go back. A FINISH
    before any action, or after failed ones only, goes back once more, and does not count as one of them.
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

    def sends_back_finish(self, answer: ModelAnswer, decision: Decision, taken: Mapping[str, Any]) -> bool:
        """Send back a FINISH before any successful action; return whether it was.

        Raises:
            UnfoundedFinishError: If the model insists on a FINISH after failed actions only.
        """
        meter, run = self._context.meter, self._run
        if not answer.offered or decision.status != AgentStatus.FINISH or decision.actions:
            return False
        here = meter.sent_back or run.sent_back
        failed = _only_failures(run) if answer.must_succeed else ()
        if failed:
            reason = UNFOUNDED.format(failed="; ".join(f"{each.tool}: {each.error}" for each in failed[-_NAMED:]))
            if here or _sent_back_after_failures(run):
                raise UnfoundedFinishError(reason, (*self.reasons, reason))
            reason += _INSTEAD
        elif here or any(record.acted or record.decision.sent_back for record in run.records):
            return False
        else:
            reason = UNDONE
        meter.sent_back = True
        self._add(reason, taken)
        return True

    def _add(self, reason: str, taken: Mapping[str, Any]) -> None:
        self.reasons = (*self.reasons, reason)
        self._context.tell(
            EventName.MODEL_REPAIRED,
            self._run,
            reason=reason,
            attempt=len(self.reasons),
            duration=taken["duration"],
            model=taken["model"],
            answered_by=taken["answered_by"],
            cost=taken["cost"],
            input_tokens=taken["input_tokens"],
            output_tokens=taken["output_tokens"],
        )


def _only_failures(run: Run) -> tuple[CommandResult, ...]:
    """Return the failed actions of a run without any success."""
    results = tuple(result for record in run.records for result in record.results)
    if any(done.outcome is Outcome.FINISHED for done in run.own_subtasks):
        return ()
    return results if all(result.status in {ResultStatus.FAILURE, ResultStatus.SKIPPED} for result in results) else ()


def _sent_back_after_failures(run: Run) -> bool:
    """Return whether an earlier step's FINISH was sent back after actions."""
    acted = False
    for record in run.records:
        if acted and record.decision.sent_back:
            return True
        acted = acted or bool(record.results)
    return False
