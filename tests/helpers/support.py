"""Helpers for tests of several folders: waits, answers, tasks, the command line."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import typer
from typer.testing import CliRunner, Result

from callboard import ModelRequest, Supervisor, Task
from callboard.terminal import app
from callboard.testing import MemoryServer

PATIENCE = 60
"""Seconds to wait for an expected event; the wait ends with the event, so a long limit costs nothing."""

HELD = 3 * PATIENCE
"""Seconds for which a double blocks its caller unless released: longer than any test waits for the caller."""

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""A picture of one pixel."""

FINISH = {"Status": "FINISH"}
ASK = {"Status": "PENDING", "Comment": "which one?"}
ASSIGN = {"Status": "ASSIGN", "ControlText": "memo:one", "Current Sub-Task": "work"}


class Unread(MemoryServer):
    """A surface without a read tool, where a model may FINISH immediately."""

    read = None


def wait_for(check: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    """Wait until a check gives something true, and give it."""
    end = time.monotonic() + seconds
    while not (found := check()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
    return found


def lone(target: str = "memo:one", *, request: str = "x", **fields: Any) -> Task:
    """Make a task for one agent, by default on ``memo:one``."""
    return Task(request=request, target=target, **fields)


def action(function: str, control: str = "", **arguments: Any) -> dict[str, Any]:
    """Make one action of an answer's list."""
    return {"Function": function, "Args": arguments} | ({"ControlLabel": control} if control else {})


def actions(*given: dict[str, Any], status: str = "CONTINUE") -> dict[str, Any]:
    """Make an answer with a list of actions."""
    return {"Status": status, "Actions": list(given)}


def told(answers: Sequence[dict[str, Any]], notes: list[tuple[str, ...]]) -> Callable[[ModelRequest], dict[str, Any]]:
    """Make a model that gives answers in order, and keeps its notes."""

    def model(request: ModelRequest) -> dict[str, Any]:
        notes.append(request.observation.notes)
        return answers[request.call - 1]

    return model


def call(function: str, status: str = "CONTINUE", **arguments: Any) -> dict[str, Any]:
    """Make an answer with one action."""
    return {"Status": status, **action(function, **arguments)}


def append(text: str, status: str = "CONTINUE") -> dict[str, Any]:
    """Make an answer that appends to the first field."""
    return call("append", status, control_id="field-1", text=text)


def write(text: str = "hello", status: str = "CONTINUE", function: str = "write", **more: Any) -> dict[str, Any]:
    """Make an answer that writes into the first field."""
    return {"Status": status, **action(function, "field-1", text=text), **more}


def full_answer(status: str = "FINISH", *actions: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Make an answer with all keys, as from strict output.

    FINISH has an action by default: a live model that did nothing is asked once more.
    """
    if status == "FINISH" and not actions:
        actions = (action("write", "field-1", text="hello"),)
    return {
        "Observation": "A field.",
        "Thought": "I do it.",
        "Plan": [],
        "Actions": list(actions),
        "ControlReannotate": [],
        "Status": status,
        "Questions": [],
        "Result": None,
        "Comment": "Done.",
        **more,
    }


def stop_blocked(supervisor: Supervisor) -> tuple[str, ...]:
    """Stop a supervisor whose model does not return, and hardly wait for it; the other parts get the usual time."""
    with mock.patch("callboard.actors.assembly.BLOCKED_SECONDS", 0.05):
        return supervisor.stop()


COMMAND = typer.main.get_command(app)


def command_line(*arguments: object) -> Result:
    """Call the command line in this process, with 100 columns."""
    with mock.patch("typer.testing._get_command", return_value=COMMAND):  # building the program takes most of a call
        return CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "100"})
