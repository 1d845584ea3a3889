"""Programs on a desktop's accessibility bus, each with its connection."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from callboard.surfaces import committing
from callboard.surfaces._tool_function import ToolError
from callboard.surfaces.desktop._bus import BusConnection
from callboard.surfaces.desktop._calls import (
    ANSWER_SECONDS,
    BUS,
    Answer,
    Ask,
    BusClosedError,
    BusError,
    attribute,
    method,
    value,
)
from callboard.surfaces.desktop._processes import is_alive

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = "/org/a11y/atspi/accessible/root"
_REGISTRY = "org.a11y.atspi.Registry"
_MODAL_SECONDS = 1.0
"""The time limit for the answer to an action. GTK 3 answers only after a dialog that the action opened is closed."""


class AccessibleProgram:
    """One program on the accessibility bus.

    Calls use a direct connection if the program offers one, which is faster. Otherwise each program has its own
    connection to the bus, so that a program which does not answer delays no other one.

    Args:
        address: The address of the accessibility bus.
        pid: Its process.
        name: Its name on the bus.
        root: The path of its root object.

    Raises:
        BusError, BusClosedError: If it has ended, or does not provide its name.
        TimeoutError: If it does not answer.
    """

    def __init__(self, address: str, pid: int, name: str, root: str = ROOT) -> None:
        self._bus = BusConnection(address)
        self.pid = pid
        self._name = name
        self.root = root
        self._direct: BusConnection | None = None
        self._acting: list[BusConnection] = []
        try:
            self._meet()
        except BaseException:
            self.close()
            raise

    def _meet(self) -> None:
        name, toolkit, version, address = self._bus.calls(
            self._name,
            [
                attribute(self.root, "Accessible", "Name"),
                attribute(self.root, "Application", "ToolkitName"),
                attribute(self.root, "Application", "Version"),
                method(self.root, "Application", "GetApplicationBusAddress"),
            ],
            timeout=ANSWER_SECONDS,
        )
        self.name = str(value(name) or "")
        """The name that it reports: ``soffice``."""
        self.toolkit = f"{value(toolkit) or 'unknown'} {value(version) or ''}".strip()
        """The toolkit of its windows: ``gtk 3.24.38``."""
        self.draws_itself = self.name.startswith("soffice")
        """True for LibreOffice, which draws the content of its toolkit windows itself."""
        self.relative = self.toolkit.lower().startswith("gtk 4")
        """True if it reports only places relative to its windows."""
        self.nests = self.toolkit.lower().startswith(("gtk 2", "gtk 3")) and not self.draws_itself
        """True if a dialog that an accessible action opens runs within the call. A key would block the program then."""
        self._address = "" if isinstance(address, BusError) or not address else str(address[0])
        if self._address:
            with contextlib.suppress(BusClosedError):
                self._direct = BusConnection(self._address, hello=False)

    def ask(self, asks: Sequence[Ask]) -> list[Answer | BusError]:
        """Make many calls at once.

        Raises:
            ToolError: If the program has ended, or does not answer.
        """
        try:
            if self._direct is not None:
                return self._direct.calls(None, asks, timeout=ANSWER_SECONDS)
            return self._bus.calls(self._name, asks, timeout=ANSWER_SECONDS)
        except BusClosedError as error:
            raise ToolError(self._gone()) from error
        except TimeoutError as error:
            raise ToolError(_silent(self.pid)) from error

    def ask_one(self, ask: Ask) -> Answer:
        """Make one call.

        Raises:
            ToolError: As `ask`, and if the call is refused.
        """
        answer = self.ask([ask])[0]
        if isinstance(answer, BusError):
            if not is_alive(self.pid):
                raise ToolError(self._gone()) from answer
            msg = f"the program refuses {ask.method}: {answer}"
            raise ToolError(msg) from answer
        return answer

    def act(self, ask: Ask) -> Answer | None:
        """Make a call that may open a dialog; None without an answer.

        It has its own connection, because GTK 3 runs the dialog within the call, and handles nothing else on that
        connection meanwhile. The running tool's lease is checked right before the call is sent, and is not held during
        the wait for the answer.

        Raises:
            LeaseVoidError: If the tool was stopped; nothing was done.
            ToolError: As `one`.
        """
        while len(self._acting) > 4:  # the oldest dialogs are closed by now, or abandoned
            self._acting.pop(0).close()
        try:
            connection = (
                BusConnection(self._address, hello=False) if self._address else BusConnection(self._bus.address)
            )
        except BusClosedError as error:
            raise ToolError(self._gone()) from error
        waits = False
        try:
            with committing():
                serial = connection.send(None if self._address else self._name, ask)
            return connection.answer(serial, timeout=_MODAL_SECONDS)
        except TimeoutError:
            waits = True
            self._acting.append(connection)
            return None
        except BusError as error:
            msg = f"the program refuses {ask.method}: {error}"
            raise ToolError(msg) from error
        except BusClosedError as error:
            raise ToolError(self._gone()) from error
        finally:
            if not waits:
                connection.close()

    def close(self) -> None:
        """Close the connections to it."""
        for connection in (self._bus, self._direct, *self._acting):
            if connection is not None:
                connection.close()
        self._acting.clear()

    def _gone(self) -> str:
        state = "no longer answers" if is_alive(self.pid) else "has ended"
        return f"the program {state} (process {self.pid}); its windows are closed"


class AccessiblePrograms:
    """The programs of a desktop that expose their controls.

    Args:
        session_bus: The address of the desktop's session bus.

    Raises:
        BusClosedError: If there is no accessibility bus.
    """

    def __init__(self, session_bus: str) -> None:
        with BusConnection(session_bus) as session:
            try:
                address = session.call("org.a11y.Bus", Ask("/org/a11y/bus", "org.a11y.Bus", "GetAddress"), timeout=20.0)
            except (BusError, TimeoutError) as error:
                msg = f"the desktop has no accessibility bus: {error}"
                raise BusClosedError(msg) from error
        self.address = str(address[0])
        """The address of the accessibility bus."""
        self._bus = BusConnection(self.address)
        self._pids: dict[tuple[str, str], int] = {}
        self._programs: dict[tuple[str, str], AccessibleProgram] = {}
        self._lock = threading.Lock()

    def of_process(self, pid: int) -> AccessibleProgram | None:
        """Return the program of a process; None if not on the bus.

        Raises:
            ToolError: If the accessibility bus is gone, or the program does not answer.
        """
        key = next((key for key, process in reversed(self._current().items()) if process == pid), None)
        if key is None:
            return None
        with self._lock:
            program = self._programs.get(key)
        return program or self._meet(pid, key)

    def _meet(self, pid: int, key: tuple[str, str]) -> AccessibleProgram | None:
        try:
            program = AccessibleProgram(self.address, pid, *key)
        except TimeoutError as error:
            raise ToolError(_silent(pid)) from error
        except (BusError, BusClosedError):  # it has ended meanwhile, or is starting
            return None
        with self._lock:
            if self._programs.setdefault(key, program) is not program:  # another thread has added it first
                program.close()
            return self._programs[key]

    def _current(self) -> dict[tuple[str, str], int]:
        """Return the processes of the current programs.

        They are read from the bus, which answers also for busy programs.
        """
        with self._lock:
            try:
                answer = self._bus.call(_REGISTRY, method(ROOT, "Accessible", "GetChildren"), timeout=ANSWER_SECONDS)
                listed = [(name, root) for name, root in answer[0]]
                new = [key for key in listed if key not in self._pids]
                asks = [
                    Ask("/org/freedesktop/DBus", BUS, "GetConnectionUnixProcessID", "s", (name,)) for name, _ in new
                ]
                pid_answers = self._bus.calls(BUS, asks, timeout=ANSWER_SECONDS)
            except (BusClosedError, BusError, TimeoutError) as error:
                msg = f"the desktop's accessibility bus does not answer: {error}"
                raise ToolError(msg) from error
            added = {
                key: pid_answer[0]
                for key, pid_answer in zip(new, pid_answers, strict=True)
                if not isinstance(pid_answer, BusError)
            }
            all_pids = {**self._pids, **added}
            self._pids = {key: all_pids[key] for key in listed if key in all_pids}
            for key in self._programs.keys() - self._pids.keys():
                self._programs.pop(key).close()
            return self._pids

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            for program in self._programs.values():
                program.close()
            self._programs.clear()
            self._bus.close()


def _silent(pid: int) -> str:
    return f"the program does not answer (process {pid}): it is stopped, or busy"
