"""Fold a journaled history into a run.

Recovery, restart and replay use the same functions as the live agent, so that they arrive at the same run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from callboard.actors.states._evolve import evolve
from callboard.actors.states._run import Run
from callboard.actors.states._unfinished import OnTheWay, Unfinished
from callboard.messages import AgentStatus, Assign, Cancel, RoundEnding, SubtaskEnding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from callboard.actors.states._machine import AgentStateManager
    from callboard.actors.states._move import Move
    from callboard.config import Limits
    from callboard.messages import Message


class RunMessage(Protocol):
    """A journal row: a message to a run or from its jobs."""

    @property
    def message(self) -> Message:
        """The message."""
        ...

    @property
    def job(self) -> int:
        """The number of the job that returned it; 0 for other messages."""
        ...


def moved(machine: type[AgentStateManager], run: Run, move: Move) -> Run:
    """Return the run after a move.

    Raises:
        IllegalMoveError: If the table does not allow the move.
    """
    machine.check(run.status, move.target, move.by)
    return run.moved(move, reannotating=move.target == AgentStatus.SCREENSHOT)


def moves(machine: type[AgentStateManager], run: Run) -> Iterator[tuple[Run, Move, Run]]:
    """Apply moves until the state stays; yield (run before, move, run after).

    Raises:
        IllegalMoveError: If the table does not allow a move that a state decided on.
    """
    while (move := machine.decide(run)) is not None:
        old_run, run = run, moved(machine, run, move)
        yield old_run, move, run


def fold(history: Iterable[RunMessage], limits: Limits, machine: type[AgentStateManager]) -> Run | None:
    """Fold the messages of one address into the agent's latest run.

    The messages must be in order. Return None if no run ever began. The result of a job is stale, and is ignored, if a
    later job was started or a cancel arrived before it.
    """
    run: Run | None = None
    latest = 0
    for row in history:
        latest = max(latest, row.job)
        run = after(run, row, limits, machine)
    # The next job must be numbered above every job in the history, including those without a result or with a stale
    # one: a row that one of them still writes must not count as the new job's. No job of this run is active yet.
    return None if run is None else evolve(run, job=max(run.job, latest), busy=False)


def _ignore(run: Run, move: Move) -> None:
    """Ignore a move."""


def after(
    run: Run | None,
    row: RunMessage,
    limits: Limits,
    machine: type[AgentStateManager],
    moving: Callable[[Run, Move], None] = _ignore,
) -> Run | None:
    """Return the run after one message and the moves it causes.

    `moving` is called before each move with the run and the move.

    Raises:
        IllegalMoveError: If the table does not allow a move that a state decided on.
    """
    message = row.message
    if isinstance(message, Assign) and message.token and not row.job:
        return _begun(run, message, limits, machine, moving)
    if run is None or run.over or (row.job and row.job <= run.job):
        return run  # `run.job` is the last job whose result was applied; a cancel raises it to make results stale
    if isinstance(message, OnTheWay):
        return evolve(run, unfinished=(run.unfinished or Unfinished()).after(message))
    if isinstance(message, RoundEnding | SubtaskEnding) and row.job:
        return evolve(run, over=True, job=row.job)
    if not row.job and not run.expects(message):
        return run
    if isinstance(message, Cancel) and run.unfinished is not None:
        run = run.with_lost(run.unfinished.usage, run.unfinished.done)
    run = evolve(run, job=row.job or run.job).apply(message)  # type: ignore[arg-type]  # no others are journaled
    return _last(run, machine, moving)


def _begun(
    run: Run | None,
    assign: Assign,
    limits: Limits,
    machine: type[AgentStateManager],
    moving: Callable[[Run, Move], None],
) -> Run:
    """Begin an assignment, or resume the same one under a new lease.

    The second happens after a crash, also if the run had already ended.
    """
    if run is not None and (run.assign.run_id, run.assign.round) == (assign.run_id, assign.round):
        return evolve(run, assign=assign)
    return _last(Run.begin(assign, limits, machine.initial, run), machine, moving)


def _last(run: Run, machine: type[AgentStateManager], moving: Callable[[Run, Move], None]) -> Run:
    while (move := machine.decide(run)) is not None:
        moving(run, move)
        run = moved(machine, run, move)
    return run
