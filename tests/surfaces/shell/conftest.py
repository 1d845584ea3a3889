"""A shell on a folder, and a short way to call its tools."""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from callboard.config import ShellSettings
from callboard.messages import Look, Observation
from callboard.surfaces import Stage
from callboard.surfaces.shell import ShellSurface
from ssh_server import SshServer, ssh_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@dataclass
class Box:
    """A surface with one shell, ``box``."""

    surface: ShellSurface
    work: Path

    @property
    def target(self) -> Any:
        """The shell as a target."""
        return self.surface.targets()[0]

    def do(self, tool: str, **arguments: Any) -> Any:
        """Call a tool, and wait for it."""
        entry = next(entry for entry in self.surface.tools() if entry.name == tool)
        answer = entry.tool.fn(**{"shell": "box", **arguments})
        return asyncio.run(answer) if inspect.iscoroutine(answer) else answer

    def run(self, command: str, **arguments: Any) -> Any:
        """Run a command."""
        return self.do("run", command=command, **arguments)

    def look(self) -> Observation:
        """Look at it."""
        return self.surface.observe(self.target, Look())


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Give a workspace."""
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    """Give a machine that is reached over SSH, for all tests: they don't cut its connections."""
    pytest.importorskip("asyncssh", exc_type=ImportError)
    with ssh_server(tmp_path_factory.mktemp("machine")) as server:
        yield server


@pytest.fixture
def opened(work: Path) -> Iterator[Callable[..., Box]]:
    """Open surfaces with one shell each, and close them."""
    surfaces: list[tuple[ShellSurface, Stage]] = []

    def open_(**settings: Any) -> Box:
        stage = Stage("shells")
        surface = ShellSurface({"box": ShellSettings(**{"cwd": work, **settings})})
        surface.open(stage)
        surfaces.append((surface, stage))
        return Box(surface, work)

    yield open_
    for surface, stage in surfaces:
        surface.close()
        stage.close()


@pytest.fixture(params=["here", "over SSH"])
def box(request: pytest.FixtureRequest, opened: Callable[..., Box]) -> Box:
    """Give a shell, on this machine and on another one."""
    return opened(**(request.getfixturevalue("machine").section if request.param == "over SSH" else {}))


@pytest.fixture
def local(opened: Callable[..., Box]) -> Box:
    """Give a shell on this machine."""
    return opened()


@pytest.fixture
def remote(opened: Callable[..., Box], machine: SshServer) -> Box:
    """Give a shell on another machine."""
    return opened(**machine.section)
