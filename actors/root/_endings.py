"""Endings: how work ends whose agent can't say so any more, with all that the journal has of what it did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.actors.agent import last_word, tell_failure
from callboard.actors.root._handover import heard_at
from callboard.actors.root._requests import Left
from callboard.actors.root._tasks import never_ran
from callboard.actors.states import archive, evolve, fold
from callboard.config import HostLog
from callboard.messages import Outcome, RoundEnded, SubtaskEnded, agent_kind, subtask_ended

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from callboard.actors.journal import Row
    from callboard.actors.root._parts import Parts
    from callboard.actors.root._tasks import TaskRecord
    from callboard.actors.states import AgentStateManager, Run
    from callboard.config import Limits
    from callboard.messages import Assign, Cause

_log = HostLog()

Ending = SubtaskEnded | RoundEnded


class Endings:
    """Part of the switchboard; runs on its thread."""

    def __init__(self, parts: Parts, say: Callable[[Ending], None]) -> None:
        """Make it; `say` takes an ending as if the run's agent had said it."""
        self._parts = parts
        self._say = say

    def begin(self, record: TaskRecord, run: Assign, outcome: Outcome, causes: tuple[Cause, ...]) -> None:
        """End a run that an agent had begun, once the journal was read; until then it is on the books, with its target.

        Where the process dies before that, the next one goes on with the run, or ends it as it was to end here.
        """
        parts = self._parts
        record.runs[run.run_id] = run
        record.ending.add(run.run_id)
        parts.people.withdraw(run.task_id, run.run_id)
        parts.clocks.drop(run.run_id)

        def read() -> None:
            parts.journal.read(
                run.task_id,
                lambda found: parts.post(Left(run, outcome, causes, found)),
                conversation=not run.number,
            )

        parts.outbox.tell(read)

    def end(self, left: Left) -> None:
        """Say how it ended, unless its agent had said so before it died, and was only heard now."""
        run = left.run
        record = self._parts.tasks.get(run.task_id)
        if record is None or run.run_id not in record.ending:
            return
        record.ending.discard(run.run_id)
        if run.run_id in record.runs:
            self._say(self._ending(left))

    def _ending(self, left: Left) -> Ending:
        run, found = left.run, left.found
        if isinstance(found, Exception):
            _log.error("what %s had done could not be read: %s", run.run_id, found)
            return unknown_end(run, left.outcome, left.causes)
        try:
            spec = self._parts.agents.get(agent_kind(run.address))
            if spec is None:  # of another process's own, without which nothing of it can be read
                return unknown_end(run, left.outcome, left.causes)
            return ending_of(
                run, found, self._parts.limits, spec.machine, left.outcome, left.causes, self._tell_failure
            )
        except Exception:  # noqa: BLE001 - an edge: what ends a run's agent again and again may lie in its history
            _log.exception("what %s had done could not be folded", run.run_id)
            return unknown_end(run, left.outcome, left.causes)

    def _tell_failure(self, run: Run) -> None:
        state = "ERROR" if run.outcome is Outcome.ERROR else "FAIL"
        tell_failure(self._parts.recorder.emit, self._parts.journal, run, state)


def ending_of(  # noqa: PLR0913, PLR0917 - what is known of the run, and how it ends
    run: Assign,
    rows: Sequence[Row],
    limits: Limits,
    machine: type[AgentStateManager],
    outcome: Outcome,
    causes: tuple[Cause, ...],
    failed: Callable[[Run], None],
) -> Ending:
    """Make the ending of a run from the rows of its task, or of its conversation.

    What its agent had said stands. So does an outcome that was decided before, but for a success that nobody could
    report. `failed` hears of a run whose end is made here.
    """
    heard = heard_at(run.address, rows)
    known = fold(heard, limits, machine)
    if known is None or (known.assign.run_id, known.assign.round) != (run.run_id, run.round):
        return unknown_end(run, outcome, causes)
    known = evolve(known, assign=run, subtasks=run.subtasks if run.number else known.subtasks)
    if known.over:
        said = last_word(heard)
        if isinstance(said, Ending) and said.run_id == run.run_id:
            return said.model_copy(update={"token": run.token})
    ended = _ended(known, outcome, causes)
    if ended.outcome is not Outcome.FINISHED:
        failed(ended)
    ending = archive(ended)
    return ending if isinstance(ending, Ending) else unknown_end(run, outcome, causes)


def _ended(run: Run, outcome: Outcome, causes: tuple[Cause, ...]) -> Run:
    """Give a run its end, with what its last step had done when it was broken off."""
    left = run.unfinished
    if left is not None:
        run = evolve(run.with_lost(left.usage, left.done), unfinished=None)
    unreported = run.outcome is Outcome.FINISHED and outcome is Outcome.ERROR
    return evolve(run, outcome=outcome, causes=causes) if run.outcome is None or unreported else run


def unknown_end(run: Assign, outcome: Outcome, causes: tuple[Cause, ...]) -> Ending:
    """Make the ending of a run of which nothing is known."""
    if run.number:
        return subtask_ended(run.task_id, run.token, never_ran(run, outcome, causes))
    return RoundEnded(task_id=run.task_id, run_id=run.run_id, token=run.token, outcome=outcome, causes=causes)
