"""Tasks on phones that can't be used, or that fail: they say why, and leave the last picture."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from real_adbd import adbd

from callboard import EventName, FunctionModel, ModelRequest, Outcome, Settings, Supervisor, Task
from callboard.surfaces.android import Adb
from callboard.testing import Contact, Phone, plugged_in
from support import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from callboard import Event, TaskResult
    from callboard.testing import AdbDevice

GIVE_UP = {"Status": "FAIL", "Comment": "it can't be done"}


@pytest.fixture
def supervised(tmp_path: Path, adb_port: int) -> Any:
    """Start supervisors of one device, whose agent decides by a function."""

    @contextlib.contextmanager
    def start(serial: str, decide: Any) -> Iterator[Supervisor]:
        settings = Settings.load(
            android={"devices": [serial], "port": adb_port},
            journal={"path": tmp_path / "journal.db"},
            policy=[{"verdict": "allow"}],
        )
        with Supervisor.start(settings, models={"mobile": FunctionModel(decide)}) as supervisor:
            yield supervisor

    return start


def ended(supervisor: Supervisor, serial: str) -> tuple[TaskResult, list[Event]]:
    """Run a task to its end."""
    handle = supervisor.submit(Task(request="do it", target=serial))
    return handle.result(PATIENCE), list(handle.events())


def one(tool: str, **arguments: Any) -> Any:
    """Make a function that decides on one action, and gives up if it has failed."""

    def decide(request: ModelRequest) -> dict[str, Any]:
        if not request.memory:
            return {"Status": "CONTINUE", "Function": tool, "Args": arguments}
        result = request.memory[0].results[0]
        return {**GIVE_UP, "Comment": result.error} if result.error else {"Status": "FINISH"}

    return decide


def test_unauthorized_device_error_gives_the_next_step(supervised: Any) -> None:
    with plugged_in(Phone()) as device:
        device.authorized = False
        with supervised(device.serial, one("wait")) as supervisor:
            result, _ = ended(supervisor, device.serial)
    assert result.outcome is Outcome.FAILED
    assert "has not authorized this computer yet: unlock it, and confirm the question" in str(result.causes)


def test_task_fails_when_the_device_is_not_connected(supervised: Any) -> None:
    with supervised("emulator-5999", one("wait")) as supervisor:
        result, _ = ended(supervisor, "emulator-5999")
    assert result.outcome is Outcome.FAILED
    assert "the device emulator-5999 is not connected" in str(result.causes)


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("launch_app", {"application": "chess"}, "no application 'chess'"),
        ("tap", {"control_id": "1"}, "there is no control '1'"),
        ("type_text", {"text": "x"}, "no text field has the focus"),
        ("open_url", {"url": "gopher://x"}, "no application on the device opens"),
    ],
)
def test_a_failure_tells_its_reason_and_leaves_the_last_picture(
    supervised: Any, tool: str, arguments: dict[str, Any], told: str
) -> None:
    with plugged_in(Phone()) as device, supervised(device.serial, one(tool, **arguments)) as supervisor:
        result, events = ended(supervisor, device.serial)
    assert result.outcome is Outcome.FAILED
    assert told in str(result.causes)
    (failed,) = [event for event in events if event.name is EventName.RUN_FAILED]
    assert Path(str(failed.data["picture"])).read_bytes().startswith(b"\x89PNG")


class Unplugged(Phone):
    """A phone whose cable is pulled at its first touch, and put in again at once.

    Args:
        done: Whether it takes the touch nevertheless.
    """

    def __init__(self, *, done: bool) -> None:
        super().__init__(contacts=[Contact("Ada")])
        self.device: AdbDevice | None = None
        self._done = done

    async def run(self, command: str, data: bytes | asyncio.StreamReader = b"") -> tuple[int, bytes, bytes]:
        """Run a command."""
        if "input tap" not in command or self.device is None:
            return await super().run(command, data)
        device, self.device = self.device, None
        if self._done:
            await super().run(command, data)

        async def pull() -> None:
            await device.stop()
            await device.start()

        self._pulling = asyncio.ensure_future(pull())
        await asyncio.Event().wait()  # the answer never comes
        raise AssertionError


def search(request: ModelRequest) -> dict[str, Any]:
    """Open the contacts, and then the search."""
    seen = {each.name: each.id for each in request.observation.controls}
    if "Search contacts" in seen:
        return {"Status": "FINISH"}
    if "Search" not in seen:
        return {"Status": "CONTINUE", "Function": "launch_app", "Args": {"application": "contacts"}}
    return {"Status": "CONTINUE", "Function": "tap", "Args": {"control_id": seen["Search"]}}


@pytest.mark.parametrize("done", [True, False])
def test_a_touch_while_the_cable_is_pulled_is_done_once(supervised: Any, done: bool) -> None:
    phone = Unplugged(done=done)
    with plugged_in(phone) as device, supervised(device.serial, search) as supervisor:
        phone.device = device
        result, events = ended(supervisor, device.serial)
    assert result.outcome is Outcome.FINISHED, result.causes
    assert [each for each in phone.inputs if each.startswith("tap")] == phone.inputs[-1:]
    assert [event.data["status"] for event in events if event.name is EventName.COMMAND_ENDED] == ["success"] * 2


@pytest.mark.parametrize("real", [False, True], ids=["stand-in", "adbd"])
def test_touch_completes_although_the_connection_is_lost(
    supervised: Any,
    adb_port: int,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    real: bool,
) -> None:
    program = request.getfixturevalue("adbd_program") if real else None
    phone = Phone()
    touched, lost = phone._shell._programs._commands["input"], threading.Event()

    def touch(words: list[str]) -> str:
        if not lost.is_set():
            lost.set()
            pulling = threading.Thread(target=asyncio.run, args=[Adb(None, adb_port).ask(f"host:disconnect:{serial}")])
            pulling.start()
            pulling.join()
        return touched(words)

    monkeypatch.setitem(phone._shell._programs._commands, "input", touch)
    with plugged_in(phone) as device, adbd(program, phone) if program else contextlib.nullcontext() as there:
        serial = there or device.serial
        with supervised(serial, search) as supervisor:
            result, events = ended(supervisor, serial)
    assert lost.is_set()
    assert result.outcome is Outcome.FINISHED, result.causes
    assert [each for each in phone.inputs if each.startswith("tap")] == phone.inputs[-1:]
    assert [event.data["status"] for event in events if event.name is EventName.COMMAND_ENDED] == ["success"] * 2
