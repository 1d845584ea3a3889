"""The program to kill while it works on a phone.

    python phone_program.py FOLDER SERIAL PORT

It works until it is killed, or says how its task ended.
"""

from __future__ import annotations

import sys
from pathlib import Path

from callboard import FunctionModel, Settings, Supervisor, Task

PLAIN = "100%s of `$(it)` is 'typed' & \"kept\"; " * 5
ODD = "Zwölf Boxkämpfer jagen Viktor 漢字 €🙂; " * 4
STEPS = (
    ("launch_app", {"application": "contacts"}, ""),
    ("tap", {}, "Create contact"),
    ("type_text", {"text": "Ada"}, "First name"),
    ("type_text", {"text": PLAIN, "clear": True}, "First name"),
    ("type_text", {"text": ODD}, "Last name"),
    ("tap", {}, "Save"),
)


def task(serial: str) -> Task:
    return Task(id="t", request="add a contact", target=serial)


def decide(request):
    done = sum(not record.resumed for record in request.memory)
    if done == len(STEPS):
        return {"Status": "FINISH"}
    tool, arguments, name = STEPS[done]
    if name:
        control = next(each.id for each in request.observation.controls if each.name == name)
        arguments = {**arguments, "control_id": control}
    return {"Status": "CONTINUE", "Function": tool, "Args": arguments}


def supervised(folder: Path, serial: str, port: int) -> Supervisor:
    settings = Settings.load(
        journal={"path": folder / "journal.db", "durability": "process"},
        android={"devices": [serial], "port": port},
        policy=[{"verdict": "allow"}],
    )
    return Supervisor.start(settings, models={"mobile": FunctionModel(decide)})


if __name__ == "__main__":
    with supervised(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])) as running:
        print("taken", running.submit(task(sys.argv[2])).result(60).outcome, flush=True)  # noqa: T201 - the test reads it
        sys.stdin.read()
