"""A scene: one agent's part of a replay. What it heard is folded; what its jobs said is made again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from callboard.actors.processing import Services, pipeline
from callboard.actors.replay._compare import Transition, compare, decided_on, differs
from callboard.actors.replay._doubles import (
    RecordedDispatcher,
    RecordedLook,
    RecordedModel,
    RecordedPolicy,
    RecordedToolbox,
)
from callboard.actors.replay._recording import move
from callboard.actors.replay._tape import Tape
from callboard.actors.runtime import Lease
from callboard.actors.states import Run, after
from callboard.messages import (
    ApprovalAnswer,
    ApprovalRequest,
    Cancel,
    Cause,
    EventName,
    IllegalMoveError,
    StepFailed,
    agent_kind,
)

if TYPE_CHECKING:
    from callboard.actors.journal import Row
    from callboard.actors.replay._recording import KnownTools, Moves
    from callboard.actors.states import Move
    from callboard.messages import Event, Message


@dataclass
class Stage:
    """What the scenes of one replay share."""

    task_id: str
    """The task that is replayed; what its conversation did before it is only folded."""
    services: Services
    """But for models, tools and the dispatcher: each job has its own."""
    known: KnownTools
    transitions: list[Transition] = field(default_factory=list)
    jobs: int = 0
    taken: int = 0
    tape: Tape | None = None
    """Of the job that runs."""

    def told(self, event: Event) -> None:
        """Take an event of the job that runs."""
        if self.tape is not None:
            self.tape.told.append(event)

    async def perform(self, tape: Tape) -> Message:
        """Run a job again, with what its tape has."""
        run, services = tape.run, self.services
        kind = agent_kind(run.assign.address)
        own = replace(
            services,
            models={kind: RecordedModel(tape)},
            toolbox=RecordedToolbox(self.known, tape, services.lanes),
            policy=RecordedPolicy(services.policy.rules, tape),
            dispatcher=RecordedDispatcher(services.stream, services.clock, services.secrets, tape),
        )
        made = pipeline(kind, own)
        lease = Lease(run.assign.address, run.assign.token)
        lease.paused = tape.paused
        agent = replace(made, strategies=replace(made.strategies, collect=RecordedLook(tape))).under(lease)
        self.tape = tape
        self.jobs += 1
        try:
            return await services.agents[kind].machine.get_state(run.status).handle(agent, run)
        except Exception as error:  # an edge, as the agent's own: what escapes a job fails its step
            return StepFailed(phase=None, causes=Cause.chain(error, where=run.assign.address))
        finally:
            self.tape = None


class Scene:
    """One address. Its run is what `fold` makes of the same rows."""

    def __init__(self, stage: Stage, address: str) -> None:
        self._stage = stage
        self._machine = stage.services.agents[agent_kind(address)].machine
        self._run: Run | None = None
        self._heard: list[Row] = []
        self._notes: list[Row] = []
        self._events: list[Event] = []
        self._moves: Moves | None = None
        self._silent = False  # whether moves are made that nobody tells: the agent reads its history
        self._word: Message | None = None
        self._asked: ApprovalRequest | None = None

    @property
    def run(self) -> Run | None:
        """What it came to."""
        return self._run

    def begin(self, row: Row, moves: Moves | None) -> None:
        """Begin an assignment, or go on with it after a crash; `moves` are compared, where they are known."""
        self.end()
        self._break_off()
        self._moves = moves
        self._silent = moves is not None and moves.recovered
        self.fold(row)

    def end(self) -> None:
        """Hold what was not made again against the record.

        Raises:
            Differs: If moves are left that were recorded.
        """
        if self._moves is not None and self._moves.left and self._run is not None:
            differs(self._run, "a transition", self._moves.left[-1], "none", decided_on(self._word))

    def note(self, row: Row) -> None:
        """Keep what a job noted on its way, until its word comes."""
        self._notes.append(row)

    def told(self, event: Event) -> None:
        """Keep what was told of a job, until its word comes."""
        if event.name is EventName.RUN_RECOVERED:
            self._silent = False
        self._events.append(event)

    def hear(self, row: Row) -> None:
        """Take a word from outside."""
        message = row.message
        if isinstance(message, Cancel):
            self._break_off()
        if isinstance(message, ApprovalAnswer) and message.approved and message.remember and self._asked is not None:
            asked = self._asked
            remember = self._stage.services.approved.remember
            for action in asked.actions:
                remember(asked.task_id, asked.address, asked.target, action, asked.observation)
        self.fold(row)

    async def again(self, row: Row) -> Row:
        """Make the word of a job again, compare it with the recorded one, and fold it.

        Raises:
            Differs: If it is another one.
        """
        run = self._run
        notes, self._notes = self._notes, []
        events, self._events = self._events, []
        if run is None or run.over or row.job <= run.job:
            return row  # it came too late, and counted for nothing
        own = [note.message for note in notes if note.job == row.job]
        tape = Tape(replace(run, busy=True, job=row.job), row.message, own, events)
        said = tape.word if tape.outside else await self._stage.perform(tape)
        if tape.outside:
            self._stage.taken += 1
        else:
            compare(tape, said)
        self._word = said
        if isinstance(said, ApprovalRequest):
            self._asked = said
        made = row._replace(message=said)
        self.fold(made)
        return made

    def fold(self, row: Row) -> None:
        """Let the run hear a message, and move.

        Raises:
            Differs: If a move is another one than was recorded, or is illegal by now.
        """
        before = self._run
        self._heard.append(row)
        try:
            self._run = after(before, row, self._stage.services.settings.limits, self._machine, self._move)
        except IllegalMoveError as error:
            run, wished = before or self._run, move(error.source, error.target, error.by)
            if run is None:
                raise
            differs(run, "a transition", wished, f"refused: {error}", decided_on(self._word))

    def fold_anew(self) -> None:
        """Fold all that was heard under the limits that hold by now; nobody is told of the moves in it."""
        heard, self._heard, self._run = self._heard, [], None
        moves, self._moves = self._moves, None
        told = len(self._stage.transitions)
        for row in heard:
            self.fold(row)
        del self._stage.transitions[told:]
        self._moves = moves

    def _move(self, run: Run, wished: Move) -> None:
        made = Transition(
            run_id=run.assign.run_id,
            address=run.assign.address,
            step=run.steps,
            source=run.status,
            target=wished.target,
            by=str(wished.by),
        )
        moves = self._moves
        if moves is not None and (moves.left or moves.whole):
            recorded = moves.left[-1] if moves.left else "none"
            if recorded == str(made):
                moves.left.pop()
            elif not self._silent:
                differs(run, "a transition", recorded, str(made), decided_on(self._word))
        if run.assign.task_id == self._stage.task_id:
            self._stage.transitions.append(made)

    def _break_off(self) -> None:
        """Fold what a job had noted whose word never came."""
        for note in self._notes:
            self.fold(note)
        self._notes, self._events = [], []
