"""Short forms of runs and messages."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from callboard.actors.states import Run
from callboard.config import Limits
from callboard.messages import (
    Action,
    Assign,
    Cause,
    CommandResult,
    Decision,
    Held,
    Observation,
    Outcome,
    ResultStatus,
    StepDone,
    StepRecord,
    SubtaskResult,
    Target,
    TargetKind,
    Usage,
    subtask_ended,
)

TARGET = Target(id="memo:one", name="memo:one", kind=TargetKind.WINDOW, address="app/memo/one", server="memory")


def make_run(status: str = "CONTINUE", *, address: str = "app/memo/one", task: str = "t", **fields: Any) -> Run:
    """Make the run of a subtask, or of a HostAgent's round."""
    number = 0 if address.startswith("host/") else 1
    assign = fields.pop("assign", {})
    limits = Limits(**fields.pop("limits", {}))
    made = Assign(
        **{
            "task_id": task,
            "run_id": f"{task}~{number}",
            "address": address,
            "token": 7,
            "request": "do it",
            "number": number,
            **assign,
        }
    )
    return Run(assign=made, limits=limits, status=status, **fields)


def make_step(status: str = "CONTINUE", *results: str, held: int = 0, by_policy: str = "", **decision: Any) -> StepDone:
    """Make the end of a step: status, outcomes of actions, further decisions."""
    ended = tuple(
        CommandResult(
            call_id=f"t~1.1.{number}",
            tool="write",
            status=ResultStatus(result),
            value=f"value {number}" if result == "success" else None,
            error="" if result == "success" else "no",
        )
        for number, result in enumerate(results)
    )
    decided = Decision(
        status=status, actions=tuple(Action(tool="write") for _ in range(held + len(results))), **decision
    )
    record = StepRecord(step=1, status="CONTINUE", observation=Observation(), decision=decided, results=ended)
    return StepDone(
        record=record,
        held=decided.actions[len(results) :],
        held_by=(Held.POLICY if by_policy else Held.MODEL) if held else Held.NOT,
        held_why=by_policy,
        usage=Usage(steps=1, model_calls=1, commands=len(results)),
    )


def make_end(outcome: Outcome, run_id: str = "t~1", **fields: Any) -> Any:
    """Make the message of a subtask's end."""
    causes = () if outcome is Outcome.FINISHED else (Cause(reason="it broke", where="app/memo/one"),)
    result = SubtaskResult(
        run_id=run_id, number=1, request="do it", address="app/memo/one", outcome=outcome, causes=causes, **fields
    )
    return subtask_ended("t", 9, result)


@pytest.fixture
def run() -> Callable[..., Run]:
    return make_run


@pytest.fixture
def make() -> SimpleNamespace:
    """Give the makers of messages.

    Examples: ``make.step("FINISH", "success")``, ``make.end(Outcome.FAILED)``.
    """
    return SimpleNamespace(step=make_step, end=make_end, target=TARGET)
