"""A program is killed while it works on a phone: the next one types the rest, and taps nothing twice."""

from __future__ import annotations

import asyncio
import runpy
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import forks
from callboard import EventName, Outcome
from callboard.testing import Contact, Phone, assert_replays, plugged_in
from support import PATIENCE

PROGRAM = Path(__file__).with_name("phone_program.py")
PLAIN, ODD, task, supervised = map(runpy.run_path(str(PROGRAM)).__getitem__, ("PLAIN", "ODD", "task", "supervised"))
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
        self.ended = threading.Event()
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
        assert await asyncio.to_thread(self.ended.wait, PATIENCE)


def killed(folder: Path, phone: Watched, serial: str, port: int) -> None:
    """Start a program that works on the phone, and wait until it is killed."""
    command, pipe = [sys.executable, PROGRAM, folder, serial, str(port)], subprocess.PIPE
    phone.child = forks.Program(command, stdin=pipe, stdout=pipe, stderr=pipe)
    with phone.child as child:
        out, err = child.communicate(timeout=PATIENCE)
    phone.ended.set()
    assert child.returncode == -9, (out + err).decode()


@pytest.mark.parametrize(
    ("at", "when"),
    [
        pytest.param(at, when, marks=() if (at, when) in IN_GATE else pytest.mark.slow)
        for at in range(1, ACTIONS + 1)
        for when in ("before", "at", "after")
    ],
)
def test_text_is_typed_once_and_completely_when_the_process_is_killed(
    tmp_path: Path, adb_port: int, at: int, when: str
) -> None:
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
