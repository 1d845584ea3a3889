"""The base of all agents: a mailbox, a run, and its moves."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import pykka

from callboard.actors.commands import Secrets
from callboard.actors.late_results import JobResults, JobReturned, StepMoves, decided, is_stale
from callboard.actors.processing import AGENTS
from callboard.actors.runtime import ScheduledActor
from callboard.actors.states import (
    Run,
    controls_of,
    evolve,
    fold,
    last_action,
    last_look,
    memory_key,
    moves,
)
from callboard.messages import (
    AgentCrashedError,
    AgentStatus,
    Answer,
    ApprovalAnswer,
    ApprovalRequest,
    Assign,
    AssignGroup,
    Cancel,
    EventName,
    IllegalMoveError,
    Message,
    Pause,
    Question,
    RequestExpired,
    Resume,
    RoundEnding,
    Step,
    StepDone,
    StepFailure,
    SubtaskEnding,
    TaskForgotten,
    agent_kind,
    maker,
    with_results,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from callboard.actors.processing import AgentPipeline, AgentTraits, RemoteWork
    from callboard.actors.runtime import EventStream, Jobs, Lease, Leases, Scheduler
    from callboard.actors.states import AgentStateManager, RunMessage
    from callboard.config import Limits
    from callboard.journal import Journal


class Crashed(Protocol):
    """A report of a crash."""

    def __call__(self, address: str, error: BaseException, urn: str) -> None:
        """Report an agent by its address, the error, and the actor's URN."""


@dataclass(frozen=True)
class AgentContext:
    """The services of agents, shared by all agents of one supervisor."""

    post: Callable[[Message], None]
    """Send the root a message."""
    crashed: Crashed
    """Report to the root that an agent is dead, or lost the result of its job."""
    scheduler: Scheduler
    jobs: Jobs
    leases: Leases
    stream: EventStream
    journal: Journal
    limits: Limits
    pipelines: Mapping[str, AgentPipeline]
    agents: Mapping[str, AgentTraits] = field(default_factory=lambda: AGENTS)
    """The kinds of agents, by name."""
    plans: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The plan of each run's latest step, for reports of the progress."""
    secrets: Secrets = field(default_factory=lambda: Secrets({}))
    """Secrets, which are redacted in the results of jobs."""
    remote: RemoteWork | None = None
    """The other machines of the fleet; None without one."""


_step = maker(Step)


@dataclass(frozen=True)
class Continue:
    """A request to resume a run, or begin one with earlier memory."""

    assign: Assign
    """The assignment, under its new lease."""
    history: tuple[RunMessage, ...]
    """All earlier rows of this address, the assignment included."""


RunUpdate = SubtaskEnding | Answer | ApprovalAnswer | RequestExpired | Cancel | Pause | Resume
"""The messages that change a run from outside."""

Inbox = Continue | Assign | Step | JobReturned | TaskForgotten | RunUpdate


