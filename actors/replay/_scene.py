"""A scene: one agent's part of a replay.

It folds the messages that the agent received, and recomputes the results of its jobs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

from callboard.actors.commands import OF_TASK, TaskPolicies
from callboard.actors.processing import Services, pipeline
from callboard.actors.replay._compare import Transition, compare, decided_on, differs
from callboard.actors.replay._doubles import (
    RecordedChecks,
    RecordedDispatcher,
    RecordedJournal,
    RecordedLook,
    RecordedOutputTypes,
    RecordedPolicy,
    RecordedToolbox,
    ReplayModel,
)
from callboard.actors.replay._recorded_task import move
from callboard.actors.replay._tape import Tape
from callboard.actors.runtime import Lease
from callboard.actors.states import Run, after
from callboard.config import text
from callboard.messages import (
    ApprovalAnswer,
    ApprovalRequest,
    Cancel,
    Cause,
    EventName,
    IllegalMoveError,
    Question,
    StepFailure,
    agent_kind,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from callboard.actors.processing import AgentSpec, Pipeline
    from callboard.actors.replay._recorded_task import KnownTools, Moves
    from callboard.actors.states import Move
    from callboard.journal import Row
    from callboard.messages import Event, Message


@dataclass
class ReplayContext:
    """The objects that the scenes of one replay share."""

    task_id: str
    """The replayed task; earlier tasks of its conversation are only folded."""
    services: Services
    """Without models, tools and the dispatcher: each job has its own."""
    agents: Mapping[str, AgentSpec]
    """The kinds of agents, by name."""
    known_tools: KnownTools
    transitions: list[Transition] = field(default_factory=list)
    jobs: int = 0
    taken_count: int = 0
    tape: Tape | None = None
    """The tape of the running job."""

    def emitted(self, event: Event) -> None:
        """Record an event of the running job."""
        if self.tape is not None:
            self.tape.emitted.append(event)

    async def perform(self, tape: Tape) -> Message:
        """Rerun a job on its tape."""
        run, services = tape.run, self.services
        kind = agent_kind(run.assign.address)
        policies, task_policy = TaskPolicies(), services.task_policies.of(run.assign.task_id)
        if task_policy is not None:
            policies.put(run.assign.task_id, RecordedPolicy(task_policy.rules, tape, name=OF_TASK))
        recorded_services = replace(
            services,
            models={kind: ReplayModel(tape)},
            toolbox=RecordedToolbox(self.known_tools, tape, services.lanes),
            policy=RecordedPolicy(services.policy.rules, tape),
            output_types=RecordedOutputTypes(),
            task_policies=policies,
            dispatcher=RecordedDispatcher(services.stream, services.clock, services.secrets, tape),
            journal=RecordedJournal(tape),
        )
        # The jobs of a kind without a model are not rerun.
        base = cast("Pipeline", pipeline(self.agents[kind], recorded_services))
        lease = Lease(run.assign.address, run.assign.token)
        lease.paused = tape.paused
        strategies = replace(base.strategies, collect=RecordedLook(tape))
        agent = replace(base, strategies=strategies, checker=RecordedChecks(tape)).under(lease)
        self.tape = tape
        self.jobs += 1
        try:
            return await services.agents[kind].machine.get_state(run.status).handle(agent, run)
        except Exception as error:  # an edge, as the agent's own: an exception that escapes a job fails its step
            return StepFailure(phase=None, causes=Cause.chain(error, where=run.assign.address))
        finally:
            self.tape = None


class Scene:
    """One address.

    Its run is the result of `fold` over the same rows.
    """

    def __init__(self, context: ReplayContext, address: str) -> None:
        self._context = context
        self._machine = context.services.agents[agent_kind(address)].machine
        self._run: Run | None = None
        self._received: list[Row] = []
        self._notes: list[Row] = []
        self._events: list[Event] = []
        self._moves: Moves | None = None
        self._reads_history = False  # whether moves go unpublished: the agent reads its history
        self._result: Message | None = None
        self._approval_request: ApprovalRequest | None = None

    @property
    def run(self) -> Run | None:
        """The run's state."""
        return self._run

    def begin(self, row: Row, moves: Moves | None) -> None:
        """Begin an assignment, or resume it after a crash.

        `moves` are compared, where they are known.
        """
        self.end()
        self._break_off()
        self._moves = moves
        self._reads_history = moves is not None and moves.recovered
        self.fold(row)

    def end(self) -> None:
        """Check that all recorded moves were replayed.

        Raises:
            Differs: If recorded moves are left.
        """
        if self._moves is not None and self._moves.pending and self._run is not None:
            differs(
                self._run,
                text("differs_transition"),
                self._moves.pending[-1],
                text("no_transition"),
                decided_on(self._result),
            )

    def note(self, row: Row) -> None:
        """Keep a job's note until its result comes."""
        self._notes.append(row)

    def keep_event(self, event: Event) -> None:
        """Keep a job's event until its result comes."""
        if event.name is EventName.RUN_RECOVERED:
            self._reads_history = False
        self._events.append(event)

    def receive(self, row: Row) -> None:
        """Receive a message from outside."""
        message = row.message
        if isinstance(message, Cancel):
            self._break_off()
        if (
            isinstance(message, ApprovalAnswer)
            and message.approved
            and message.remember
            and self._approval_request is not None
        ):
            request = self._approval_request
            remember = self._context.services.approved.remember
            for action in request.actions:
                remember(request.task_id, request.address, request.target, action, request.observation)
        self.fold(row)

    async def recompute(self, row: Row) -> Row:
        """Recompute a job's result, and fold it.

        The result is first compared with the recorded one.

        Raises:
            Differs: If it is another one.
        """
        run = self._run
        notes, self._notes = self._notes, []
        events, self._events = self._events, []
        if run is None or run.over or row.job <= run.job:
            return row  # it came too late, and was ignored
        job_notes = [note.message for note in notes if note.job == row.job]
        tape = Tape(replace(run, busy=True, job=row.job), row.message, job_notes, events)
        is_outside = tape.outside or not self._context.agents[agent_kind(run.assign.address)].has_model
        result = tape.message if is_outside else await self._context.perform(tape)
        if isinstance(result, Question | ApprovalRequest) and isinstance(row.message, Question | ApprovalRequest):
            result = result.model_copy(update={"id": row.message.id})  # the recorded answer names it
        if is_outside:
            self._context.taken_count += 1
        else:
            compare(tape, result)
        self._result = result
        if isinstance(result, ApprovalRequest):
            self._approval_request = result
        new_row = row._replace(message=result)
        self.fold(new_row)
        return new_row

    def fold(self, row: Row) -> None:
        """Pass a message to the run, and move.

        Raises:
            Differs: If a move differs from the recorded one, or is illegal now.
        """
        old_run = self._run
        self._received.append(row)
        try:
            self._run = after(old_run, row, self._context.services.settings.limits, self._machine, self._move)
        except IllegalMoveError as error:
            run, wished = old_run or self._run, move(error.source, error.target, error.by)
            if run is None:
                raise
            differs(
                run,
                text("differs_transition"),
                wished,
                text("transition_refused", reason=error),
                decided_on(self._result),
            )

    def refold(self) -> None:
        """Fold all earlier messages under the present limits, without publishing moves."""
        rows, self._received, self._run = self._received, [], None
        moves, self._moves = self._moves, None
        count = len(self._context.transitions)
        for row in rows:
            self.fold(row)
        del self._context.transitions[count:]
        self._moves = moves

    def _move(self, run: Run, wished: Move) -> None:
        transition = Transition(
            run_id=run.assign.run_id,
            address=run.assign.address,
            step=run.steps,
            source=run.status,
            target=wished.target,
            by=str(wished.by),
        )
        moves = self._moves
        # After the last recorded move, a further one is a difference only if the recording is complete: otherwise a
        # crash may have lost its event.
        if moves is not None and (moves.pending or moves.complete):
            recorded = moves.pending[-1] if moves.pending else text("no_transition")
            if recorded == str(transition):
                moves.pending.pop()
            elif not self._reads_history:
                differs(run, text("differs_transition"), recorded, str(transition), decided_on(self._result))
        if run.assign.task_id == self._context.task_id:
            self._context.transitions.append(transition)

    def _break_off(self) -> None:
        """Fold the notes of a job whose result never came."""
        for note in self._notes:
            self.fold(note)
        self._notes, self._events = [], []
