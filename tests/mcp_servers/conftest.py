"""A supervisor with five third-party MCP servers; skipped if one is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pinned import OUTDATED, SERVERS, Pinned

from callboard import FunctionModel, ModelRequest, Settings, Supervisor
from support import PATIENCE

KILLED_IN_CALL = Path(__file__).with_name("killed_in_call.py")
DENIED = ("*.get-env", "*.write_file", "*.delete_entities", "*.git_commit", "*.convert_time")


def program_of(server: Pinned) -> str:
    """Give the path of a server's program, or skip the test.

    With ``REQUIRE_MCP_SERVERS`` the test fails instead.
    """
    if server.missing and os.environ.get("REQUIRE_MCP_SERVERS"):
        pytest.fail(server.missing)
    if server.missing:
        pytest.skip(server.missing)
    return str(server.path)


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with a Git repository and a file."""
    folder = tmp_path_factory.mktemp("workspace")
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)  # noqa: S607 - whichever git there is
    (folder / "hello.txt").write_text("hello", encoding="utf-8")
    return folder


def host(request: ModelRequest) -> dict[str, Any]:
    """Assign the request to the server named first, and return the result."""
    if request.subtasks:
        return {"Status": "FINISH", "Result": request.subtasks[-1].output}
    name = request.request.partition(".")[0]
    return {"Status": "ASSIGN", "ControlText": name, "Current Sub-Task": request.request}


@pytest.fixture(scope="session")
def calls() -> dict[str, dict[str, Any]]:
    """Give the arguments of an agent's calls, by the tool's name."""
    return {}


@pytest.fixture(scope="session")
def commands(workspace: Path) -> dict[str, dict[str, Any]]:
    """Give the settings of all five."""
    found: dict[str, dict[str, Any]] = {server.name: {"command": program_of(server)} for server in SERVERS}
    found["everything"]["args"] = ["stdio"]
    found["filesystem"]["args"] = [str(workspace)]
    found["memory"]["env"] = {"MEMORY_FILE_PATH": str(workspace / "memory.jsonl")}
    found["git"]["args"] = ["--repository", str(workspace)]
    found["time"]["args"] = ["--local-timezone", "UTC"]
    return {name: {**command, "start_seconds": PATIENCE} for name, command in found.items()}


def run(commands: dict[str, dict[str, Any]], calls: dict[str, dict[str, Any]]) -> Supervisor:
    """Run servers; an agent calls the named tool once."""

    def app(request: ModelRequest) -> dict[str, Any]:
        if request.call > 1:
            return {"Status": "FAIL"}
        return {"Status": "FINISH", "Function": request.request, "Args": calls[request.request]}

    settings = Settings.load(
        mcpServers=commands,
        policy=[*({"verdict": "deny", "tool": tool} for tool in DENIED), {"verdict": "allow", "tool": "*"}],
        supervision={"intensity": 20},
    )
    return Supervisor.start(settings, models={"host": FunctionModel(host), "app": FunctionModel(app)})


@pytest.fixture(scope="session")
def supervisor(commands: dict[str, dict[str, Any]], calls: dict[str, dict[str, Any]]) -> Iterator[Supervisor]:
    """Run all five."""
    with run(commands, calls) as running:
        yield running


@pytest.fixture(scope="session")
def killing(
    commands: dict[str, dict[str, Any]], calls: dict[str, dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Supervisor]:
    """Run all five, each killed in its first call."""
    marks = tmp_path_factory.mktemp("killed")
    before = {
        name: [str(KILLED_IN_CALL), str(marks / name), given["command"], *given.get("args", ())]
        for name, given in commands.items()
    }
    killed = {name: {**given, "command": sys.executable, "args": before[name]} for name, given in commands.items()}
    with run(killed, calls) as running:
        yield running


@pytest.fixture(scope="session")
def outdated() -> str:
    """Give the path of a program that does not match its SDK."""
    return program_of(OUTDATED)
