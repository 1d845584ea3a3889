"""The work of an agent whose subtask another machine does."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from callboard.actors.states import evolve
from callboard.messages import Answer, CallboardError, Cause, Message, Outcome, Question, RemoteEnded, StepFailure

if TYPE_CHECKING:
    from callboard.actors.processing._services import Services
    from callboard.actors.runtime import Lease
    from callboard.actors.states import Run
    from callboard.messages import ApprovalRequest, Budget, PolicyRule


@dataclass(frozen=True)
class RemoteTerms:
    """The terms of a task that its subtask on another machine keeps."""

    budget: Budget | None
    """The share of the task's budget that the subtask may use."""
    policy: tuple[PolicyRule, ...]
    """The task's own rules."""
    model: str | None = None
    """The model that the task names."""
    may_change: tuple[str, ...] = ()
    """The files that the task may change without an approval."""


class RemoteWork(Protocol):
    """The connection to the other machines of a fleet.

    All methods run on the event loop.
    """

    def may_assign(self, task_id: str) -> bool:
        """Return whether other machines may do subtasks of a task."""
        ...

    async def carry_on(self, run: Run, terms: RemoteTerms) -> Question | ApprovalRequest | RemoteEnded:
        """Send a subtask, or a person's answer, and wait.

        What was sent before a crash is not sent again.

        Returns:
            The next question or approval of the other machine, under the ids of this one, or the end.

        Raises:
            CallboardError: If the other machine can't take the work.
        """
        ...

    async def stop(self, run: Run) -> RemoteEnded:
        """Cancel a subtask on the other machine, and return its end."""
        ...

    def pause(self, run: Run, *, paused: bool) -> None:
        """Pause a subtask on the other machine, or resume it."""
        ...

    def forget(self, run: Run) -> None:
        """Delete what the fleet keeps of a subtask that is over."""
        ...

    def expect_answer(self, run: Run) -> None:
        """Report when a run's request is no longer open there."""
        ...


NO_FLEET = "this supervisor belongs to no fleet: set fleet.url, or fleet.local"


@dataclass(frozen=True)
class RemotePipeline:
    """Level 2 of a RemoteAgent. Stateless; its methods run in jobs."""

    services: Services
    lease: Lease

    def under(self, lease: Lease) -> RemotePipeline:
        """Return a copy that acts under a lease."""
        return evolve(self, lease=lease)

    async def process(self, run: Run) -> Message:
        """Return the next message of the other machine."""
        remote, assign = self.services.remote, run.assign
        if remote is None:
            return _failed(run, NO_FLEET)
        secrets = self.services.secrets
        secret_names = secrets.own_names(assign.task_id)
        if secret_names:
            listed = ", ".join(sorted(secret_names))
            return _failed(run, f"secrets of a task are not sent to another machine, and it has: {listed}")
        self.lease.extra_seconds = math.inf  # the time limits of steps hold on the other machine
        if secrets.known:
            run = evolve(run, assign=secrets.redact(assign.task_id, assign))
        try:
            message = await remote.carry_on(run, self._terms(run))
        except CallboardError as error:
            return _failed(run, str(error))
        if isinstance(message, RemoteEnded):
            self._book(run, message)
        if isinstance(message, Question) and not self.services.settings.system.ask_question:
            return Answer(id=message.id, task_id=assign.task_id, nobody=True)
        return message

    async def capture(self, run: Run) -> Message:
        """Stop the subtask on the other machine, and return its end."""
        remote = self.services.remote
        if remote is None:
            return _failed(run, NO_FLEET)
        self.lease.extra_seconds = math.inf
        try:
            ended = await remote.stop(run)
        except CallboardError as error:
            return _failed(run, str(error))
        self._book(run, ended)
        return ended

    process_resume = process_recovered = process_confirmation = process_asker = process
    """Whatever a run waits for: its steps, approvals and questions are the other machine's."""

    def _terms(self, run: Run) -> RemoteTerms:
        assign, budgets = run.assign, self.services.budgets
        reserved = None if assign.member is None else assign.member.share
        policy = self.services.task_policies.of(assign.task_id)
        return RemoteTerms(
            budget=reserved or budgets.share_of(assign.task_id, parts=1),
            policy=() if policy is None else tuple(policy.rules),
            model=self.services.task_models.name_of(assign.task_id),
            may_change=tuple(sorted(self.services.may_change.names(assign.task_id))),
        )

    def _book(self, run: Run, ended: RemoteEnded) -> None:
        """Charge the usage to this machine's budgets, which have not seen it."""
        usage = ended.result.usage
        self.services.budgets.step(run.assign.task_id, run.assign.run_id).settle(
            steps=usage.steps,
            model_calls=usage.model_calls,
            tokens=usage.input_tokens + usage.output_tokens,
            cost=usage.cost,
        )


def _failed(run: Run, reason: str) -> StepFailure:
    return StepFailure(phase=None, causes=(Cause(reason=reason, where=run.assign.address),), outcome=Outcome.FAILED)
