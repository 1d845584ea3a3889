"""An adb server of the tests' own, and devices that it connects to."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import shutil
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from adb_server import adb_at_home
from real_adbd import adbd, find_adbd, find_missing

from callboard.messages import Look, Observation
from callboard.surfaces import Stage
from callboard.surfaces.android import Adb, AdbError, AndroidSurface, DeviceState
from callboard.testing import Phone, plugged_in
from support import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def new_adb(adb_program: Path, tmp_path: Path) -> Callable[[], Adb]:
    """Make adb servers, each on a port of its own, with a home of its own; emulators of others are not looked for."""
    return lambda: adb_at_home(adb_program, tmp_path)


@pytest.fixture
def without_adb(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the program adb."""
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    for variable in ("ANDROID_HOME", "ANDROID_SDK_ROOT"):
        monkeypatch.delenv(variable, raising=False)


@dataclass
class Held:
    """A phone as an agent has it: by the surface, which asks the real adb server."""

    surface: AndroidSurface
    phone: Phone
    serial: str
    runner: asyncio.Runner
    seen: list[Observation] = field(default_factory=list)

    def wait(self, given: Any) -> Any:
        """Wait for a coroutine."""
        return self.runner.run(given) if inspect.iscoroutine(given) else given

    @property
    def target(self) -> Any:
        """The device as a target."""
        return next(each for each in self.wait(self.surface.targets()) if each.id == self.serial)

    def do(self, tool: str, **arguments: Any) -> Any:
        """Call a tool."""
        entry = next(entry for entry in self.surface.tools() if entry.name == tool)
        given = {} if tool == "list_devices" else {"device": self.serial}
        return self.wait(entry.tool.fn(**given, **arguments))

    def look(self, **look: Any) -> Observation:
        """Look at it."""
        found: Observation = self.wait(self.surface.observe(self.target, Look(**look)))
        return found

    def id(self, name: str) -> str:
        """Find a control by its name."""
        return next(each.id for each in self.look(picture=False).controls if each.name == name)

    def tap(self, name: str) -> None:
        """Tap a control, by its name."""
        self.do("tap", control_id=self.id(name))


@pytest.fixture
def hold(adb_port: int, tmp_path: Path) -> Iterator[Callable[..., Held]]:
    """Make phones, each with a surface for it."""
    with contextlib.ExitStack() as stack:

        def make(
            phone: Phone | None = None,
            *,
            lasting: bool = True,
            elapsed: Any = time.monotonic,
            program: Path | None = None,
        ) -> Held:
            phone = phone or Phone()
            serial = stack.enter_context(plugged_in(phone)).serial
            if program is not None:
                serial = stack.enter_context(adbd(program, phone))
            runner = stack.enter_context(asyncio.Runner())
            surface = AndroidSurface([serial], port=adb_port)
            stage = Stage("android", tmp_path / "j" if lasting else None, elapsed)
            held = Held(surface, phone, serial, runner)
            held.wait(surface.open(stage))
            stack.callback(lambda: held.wait(surface.close()))
            held.wait(_usable(surface, serial))
            return held

        yield make


async def _usable(surface: AndroidSurface, serial: str) -> None:
    """Wait for a phone; on a busy machine the attempt of `open` may have taken too long."""
    async with asyncio.timeout(PATIENCE):
        while serial not in {each.serial for each in await surface.devices() if each.state is DeviceState.DEVICE}:
            with contextlib.suppress(AdbError):
                await surface._adb.connect(serial)


@pytest.fixture
def held_by() -> Callable[..., Held]:
    """Hold a device that is no phone for tests."""
    return lambda surface, serial, runner: Held(surface, Phone(), serial, runner)


@pytest.fixture(scope="session")
def adbd_program() -> Path:
    """Give Android's own adbd; skip where it is missing. With ``REQUIRE_ADBD`` that fails."""
    program = find_adbd()
    missing = "adbd is missing" if program is None else find_missing()
    if missing and os.environ.get("REQUIRE_ADBD"):
        pytest.fail(missing)
    if missing or program is None:
        pytest.skip(missing)
    return program


@pytest.fixture
def held(request: pytest.FixtureRequest, hold: Callable[..., Held]) -> Held:
    """Give a phone; with the parameter ``adbd`` it is reached through Android's own adbd."""
    real = getattr(request, "param", "") == "adbd"
    return hold(program=request.getfixturevalue("adbd_program")) if real else hold()
