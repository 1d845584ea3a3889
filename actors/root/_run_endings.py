"""Endings of runs that have no agent, built from the journal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from callboard.actors.agent import last_ending, tell_failure
from callboard.actors.root._handover import received_at
from callboard.actors.root._task_end import never_ran
from callboard.actors.states import archive, evolve, fold
from callboard.config import HostLog
from callboard.messages import (
    AgentStatus,
    Cause,
    Outcome,
    RoundEnding,
    SubtaskEnding,
    agent_kind,
    subtask_ended,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from callboard.actors.processing import AgentTraits
    from callboard.actors.root._clocks import Stopwatches
    from callboard.actors.root._open_requests import PeopleClocks
    from callboard.actors.root._outbox import Outbox
    from callboard.actors.root._recorder import Recorder
    from callboard.actors.root._tasks import TaskBook, TaskRecord
    from callboard.actors.states import AgentStateManager, Run
    from callboard.config import Limits
    from callboard.journal import Journal, Row
    from callboard.messages import Assign


_log = HostLog()

RunEnd = SubtaskEnding | RoundEnding


@dataclass(frozen=True)
class AgentlessRun:
    """The journal rows and the outcome of a run without agent."""

    run: Assign
    outcome: Outcome
    causes: tuple[Cause, ...]
    rows: Sequence[Row] | Exception


@dataclass(frozen=True, kw_only=True, eq=False)
class RunEndings:
    """Endings of runs that have no agent, built from the journal.

    Runs on the root's thread.
    """

    post: Callable[[object], None]
    """Send the root a message, from any thread."""
    tasks: TaskBook
    journal: Journal
    outbox: Outbox
    recorder: Recorder
    clocks: Stopwatches
    people: PeopleClocks
    limits: Limits
    agents: Mapping[str, AgentTraits]
    """The kinds of agents, by name."""

    def begin(self, record: TaskRecord, run: Assign, outcome: Outcome, causes: tuple[Cause, ...]) -> None:
        """Read the journal, then end a run that was begun.

        Until then the run keeps its target. If the process dies before, the next one resumes the run, or ends it in the
        same way.
        """
        record.runs[run.run_id] = run
        record.ending.add(run.run_id)
        self.people.withdraw(run.task_id, run.run_id)
        self.clocks.drop(run.run_id)

        def read() -> None:
            self.journal.read(
                run.task_id,
                lambda rows: self.post(AgentlessRun(run, outcome, causes, rows)),
                conversation=not run.number,
            )

        self.outbox.tell(read)

    def ending(self, request: AgentlessRun) -> RunEnd | None:
        """Build a run's ending; None if its dead agent's own came first."""
        run, rows = request.run, request.rows
        record = self.tasks.get(run.task_id)
        if record is None or run.run_id not in record.ending:
            return None
        record.ending.discard(run.run_id)
        if run.run_id not in record.runs:
            return None
        if isinstance(rows, Exception):
            _log.error("the journal rows of %s could not be read: %s", run.run_id, rows)
            return unknown_end(run, request.outcome, request.causes)
        try:
            spec = self.agents.get(agent_kind(run.address))
            if spec is None:  # a kind that only an earlier process had: no machine here can fold its rows
                return unknown_end(run, request.outcome, request.causes)
            return ending_of(
                run,
                rows,
                self.limits,
                spec.machine,
                request.outcome,
                request.causes,
                self._tell_failure,
            )
        except BaseException:  # an edge: its history may be the reason why the run's agent crashed
            _log.exception("the journal rows of %s could not be folded", run.run_id)
            return unknown_end(run, request.outcome, request.causes)

    def _tell_failure(self, run: Run) -> None:
        state = (AgentStatus.ERROR if run.outcome is Outcome.ERROR else AgentStatus.FAIL).value
        tell_failure(self.recorder.emit, self.journal, run, state)


def ending_of(  # noqa: PLR0917 - the facts about the run, and its ending
    run: Assign,
    rows: Sequence[Row],
    limits: Limits,
    machine: type[AgentStateManager],
    outcome: Outcome,
    causes: tuple[Cause, ...],
    failed: Callable[[Run], None],
) -> RunEnd:
    """Build a run's ending from the rows of its task or conversation.

    An ending that the agent had sent stands. So does an outcome that the run had before, except a success that the
    agent could not report before it crashed. `failed` is called with a run that is ended here without success.
    """
    received = received_at(run.address, rows)
    folded_run = fold(received, limits, machine)
    if folded_run is None or (folded_run.assign.run_id, folded_run.assign.round) != (run.run_id, run.round):
        return unknown_end(run, outcome, causes)
    folded_run = evolve(folded_run, assign=run, subtasks=run.subtasks if run.number else folded_run.subtasks)
    if folded_run.over:
        sent = last_ending(received)
        if isinstance(sent, RunEnd) and sent.run_id == run.run_id:
            return sent.model_copy(update={"token": run.token})
    ended = _ended(folded_run, outcome, causes)
    if ended.outcome is not Outcome.FINISHED:
        failed(ended)
    ending = archive(ended)
    return ending if isinstance(ending, RunEnd) else unknown_end(run, outcome, causes)


def _ended(run: Run, outcome: Outcome, causes: tuple[Cause, ...]) -> Run:
    """End a run; the usage and results of an interrupted step count."""
    unfinished = run.unfinished
    if unfinished is not None:
        run = evolve(run.with_lost(unfinished.usage, unfinished.done), unfinished=None)
    unreported = run.outcome is Outcome.FINISHED and outcome is Outcome.ERROR
    return evolve(run, outcome=outcome, causes=causes) if run.outcome is None or unreported else run


def unknown_end(run: Assign, outcome: Outcome, causes: tuple[Cause, ...]) -> RunEnd:
    """Build the ending of a run without any known results."""
    if run.number:
        return subtask_ended(run.task_id, run.token, never_ran(run, outcome, causes))
    return RoundEnding(task_id=run.task_id, run_id=run.run_id, token=run.token, outcome=outcome, causes=causes)
