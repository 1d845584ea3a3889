"""The pipeline that states call at level 2.

It runs four phases in order, wrapped by middleware.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from callboard.actors.processing._act import act_held
from callboard.actors.processing._approval_requests import (
    approval_request,
    illustrated,
    question,
    request_id,
    unattended_approval,
)
from callboard.actors.processing._collect import with_shared
from callboard.actors.processing._context import Meter
from callboard.actors.processing._middleware import ALL_PHASES, PhaseCall
from callboard.actors.processing._model_call import book
from callboard.actors.processing._recover import Doubt, acted_on, resume_step
from callboard.actors.processing.checks import Checker, finishes
from callboard.actors.states import GO_ON, STOP, evolve
from callboard.messages import (
    AgentStatus,
    Answer,
    AskedQuestion,
    CallboardError,
    Captured,
    Cause,
    DoubtError,
    FailedSubtaskError,
    Limit,
    Message,
    Outcome,
    OutOfBudgetError,
    Phase,
    PhaseError,
    Question,
    StepDone,
    StepFailure,
    StepTimeoutError,
    UnfoundedFinishError,
    Usage,
    encodable,
    maker,
)
from callboard.surfaces import ToolError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence

    from callboard.actors.processing._context import Context
    from callboard.actors.processing._middleware import Middleware
    from callboard.actors.processing._phases import Acted, Strategies
    from callboard.actors.runtime import Lease
    from callboard.actors.states import Run
    from callboard.messages import CheckResult, Decision, JudgeResult, Observation, StepRecord


_step_done = maker(StepDone)


@dataclass(frozen=True)
class Pipeline:
    """Level 2 of one kind of agent.

    Stateless; its methods run in jobs.
    """

    context: Context
    strategies: Strategies
    middleware: Sequence[Middleware]
    checker: Checker = field(default_factory=Checker)

    def under(self, lease: Lease) -> Pipeline:
        """Return a copy that acts under a lease."""
        return evolve(self, context=evolve(self.context, lease=lease))

    def process(self, run: Run) -> Coroutine[Any, Any, Message]:
        """Run the four phases.

        If one raises, the step fails and names that phase.
        """
        return self._step(self._four_phases, run)

    def process_resume(self, run: Run) -> Coroutine[Any, Any, Message]:
        """Observe again, then run exactly the held actions.

        Their step is already in the budget.
        """
        return self._step(self._held_actions, run, steps=0)

    async def _step(
        self, step: Callable[[Context, Run], Awaitable[StepDone | Question]], run: Run, *, steps: int = 1
    ) -> Message:
        """Run a step.

        The event of the step's end reports its phases; a step that ends without that event reports them here.
        """
        meter = Meter() if run.unfinished is None else Meter.resumed(run.unfinished)
        message: Message | None = None
        try:
            message = await self._metered(step, run, meter, steps)
        finally:
            if not isinstance(message, StepDone | StepFailure):
                evolve(self.context, meter=meter).tell_phases(run)
        return message

    async def _metered(
        self, step: Callable[[Context, Run], Awaitable[StepDone | Question]], run: Run, meter: Meter, steps: int
    ) -> Message:
        """Run a step within its limits and count its usage."""
        meter.start = time.perf_counter()
        assign, seconds = run.assign, run.limits.step_seconds
        self.context.lease.spent = meter
        self.context.lease.extra_seconds = seconds - self.context.services.settings.limits.step_seconds
        budgets = self.context.services.budgets
        budget = budgets.step(assign.task_id, assign.run_id)
        if run.grants:
            budget.grant(assign.run_id, run.grants)
        limit = meter.limit = self.context.services.clock.timeout(seconds)
        try:
            if steps:
                budget.reserve(steps=steps, **({} if assign.number else self._new_rounds(run)))
            meter.amounts["steps"] += steps
            context = evolve(self.context, meter=meter, budget=budget)
            if run.unfinished is not None:
                book(context, run.unfinished.answers)
            async with limit:
                done = await step(context, run)
        except PhaseError as error:
            spent = error.__cause__
            acted = error.phase == Phase.MEMORY_UPDATE  # of the judge: to go on would repeat the step's actions
            if isinstance(spent, OutOfBudgetError) and self._may_ask() and not acted:
                budget_question = self._ask_to_go_on(run, spent, meter.timed())
                return budget_question.model_copy(update={"sent_back": meter.sent_back})
            return self._failed(error, run, meter)
        except OutOfBudgetError as error:
            return self._ask_to_go_on(run, error, Usage()) if self._may_ask() else self._failed(error, run, meter)
        except TimeoutError as error:
            if not limit.expired():
                raise
            timeout_error = StepTimeoutError(f"the step took longer than {seconds:g} s")
            timeout_error.__cause__ = error
            return self._failed(timeout_error, run, meter)
        if isinstance(done, Question):  # the step is not over: it is counted when it ends
            budget.settle(steps=-steps)
        return done

    def _new_rounds(self, run: Run) -> dict[str, float]:
        """Return the rounds that a HostAgent's step has to reserve.

        A round is reserved once, even if its first step is interrupted and runs again.
        """
        assign = run.assign
        reserved = self.context.services.budgets.task(assign.task_id).used.get("rounds", 0)
        return {} if assign.round <= reserved else {"rounds": assign.round - reserved}

    def _failed(self, error: CallboardError, run: Run, meter: Meter) -> StepFailure:
        cause = error.__cause__ if isinstance(error, PhaseError) else error
        ends = {
            OutOfBudgetError: Outcome.OUT_OF_BUDGET,
            StepTimeoutError: Outcome.TIMED_OUT,
            DoubtError: Outcome.FAILED,
            FailedSubtaskError: Outcome.FAILED,
            UnfoundedFinishError: Outcome.FAILED,
            ToolError: Outcome.FAILED,  # of a look: the surface gives the reason, such as a damaged document
        }
        return StepFailure.model_validate(
            {
                "phase": Phase(error.phase) if isinstance(error, PhaseError) else None,
                "causes": Cause.chain(error, where=run.assign.address),
                "outcome": next((ends[kind] for kind in ends if isinstance(cause, kind)), Outcome.ERROR),
                "results": meter.done(self.context.lease.guard),
                "seen": meter.seen,
                "usage": meter.timed() if meter.start else meter.usage,
            }
        )

    def _may_ask(self) -> bool:
        settings = self.context.services.settings
        return settings.budget.at_limit == "ask" and settings.system.ask_question

    def _ask_to_go_on(self, run: Run, spent: OutOfBudgetError, usage: Usage) -> Question:
        choice_question = AskedQuestion(text=f"{spent}. Go on with as much again?", choices=(GO_ON, STOP))
        limit = Limit(node=spent.node, kind=spent.kind)
        return question(self.context, run, (choice_question,)).model_copy(update={"limit": limit, "usage": usage})

    async def _four_phases(self, context: Context, run: Run) -> StepDone:
        how = self.strategies
        observation = context.meter.seen = await self._phase(
            Phase.DATA_COLLECTION, context, run, with_shared, how.collect
        )
        decision: Decision = await self._phase(Phase.LLM_INTERACTION, context, run, how.decide, observation)
        acted: Acted = await self._phase(Phase.ACTION_EXECUTION, context, run, how.act, observation, decision)
        return await self._remembered(context, run, observation, acted)

    async def _held_actions(self, context: Context, run: Run) -> StepDone:
        observation = context.meter.seen = await self._collect(context, run)
        acted: Acted = await self._phase(Phase.ACTION_EXECUTION, context, run, act_held, observation)
        return _resumed(await self._remembered(context, run, observation, acted))

    async def process_recovered(self, run: Run) -> Message:
        """Resume a step after a crash: probe, then run the remaining actions."""
        unfinished = run.unfinished
        resumed = unfinished is not None and unfinished.decided is not None and unfinished.decided.resumed
        return await self._step(self._resume_step, run, steps=0 if resumed else 1)

    async def _resume_step(self, context: Context, run: Run) -> StepDone | Question:
        new_observation = context.meter.seen = await self._collect(context, run)
        acted = await self._phase(Phase.ACTION_EXECUTION, context, run, resume_step, new_observation)
        if isinstance(acted, Doubt):
            doubt_question = question(context, run, (acted.question,)).model_copy(update={"in_doubt": acted.call_id})
            return await illustrated(context, run, doubt_question, new_observation)
        decided = acted_on(run)
        done = await self._remembered(context, run, decided.observation, acted)
        return _resumed(done) if decided.resumed else done

    async def process_confirmation(self, run: Run) -> Message:
        """Ask for approval with a new observation.

        If no approval is needed, approve at once.
        """
        approved = unattended_approval(self.context, run)
        if approved is not None:
            return approved
        try:
            observation = await self._look(run)
        except PhaseError as error:
            return self._failed(error, run, Meter())
        return await approval_request(self.context, run, observation)

    async def process_asker(self, run: Run) -> Message:
        """Ask the model's questions.

        If no person is there, they are answered at once.
        """
        assign = run.assign
        if not self.context.services.settings.system.ask_question:
            return Answer(id=request_id(run), task_id=assign.task_id, nobody=True)
        model_question = question(self.context, run, run.records[-1].decision.questions)
        if assign.target is None or not self.context.services.toolbox.surface(assign.target).pictures:
            return model_question
        try:
            observation = await self._look(run)
        except PhaseError:  # a person can answer without a picture
            return model_question
        return await illustrated(self.context, run, model_question, observation)

    async def capture(self, run: Run) -> Message:
        """Take a last observation for the record.

        None if the target can't be observed.
        """
        start = time.perf_counter()
        try:
            observation = await self._look(run)
        except PhaseError:
            observation = None
        return Captured(observation=observation, seconds=time.perf_counter() - start)

    async def _look(self, run: Run) -> Any:
        """Observe outside of a step."""
        context = evolve(self.context, meter=Meter())
        try:
            return await self._collect(context, run)
        finally:
            context.tell_phases(run)

    async def _collect(self, context: Context, run: Run) -> Any:
        return await self._phase(Phase.DATA_COLLECTION, context, run, with_shared, self.strategies.collect)

    async def _remembered(self, context: Context, run: Run, observation: Observation, acted: Acted) -> StepDone:
        checks: tuple[CheckResult, ...] = ()
        if run.checks_of(acted.decision) and finishes(run, acted):
            checks = await self.checker.run(context, run, acted)
        judged, judge_calls = await self._judged(context, run, acted, checks)
        if judged and checks and await self.checker.outdated(context, run):
            checks = await self.checker.run(context, run, acted)  # the judge took its time
        remember = self.strategies.remember
        record: StepRecord = await self._phase(Phase.MEMORY_UPDATE, context, run, remember, observation, acted)
        return _step_done(
            record=record.model_copy(update={"checks": checks, "judged": judged, "judge_calls": judge_calls}),
            held=acted.held,
            held_by=acted.held_by,
            held_why=acted.held_why,
            left=acted.left,
            usage=context.meter.timed(),
        )

    async def _judged(
        self, context: Context, run: Run, acted: Acted, checks: Sequence[CheckResult]
    ) -> tuple[tuple[JudgeResult, ...], int]:
        """Ask the judge of a FINISH, once all checks hold.

        Returns:
            Its answers, and the number of its model calls.
        """
        refused = any(not check.held and check.source == "task" for check in checks)
        if run.assign.judge is None or refused or not finishes(run, acted):
            return (), 0
        try:
            return await self.checker.judge(context, run)
        except OutOfBudgetError as error:
            raise PhaseError(Phase.MEMORY_UPDATE.value, error) from error

    async def _phase(
        self, phase: Phase, context: Context, run: Run, work: Callable[..., Awaitable[Any]], *parts: object
    ) -> Any:
        """Run a phase in its middleware and record its duration."""
        proceed = partial(work, context, run, *parts)
        for wrap in reversed(self.middleware):
            if phase in getattr(wrap, "phases", ALL_PHASES):
                proceed = partial(wrap, PhaseCall(phase, context, run), proceed)
        start = time.perf_counter()
        failure: BaseException | None = None
        try:
            return await proceed()
        except Exception as error:
            failure = error
            raise PhaseError(phase.value, error) from error
        except BaseException as error:
            failure = error
            raise
        finally:
            took = time.perf_counter() - start
            ended: dict[str, Any] = {"phase": str(phase), "at": context.services.clock.now(), "duration": took}
            if failure is not None:
                ended["error"] = encodable(str(failure)) or type(failure).__name__
            context.meter.phases.append(ended)


def _resumed(done: StepDone) -> StepDone:
    """Mark a step as resumed and keep the agent's next status."""
    status = done.record.decision.status
    follows = "" if status in {AgentStatus.CONFIRM, AgentStatus.CONTINUE} else status
    return done.model_copy(update={"record": done.record.model_copy(update={"resumed": True}), "follows": follows})
