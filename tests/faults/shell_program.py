"""The program to kill while its LinuxAgent's command runs.

    python shell_program.py FOLDER SECTION REQUEST

It says when it has taken its task, and then works until it is killed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from callboard import FunctionModel, Settings, Supervisor, Task

COMMAND = "for i in 1 2 3 4 5 6; do echo $i >> done; sleep 0.08; done; echo all of it; exit 5"
SECONDS = 0.48
"""The time that the command takes at least."""
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


if __name__ == "__main__":
    with supervised(Path(sys.argv[1]), sys.argv[2]) as running:
        running.submit(TASKS[sys.argv[3]])
        print("taken", flush=True)  # noqa: T201 - the test reads it
        sys.stdin.read()
