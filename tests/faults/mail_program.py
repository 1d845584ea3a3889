"""The program to kill while its AppAgent sends a message.

    python mail_program.py FOLDER SECTION

It says when it has taken its task, and then works until it is killed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from callboard import FunctionModel, Settings, Supervisor, Task

TASK = Task(id="send", request="Send the report", target="office")
MESSAGE = {"to": ["bob@example.org"], "subject": "The report", "text": "It is done."}


def decide(request):
    if not request.memory:
        return {"Status": "CONTINUE", "Function": "send_message", "Args": MESSAGE}
    (result,) = request.memory[-1].results
    return {"Status": "FINISH" if result.status == "success" else "FAIL", "Result": result.value}


def supervised(folder: Path, section: str) -> Supervisor:
    settings = Settings.load(
        journal={"path": folder / "journal.db", "durability": "process"},
        mail={"office": {"sender": "ada@example.org", **json.loads(section)}},
        secrets={"mail": "a-password-of-mail"},
        policy=[{"verdict": "allow"}],
    )
    return Supervisor.start(settings, models={"app": FunctionModel(decide)})


if __name__ == "__main__":
    with supervised(Path(sys.argv[1]), sys.argv[2]) as running:
        running.submit(TASK)
        print("taken", flush=True)  # noqa: T201 - the test reads it
        sys.stdin.read()
