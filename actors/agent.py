"""What all agents share: an inbox, a run, and one method that moves it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, cast

import pykka

from callboard.actors.commands import Secrets
from callboard.actors.journal import Row
from callboard.actors.processing import AGENTS, tell_phases
from callboard.actors.runtime import ScheduledActor
from callboard.actors.states import (
    Run,
    controls_of,
    evolve,
    fold,
    last_action,
    last_look,
    memory_key,
    moved,
    moves,
)
from callboard.messages import (
    AgentCrashedError,
    AgentStatus,
    Answer,
    ApprovalAnswer,
    ApprovalRequest,
    Assign,
    Cancel,
    Captured,
    Cause,
    EventName,
    IllegalMoveError,
    Message,
    Pause,
    Question,
    RequestExpired,
    Resume,
    RoundEnded,
    Step,
    StepDone,
    StepFailed,
    SubtaskEnded,
    TaskForgotten,
    agent_kind,
    maker,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType

    from callboard.actors.journal import Journal
    from callboard.actors.processing import AgentSpec, Pipeline
    from callboard.actors.runtime import EventStream, Jobs, Lease, Leases, Scheduler
    from callboard.actors.states import AgentState, AgentStateManager, Move, Said
    from callboard.config import Limits


@dataclass(frozen=True)
class AgentContext:
    """What an agent works with; shared by all agents of one supervisor."""

    post: Callable[[Message], None]
    """Tell the switchboard."""
    crashed: Callable[[str, BaseException, str], None]
    """Tell the switchboard that the agent at an address is dead, and which actor it was."""
    scheduler: Scheduler
    jobs: Jobs
    leases: Leases
    stream: EventStream
    journal: Journal
    limits: Limits
    pipelines: Mapping[str, Pipeline]
    agents: Mapping[str, AgentSpec] = field(default_factory=lambda: AGENTS)
    """The kinds of agents that there are, by name."""
    secrets: Secrets = field(default_factory=lambda: Secrets({}))
    """They are put out of sight in what jobs come back with."""


_step = maker(Step)


@dataclass(frozen=True, slots=True)
class Ahead:
    """The way on from a step, worked out when its word is kept; it holds for the run that the job began with."""

    applied: Run
    moves: Sequence[tuple[Run, Move, Run]]
    """Each move, between the run that it is made from and the one that it makes."""
    after: Run


@dataclass(frozen=True, slots=True)
class JobReturned:
    """What a job of this agent came back with."""

    task_id: str
    token: int
    job: int
    said: Message
    begun: Run
    """The run that the job began with."""
    phases: Sequence[dict[str, Any]] = ()
    """Of a step: the phases that ran, for the event of its end."""
    ahead: Ahead | None = None
    """Where it leads, unless the run changes before it is heard."""
    then: JobReturned | None = None
    """What the state decides that this leads to, if it only decides: both were kept together."""


@dataclass(frozen=True)
class Continue:
    """Go on where a crash broke off, or where an earlier assignment left the memory."""

    assign: Assign
    """The work, under its new lease."""
    history: tuple[Said, ...]
    """All that was heard at this address before, the assignment included."""


Inbox = (
    Continue
    | Pause
    | Resume
    | Assign
    | Step
    | JobReturned
    | SubtaskEnded
    | Answer
    | ApprovalAnswer
    | RequestExpired
    | Cancel
    | TaskForgotten
)


class Agent(ScheduledActor):
    """One address, one run at a time.

    It shares a thread with all others and only decides, and nothing here may block: the states' work runs in jobs on
    the event loop and comes back as `JobReturned`. The queue for its target is the switchboard's. All its words leave
    through `post`.
    """

    kind: ClassVar[str] = ""
    """The kind that ships with this class; the address tells the kind of the agent itself."""

    def __init__(self, address: str, context: AgentContext) -> None:
        super().__init__(context.scheduler)
        self.address = address
        self._kind = agent_kind(address)
        self._context = context
        self.machine: type[AgentStateManager] = context.agents[self._kind].machine
        """The agent's state machine."""
        self._run: Run | None = None
        self._under: tuple[Lease, Pipeline] | None = None
        """The pipeline under the latest lease."""
        self._past: dict[str, Run] = {}  # by task: memory that its next assignment goes on with

    def on_receive(self, message: Inbox) -> None:
        """Handle one message. An edge: Pykka answers a SystemExit by stopping every actor of the process."""
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
        """Tell the switchboard; the actor is dead."""
        self._context.crashed(self.address, exception_value or AgentCrashedError(self.address), self.actor_urn)

    def receive(self, message: Inbox) -> None:
        """Apply a message to the run, if it still concerns it."""
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
                self._hear(message)

    def _begin(self, assign: Assign) -> None:
        before = self._past.get(memory_key(assign))
        self._run = Run.begin(assign, self._context.limits, self.machine.initial, before)
        self._tell(EventName.STATE_CHANGED, source="", target=self._run.status, by="system")
        self._go()

    def _continue(self, message: Continue) -> None:
        run = fold(message.history, self._context.limits, self.machine)
        if run is not None and run.assign.run_id == message.assign.run_id and run.assign.number:
            run = evolve(run, assign=message.assign, subtasks=message.assign.subtasks)  # the journal keeps them lean
        self._run = run
        if run is not None:
            self._tell(
                EventName.RUN_RECOVERED, step=run.steps + 1, steps=run.steps, broken_off=run.unfinished is not None
            )
            word = last_word(message.history)
            if word is not None and (run.over or run.waiting):
                self._context.post(renewed(word, run))
        self._go()

    def _forget(self, task_id: str) -> None:
        self._past.pop(task_id, None)
        if self._run is not None and self._run.over and memory_key(self._run.assign) == task_id:
            self._run = None

    def _hear(self, message: SubtaskEnded | Answer | ApprovalAnswer | RequestExpired | Cancel | Pause | Resume) -> None:
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
        """Cancel what runs, without losing what it has used and done so far."""
        self._context.jobs.cancel(run.assign.token)
        lease = self._context.leases.get(run.assign.token)
        spent, left = lease.spent if run.busy else None, run.unfinished
        if spent is not None:  # with what was known of a step that a crash broke off
            run = evolve(run, last_seen=spent.seen or run.last_seen)
            return run.with_lost(spent.usage, spent.done(lease.guard))
        return run if left is None else run.with_lost(left.usage, left.done)

    def _start_job(self, step: Step) -> None:
        run, context = self._run, self._context
        if run is None or run.over or run.busy or run.paused or (step.token, step.job) != (run.assign.token, run.job):
            return  # cancelled or answered meanwhile: its own next step is on the way
        lease = context.leases.get(run.assign.token)
        lease.spent = None
        if lease.suspended or (lease.paused and lease.valid):
            return  # the supervisor stops; or the word of the pause is on the way, and of the resume after it
        run = self._run = evolve(run, busy=True, job=run.job + 1)
        state = self.machine.get_state(run.status)
        processing = self._pipeline(lease)
        if state.takes_steps:
            self._tell(EventName.STEP_STARTED, step=run.steps + 1)
        done = partial(self._return, run, lease, lease.valid)
        if state.only_decides:
            done(_decided(state, processing, run))
        else:
            context.jobs.start(lease, partial(state.handle, processing, run), done)

    def _return(self, run: Run, lease: Lease, valid: bool, said: Message | BaseException) -> None:  # noqa: FBT001 - bound
        """Take a job's word: it is kept first, then told. Runs on the event loop's thread.

        A word that comes after its lease was voided is late (`valid`: it was not when the job began); it is told, to be
        logged, and not kept: the word of the cancel is on its way. An ending stands, whatever stops the task it belongs
        to. Of a supervisor that stops, no failure is kept: it may come from the stop, which cancels jobs and closes
        what they use. The next process takes the step up again, from what the journal has of it.
        """
        assign, spent, context = run.assign, lease.spent, self._context
        if isinstance(said, BaseException):
            said = StepFailed(phase=None, causes=Cause.chain(said, where=self.address))
        if context.secrets.known:
            said = context.secrets.redact(assign.task_id, said)
        phases = spent.phases if spent is not None else ()
        ahead = self._ahead(run, said)
        then = self._decided_next(ahead, lease)
        returned = JobReturned(assign.task_id, assign.token, run.job, said, run, phases, ahead, then)
        with lease.order:  # whoever voids it keeps its own word after these, or they are late
            late = valid and not lease.valid and not isinstance(said, RoundEnded | SubtaskEnded)
            if not late and not (lease.suspended and _failed(said)):
                again = partial(self._return, run, lease, valid)
                if then is None:
                    self._keep(run, returned, again)
                else:
                    rows = (self._row(run, returned), self._row(run, then))
                    context.journal.append(
                        rows,
                        partial(self.send, returned),
                        lambda _: self._keep(run, replace(returned, then=None), again),
                    )
                return
        self.send(replace(returned, job=0, then=None))  # no job has that number: it is logged, and no more

    def _keep(self, run: Run, returned: JobReturned, again: Callable[[Exception], None]) -> None:
        """Keep a word alone; `again` takes the error of one that can't be written down, in its place."""

        def refused(error: Exception) -> None:
            if isinstance(error, ValueError):  # this word alone can't be written down
                again(error)

        self._context.journal.append((self._row(run, returned),), partial(self.send, returned), refused)

    def _row(self, run: Run, word: JobReturned) -> Row:
        kept = word.said.lean() if isinstance(word.said, Assign) else word.said
        return Row(self._context.stream.steady(), word.task_id, run.assign.run_id, kept, word.job)

    def _ahead(self, run: Run, said: Message) -> Ahead | None:
        """Work out where a step that ran leads."""
        if not isinstance(said, StepDone):
            return None
        try:
            applied = run.apply(said)
            made = tuple(moves(self.machine, applied))
        except Exception:  # it is worked out again when the word is heard, and fails there
            return None
        return Ahead(applied, made, made[-1][2] if made else applied)

    def _decided_next(self, ahead: Ahead | None, lease: Lease) -> JobReturned | None:
        """Say what the state decides that the word of a job leads to, if that state only decides.

        It is kept with the word itself, so that an ending or an assignment waits for no commit of its own. Whatever the
        agent hears before it hears of the word is later in the journal, too, and finds both said.
        """
        if ahead is None or lease.paused or lease.suspended or not lease.valid:
            return None
        run = ahead.after
        state = self.machine.get_state(run.status)
        if not state.only_decides or run.waiting or run.over:
            return None
        run = evolve(run, busy=True, job=run.job + 1)
        word = _decided(state, self._pipeline(lease), run)
        if isinstance(word, BaseException):
            return None
        if self._context.secrets.known:
            word = self._context.secrets.redact(run.assign.task_id, word)
        return JobReturned(run.assign.task_id, run.assign.token, run.job, word, run)

    def _pipeline(self, lease: Lease) -> Pipeline:
        if self._under is None or self._under[0] is not lease:
            self._under = lease, self._context.pipelines[self._kind].under(lease)
        return self._under[1]

    def _take_back(self, returned: JobReturned) -> None:
        run = self._run
        if run is None or run.over or not run.busy or (returned.token, returned.job) != (run.assign.token, run.job):
            late = type(returned.said).__name__
            tell_phases(self._context.stream.emit, returned.begun, returned.phases)  # no end of a step tells them
            self._context.stream.emit(
                EventName.MESSAGE_STALE, task_id=returned.task_id, agent=self.address, message=late
            )
            return
        said = returned.said
        if isinstance(said, RoundEnded | SubtaskEnded):
            self._end(run, said)
            return
        ahead = returned.ahead if returned.begun is run else None
        applied = run.apply(said) if ahead is None else ahead.applied  # type: ignore[arg-type]  # it can be applied
        self._report(run, returned, applied)
        self._run = applied
        if isinstance(said, Assign | Question | ApprovalRequest):
            self._context.post(said)
        self._move_on(ahead)
        if returned.then is None:
            self._take_step()
        else:
            self._run = (
                returned.then.begun if ahead is not None else evolve(self._run, busy=True, job=returned.then.job)
            )
            self._take_back(returned.then)

    def _end(self, run: Run, ending: RoundEnded | SubtaskEnded) -> None:
        self._run = evolve(run, over=True, busy=False)
        self._past[memory_key(run.assign)] = self._run
        self._context.post(ending)

    def _go(self) -> None:
        """Move as far as the states decide, then take the next step, or wait."""
        self._move_on()
        self._take_step()

    def _take_step(self) -> None:
        """Take the next step, unless the run waits.

        What waits in the inbox can't be about it: whoever cancels or pauses voids or holds the lease first. So it is
        heard at once, but for one under a void lease: the word of the cancel comes before it.
        """
        now = self._run
        if now is not None and not (now.busy or now.waiting or now.paused or now.over):
            assign = now.assign
            step = _step(task_id=assign.task_id, run_id=assign.run_id, token=assign.token, job=now.job)
            if self._context.leases.get(assign.token).valid:
                self.receive(step)
            else:
                self.send(step)

    def _move_on(self, ahead: Ahead | None = None) -> None:
        """Move as far as the states decide; `ahead` has the moves, where they were worked out."""
        for run, move, after in self._moves() if ahead is None else ahead.moves:
            self._move(run, move, after)
            if run.status in {AgentStatus.FAIL, AgentStatus.ERROR}:
                tell_failure(self._context.stream.emit, self._context.journal, run, run.status)

    def _moves(self) -> Iterator[tuple[Run, Move, None]]:
        """Give the moves on which the states decide, one after the other is made."""
        while (run := self._run) is not None:
            move = self.machine.get_state(run.status).decide(run)
            if move is None:
                return
            yield run, move, None

    def _move(self, run: Run, move: Move, after: Run | None = None) -> None:
        """Write the status; the only place that does. Refuses what the table does not have."""
        try:
            self._run = after or moved(self.machine, run, move)
        except IllegalMoveError:
            self._tell(EventName.STATE_REFUSED, source=run.status, target=move.target, by=str(move.by))
            raise
        self._tell(EventName.STATE_CHANGED, source=run.status, target=move.target, by=str(move.by))

    def _report(self, run: Run, returned: JobReturned, applied: Run) -> None:
        said, phases = returned.said, list(returned.phases)
        match said:
            case StepDone(record=record):
                self._tell(
                    EventName.STEP_ENDED,
                    step=record.step,
                    duration=said.usage.seconds,
                    status=record.decision.status,
                    thought=record.decision.thought,
                    comment=record.decision.comment,
                    actions=[call.tool for call in (record.results if record.resumed else record.decision.actions)],
                    results=[str(result.status) for result in record.results],
                    phases=phases,
                )
                count = applied.repeats
                if count >= run.limits.repeats:
                    self._tell(EventName.LOOP_NOTICED, step=record.step, count=count)
            case StepFailed():
                phase = said.phase.value if said.phase is not None else ""
                causes = [cause.reason for cause in said.causes]
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


