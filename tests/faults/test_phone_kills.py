"""A program is killed while it works on a phone: the next one types the rest, and taps nothing twice."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from callboard import EventName, FunctionModel, Outcome, Settings, Supervisor, Task
from callboard.testing import Contact, Phone, assert_replays, plugged_in
from support import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

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
PROGRAM = """
import sys
from pathlib import Path
sys.path[:0] = {paths!r}
from test_phone_kills import supervised, task
with supervised(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])) as supervisor:
    print("taken", supervisor.submit(task(sys.argv[2])).result(60).outcome, flush=True)
    sys.stdin.read()
"""
IN_GATE = {(2, "after"), (6, "before"), (13, "at")}
ACTIONS = 17
"""The commands that act on the phone: each tap is one, each text is typed in several."""


class Watched(Phone):
    """A phone that has a program killed at one of its commands.

    Args:
        at: The number of the command, of those that act.
        when: ``before`` the phone hears of it, ``at`` it, so that the phone still does it, or ``after`` it.
    """

    def __init__(self, at: int, when: str) -> None:
        super().__init__()
        self.acted = 0
        self.child: subprocess.Popen[bytes] | None = None
        self._at, self._when = at, when

    async def run(self, command: str, data: bytes | asyncio.StreamReader = b"") -> tuple[int, bytes, bytes]:
        """Run a command."""
        if " begun" not in command or " done" not in command:
            return await super().run(command, data)
        self.acted += 1
        if self.acted != self._at:
            return await super().run(command, data)
        if self._when != "after":
            await self._kill()
        if self._when == "before":
            return 1, b"", b""
        ran = await asyncio.shield(super().run(command, data))
        await self._kill()
        return ran

    async def _kill(self) -> None:
        assert self.child is not None
        self.child.kill()
        await asyncio.to_thread(self.child.wait)


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


def killed(folder: Path, phone: Watched, serial: str, port: int) -> None:
    """Start a program that works on the phone, and wait until it is killed."""
    here = os.path.dirname(__file__)  # noqa: PTH120 - a text
    program = PROGRAM.format(paths=[here, os.path.dirname(here)])  # noqa: PTH120 - as above
    phone.child = subprocess.Popen(
        [sys.executable, "-c", program, str(folder), serial, str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with phone.child as child:
        out, err = child.communicate(timeout=PATIENCE)
    assert child.returncode == -9, (out + err).decode()


@pytest.mark.parametrize(
    ("at", "when"),
    [
        pytest.param(at, when, marks=() if (at, when) in IN_GATE else pytest.mark.slow)
        for at in range(1, ACTIONS + 1)
        for when in ("before", "at", "after")
    ],
)
def test_nothing_is_typed_twice_and_nothing_is_lost(tmp_path: Path, adb_port: int, at: int, when: str) -> None:
    phone = Watched(at, when)
    with plugged_in(phone) as device:
        killed(tmp_path, phone, device.serial, adb_port)
        with supervised(tmp_path, device.serial, adb_port) as supervisor:
            handle = supervisor.submit(task(device.serial))
            result = handle.result(PATIENCE)
            events = list(handle.events())
        left = [each.name for each in phone.programs.parent.joinpath("tmp").iterdir()]
    assert result.outcome is Outcome.FINISHED, result.causes
    assert phone.contacts.people[2:] == [Contact(PLAIN, ODD)]
    assert phone.ime == "com.android.inputmethod.latin/.LatinIME"
    assert len(left) == 1
    assert left[0].endswith(".calls")
    assert phone.acted <= ACTIONS + 1
    probes = [event.data["probe"] for event in events if event.name is EventName.COMMAND_IN_DOUBT]
    assert set(probes) <= {"done", "begun", "not_done"}
    assert_replays(tmp_path / "journal.db", "t")
