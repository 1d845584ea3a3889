"""One task for two phones, a shell and a document, under one HostAgent."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import docx

from callboard import FunctionModel, Outcome, Settings, Supervisor, Task
from callboard.testing import Contact, Phone, plugged_in
from support import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

    from callboard import ModelRequest

PLAN = ("linux/", "app/word/", "mobile/", "mobile/")


def host(request: ModelRequest) -> dict[str, Any]:
    """Give each part of the task to another agent."""
    done = request.subtasks
    if len(done) == len(PLAN):
        return {"Status": "FINISH", "Result": [each.output for each in done]}
    fitting = [each for each in request.observation.targets if each.address.startswith(PLAN[len(done)])]
    target = fitting[-1] if len(done) == len(PLAN) - 1 else fitting[0]
    return {"Status": "ASSIGN", "ControlText": target.id, "Current Sub-Task": f"part {len(done)}"}


def linux(request: ModelRequest) -> dict[str, Any]:
    """Find the number."""
    if not request.memory:
        command = "grep Lovelace numbers.txt | cut -d' ' -f2-"
        return {"Status": "CONTINUE", "Function": "run", "Args": {"command": command}}
    return {"Status": "FINISH", "Result": request.memory[0].results[0].value["stdout"].strip()}  # type: ignore[call-overload,index,union-attr]


def app(request: ModelRequest) -> dict[str, Any]:
    """Read the name."""
    if not request.memory:
        (table,) = [each.id for each in request.observation.controls if each.kind == "table"]
        return {"Status": "CONTINUE", "Function": "read_table", "Args": {"control_id": table}}
    return {"Status": "FINISH", "Result": request.memory[0].results[0].value["rows"][0]}  # type: ignore[call-overload,index]


def mobile(request: ModelRequest) -> dict[str, Any]:
    """Add the contact to the first phone, and a note about it to the second one."""
    number, name = (each.output for each in request.subtasks[:2])
    first, last = name  # type: ignore[misc]
    contact = [
        ("launch_app", {"application": "contacts"}, ""),
        ("tap", {}, "Create contact"),
        ("type_text", {"text": first}, "First name"),
        ("type_text", {"text": last}, "Last name"),
        ("type_text", {"text": number}, "Phone"),
        ("tap", {}, "Save"),
    ]
    note = [
        ("launch_app", {"application": "notes"}, ""),
        ("tap", {}, "New note"),
        ("type_text", {"text": f"{first} {last}: {number}"}, "Note"),
        ("tap", {}, "Done"),
    ]
    steps = note if len(request.subtasks) > len(PLAN) - 2 else contact
    done = len(request.memory)
    if done == len(steps):
        return {"Status": "FINISH", "Result": f"{done} steps"}
    tool, arguments, control = steps[done]
    if control:
        named = [each.id for each in request.observation.controls if each.name == control][
            -1
        ]  # a title may be so called
        arguments = {**arguments, "control_id": named}
    return {"Status": "CONTINUE", "Function": tool, "Args": arguments}


def test_two_phones_a_shell_and_a_document_work_for_one_task(tmp_path: Path, adb_port: int) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "numbers.txt").write_text("Hopper 555-0100\nLovelace +44 20 7946 0001\n", encoding="utf-8")
    document = docx.Document()
    for row, texts in zip(document.add_table(2, 2).rows, (("First", "Last"), ("Ada", "Løvelace")), strict=True):
        for cell, text in zip(row.cells, texts, strict=True):
            cell.text = text
    document.save(str(work / "people.docx"))
    phones = [Phone("First"), Phone("Second")]
    with contextlib.ExitStack() as stack:
        serials = [stack.enter_context(plugged_in(phone)).serial for phone in phones]
        settings = Settings.load(
            documents={"workspace": work},
            shells={"box": {"cwd": work}},
            android={"devices": serials, "port": adb_port},
            journal={"path": tmp_path / "journal.db"},
            policy=[{"verdict": "allow"}],
        )
        models = {each.__name__: FunctionModel(each) for each in (host, linux, app, mobile)}
        with Supervisor.start(settings, models=models) as supervisor:
            result = supervisor.submit(Task(request="Add the contact to both phones")).result(PATIENCE)
    assert result.outcome is Outcome.FINISHED, result.causes
    assert result.output == ["+44 20 7946 0001", ["Ada", "Løvelace"], "6 steps", "4 steps"]
    assert phones[0].contacts.people[-1] == Contact("Ada", "Løvelace", "+44 20 7946 0001")
    assert phones[1].notes.notes[-1].text == "Ada Løvelace: +44 20 7946 0001"
    assert [each.address.partition("/")[0] for each in result.subtasks] == ["linux", "app", "mobile", "mobile"]
