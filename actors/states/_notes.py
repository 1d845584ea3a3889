"""What a step tells the next one: failures, a person's answers, and that the same comes again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.messages import AgentStatus, Answer, AskedQuestion, Observation, ResultStatus, StepRecord

if TYPE_CHECKING:
    from collections.abc import Iterable

CLAIMS = frozenset(
    {AgentStatus.FINISH, AgentStatus.ASSIGN, AgentStatus.CONFIRM, AgentStatus.PENDING, AgentStatus.SCREENSHOT}
)
"""Statuses of an answer that hold only if all of its actions ran and succeeded."""

NOBODY = "nobody will answer questions: decide yourself, or say FAIL"
"""What a model is told that asked where nobody answers."""

_ANSWERED = "a person answered"

WINDOW = 30
"""How many steps back a loop is looked for."""

IDLE = 3
"""Steps in a row without any action, on an unchanged surface, that count as one repetition."""


def step_notes(record: StepRecord, count: int, allowed: int, *, followed: bool) -> tuple[str, ...]:
    """Give what the next step has to be told of one that ran.

    Args:
        record: The step.
        count: How often a step like this one was taken while nothing changed.
        allowed: So often it may be.
        followed: Whether the status of its answer leads somewhere.
    """
    if not record.incomplete and record.status != AgentStatus.SCREENSHOT and count < allowed:
        return ()
    return (*_failures(record, followed=followed), *_not_followed(record), *_loops(count, allowed))


def _failures(record: StepRecord, *, followed: bool) -> Iterable[str]:
    """Yield a note for each action that failed or was not run, and one if the status claims more than was done."""
    for result in record.results:
        if result.status is ResultStatus.FAILURE:
            yield f"{result.tool} failed: {result.error}"
        elif result.status is ResultStatus.SKIPPED:
            yield f"{result.tool} was not run: {result.error}"
    if record.incomplete and record.decision.status in CLAIMS and followed:
        how = "failed" if record.failures else "was not run"
        yield f"{record.decision.status} does not hold, because an action of the same answer {how}"


def _not_followed(record: StepRecord) -> Iterable[str]:
    """Yield a note if the status is one that SCREENSHOT does not have."""
    status = record.decision.status
    if record.status == AgentStatus.SCREENSHOT and status not in {
        AgentStatus.SCREENSHOT,
        AgentStatus.CONTINUE,
        AgentStatus.CONFIRM,
    }:
        yield f"{status} was not followed: SCREENSHOT is for one more look; say {status} now if it still holds"


def _loops(count: int, allowed: int) -> Iterable[str]:
    """Yield a note if the same came too often."""
    if count >= allowed:
        yield f"you did the same {count} times, and nothing changed: do something else, or say FAIL"


def answer_notes(asked: tuple[AskedQuestion, ...], answer: Answer) -> Iterable[str]:
    """Say what a person answered to which question."""
    if answer.nobody:
        yield NOBODY
    for question, text in zip(asked, answer.texts, strict=False):
        yield f"asked {question.text!r}, {_ANSWERED} {text!r}"


def said_by_people(observation: Observation) -> Iterable[str]:
    """Give the remarks that tell what people answered: later steps need them too, and nothing else keeps them."""
    return (note for note in observation.notes if _ANSWERED in note)


def repeats(before: tuple[StepRecord, ...], record: StepRecord) -> int:
    """Count how often a step like this one was taken on a surface that looked the same, among the latest.

    Statuses, or changes, that go round in a circle are noticed in the same way: each comes again and again. Steps
    that do nothing at all, in whatever words, count too: `IDLE` of them in a row as one repetition.
    """
    seen, same = record.observation.fingerprint, 1
    for earlier in before[-WINDOW:]:
        if not earlier.resumed and earlier.observation.fingerprint == seen:
            same += _signature(earlier) == _signature(record)
    idle = 0
    for earlier in reversed((*before[-WINDOW:], record)):
        if earlier.results or earlier.observation.fingerprint != seen:
            break
        idle += 1
    return max(same, idle // IDLE)


def _signature(record: StepRecord) -> tuple[str, str, str]:
    decision = record.decision
    actions = [action.model_dump(mode="json", exclude={"call_id"}) for action in decision.actions]
    questions = [question.text for question in decision.questions]
    target = decision.target.id if decision.target is not None else ""
    return record.status, decision.status, repr((actions, questions, target, decision.subtask))


def see(observation: Observation, notes: tuple[str, ...]) -> Observation:
    """Add the system's remarks to what was observed."""
    return observation.model_copy(update={"notes": (*observation.notes, *notes)}) if notes else observation
