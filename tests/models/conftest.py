"""An agent's request, and tasks on a window with a provider's model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from callboard.actors.processing import AGENTS
from callboard.messages import (
    AgentKind,
    CommandResult,
    Control,
    Decision,
    Observation,
    Outcome,
    ResultStatus,
    StepRecord,
    SubtaskResult,
    Target,
    TargetKind,
)
from callboard.models import ModelRequest
from callboard.testing import MemoryServer
from support import Unread, lone

if TYPE_CHECKING:
    from collections.abc import Callable

    Asks = Callable[..., ModelRequest]

WINDOW = Target(
    id="report.docx", name="Report", kind=TargetKind.WINDOW, address="app/word/report.docx", server="documents"
)
SEEN = Observation(targets=(WINDOW,), controls=(Control(id="table-1", name="Sales", kind="table", detail={"rows": 4}),))
STEP = StepRecord(
    step=1,
    status="CONTINUE",
    observation=SEEN,
    decision=Decision(status="CONTINUE"),
    results=(
        CommandResult(call_id="t~2.1.0", tool="read", status=ResultStatus.SUCCESS, value={"rows": [[1, 2.5], ["a"]]}),
    ),
)
DONE = SubtaskResult(
    run_id="t~1",
    number=1,
    request="read the table",
    address="app/word/report.docx",
    outcome=Outcome.FINISHED,
    output={"rows": 4, "ratio": 0.5, "done": True, "none": None, "cells": [["a", 1]], "0": "zero"},
    artifacts=("/srv/report.docx",),
)


@pytest.fixture
def asks() -> Asks:
    """Make a request: ``asks(call=2)``."""

    def request(**fields: Any) -> ModelRequest:
        shared: dict[str, Any] = {
            "address": "app/excel/book.xlsx",
            "kind": AgentKind.APP,
            "task_id": "t",
            "run_id": "t~2",
            "step": 2,
            "call": 1,
            "status": "CONTINUE",
            "statuses": ("CONTINUE", "FINISH"),
            "instructions": "Work.",
            "task_request": "make a chart of the sales",
            "request": "make a chart",
            "target": WINDOW,
            "plan": (),
            "observation": SEEN,
            "memory": (STEP,),
            "subtasks": (DONE,),
            "tools": (),
        }
        shared |= fields
        return ModelRequest(**{"response": AGENTS[shared["kind"]].response, **shared})

    return request


@pytest.fixture
def on_window(start):
    """Submit a task on ``memo:one`` to a supervisor with these settings."""

    def submit(surface=None, request="write hello", **sections):
        supervisor = start(servers=[surface or Unread(MemoryServer.window())], **sections)
        return supervisor.submit(lone(request=request))

    return submit


@pytest.fixture
def run(on_window, provider):
    """Run a task with the provider's model; other keywords are its settings."""

    def submit(request="write hello", *, surface=None, more=None, record=None, **options):
        sections = {name: options.pop(name) for name in ("limits", "budget", "clock") if name in options}
        models = {"app": "local:small"} | ({} if record is None else {"record": str(record)})
        providers = {"local": {"url": provider.url, **options}, **(more or {})}
        return on_window(surface, request, models=models, providers=providers, **sections)

    return submit
