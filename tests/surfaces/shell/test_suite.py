"""A shell passes the tests that every surface should pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from callboard.config import ShellSettings
from callboard.surfaces.shell import ShellSurface
from callboard.testing import SurfaceCall, SurfaceCase, surface_suite
from short_suite import short_suite

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ssh_server import SshServer

MACHINES: list[SshServer] = []
"""The machine on which the shell over SSH is, while there is one."""


def shell(folder: Path, **section: Any) -> SurfaceCase:
    """A shell on a folder; an action done once is a line in a file."""
    work = folder / "work"
    work.mkdir(parents=True, exist_ok=True)

    def lines() -> int:
        file = work / "done"
        return len(file.read_text(encoding="utf-8").splitlines()) if file.exists() else 0

    slow = SurfaceCall("run", {"command": "touch started; sleep 3600; echo x >> done", "seconds": 3600})
    return SurfaceCase(
        server=lambda: ShellSurface({"box": ShellSettings(cwd=work, **section)}),
        target="box",
        change=(work / "new").touch,
        once=SurfaceCall("run", {"command": "echo x >> done"}),
        done=lines,
        slow=slow,
        started=(work / "started").exists,
        same=(
            SurfaceCall("read_file", {"path": "a/../b"}),
            SurfaceCall("read_file", {"path": str(work / "b")}),
        ),
    )


TestShell = surface_suite(shell)


class TestRemoteShell(short_suite(lambda folder: shell(folder, **MACHINES[0].section))):  # type: ignore[misc]  # made here
    """The same over SSH."""

    @pytest.fixture(autouse=True)
    def _reach(self, machine: SshServer) -> Iterator[None]:
        MACHINES.append(machine)
        yield
        MACHINES.clear()
