"""An open desktop: its display, its programs, and its startable applications."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from callboard.surfaces import committing
from callboard.surfaces._console_windows import shows_console
from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.desktop._accessible_programs import AccessiblePrograms
from callboard.surfaces.desktop._calls import method, states
from callboard.surfaces.desktop._clipboard import Clipboard
from callboard.surfaces.desktop._desktop_applications import DesktopApplication, installed, named
from callboard.surfaces.desktop._handled_keys import Pings
from callboard.surfaces.desktop._input import Pointer, XKeyboard
from callboard.surfaces.desktop._processes import command_name, is_alive, marks_of
from callboard.surfaces.desktop._session import Session
from callboard.surfaces.desktop._tree import AccessibleNode, ObjectState, Tree
from callboard.surfaces.desktop._view import Ids, ProgramView, program_view
from callboard.surfaces.desktop._window_actions import gone
from callboard.surfaces.desktop._xscreen import XScreen, XWindow, around

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from callboard.messages import Box, LookBudget

POLL_SECONDS = 0.05
OPEN_SECONDS = 60.0
"""The time limit for an application's first window."""
HAND_OVER_SECONDS = 2.0
"""The time limit for a program that hands over its work to a running instance, and ends."""
CLOSE_SECONDS = 5.0
"""The time limit for an application to close."""
LEAVE_SECONDS = 2.0
"""The time limit for all applications to close before a private desktop ends. An application that asks whether to save
does not close."""
_CALL, _OWNER, _NAME = "CALLBOARD_CALL", "CALLBOARD_OWNER", "CALLBOARD_APPLICATION"
_MARKS = (_CALL, _OWNER, _NAME)
"""The environment variables that identify the processes of an application."""
_QUIET_LOOKS = 2
_NOT_IN_NAMES = re.compile(r"[^\w.+-]+")


@dataclass(frozen=True)
class Running:
    """A process that has windows on the desktop."""

    pid: int
    application: str
    titles: tuple[str, ...]
    owner: str = ""
    """The session of the task that started it; empty if it ran before, or a person started it."""