class Agent(ScheduledActor):
    """An agent with one address and one run at a time.

    All agents share the event loop's thread. They only decide, and nothing here may block: the work of states runs in
    jobs on the event loop, whose results come back as `JobReturned`. The root has the queue for the agent's target. All
    messages leave through `post`.
    """

    def __init__(self, address: str, context: AgentContext) -> None:
        super().__init__(context.scheduler)
        self.address = address
        self._kind = agent_kind(address)
        self._context = context
        self.machine: type[AgentStateManager] = context.agents[self._kind].machine
        """The agent's state machine."""
        self._run: Run | None = None
        self._leased_pipeline: tuple[Lease, AgentPipeline] | None = None
        """The latest lease, and the pipeline under it."""
        self._results = JobResults(address, self.machine, context.stream, context.journal, context.secrets)
        self._ended_runs: dict[str, Run] = {}  # ended runs by memory key: the next assignment begins with their memory

    def on_receive(self, message: Inbox) -> None:
        """Handle one message; every error becomes an `AgentCrashedError`.

        Called for each message of the mailbox, on the event loop's thread, one at a time. It may raise: the agent then
        dies, `on_failure` is called, and the root restarts its run from the journal. `receive` is the method to
        override. Without the conversion Pykka would answer a `SystemExit` by stopping every actor of the process.
        """
        try:
            self.receive(message)
        except BaseException as error:
            raise AgentCrashedError(self.address) from error

    def on_failure(
        self,
        exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Report the crash to the root; the actor is dead.

        Called once, right after `on_receive` raised, on the event loop's thread. It must not raise: Pykka would only
        log that, and the root would learn of the crash no earlier than at its next check for stalled runs. An override
        calls this one.
        """
        self._context.crashed(self.address, exception_value or AgentCrashedError(self.address), self.actor_urn)

    def receive(self, message: Inbox) -> None:
        """Handle one message; one that is stale only emits an event.

        The hook for agents of a program's own. Called by `on_receive`, on the event loop's thread, also within another
        call, when a run takes its next step at once. It must not block, since all agents share the thread. It may
        raise, which is a crash of the agent.
        """
        match message:
            case Assign():
                self._begin(message)
            case Continue():
                self._continue(message)
            case TaskForgotten():
                self._forget(message.task_id)
            case Step():
                self._start_job(message)
            case JobReturned():
                self._take_back(message)
            case _:
                self._apply(message)

    def _begin(self, assign: Assign) -> None:
        earlier_run = self._ended_runs.get(memory_key(assign))
        self._run = Run.begin(assign, self._context.limits, self.machine.initial, earlier_run)
        self._tell(EventName.STATE_CHANGED, source="", target=self._run.status, by="system")
        self._go()

    def _continue(self, message: Continue) -> None:
        run = fold(message.history, self._context.limits, self.machine)
        if run is not None and run.assign.run_id == message.assign.run_id and run.assign.number:
            run = evolve(run, assign=message.assign, subtasks=message.assign.subtasks)  # rows leave the subtasks out
        self._run = run
        if run is not None:
            self._context.plans[run.assign.run_id] = run.plan
            self._tell(
                EventName.RUN_RECOVERED, step=run.steps + 1, steps=run.steps, broken_off=run.unfinished is not None
            )
            last = last_ending(message.history)
            if last is not None and (run.over or run.waiting):
                self._context.post(renewed(last, run))
        self._go()

    def _forget(self, task_id: str) -> None:
        self._ended_runs.pop(task_id, None)
        if self._run is not None and self._run.over and memory_key(self._run.assign) == task_id:
            self._run = None

    def _apply(self, message: RunUpdate) -> None:
        run = self._run
        if run is None or run.over or run.assign.task_id != message.task_id or not run.expects(message):
            self._context.stream.emit(
                EventName.MESSAGE_STALE, task_id=message.task_id, agent=self.address, message=type(message).__name__
            )
            return
        if isinstance(message, Cancel):
            run = self._stop_job(run)
        self._run = run.apply(message)
        self._go()

    def _stop_job(self, run: Run) -> Run:
        """Cancel the running job, and keep its usage and results so far."""
        self._context.jobs.cancel(run.assign.token)
        lease = self._context.leases.get(run.assign.token)
        spent, unfinished = lease.spent if run.busy else None, run.unfinished
        if spent is not None:  # it includes the results of the step that a crash had interrupted
            run = evolve(run, last_seen=spent.seen or run.last_seen)
            return run.with_lost(spent.usage, spent.done(lease.guard))
        return run if unfinished is None else run.with_lost(unfinished.usage, unfinished.done)

    def _start_job(self, step: Step) -> None:
        run, context = self._run, self._context
        if run is None or run.over or run.busy or run.paused or (step.token, step.job) != (run.assign.token, run.job):
            return  # a cancel or an answer came first, which takes a step of its own
        lease = context.leases.get(run.assign.token)
        lease.spent = None
        if lease.suspended or (lease.paused and lease.valid):
            return  # the supervisor stops; or a pause is on its way, and the step is taken after the resume
        run = self._run = evolve(run, busy=True, job=run.job + 1)
        state = self.machine.get_state(run.status)
        processing = self._pipeline(lease)
        if state.takes_steps:
            self._tell(EventName.STEP_STARTED, step=run.steps + 1)
        done = partial(self._results.take, self.send, run, lease, processing, lease.valid)
        if state.only_decides:
            done(decided(state, processing, run))
        else:
            failed = partial(context.crashed, self.address, urn=self.actor_urn)
            context.jobs.start(lease, partial(state.handle, processing, run), done, failed)

    def _pipeline(self, lease: Lease) -> AgentPipeline:
        if self._leased_pipeline is None or self._leased_pipeline[0] is not lease:
            self._leased_pipeline = lease, self._context.pipelines[self._kind].under(lease)
        return self._leased_pipeline[1]

    def _take_back(self, returned: JobReturned) -> None:
        run = self._run
        if run is None or is_stale(returned, run):
            self._results.drop(returned)
            return
        result = returned.result
        if isinstance(result, RoundEnding | SubtaskEnding):
            self._end(run, result)
            return
        step_moves = returned.step_moves if returned.run is run else None
        applied = run.apply(result) if step_moves is None else step_moves.applied  # type: ignore[arg-type]  # it can be applied
        self._report(run, returned, applied)
        self._run = applied
        if isinstance(result, Assign | AssignGroup | Question | ApprovalRequest):
            self._context.post(result)
        self._move_on(step_moves)
        if returned.next_result is None:
            self._take_step()
        else:
            self._run = (
                returned.next_result.run
                if step_moves is not None
                else evolve(self._run, busy=True, job=returned.next_result.job)
            )
            self._take_back(returned.next_result)

    def _end(self, run: Run, ending: RoundEnding | SubtaskEnding) -> None:
        self._run = evolve(run, over=True, busy=False)
        self._ended_runs[memory_key(run.assign)] = self._run
        self._context.post(ending)

    def _go(self) -> None:
        """Make the moves that states decide, then take a step or wait."""
        self._move_on()
        self._take_step()

    def _take_step(self) -> None:
        """Take the next step, unless the run waits.

        The step is handled at once, before the messages in the mailbox. They can't concern it: the root voids a lease
        before it sends a cancel, and pauses the lease before it sends a pause. Under a void lease the step is queued
        behind the cancel.
        """
        now = self._run
        if now is not None and not (now.busy or now.waiting or now.paused or now.over):
            assign = now.assign
            step = _step(task_id=assign.task_id, run_id=assign.run_id, token=assign.token, job=now.job)
            if self._context.leases.get(assign.token).valid:
                self.receive(step)
            else:
                self.send(step)

    def _move_on(self, step_moves: StepMoves | None = None) -> None:
        """Make the moves that states decide, or those in `step_moves`.

        Nothing else writes the status.

        Raises:
            IllegalMoveError: If the transition table lacks a move; the run stays as it is.
        """
        if self._run is None:
            return
        try:
            for run, move, next_run in moves(self.machine, self._run) if step_moves is None else step_moves.moves:
                self._run = next_run
                self._tell(EventName.STATE_CHANGED, source=run.status, target=move.target, by=str(move.by))
                if run.status in {AgentStatus.FAIL, AgentStatus.ERROR}:
                    tell_failure(self._context.stream.emit, self._context.journal, run, run.status)
        except IllegalMoveError as refused:
            self._tell(EventName.STATE_REFUSED, source=refused.source, target=refused.target, by=refused.by)
            raise

    def _report(self, run: Run, returned: JobReturned, applied: Run) -> None:
        result, phases = returned.result, list(returned.phases)
        match result:
            case StepDone(record=record):
                self._context.plans[run.assign.run_id] = applied.plan
                self._tell(
                    EventName.STEP_ENDED,
                    step=record.step,
                    duration=result.usage.seconds,
                    status=record.decision.status,
                    thought=record.decision.thought,
                    comment=record.decision.comment,
                    actions=[call.tool for call in (record.results if record.resumed else record.decision.actions)],
                    results=[str(call.status) for call in record.results],
                    phases=phases,
                )
                count = applied.repeats
                if count >= run.limits.repeats:
                    self._tell(EventName.LOOP_NOTICED, step=record.step, count=count)
            case StepFailure():
                phase = result.phase.value if result.phase is not None else ""
                causes = [cause.reason for cause in result.causes]
                self._tell(EventName.STEP_FAILED, step=run.steps + 1, phase=phase, causes=causes, phases=phases)
            case _:
                pass

    def _tell(self, name: EventName, **data: Any) -> None:
        if self._run is not None:
            assign = self._run.assign
            self._context.stream.emit(
                name,
                task_id=assign.task_id,
                run_id=assign.run_id,
                agent=self.address,
                state=self._run.status,
                **data,
            )


ToRoot = Assign | AssignGroup | Question | ApprovalRequest | RoundEnding | SubtaskEnding
"""The messages of an agent to the root; after one the agent waits or is done."""


def tell_failure(emit: Callable[..., None], journal: Journal, run: Run, state: str) -> None:
    """Emit `run.failed` for a run that ended in FAIL or ERROR."""
    observation, outcome = last_look(run), run.outcome
    picture = observation.picture if observation is not None else None
    emit(
        EventName.RUN_FAILED,
        task_id=run.assign.task_id,
        run_id=run.assign.run_id,
        agent=run.assign.address,
        state=state,
        outcome=outcome.value if outcome is not None else "",
        reason="; ".join(dict.fromkeys(cause.reason for cause in run.causes)),
        action=last_action(run),
        controls=controls_of(observation),
        picture="" if picture is None else journal.picture_path(picture),
    )


def last_ending(history: Sequence[RunMessage]) -> ToRoot | None:
    """Return the last message to the root, which may be unsent."""
    results = (row.message for row in reversed(history) if row.job)
    return next((message for message in results if isinstance(message, ToRoot)), None)


def renewed(message: ToRoot, run: Run) -> Message:
    """Complete a message from the journal, to send it again.

    An assignment gets the results that the journal leaves out; any other message gets the fencing token of the new
    lease.
    """
    if isinstance(message, Assign):
        return message.model_copy(update={"subtasks": run.subtasks, "made": run.made})
    if isinstance(message, AssignGroup):
        assigns = tuple(with_results(assign, run.subtasks, run.made) for assign in message.assigns)
        return message.model_copy(update={"assigns": assigns})
    return message.model_copy(update={"token": run.assign.token})


def tell_if_alive(ref: pykka.ActorRef[Agent], message: Inbox) -> None:
    """Send an agent a message; a dead one drops it."""
    try:
        ref.tell(message)
    except pykka.ActorDeadError:
        return
