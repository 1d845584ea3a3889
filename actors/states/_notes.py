"""Notes of a step for the next one: failures, answers, repetitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.messages import AgentStatus, Observation, ResultStatus, StepRecord

if TYPE_CHECKING:
    from collections.abc import Iterable

CLAIMS = frozenset(
    {AgentStatus.FINISH, AgentStatus.ASSIGN, AgentStatus.CONFIRM, AgentStatus.PENDING, AgentStatus.SCREENSHOT}
)
"""Statuses that are followed only if all actions of the answer succeeded."""


def step_notes(record: StepRecord, count: int, allowed: int, *, followed: bool) -> tuple[str, ...]:
    """Return the notes of a completed step for the next one.

    Args:
        record: The completed step.
        count: The number of steps like it, itself included, while the surface did not change.
        allowed: The limit for `count`.
        followed: Whether the status of its answer is going to be followed.
    """
    dry = [result for result in record.results if result.status is ResultStatus.DRY_RUN]
    tried = tuple(f"{result.tool}: {result.error}. Go on as if it was done" for result in dry)
    if not record.incomplete and not record.refused and record.status != AgentStatus.SCREENSHOT and count < allowed:
        return tried
    notes, status = [*tried, *_failures(record, followed=followed)], record.decision.status
    may_follow = {AgentStatus.SCREENSHOT, AgentStatus.CONTINUE, AgentStatus.CONFIRM}
    if record.refused:
        notes += [f"a check does not hold: {check.told()}" for check in record.failed_checks]
        notes += [f"a judge of files and pictures says no to {denial.told()}" for denial in record.denials]
        notes.append(f"{status} does not hold, because of that: do what is missing, then say {status} again")
    if record.status == AgentStatus.SCREENSHOT and status not in may_follow:
        notes.append(f"{status} was not followed: SCREENSHOT is for one more look; say {status} now if it still holds")
    if count >= allowed:
        notes.append(f"you did the same {count} times, and nothing changed: do something else, or say FAIL")
    return tuple(notes)


def _failures(record: StepRecord, *, followed: bool) -> Iterable[str]:
    """Yield a note for each failed or skipped action.

    If the answer's status depends on the actions, yield another note that it does not hold.
    """
    for result in record.results:
        if result.status is ResultStatus.FAILURE:
            yield f"{result.tool} failed: {result.error}"
        elif result.status is ResultStatus.SKIPPED:
            yield f"{result.tool} was not run: {result.error}"
    if record.incomplete and record.decision.status in CLAIMS and followed:
        how = "failed" if record.failures else "was not run"
        yield f"{record.decision.status} does not hold, because an action of the same answer {how}"


def see(observation: Observation, notes: tuple[str, ...]) -> Observation:
    """Add notes to an observation."""
    return observation.model_copy(update={"notes": (*observation.notes, *notes)}) if notes else observation
