"""Detect loops: steps that repeat while the surface does not change."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from callboard.messages import StepRecord

WINDOW = 30
"""The number of earlier steps that are searched for a loop."""

IDLE = 3
"""The number of steps in a row without an action that count as one repetition, while the surface does not change."""


def repeats(earlier_records: tuple[StepRecord, ...], record: StepRecord) -> int:
    """Count recent steps like this one on an unchanged surface.

    A surface is unchanged if it has the same fingerprint. This also finds cycles of statuses or of changes, since each
    element of a cycle recurs. Steps without any action count too, however their answers differ: `IDLE` of them in a row
    are one repetition.
    """
    step_fingerprint, same = record.observation.fingerprint, 1
    for earlier in earlier_records[-WINDOW:]:
        if not earlier.resumed and earlier.observation.fingerprint == step_fingerprint:
            same += _signature(earlier) == _signature(record)
    idle = 0
    for earlier in reversed((*earlier_records[-WINDOW:], record)):
        if earlier.results or earlier.observation.fingerprint != step_fingerprint:
            break
        idle += 1
    return max(same, idle // IDLE)


def _signature(record: StepRecord) -> tuple[str, str, str]:
    decision = record.decision
    actions = [action.model_dump(mode="json", exclude={"call_id"}) for action in decision.actions]
    questions = [question.text for question in decision.questions]
    target = decision.target.id if decision.target is not None else ""
    group = [(planned.request, planned.target.id) for planned in decision.group]
    return record.status, decision.status, repr((actions, questions, target, decision.subtask, group))
