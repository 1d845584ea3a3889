"""Type the contacts of a Word table into a phone: ``python examples/phone_contacts/run.py``.

A HostAgent plans for two agents: one reads the table, the other works on the phone. The checks look for each name in
the phone's list of contacts. Without ``--device`` the phone is `callboard.testing.Phone`, behind a real adb server.
Functions replace the language models.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any, cast

import docx

from callboard import FunctionModel, ModelRequest, Outcome, Settings, Supervisor, Task, TaskResult
from callboard.errors import SettingsError
from callboard.messages import Check, ControlQuery
from callboard.testing import Phone, plugged_in

PEOPLE: list[tuple[str, ...]] = [
    ("First name", "Last name", "Phone"),
    ("Ada", "Lovelace", "+44 20 7946 0001"),
    ("Søren", "O'Hara", "+45 33 12 34 56"),
    ("Grace", "Hopper & Sons", "555-0100"),
]
FIELDS = ("First name", "Last name", "Phone")


def write_document(file: Path, people: list[tuple[str, ...]]) -> None:
    """Write the Word table."""
    document = docx.Document()
    table = document.add_table(len(people), len(people[0]))
    for row, person in zip(table.rows, people, strict=True):
        for cell, text in zip(row.cells, person, strict=True):
            cell.text = text
    written = io.BytesIO()
    document.save(written)
    file.write_bytes(written.getvalue())


def host(request: ModelRequest) -> dict[str, Any]:
    """Assign the reading of the table, then the typing."""
    done = request.subtasks
    if done and done[-1].outcome is not Outcome.FINISHED:
        return {"Status": "FAIL", "Comment": "; ".join(cause.reason for cause in done[-1].causes)}
    if len(done) == 2:  # both
        return {"Status": "FINISH", "Result": done[-1].output, "Comment": done[-1].comment}
    kind = "mobile" if done else "app"
    target = next(offer for offer in request.observation.targets if offer.address.startswith(kind))
    subtask = "Add the contacts that were read" if done else "Read the table of contacts"
    return {"Status": "ASSIGN", "ControlLabel": target.id, "Current Sub-Task": subtask}


def app(request: ModelRequest) -> dict[str, Any]:
    """Read the table, and return it as the result."""
    if not request.memory:
        (table,) = [control.id for control in request.observation.controls if control.kind == "table"]
        return {"Status": "CONTINUE", "Function": "read_table", "Args": {"control_id": table, "numbers": False}}
    return {"Status": "FINISH", "Result": request.memory[0].results[0].value}


def mobile(request: ModelRequest) -> dict[str, Any]:
    """Choose the next action from the screen and the typed fields."""
    people: list[list[str]] = cast("dict[str, Any]", request.subtasks[0].output)["rows"]
    called = [action.tool for record in request.memory for action in record.decision.actions]
    ids = {(control.name, control.kind): control.id for control in request.observation.controls}
    at, field = divmod(called.count("type_text"), len(FIELDS))
    if not called:
        return call("launch_app", application="contacts")
    if called[-1] == "type_text" and not field:
        return call("tap", control_id=ids["Save", "button"])
    if at == len(people) and ("Create contact", "button") in ids:
        return {"Status": "FINISH", "Result": at, "Comment": f"{at} contacts were added."}
    if at < len(people) and (FIELDS[field], "text field") in ids:
        return call("type_text", control_id=ids[FIELDS[field], "text field"], text=str(people[at][field]))
    if at < len(people) and ("Create contact", "button") in ids:
        return call("tap", control_id=ids["Create contact", "button"])
    return call("press_key", key="BACK")


def call(tool: str, **arguments: str) -> dict[str, Any]:
    """Build an answer with one action."""
    return {"Status": "CONTINUE", "Function": tool, "Args": arguments}


def add_contacts(folder: Path, serial: str, port: int) -> TaskResult:
    """Run the task on a folder that has the document."""
    settings = Settings.load(
        documents={"workspace": folder},
        android={"devices": [serial], "port": port},
        journal={"path": folder / "journal.db"},
        policy=[{"verdict": "allow", "tool": "tap", "agent": "mobile/*"}, {"verdict": "allow", "tool": "launch_app"}],
    )
    names = [" ".join(person[:2]) for person in PEOPLE[1:]]
    checks = tuple(Check(control=ControlQuery(target=serial, name=name), exists=True) for name in names)
    task = Task(request="Add the contacts of people.docx to the phone", checks=checks)
    models = {"host": FunctionModel(host), "app": FunctionModel(app), "mobile": FunctionModel(mobile)}
    with Supervisor.start(settings, models=models) as supervisor:
        return supervisor.submit(task).result(timeout=600)


def main() -> int:
    """Run the task on a device, or on a `Phone`."""
    parser = argparse.ArgumentParser(description="Type the contacts of a Word table into a phone.")
    parser.add_argument("--device", help="the serial of a real device, as `adb devices` lists it")
    parser.add_argument(
        "--output", type=Path, default=Path("phone.png"), help="file for the picture of the simulated screen"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_document(folder / "people.docx", PEOPLE)
        if options.device:
            result = add_contacts(folder, options.device, 5037)
        else:
            phone = Phone()
            with plugged_in(phone) as device, contextlib.closing(socket.create_server(("127.0.0.1", 0))) as free:
                port = free.getsockname()[1]  # a separate adb server, which ends with the task
                free.close()
                result = add_contacts(folder, device.serial, port)
            contacts = phone.contacts
            contacts.reset()
            lines = (f"{contact.name}, {contact.phone}" for contact in contacts.people)
            print("The phone's contacts:", *lines, sep="\n  ")
            options.output.write_bytes(phone.picture())
            print(f"The phone's screen is in {options.output}")
    for check in result.checks:
        print(f"{check.name}: {'holds' if check.held else f'does not hold: {check.found}'}")
    print(f"{result.outcome.value}: {result.comment or '; '.join(cause.reason for cause in result.causes)}")
    return 0 if result.ok else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SettingsError as error:  # adb or the extra is missing: it names the command that installs it
        sys.exit(str(error))
