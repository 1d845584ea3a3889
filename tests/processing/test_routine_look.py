"""Waiting for the screen of a routine's next step, on surfaces that change by themselves."""

from __future__ import annotations

import pytest

from callboard import Task
from callboard.actors.processing import _routine_look
from callboard.messages import Routine
from callboard.routines import dump
from callboard.testing import MemoryServer
from support import FINISH, PATIENCE, lone, write

ROUTINE = Routine.model_validate(
    {
        "routine": "fill",
        "request": "x",
        "subtasks": [
            {
                "target": "memo:one",
                "kind": "app",
                "request": "x",
                "steps": [
                    {
                        "status": "CONTINUE",
                        "actions": [{"tool": "write", "arguments": {"control_id": "field-1", "text": "a"}}],
                    },
                    {"status": "FINISH"},
                ],
            }
        ],
    }
)


@pytest.fixture
def built(monkeypatch) -> list[object]:
    """Return the requests that are built to look for a screen."""
    requests: list[object] = []
    make = _routine_look.model_request

    def counted(*arguments):
        requests.append(make(*arguments))
        return requests[-1]

    monkeypatch.setattr(_routine_look, "model_request", counted)
    return requests


@pytest.mark.parametrize("recorded", [False, True], ids=["plain", "recorded"])
def test_step_without_a_routine_builds_no_request_to_look_again(start, tmp_path, built, recorded):
    record = {"models": {"record": str(tmp_path / "calls.jsonl")}} if recorded else {}
    supervisor = start(servers=[MemoryServer(MemoryServer.window())], app=[write("a"), FINISH], **record)
    assert supervisor.submit(lone()).result(PATIENCE).ok
    assert built == []


def test_step_of_a_routine_builds_one_request_for_each_look(start, tmp_path, built):
    file = tmp_path / "fill.routine.yaml"
    file.write_text(dump(ROUTINE), encoding="utf-8")
    supervisor = start(servers=[MemoryServer(MemoryServer.window())], models={"app": f"routine:{file}"})
    assert supervisor.submit(lone()).result(PATIENCE).ok
    assert len(built) == 2
    assert supervisor.submit(Task(routine=ROUTINE)).result(PATIENCE).ok
    assert len(built) == 4
