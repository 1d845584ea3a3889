"""The pipeline: four phases in order, wrapped by middleware. What states ask of level 2."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from callboard.actors.processing._act import act_held
from callboard.actors.processing._middleware import PhaseCall
from callboard.actors.processing._phases import Meter
from callboard.messages import (
    Answer,
    ApprovalAnswer,
    ApprovalRequest,
    Captured,
    Cause,
    Message,
    Phase,
    PhaseError,
    Question,
    StepDone,
    StepFailed,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from callboard.actors.processing._middleware import Middleware
    from callboard.actors.processing._phases import Acted, Context, Strategies
    from callboard.actors.runtime import Lease
    from callboard.actors.states import Run
    from callboard.messages import Decision, Observation


@dataclass(frozen=True)
class Pipeline:
    """Level 2 of one kind of agent. Stateless; its methods run in jobs."""

    context: Context
    strategies: Strategies
    middleware: Sequence[Middleware]

    def under(self, lease: Lease) -> Pipeline:
        """Give the same pipeline, acting under a lease."""
        return replace(self, context=replace(self.context, lease=lease))

    async def process(self, run: Run) -> Message:
        """Run the four phases; a phase that raises fails the step, and is named."""
        return await self._metered(self._four_phases, run)

    async def process_resume(self, run: Run) -> Message:
        """Look again, then run exactly the held actions."""
        return await self._metered(self._held_actions, run)

    async def _metered(self, step: Callable[[Context, Run], Awaitable[StepDone]], run: Run) -> Message:
        start = time.perf_counter()
        meter = Meter(Usage(steps=1))
        try:
            done = await step(replace(self.context, meter=meter), run)
        except PhaseError as error:
            return _failed(error, run, _timed(meter.usage, start))
        return done.model_copy(update={"usage": _timed(meter.usage, start)})

    async def _four_phases(self, context: Context, run: Run) -> StepDone:
        how = self.strategies
        observation: Observation = await self._collect(context, run)
        decision: Decision = await self._phase(
            Phase.LLM_INTERACTION, context, run, lambda: how.decide(context, run, observation)
        )
        acted: Acted = await self._phase(
            Phase.ACTION_EXECUTION, context, run, lambda: how.act(context, run, observation, decision)
        )
        return await self._remembered(context, run, observation, acted)

    async def _held_actions(self, context: Context, run: Run) -> StepDone:
        observation: Observation = await self._collect(context, run)
        acted: Acted = await self._phase(Phase.ACTION_EXECUTION, context, run, lambda: act_held(context, run))
        return await self._remembered(context, run, observation, acted)

    async def process_confirmation(self, run: Run) -> Message:
        """Collect what the agent sees and ask; or go on at once where approvals are switched off."""
        assign = run.assign
        request_id = _request_id(run)
        if not self.context.services.settings.system.safe_guard:
            reason = "safe_guard is off"
            return ApprovalAnswer(id=request_id, task_id=assign.task_id, approved=True, unattended=True, reason=reason)
        try:
            observation = await self._collect(self.context, run)
        except PhaseError as error:
            return _failed(error, run, Usage())
        return ApprovalRequest(
            id=request_id,
            task_id=assign.task_id,
            run_id=assign.run_id,
            token=assign.token,
            address=assign.address,
            target=assign.target,
            actions=run.held,
            reason=run.held_by_policy or run.decision_comment or "the agent's model asks for approval",
            observation=observation,
            deadline=self.context.services.clock.now() + run.limits.approval_seconds,
        )

    async def process_asker(self, run: Run) -> Message:
        """Ask the model's questions; or tell it at once that nobody will answer."""
        assign = run.assign
        request_id = _request_id(run)
        if not self.context.services.settings.system.ask_question:
            return Answer(id=request_id, task_id=assign.task_id, nobody=True)
        return Question(
            id=request_id,
            task_id=assign.task_id,
            run_id=assign.run_id,
            token=assign.token,
            address=assign.address,
            questions=run.records[-1].decision.questions,
            deadline=self.context.services.clock.now() + run.limits.question_seconds,
        )

    async def capture(self, run: Run) -> Message:
        """Look once more, for the record; that nothing can be seen any more is no error here."""
        start = time.perf_counter()
        try:
            observation = await self._collect(self.context, run)
        except PhaseError:
            observation = None
        return Captured(observation=observation, seconds=time.perf_counter() - start)

    async def _collect(self, context: Context, run: Run) -> Any:  # noqa: ANN401 - an observation
        return await self._phase(Phase.DATA_COLLECTION, context, run, lambda: self.strategies.collect(context, run))

    async def _remembered(self, context: Context, run: Run, observation: Observation, acted: Acted) -> StepDone:
        record = await self._phase(
            Phase.MEMORY_UPDATE, context, run, lambda: self.strategies.remember(context, run, observation, acted)
        )
        return StepDone(record=record, held=acted.held, held_by_policy=acted.held_by_policy)

    async def _phase(self, phase: Phase, context: Context, run: Run, work: Callable[[], Awaitable[Any]]) -> Any:  # noqa: ANN401 - the phase's output
        call = PhaseCall(phase, context, run)
        proceed = work
        for wrap in reversed(self.middleware):
            proceed = _wrapped(wrap, call, proceed)
        try:
            return await proceed()
        except Exception as error:
            raise PhaseError(phase.value, error) from error


def _wrapped(wrap: Middleware, call: PhaseCall, proceed: Callable[[], Awaitable[Any]]) -> Callable[[], Awaitable[Any]]:
    return lambda: wrap(call, proceed)


def _failed(error: PhaseError, run: Run, usage: Usage) -> StepFailed:
    return StepFailed(phase=Phase(error.phase), causes=Cause.chain(error, where=run.assign.address), usage=usage)


def _timed(usage: Usage, start: float) -> Usage:
    return usage.model_copy(update={"seconds": time.perf_counter() - start})


def _request_id(run: Run) -> str:
    return f"{run.assign.run_id}/ask-{run.job}"
