"""Steps of the phone's example that repeat are recorded as a loop."""

from __future__ import annotations

import contextlib
import runpy
import socket
from pathlib import Path

import pytest

from callboard.journal import JournalReader
from callboard.messages import RoutineLoop, RoutineStep
from callboard.routines import record
from callboard.testing import Phone, plugged_in

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "phone_contacts" / "run.py"


@pytest.mark.usefixtures("adb_program")
def test_steps_for_each_contact_become_a_loop(tmp_path, monkeypatch):
    for name, value in {"HOME": tmp_path, "TMPDIR": tmp_path, "ADB_LOCAL_TRANSPORT_MAX_PORT": 0}.items():
        monkeypatch.setenv(name, str(value))
    example = runpy.run_path(str(EXAMPLE))
    example["write_document"](tmp_path / "people.docx", example["PEOPLE"])
    with plugged_in(Phone()) as device, contextlib.closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
        free.close()
        assert example["add_contacts"](tmp_path, device.serial, port).ok
    with JournalReader.open(tmp_path / "journal.db") as reader:
        recording = record(reader.rows(reader.ids()[0], events=False), name="contacts")
    launch, loop, end = recording.routine.subtasks[1].steps
    assert isinstance(launch, RoutineStep)
    assert isinstance(loop, RoutineLoop)
    assert isinstance(end, RoutineStep)
    assert [action.tool for action in launch.actions] == ["launch_app"]
    assert (loop.each, loop.last) == ("subtasks.1.output.rows", None)
    calls = [(action.tool, action.arguments) for step in loop.steps for action in step.actions]
    tap = ("tap", {"control_id": "${controls.0.id}"})
    typed = [("type_text", {"control_id": "${controls.0.id}", "text": f"${{item.{column}}}"}) for column in range(3)]
    assert calls == [tap, *typed, tap, ("press_key", {"key": "BACK"})]
    names = [control.name for step in loop.steps for control in step.controls]
    assert names == ["Create contact", "First name", "Last name", "Phone", "Save"]
    assert recording.remarks[0] == "subtasks.2.steps.3.result is always 3: if it counts rows, refer to a result instead"
    assert recording.remarks[1].startswith("checks.1.control.name quotes 'Lovelace'")
