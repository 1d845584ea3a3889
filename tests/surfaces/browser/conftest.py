"""A browser for the tests of a file, and a shop to visit."""

from __future__ import annotations

import contextlib
import functools
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from callboard.actors.runtime import EventLoop
from callboard.config import NetworkSettings
from callboard.messages import Control, Look, Observation, Target
from callboard.surfaces import Stage
from callboard.surfaces.browser import BrowserSurface
from callboard.surfaces.browser._network_guard import DISABLED_FEATURE, LAUNCH_ARGUMENTS
from chromium import need_browser, running_browser
from shop import LOOPBACK, Shop
from support import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from callboard.surfaces.browser._tab import Tab

FLAGS = (f"--disable-features={DISABLED_FEATURE}", *LAUNCH_ARGUMENTS)


@pytest.fixture(scope="session")
def requires_browser() -> None:
    """Skip the test where the browser is missing."""
    need_browser()


@pytest.fixture(scope="session")
def debugging_port(requires_browser: None) -> Iterator[str]:
    """Give the debugging port of a browser in its sandbox; root starts it as another user."""
    with running_browser("", FLAGS) as address:
        yield address


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    """Give the shop."""
    with Shop() as opened:
        yield opened


@pytest.fixture(scope="module")
def run() -> Iterator[Callable[[Coroutine[Any, Any, Any]], Any]]:
    """Give the function that runs a coroutine as a supervisor does, on a loop of its own."""
    loop = EventLoop("browser-test")
    loop.start()
    yield lambda work: loop.submit(work).result(PATIENCE)
    assert loop.stop(PATIENCE)


@dataclass
class OpenedTab:
    """A tab, and a short way to work in it."""

    surface: BrowserSurface
    target: Target
    run: Callable[[Coroutine[Any, Any, Any]], Any]

    @property
    def tab(self) -> Tab:
        """The tab itself."""
        return self.run(self.surface._tab(self.target.id))

    def look(self, *, picture: bool = False, shown: bool = True) -> Observation:
        """Look at it."""
        return self.run(self.surface.observe(self.target, Look(picture=picture, shown=shown)))

    def control(self, name: str, kind: str = "") -> Control:
        """Find a control by its name, as soon as it is there."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            controls = self.look().controls
            for control in controls:
                if control.name == name and kind in {"", control.kind}:
                    return control
            time.sleep(0.02)
        raise AssertionError([(control.kind, control.name) for control in controls])

    def do(self, tool: str, control: Control | str = "", **arguments: Any) -> Any:
        """Call a tool of the surface."""
        entry = next(entry for entry in self.surface.tools() if entry.name == tool)
        return self.run(entry.tool.fn(tab=self.target.id, **self._chosen(control), **arguments))

    def _chosen(self, control: Control | str) -> dict[str, str]:
        if not control:
            return {}
        return {"control_id": self.control(control).id if isinstance(control, str) else control.id}

    def hazards(self, tool: str, control: Control | str = "", **arguments: Any) -> set[str]:
        """Ask for the hazards of a call."""
        given = {**self._chosen(control), **arguments}
        return set(map(str, self.run(self.surface.hazards(self.target, tool, given, ()))))

    def script(self, text: str) -> Any:
        """Run a script in the page, as the page itself might."""
        return self.run(self.tab.page.evaluate(text))

    def wait_for(self, **arguments: Any) -> Any:
        """Wait for a text, a control or an address."""
        entry = next(entry for entry in self.surface.tools() if entry.name == "wait_for")
        return self.run(entry.tool.fn(tab=self.target.id, seconds=PATIENCE, **arguments))


@contextlib.contextmanager
def opened_surface(
    run: Callable[[Coroutine[Any, Any, Any]], Any], journal: Path | None = None, **options: Any
) -> Iterator[BrowserSurface]:
    """Open a surface, and close it."""
    stage = Stage("browser", journal)
    surface = BrowserSurface(**{"network": NetworkSettings(allow=LOOPBACK), **options})
    try:
        run(surface.open(stage))
        yield surface
    finally:
        run(surface.close())
        stage.close()


@pytest.fixture(scope="module")
def opened(run: Any) -> Callable[..., contextlib.AbstractContextManager[BrowserSurface]]:
    """Give the function that opens a surface, and closes it."""
    return functools.partial(opened_surface, run)


@pytest.fixture(scope="module")
def tabs_of(run: Any) -> Callable[[BrowserSurface], list[OpenedTab]]:
    """Give the function that lists a surface's tabs."""
    return lambda surface: [OpenedTab(surface, target, run) for target in run(surface.targets()) if target.binds]


@pytest.fixture(scope="module")
def open_in(run: Any) -> Callable[[BrowserSurface, str], OpenedTab]:
    """Give the function that opens an address in a new tab of a surface."""

    def opened(surface: BrowserSurface, url: str) -> OpenedTab:
        application = next(target for target in run(surface.targets()) if target.id == "browser")
        return OpenedTab(surface, run(surface.start(application, {"address": url})), run)

    return opened


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder from which files may be uploaded."""
    return tmp_path_factory.mktemp("workspace")


@pytest.fixture(scope="module")
def surface(debugging_port: str, run: Any, workspace: Path) -> Iterator[BrowserSurface]:
    """Give a surface on the file's browser."""
    with opened_surface(run, cdp_url=debugging_port, workspace=workspace) as opened:
        keeper = run(opened._browser.new_tab(""))
        del opened._browser._tabs[keeper.page]  # no target, but it keeps the context, which takes 0.1 s to make
        yield opened


@pytest.fixture
def visit(surface: BrowserSurface, run: Any, open_in: Any) -> Iterator[Callable[[str], OpenedTab]]:
    """Give the function that opens an address in a new tab, which is closed after the test, without its cookies."""
    yield functools.partial(open_in, surface)
    for target in run(surface.targets()):
        if target.binds:
            run(surface.stop(target))
    run(surface._browser._contexts[""].clear_cookies())


@pytest.fixture
def quick_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a control that is not ready be given up sooner."""
    monkeypatch.setattr("callboard.surfaces.browser._page_actions._CHECK_MS", 300)


@pytest.fixture(scope="module")
def watch(debugging_port: str, run: Any) -> Iterator[Callable[[str], OpenedTab]]:
    """Give the function that finds a tab of the running browser, as soon as it is there, to change it as a person."""
    with opened_surface(run, cdp_url=debugging_port, profile="shared", network=NetworkSettings(guarded=False)) as view:

        def watched(tab_id: str) -> OpenedTab:
            end = time.monotonic() + PATIENCE
            while time.monotonic() < end:
                for target in run(view.targets()):
                    if target.id == tab_id:
                        return OpenedTab(view, target, run)
                time.sleep(0.02)
            raise AssertionError(tab_id)

        watched.surface = view
        yield watched
