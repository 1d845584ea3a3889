"""Desktop surface: windows of applications on the user's or a private display."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from callboard.config import install_command
from callboard.messages import AgentKind, Box, Control, Effect, Hazard, Look, Observation, Probe, Target, TargetKind
from callboard.surfaces import current_call
from callboard.surfaces._console_windows import shows_console
from callboard.surfaces._need import Need
from callboard.surfaces._surface import UNKNOWN, Server, SurfaceTool, ToolError, collect, tool
from callboard.surfaces.desktop._keyboard_tools import KeyboardTools
from callboard.surfaces.desktop._point_tools import PointTools
from callboard.surfaces.desktop._press_hazards import PressHazards
from callboard.surfaces.desktop._table_tools import TableTools
from callboard.surfaces.desktop._view import within
from callboard.surfaces.desktop._widget_tools import WidgetTools
from callboard.surfaces.desktop._window_actions import WindowActions

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pydantic import JsonValue

    from callboard.messages import Foreseen, Intent
    from callboard.surfaces._stage import Stage
    from callboard.surfaces.desktop._open_desktop import OpenDesktop, Running

_PROGRAMS = "apt-get install xvfb dbus at-spi2-core openbox fonts-dejavu-core"
_OPENED = {True: Probe.BEGUN, False: Probe.NOT_DONE, None: Probe.UNKNOWN}
"""The probe of an opening call, by `has_started`. A repeated call returns the window of the started program."""
_BUS_LAUNCHERS = ("/usr/libexec/at-spi-bus-launcher", "/usr/lib/at-spi2-core/at-spi-bus-launcher")


class DesktopSurface(Server):
    """The surface of windows on a Linux desktop with X11.

    Each process that has windows is a target.

    Args:
        display: ``private`` for an invisible display of its own, ``user`` for the logged-in user's display, or the
            name of a display, such as ``:1``.
        size: The width and height of a private display.
        grace: The seconds for which a private desktop stays, with its windows, after this program is killed. Also the
            seconds after a conversation's last task until its windows are closed there.
        folder: The working directory of applications, in which they look for files first. By default this program's.
        applications: Further applications: commands by name, in which ``%f`` stands for a file to open.
        installed: Whether installed applications are offered.
    """

    name = "desktop"
    pictures = True
    resource_kinds = ("application",)

    def __init__(
        self,
        display: str = "private",
        *,
        size: str = "1280x800",
        grace: float = 60.0,
        folder: Path | None = None,
        applications: Mapping[str, Sequence[str]] | None = None,
        installed: bool = True,
    ) -> None:
        self._display = display
        self._size = size
        self._grace = grace
        self.closes_after = grace if display == "private" else None
        self._folder = folder or Path.cwd()
        self._applications = applications or {}
        self._installed = installed
        self._desktop: OpenDesktop | None = None
        self._actions: WindowActions | None = None
        self._hazards = PressHazards(self._acting)
        self._keyboard = KeyboardTools(self._acting)
        self._parts = (self._keyboard, WidgetTools(self._acting), TableTools(self._acting), PointTools(self._acting))

    @classmethod
    def needs(cls, options: Mapping[str, Any]) -> Sequence[Need]:
        """Require the extra's packages and, for a private display, its programs."""
        packages = [Need.package(name, install_command("desktop")) for name in ("jeepney", "Xlib", "PIL")]
        if options.get("display", "private") != "private":
            met = options["display"] != "user" or bool(os.environ.get("DISPLAY"))
            return [*packages, Need(what="a display (DISPLAY)", met=met)]
        launcher = any(os.access(path, os.X_OK) for path in _BUS_LAUNCHERS)
        programs = [Need.program(name, _PROGRAMS) for name in ("Xvfb", "dbus-daemon", "dbus-run-session", "openbox")]
        return [
            *packages,
            *programs,
            Need(what="the accessibility bus (at-spi2-core)", met=launcher, command=_PROGRAMS),
        ]

    def open(self, stage: Stage) -> None:
        """Start a private desktop, or connect to an existing one.

        A private desktop that an earlier process has left is taken over.

        Raises:
            ConnectionError: If the display can't be used; the text gives the reason.
            RuntimeError: If a private desktop can't be started.
        """
        from callboard.surfaces.desktop._open_desktop import OpenDesktop  # noqa: PLC0415 - an extra

        self._desktop = OpenDesktop(
            self._display,
            stage.folder / "session.json",
            grace=self._grace if stage.lasting else 0.0,
            size=self._size,
            folder=self._folder,
            applications=self._applications,
            include_installed=self._installed,
        )
        self._actions = WindowActions(self._desktop)

    def close(self) -> None:
        """End the private desktop and its programs, or disconnect from the user's."""
        desktop, self._desktop = self._desktop, None
        if desktop is not None:
            desktop.close()

    def tools(self) -> tuple[SurfaceTool, ...]:
        """Return the tools of HostAgents, AppAgents and operators."""
        return tuple(entry for part in (self, *self._parts) for entry in collect(part))

    def targets(self) -> tuple[Target, ...]:
        """List the processes with windows, and the applications that can be started."""
        desktop = self._require_desktop()
        return (*map(self._window, desktop.running()), *(self._application(name) for name in desktop.applications))

    def start(self, target: Target, arguments: Mapping[str, JsonValue]) -> Target:
        """Start an application, and return its process as the task's target.

        Raises:
            ToolError: If it can't be started, or shows no window.
        """
        desktop, call = self._require_desktop(), current_call()
        application = desktop.applications.get(target.id)
        if application is None:
            msg = f"there is no application {target.id!r}"
            raise ToolError(msg)
        return self._window(
            desktop.start(application, str(arguments.get("path", "")), call=call.id, owner=call.session)
        )

    def stop(self, target: Target) -> None:
        """Close a process's windows.

        Raises:
            ToolError: If a window stays open, for example because it asks whether to save.
        """
        self._require_desktop().stop(_process(target))

    @tool(effect=Effect.IDEMPOTENT, agents=(AgentKind.HOST,))
    def focus_window(self, window: Annotated[str, Field(description="The window's id, as listed.")]) -> str:
        """Bring a window to the front, and focus it."""
        target = next((candidate for candidate in self.targets() if candidate.id == window), None)
        if target is None or target.kind is not TargetKind.WINDOW:
            msg = f"there is no window {window!r}"
            raise ToolError(msg)
        self._acting().focus(_process(target))
        return target.name

    def desktop(self, look: Look) -> Observation:
        """Observe the whole screen."""
        desktop = self._require_desktop()
        windows = [window for window in desktop.screen.windows() if window.pid and not shows_console([window.title])]
        width, height = desktop.screen.size
        window_ids = {running.pid: self._window(running).id for running in desktop.running()}
        shown_windows = {window_ids[window.pid]: window for window in windows if window.pid in window_ids}
        area = Box(x=0, y=0, width=width, height=height)
        controls = [
            Control(id=id_, name=window.title, kind="window", box=within(window.box, area))
            for id_, window in shown_windows.items()
        ]
        picture = desktop.screen.picture(windows, area) if look.picture else None
        facts: dict[str, JsonValue] = {"screen": f"{width}x{height}", "folder": str(desktop.folder)}
        return Observation(
            controls=tuple(controls), window=facts, picture=picture, fingerprint=repr(sorted(window_ids.items()))
        )

    def observe(self, target: Target, look: Look) -> Observation:
        """Observe a process's windows: their controls, and their picture.

        The picture shows the windows even where other windows cover them.

        Raises:
            ToolError: If the process has ended, or does not answer.
        """
        desktop, pid = self._require_desktop(), _process(target)
        windows, area = desktop.area(pid)
        program_view = desktop.view(
            pid, area, look.budget, popups=[window.box for window in windows if window.popup], masked=look.masked
        )
        titles: list[JsonValue] = [window.title for window in windows if not window.popup]
        facts: dict[str, JsonValue] = {"titles": titles, "folder": str(desktop.folder)}
        if program_view.dialog:
            facts["dialog"] = program_view.dialog
        if program_view.dialogs:
            facts["dialogs"] = [*program_view.dialogs]
        if not titles:
            facts["hidden"] = "its windows are minimized; keys and focus_window show one"
        return Observation(
            controls=program_view.controls,
            window=facts,
            picture=desktop.screen.picture(windows, area) if look.picture and area is not None else None,
            fingerprint=program_view.fingerprint,
            notes=program_view.notes,
        )

    def fingerprint(self, target: Target) -> str:
        """Return the fingerprint of the process's controls, without a picture."""
        desktop, pid = self._require_desktop(), _process(target)
        return desktop.view(pid, None, Look().budget).fingerprint

    def busy(self, target: Target) -> bool | None:
        """Return True if a window reports that it is busy, else None."""
        return self._require_desktop().is_busy(_process(target)) or None

    def hazards(
        self, target: Target, tool: str, arguments: Mapping[str, JsonValue], made: Collection[str]
    ) -> set[Hazard]:
        """Return the hazards of the controls that a call may press.

        Raises:
            ToolError: If the process has ended, or does not answer.
        """
        return self._hazards.of_call(_process(target), tool, arguments)

    def resources(
        self,
        target: Target | None,
        tool: str,
        arguments: Mapping[str, JsonValue],
    ) -> tuple[str, ...]:
        """Name the application of a call, as ``application:<name>``."""
        if target is not None:
            return (f"application:{target.address.split('/')[1]}",)
        target_id = arguments.get("application") or arguments.get("window")
        addressed_target = next((candidate for candidate in self.targets() if candidate.id == target_id), None)
        return (
            (f"application:{addressed_target.address.split('/')[1]}",) if addressed_target is not None else (UNKNOWN,)
        )

    def probe(
        self,
        target: Target | None,
        intent: Intent,
        foreseen: Sequence[Foreseen],
        fingerprint: str,
    ) -> Probe:
        """Check an action's effect: a field's text, or the started program."""
        outcome = None
        if target is not None and target.binds:
            outcome = self._keyboard.probe(_process(target), intent)
        elif intent.tool == f"open_in_{self.name}":
            outcome = _OPENED[self._require_desktop().has_started(intent.call_id)]
        return outcome or super().probe(target, intent, foreseen, fingerprint)

    def _require_desktop(self) -> OpenDesktop:
        if self._desktop is None:
            msg = "the desktop is not open"
            raise ToolError(msg)
        return self._desktop

    def _acting(self) -> WindowActions:
        self._require_desktop()
        assert self._actions is not None  # noqa: S101 - made with the desktop
        return self._actions

    def _window(self, running: Running) -> Target:
        return Target(
            id=f"{running.application}-{running.pid}",
            name=", ".join(filter(None, running.titles)) or running.application,
            kind=TargetKind.WINDOW,
            kinds=(AgentKind.APP, AgentKind.OPERATOR),
            address=f"app/{running.application}/{running.pid}",
            server=self.name,
            binds={"process": running.pid},
            group=self.name,
            owner=running.owner,
        )

    def _application(self, name: str) -> Target:
        application = self._require_desktop().applications[name]
        path = {"type": "string", "description": "A file to open, as an absolute path, or an address."}
        return Target(
            id=name,
            name=application.title,
            kind=TargetKind.APPLICATION,
            address=f"app/{name}/*",
            server=self.name,
            group=self.name,
            takes={"type": "object", "properties": {"path": path} if application.opens else {}},
        )


def _process(target: Target) -> int:
    return int(str(target.binds["process"]))
