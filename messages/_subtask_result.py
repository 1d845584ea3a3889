"""The result of one subtask."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from callboard.messages._base import Address, Message, RunId
from callboard.messages._checks import CheckResult
from callboard.messages._command import PlannedAction
from callboard.messages._documented_fields import DocumentedFields
from callboard.messages._outcome import Cause, Outcome, Usage
from callboard.messages._target import Observation
from callboard.messages._task_judge import JudgeResult


class SubtaskResult(DocumentedFields, Message):
    """The outcome and the results of one subtask."""

    kind: Literal["subtask_result"] = "subtask_result"
    """The tag of the message."""
    run_id: RunId
    """The piece of work, such as `report~1`."""
    number: int = Field(ge=1)
    """Its place within the task, from 1."""
    group: int = Field(default=0, ge=0)
    """The number of the first of the subtasks that were assigned together with it; 0 if it was assigned alone."""
    request: str
    """The work, in the words of the HostAgent's model or of the plan."""
    address: Address
    """The agent that worked on it."""
    target: str = ""
    """The name of its target for people, such as a window's title when the subtask began. Empty in older results, and
    of subtasks that never ran."""
    machine: str = ""
    """The machine of the fleet that did it; empty for this one."""
    outcome: Outcome
    """The way in which it ended."""
    causes: tuple[Cause, ...] = ()
    """The reasons why it did not finish, the nearest first; empty when it did."""
    output: JsonValue = None
    """The agent's result: data that a tool returned, or an answer in words."""
    comment: str = ""
    """The last comment of the agent's model."""
    artifacts: tuple[str, ...] = ()
    """Files it made or changed, as absolute paths, in order."""
    paths_there: dict[str, str] = Field(default_factory=dict)
    """The paths of `artifacts` on the machine that made them, by their paths here, if that is another one."""
    made: tuple[str, ...] = ()
    """Those of `artifacts` that did not exist before the task."""
    changed: tuple[str, ...] = ()
    """Files, as absolute paths, and targets, by their id, that its actions changed or may have changed. `target` has
    the name of its own for people."""
    actions: int = Field(default=0, ge=0)
    """The number of its actions that changed something, or may have."""
    failed_actions: int = Field(default=0, ge=0)
    """The number of its actions that failed, were denied, or are in doubt; 0 in journals of versions that did not count
    them."""
    would_do: tuple[PlannedAction, ...] = ()
    """The actions that a dry run did not execute, in order."""
    checks: tuple[CheckResult, ...] = ()
    """The results of the checks at its last FINISH: those of its plan's step, and of its task if it was the last."""
    judged: tuple[JudgeResult, ...] = ()
    """The judge's answers at its last FINISH, if the task ended with it."""
    last_seen: Observation | None = None
    """The observation after a failure, for diagnosis."""
    usage: Usage = Field(default_factory=Usage)
    """The steps, calls, tokens and costs."""
