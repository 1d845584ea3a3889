"""A program is killed while its LinuxAgent's command runs: the next one follows the command, and repeats nothing."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from callboard import EventName, FunctionModel, Outcome, Settings, Supervisor, Task
from callboard.testing import assert_replays
from ssh_server import ssh_server
from support import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = "for i in 1 2 3 4 5 6; do echo $i >> done; sleep 0.15; done; echo all of it; exit 5"
PROGRAM = """
import sys
from pathlib import Path
sys.path[:0] = {paths!r}
from test_shell_kills import supervised, TASKS
with supervised(Path(sys.argv[1]), sys.argv[2]) as supervisor:
    supervisor.submit(TASKS[sys.argv[3]])
    print("taken", flush=True)
    sys.stdin.read()
"""
TASKS = {request: Task(id="count", request=request, target="box") for request in ("count", "count in the background")}


def decide(request):
    background = request.request == "count in the background"
    done = [record.results[0] for record in request.memory]
    if not done:
        return {"Status": "CONTINUE", "Function": "start" if background else "run", "Args": {"command": COMMAND}}
    if background and (len(done) == 1 or done[-1].value["running"]):
        handle = done[0].value["handle"]
        return {"Status": "CONTINUE", "Function": "read_output", "Args": {"handle": handle, "seconds": 20}}
    return {"Status": "FINISH", "Result": done[-1].value}


def supervised(folder: Path, section: str = "{}") -> Supervisor:
    settings = Settings.load(
        journal={"path": folder / "journal.db", "durability": "process"},
        shells={"box": {"cwd": folder / "work", "grace": 30, **json.loads(section)}},
        policy=[{"verdict": "allow"}],
    )
    return Supervisor.start(settings, models={"linux": FunctionModel(decide)})


def kill_at(folder: Path, seconds: float, section: str, request: str) -> None:
    """Start a program that has the command run, and kill it some time after it was begun."""
    here = os.path.dirname(__file__)  # noqa: PTH120 - a text
    program = PROGRAM.format(paths=[here, os.path.dirname(here)])  # noqa: PTH120 - as above
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(folder), section, request],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"taken\n", child.stderr.read().decode() if child.stderr else ""
        end = time.monotonic() + PATIENCE
        while not (folder / "work" / "done").exists():
            assert time.monotonic() < end
            time.sleep(0.01)
        time.sleep(seconds)
        child.send_signal(signal.SIGKILL)


@pytest.mark.parametrize("request_", TASKS)
@pytest.mark.parametrize("where", ["here", "over SSH"])
@pytest.mark.parametrize(
    "seconds",
    [0.0, 1.5, *(pytest.param(random.uniform(0, 1.2), marks=pytest.mark.slow, id=f"r{n}") for n in range(20))],  # noqa: S311 - no secret
)
def test_a_command_is_followed_by_the_next_program(tmp_path: Path, seconds: float, where: str, request_: str) -> None:
    (tmp_path / "work").mkdir()
    with contextlib.ExitStack() as stack:
        machine = stack.enter_context(ssh_server(tmp_path / "machine")) if where == "over SSH" else None
        section = json.dumps(machine.section, default=str) if machine else "{}"
        kill_at(tmp_path, seconds, section, request_)
        with supervised(tmp_path, section) as supervisor:
            handle = supervisor.submit(TASKS[request_])
            result = handle.result(PATIENCE)
            events = list(handle.events())
    assert result.outcome is Outcome.FINISHED, result.causes
    assert (tmp_path / "work" / "done").read_text(encoding="utf-8").split() == list("123456")
    ended = {"exit_code": 5, "stdout": "all of it\n", "stderr": ""}
    assert result.output == ({"running": False, **ended} if "background" in request_ else ended)
    probes = [event.data["probe"] for event in events if event.name is EventName.COMMAND_IN_DOUBT]
    assert set(probes) <= {"begun"}
    assert_replays(tmp_path / "journal.db", "count")