Word = Assign | Question | ApprovalRequest | RoundEnded | SubtaskEnded
"""What an agent tells the switchboard, and then waits or is done."""


def tell_failure(emit: Callable[..., None], journal: Journal, run: Run, state: str) -> None:
    """Emit `run.failed` for a run that ended by FAIL or ERROR."""
    seen, outcome = last_look(run), run.outcome
    picture = seen.picture if seen is not None else None
    emit(
        EventName.RUN_FAILED,
        task_id=run.assign.task_id,
        run_id=run.assign.run_id,
        agent=run.assign.address,
        state=state,
        outcome=outcome.value if outcome is not None else "",
        reason="; ".join(dict.fromkeys(cause.reason for cause in run.causes)),
        action=last_action(run),
        controls=controls_of(seen),
        picture="" if picture is None else journal.picture_path(picture),
    )


def _decided(state: AgentState, processing: Pipeline, run: Run) -> Message | BaseException:
    """Run a state's work that awaits nothing; what it raises is given, as a job's is."""
    try:
        handling = state.handle(processing, run)
        handling.send(None)
    except StopIteration as ended:
        return cast("Message", ended.value)
    except BaseException as error:  # an edge: states may be a program's own
        return error
    handling.close()
    return RuntimeError("a state that says that it only decides has awaited something")


def _failed(said: Message) -> bool:
    """Return whether a job failed or could not observe its target."""
    return isinstance(said, StepFailed) or (isinstance(said, Captured) and said.observation is None)


def last_word(history: Sequence[Said]) -> Word | None:
    """Give the last word that was for the switchboard; a crash may have come before it was told."""
    said = (known.message for known in reversed(history) if known.job)
    return next((message for message in said if isinstance(message, Word)), None)


def renewed(word: Word, run: Run) -> Message:
    """Say it again: a subtask with what the journal leaves out of it, anything else under the new lease."""
    if isinstance(word, Assign):
        return word.model_copy(update={"subtasks": run.subtasks, "made": run.made})
    return word.model_copy(update={"token": run.assign.token})


def tell_if_alive(ref: pykka.ActorRef[Agent], message: Inbox) -> None:
    """Tell an agent; one that is dead hears nothing, and the word of its crash is on the way."""
    try:
        ref.tell(message)
    except pykka.ActorDeadError:
        return
