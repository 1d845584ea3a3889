"""An adb server of the tests' own, and devices that it connects to."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
from typing import TYPE_CHECKING

import pytest

from callboard.actors.servers.android import Adb, find_adb

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(scope="session")
def adb_program() -> Path:
    """Give the program adb; skip where it is missing. With ``REQUIRE_ADB`` that fails."""
    program = find_adb()
    if program is None and os.environ.get("REQUIRE_ADB"):
        pytest.fail("adb is missing")
    if program is None:
        pytest.skip("adb is missing")
    return program


@pytest.fixture
def new_adb(adb_program: Path, tmp_path: Path) -> Callable[[], Adb]:
    """Make adb servers, each on a port of its own, with a home of its own; emulators of others are not looked for."""

    def make() -> Adb:
        with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as free:
            port = free.getsockname()[1]
        quiet = {"ADB_LOCAL_TRANSPORT_MAX_PORT": "0", "ADB_MDNS_AUTO_CONNECT": "0"}
        environment = {"HOME": str(tmp_path), "TMPDIR": str(tmp_path), "PATH": os.defpath, **quiet}
        return Adb(adb_program, port, environment)

    return make


@pytest.fixture
def without_adb(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the program adb."""
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    for variable in ("ANDROID_HOME", "ANDROID_SDK_ROOT"):
        monkeypatch.delenv(variable, raising=False)
