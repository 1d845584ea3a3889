"""A private desktop for the tests of a file, with applications that are real programs."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from callboard import Settings
from callboard.messages import Control, Look, Observation, Target
from callboard.surfaces import Stage
from callboard.surfaces.desktop import DesktopSurface
from callboard.surfaces.desktop._processes import is_alive
from support import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from callboard.surfaces.desktop._open_desktop import OpenDesktop

ROWS = 10_000
FORM = "zenity --forms --add-entry=Item --add-password=Pin --add-combo=Colour --combo-values='red|green|blue'"
LIST = f"zenity --list --title=Long --column=Number --column=Text $(seq {ROWS} | sed 's/.*/& row&/')"
APPLICATIONS = {
    "editor": ["mousepad", "%f"],
    "calc": ["soffice", "--calc"],
    "form": ["sh", "-c", f"{FORM} > form.txt"],
    "list": ["sh", "-c", f"{LIST} > list.txt"],
    "error": ["zenity", "--error", "--text=It went wrong"],
    "consent": ["sh", "-c", "echo terms | zenity --text-info --checkbox='I agree' && touch agreed"],
    "broken": ["sh", "-c", "exit 3"],
    "absent": ["no-such-program"],
    "windowless": ["sleep", "3600"],
}


def needed(*programs: str) -> None:
    """Skip the test where a desktop, or one of some applications, is missing; with ``REQUIRE_DESKTOP`` it fails."""
    from callboard.surfaces import Need

    needs = [*DesktopSurface.needs({"display": "private"}), *map(Need.program, programs)]
    missing = [need.told for need in needs if not need.met and not need.optional]
    if missing and os.environ.get("REQUIRE_DESKTOP"):
        pytest.fail("; ".join(missing))
    if missing or sys.platform != "linux":
        pytest.skip("; ".join(missing) or "there is no X11 here")


@pytest.fixture(scope="session")
def requires() -> Callable[..., None]:
    """Give the function that skips a test where a desktop, or one of some applications, is missing."""
    return needed


@contextlib.contextmanager
def private_desktop(folder: Path, **options: Any) -> Iterator[DesktopSurface]:
    """Open a private desktop, and close it."""
    needed("mousepad", "zenity")
    stage = Stage("desktop")
    surface = DesktopSurface("private", folder=folder, applications=APPLICATIONS, installed=False, **options)
    surface.open(stage)
    try:
        yield surface
    finally:
        surface.close()
        stage.close()


@dataclass
class Window:
    """A process on the desktop, and a short way to work in it."""

    surface: DesktopSurface
    target: Target

    @property
    def pid(self) -> int:
        """Its process."""
        return int(str(self.target.binds["process"]))

    @property
    def desktop(self) -> OpenDesktop:
        """The desktop that it is on."""
        return self.surface._require_desktop()

    def look(self, *, picture: bool = False) -> Observation:
        """Look at it."""
        return self.surface.observe(self.target, Look(picture=picture))

    def control(self, name: str, kind: str = "") -> Control:
        """Find a control by its name, as soon as it is there."""
        found: list[Control] = []

        def is_there() -> bool:
            found[:] = [each for each in self.look().controls if each.name == name and kind in {"", each.kind}]
            return bool(found)

        assert self.desktop.wait(is_there, PATIENCE), [(each.kind, each.name) for each in self.look().controls]
        return found[0]

    def do(self, tool: str, control: Control | str = "", **arguments: Any) -> Any:
        """Call a tool of the surface."""
        entry = next(entry for entry in self.surface.tools() if entry.name == tool)
        chosen = {"control_id": self.control(control).id if isinstance(control, str) else control.id} if control else {}
        return entry.tool.fn(process=self.pid, **chosen, **arguments)

    def text(self) -> str:
        """Give the text of the window's one text field."""
        return str(next(each.detail["text"] for each in self.look().controls if each.kind == "text"))

    def has_ended(self) -> bool:
        """Return whether the process is there no more."""
        return not is_alive(self.pid)

    def kill(self) -> None:
        """End the process."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, 9)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder in which the file's applications start."""
    return tmp_path_factory.mktemp("desktop")


@pytest.fixture(scope="module")
def surface(folder: Path) -> Iterator[DesktopSurface]:
    """Give a private desktop."""
    with private_desktop(folder) as opened:
        yield opened


def _launcher(surface: DesktopSurface) -> Iterator[Callable[..., Window]]:
    opened: list[Window] = []

    def start(application: str, **arguments: Any) -> Window:
        target = next(target for target in surface.targets() if target.id == application)
        opened.append(Window(surface, surface.start(target, arguments)))
        return opened[-1]

    yield start
    for window in opened:
        window.kill()


@pytest.fixture
def start(surface: DesktopSurface) -> Iterator[Callable[..., Window]]:
    """Start applications, and end them after the test."""
    yield from _launcher(surface)


@pytest.fixture(scope="module")
def share(surface: DesktopSurface) -> Iterator[Callable[..., Window]]:
    """Start applications that all tests of a file use, and end them after the last one."""
    yield from _launcher(surface)


@pytest.fixture
def desktop_settings(tmp_path: Path) -> Callable[..., Settings]:
    """Make the settings of a supervisor with a private desktop; to open an application needs no approval."""
    needed("mousepad", "zenity")

    def make(**sections: Any) -> Settings:
        section = {"display": "private", "folder": tmp_path, "applications": APPLICATIONS, "installed": False}
        return Settings.load(**{"desktop": section, "policy": [{"verdict": "allow"}], **sections})

    return make