class OpenDesktop:
    """An open desktop.

    Args:
        display: ``private``, ``user``, or the name of a display.
        record: The file that records a private desktop.
        grace: The seconds for which a private desktop stays after this program is killed.
        size: The width and height of a private desktop.
        folder: The working directory of programs.
        applications: Commands of further applications, by name.
        include_installed: Whether installed applications are offered, too.

    Raises:
        ConnectionError: If the desktop can't be used; the text gives the reason.
        RuntimeError: If a private desktop can't be started.
    """

    def __init__(
        self,
        display: str,
        record: Path,
        *,
        grace: float,
        size: str,
        folder: Path,
        applications: Mapping[str, Sequence[str]],
        include_installed: bool,
    ) -> None:
        self.folder = folder
        self._closers: list[Callable[[], None]] = []
        self.session: Session | None = None
        try:
            if display == "private":
                self.session = Session(record, grace=grace, size=size, folder=folder)
                self._closers.append(self.session.end)
                self._environment = self.session.environment
            else:
                self._environment = _users_environment(display)
            self.screen = XScreen(self._environment["DISPLAY"])
            self._closers.append(self.screen.close)
            self.programs = AccessiblePrograms(self._environment["DBUS_SESSION_BUS_ADDRESS"])
            self._closers.append(self.programs.close)
        except BaseException:
            self.close()
            raise
        self.keyboard = XKeyboard(self.screen)
        self._closers.append(self.keyboard.restore)
        self.keyboard.release_all()
        self.pointer = Pointer(self.screen)
        self.clipboard = Clipboard(self._environment["DISPLAY"])
        self._closers.append(self.clipboard.close)
        self._pings = Pings(self._environment["DISPLAY"])
        self._closers.append(self._pings.close)
        startable = [*named(applications), *(installed(self._environment) if include_installed else ())]
        self.applications = {application.id: application for application in reversed(startable)}
        """The applications that can be started, by id; those of the settings override installed ones."""
        self._ids: dict[int, Ids] = {}
        self._lock = threading.Lock()
        self._children: list[subprocess.Popen[bytes]] = []
        """Programs on the user's display. They stay there when this program ends."""
        if self.session is not None:
            self._closers.append(self._close_windows)

    def close(self) -> None:
        """Close all connections; end a private desktop, with everything on it."""
        while self._closers:
            self._closers.pop()()

    def _close_windows(self) -> None:
        """Ask all windows to close: a killed program would leave lock files."""
        end = time.monotonic() + LEAVE_SECONDS
        with contextlib.suppress(ToolError):  # the display is gone
            old_titles = self.screen.processes()
            for pid in old_titles:
                self._ask_to_close(pid)
            while time.monotonic() < end and any(
                is_alive(pid) and len(self.screen.processes().get(pid, ())) <= len(titles)
                for pid, titles in old_titles.items()
            ):  # a process with a further window shows a question, and does not end
                time.sleep(POLL_SECONDS)

    def _ask_to_close(self, pid: int) -> None:
        for window in self.screen.of_process(pid):
            if not window.popup:
                with committing():
                    self.screen.close_window(window.id)

    # Processes

    def running(self) -> list[Running]:
        """List the processes that have windows, sorted by process id."""
        running_processes = []
        for pid, titles in sorted(self.screen.processes().items()):
            marks = marks_of(pid, _MARKS)
            name = marks.get(_NAME) or command_name(pid)
            if name and pid != os.getpid() and not shows_console(titles):
                owner = marks.get(_OWNER, "")
                running_processes.append(Running(pid, _NOT_IN_NAMES.sub("-", name), tuple(titles), owner))
        with self._lock:
            self._ids = {pid: ids for pid, ids in self._ids.items() if is_alive(pid)}
        return running_processes

    def start(self, application: DesktopApplication, document: str, *, call: str, owner: str) -> Running:
        """Start an application, and wait for its first window.

        Args:
            application: The application.
            document: A file or an address to open; empty for none.
            call: The id of the call, which its processes carry. So a call that was interrupted by a crash does not
                start the application twice.
            owner: The session of the task.

        Raises:
            ToolError: If it can't be started, or shows no window.
        """
        call = call or uuid.uuid4().hex  # in a stand-alone server, calls have no ids
        marks = {_CALL: call, _OWNER: owner, _NAME: application.id}
        window_counts = {running.pid: len(running.titles) for running in self.running()}
        command = application.started_with(document)
        if not self.has_started(call):
            with committing():
                self._launch(command, marks)
        begin = time.monotonic()
        end = begin + OPEN_SECONDS
        while time.monotonic() < end:
            with committing():  # raises once the task is stopped
                pass
            for running in self.running():
                taken_over = len(running.titles) > window_counts.get(running.pid, len(running.titles))
                if self._carries(running.pid, call) or (taken_over and self.session is None):
                    self._await_quiet(running.pid, end)
                    return running
            if time.monotonic() > begin + HAND_OVER_SECONDS and not self.started_by(call):
                msg = f"{application.title} ended without showing a window"
                raise ToolError(msg)
            time.sleep(POLL_SECONDS)
        msg = f"{application.title} showed no window within {OPEN_SECONDS:g} s"
        raise ToolError(msg)

    def has_started(self, call: str) -> bool | None:
        """Return whether a call has started a program; None if unknown."""
        if self.session is not None:
            return self.session.has_started(call)
        return self.started_by(call) or None

    def started_by(self, call: str) -> bool:
        """Return whether a process of a call runs."""
        return any(self._carries(int(folder.name), call) for folder in Path("/proc").glob("[0-9]*"))

    def _carries(self, pid: int, call: str) -> bool:
        return bool(call) and marks_of(pid, _MARKS).get(_CALL) == call

    def _launch(self, command: list[str], marks: dict[str, str]) -> None:
        """Start a program.

        On a private desktop, each program has its own home and session bus. Otherwise a second window of a program
        would belong to the process of the first one, and so possibly to another task.
        """
        if self.session is not None:
            self.session.start(command, {**marks, "AT_SPI_BUS_ADDRESS": self.programs.address}, marks[_CALL])
            return
        quiet = subprocess.DEVNULL
        environment = {**self._environment, **marks}
        try:
            child = subprocess.Popen(  # an application that the settings or a desktop entry names
                command,
                env=environment,
                cwd=self.folder,
                stdin=quiet,
                stdout=quiet,
                stderr=quiet,
                start_new_session=True,
            )
        except OSError as error:
            msg = f"{command[0]} can't be started: {error.strerror}"
            raise ToolError(msg) from error
        self._children = [process for process in (*self._children, child) if process.poll() is None]

    def stop(self, pid: int) -> None:
        """Close a process's windows; on a private desktop, kill it if necessary.

        Raises:
            ToolError: If a window stays open, for example because it asks whether to save.
        """
        self._ask_to_close(pid)
        if self.wait(lambda: pid not in self.screen.processes(), CLOSE_SECONDS):
            return
        if self.session is None:
            msg = "the window is still open: it may ask whether to save"
            raise ToolError(msg)
        with committing(), contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        self.wait(lambda: not is_alive(pid), CLOSE_SECONDS)

    def wait(self, until: Callable[[], bool], seconds: float) -> bool:
        """Wait until a condition is true; return False on a timeout.

        Raises:
            LeaseVoidError: If the waiting call was stopped.
        """
        end = time.monotonic() + seconds
        while not until():
            if time.monotonic() > end:
                return False
            with committing():
                pass
            time.sleep(POLL_SECONDS)
        return True

    # Observation

    def tree(self, pid: int) -> Tree | None:
        """Take a snapshot of a process; None without accessibility."""
        program = self.programs.of_process(pid)
        if program is None:
            return None
        return Tree(program, self.screen.of_process(pid))

    def view(
        self,
        pid: int,
        area: Box | None,
        budget: LookBudget,
        *,
        popups: Sequence[Box] = (),
        masked: Collection[str] = (),
    ) -> ProgramView:
        """Return the view of a process for an agent.

        The parameters are those of `program_view`.

        Raises:
            ToolError: If the process has ended, or does not answer.
        """
        tree = self.tree(pid)
        if tree is None:
            if pid not in self.screen.processes():
                raise ToolError(gone(pid))
            note = "This program tells nothing of what is in its windows; only its picture shows it."
            titles = repr(self.screen.processes().get(pid))
            return ProgramView((), titles, notes=(note,))
        return program_view(tree.nodes, self.ids(pid), area, budget, popups=popups, masked=masked)

    def has_taken_keys(self, pid: int, seconds: float) -> bool:
        """Wait until a process has handled all keys; False if unknown."""
        return self._pings.answered((window.id for window in self.screen.of_process(pid)), seconds)

    def is_busy(self, pid: int) -> bool:
        """Return whether a window of a process reports that it is busy."""
        program = self.programs.of_process(pid)
        if program is None:
            return False
        windows = program.ask_one(method(program.root, "Accessible", "GetChildren"))[0]
        answers = program.ask([method(path, "Accessible", "GetState") for _, path in windows])
        return any(states(answer) >> ObjectState.BUSY & 1 for answer in answers)

    def ids(self, pid: int) -> Ids:
        """Return the short names of a process's objects."""
        with self._lock:
            return self._ids.setdefault(pid, Ids())

    def area(self, pid: int) -> tuple[list[XWindow], Box | None]:
        """Return a process's windows, and the area of the screen around them."""
        windows = self.screen.of_process(pid)
        return windows, around(windows, self.screen.size)

    def node(self, pid: int, control_id: str) -> AccessibleNode:
        """Find the current node of a control.

        Raises:
            ToolError: If it no longer exists.
        """
        tree = self.tree(pid)
        path = self.ids(pid).path(control_id)
        node = (
            next((candidate for candidate in tree.nodes if candidate.path == path), None)
            if tree is not None and path
            else None
        )
        if node is None:
            msg = f"the control {control_id!r} no longer exists: look again"
            raise ToolError(msg)
        return node

    def _await_quiet(self, pid: int, end: float) -> None:
        """Wait for a new window's layout: two equal looks in a row."""
        marks: list[str] = []
        while time.monotonic() < end:
            with contextlib.suppress(ToolError):
                area = self.area(pid)[1]
                tree = self.tree(pid)
                mark = repr([(node.path, node.box) for node in tree.nodes]) if tree is not None else ""
                marks.append(f"{area}{mark}")
            if len(marks) >= _QUIET_LOOKS and len(set(marks[-_QUIET_LOOKS:])) == 1:
                return
            with committing():
                pass
            time.sleep(2 * POLL_SECONDS)


def _users_environment(display: str) -> dict[str, str]:
    environment = dict(os.environ)
    if display == "user":
        if environment.get("WAYLAND_DISPLAY") or environment.get("XDG_SESSION_TYPE") == "wayland":
            msg = (
                "this is a Wayland session, in which a program can't see or use the windows of other programs: "
                "log in to an X11 session, or set desktop.display to private"
            )
            raise ConnectionError(msg)
        if not environment.get("DISPLAY"):
            msg = (
                "there is no display: DISPLAY is not set; set desktop.display to private on a machine without a screen"
            )
            raise ConnectionError(msg)
    else:
        environment["DISPLAY"] = display
    if not environment.get("DBUS_SESSION_BUS_ADDRESS"):
        msg = "there is no session bus: DBUS_SESSION_BUS_ADDRESS is not set"
        raise ConnectionError(msg)
    return environment
