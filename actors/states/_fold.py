"""Folding a history back into a run: recovery, restart and replay take the same way as the work itself did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from callboard.actors.states._evolve import evolve
from callboard.actors.states._run import Run
from callboard.actors.states._unfinished import OnTheWay, Unfinished
from callboard.messages import AgentStatus, Assign, Cancel, RoundEnded, SubtaskEnded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from callboard.actors.states._machine import AgentStateManager, Move
    from callboard.config import Limits
    from callboard.messages import Message


class Said(Protocol):
    """One message that a run heard, or that one of its jobs came back with: a row of the journal."""

    @property
    def message(self) -> Message:
        """What was said."""
        ...

    @property
    def job(self) -> int:
        """The job whose word it is; 0 for what came from outside."""
        ...


def moved(machine: type[AgentStateManager], run: Run, move: Move) -> Run:
    """Make the run that follows a move.

    Raises:
        IllegalMoveError: If the table does not have it; the run stays as it is.
    """
    machine.check(run.status, move.target, move.by)
    return run.moved(move, reannotating=move.target == AgentStatus.SCREENSHOT)


def moves(machine: type[AgentStateManager], run: Run) -> Iterator[tuple[Run, Move, Run]]:
    """Make the moves on which the states decide: yield each, between the run before it and the one after it.

    Raises:
        IllegalMoveError: If the table does not have a move that a state wishes for.
    """
    while (move := machine.get_state(run.status).decide(run)) is not None:
        before, run = run, moved(machine, run, move)
        yield before, move, run


def fold(history: Iterable[Said], limits: Limits, machine: type[AgentStateManager]) -> Run | None:
    """Make the run of an agent from all that it heard at its address, in order; None if it never began any.

    A word of a job is late if a later one was started, or a cancel came, before it: then it did not count.
    """
    run: Run | None = None
    latest = 0
    for said in history:
        latest = max(latest, said.job)
        run = after(run, said, limits, machine)
    return None if run is None else evolve(run, job=max(run.job, latest), busy=False)


def _unheard(run: Run, move: Move) -> None:
    """Tell nobody of a move."""


def after(
    run: Run | None,
    said: Said,
    limits: Limits,
    machine: type[AgentStateManager],
    moving: Callable[[Run, Move], None] = _unheard,
) -> Run | None:
    """Make the run that follows one message of the history, moves included; `moving` hears of each before it is made.

    Raises:
        IllegalMoveError: If the table does not have a move that a state wishes for.
    """
    message = said.message
    if isinstance(message, Assign) and message.token and not said.job:
        return _begun(run, message, limits, machine, moving)
    if run is None or run.over or (said.job and said.job <= run.job):
        return run
    if isinstance(message, OnTheWay):
        return evolve(run, unfinished=(run.unfinished or Unfinished()).after(message))
    if isinstance(message, RoundEnded | SubtaskEnded) and said.job:
        return evolve(run, over=True, job=said.job)
    if not said.job and not run.expects(message):
        return run
    if isinstance(message, Cancel) and run.unfinished is not None:
        run = run.with_lost(run.unfinished.usage, run.unfinished.done)
    run = evolve(run, job=said.job or run.job).apply(message)  # type: ignore[arg-type]  # nothing else is kept of a run
    return _last(run, machine, moving)


def _begun(
    run: Run | None,
    assign: Assign,
    limits: Limits,
    machine: type[AgentStateManager],
    moving: Callable[[Run, Move], None],
) -> Run:
    """Begin an assignment; or go on with the same one under a new lease, after a crash, also if it had ended."""
    if run is not None and (run.assign.run_id, run.assign.round) == (assign.run_id, assign.round):
        return evolve(run, assign=assign)
    return _last(Run.begin(assign, limits, machine.initial, run), machine, moving)


def _last(run: Run, machine: type[AgentStateManager], moving: Callable[[Run, Move], None]) -> Run:
    while (move := machine.get_state(run.status).decide(run)) is not None:
        moving(run, move)
        run = moved(machine, run, move)
    return run
