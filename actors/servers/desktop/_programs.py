"""The programs that a desktop's accessibility bus knows, each with a connection to ask it."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from callboard.actors.runtime import committing
from callboard.actors.servers._server import ToolError
from callboard.actors.servers.desktop._bus import Connection
from callboard.actors.servers.desktop._calls import BUS, Answer, Ask, BusClosedError, BusError, attribute, method, value
from callboard.actors.servers.desktop._processes import is_alive

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = "/org/a11y/atspi/accessible/root"
_REGISTRY = "org.a11y.atspi.Registry"
ANSWER_SECONDS = 10.0
"""The longest silence of a program: one that is stopped or busy for some seconds is waited for."""
_MODAL_SECONDS = 1.0
"""The wait for the answer to an action. GTK 3 gives none before a dialog that the action opened is closed."""


class Program:
    """One program, as the accessibility bus shows it.

    It is asked on a connection straight to it where it has one, which saves the way over the bus.
    """

    def __init__(self, bus: Connection, name: str, root: str = ROOT) -> None:
        self._bus = bus
        self._name = name
        self.root = root
        """The path of the object that stands for the program."""
        self.pid: int = bus.call(BUS, Ask("/org/freedesktop/DBus", BUS, "GetConnectionUnixProcessID", "s", (name,)))[0]
        """Its process."""
        own, first, second = bus.calls(
            name,
            [
                attribute(root, "Accessible", "Name"),
                attribute(root, "Application", "ToolkitName"),
                attribute(root, "Application", "Version"),
            ],
        )
        self.name = str(value(own) or "")
        """Its own name for itself: ``soffice``."""
        self.toolkit = f"{value(first) or 'unknown'} {value(second) or ''}".strip()
        """The toolkit of its windows: ``gtk 3.24.38``."""
        self.draws_itself = self.name.startswith("soffice")
        """True for LibreOffice, which draws its windows itself, into those of a toolkit."""
        self.relative = self.toolkit.lower().startswith("gtk 4")
        """True if it tells places within its windows alone."""
        self._address = self._private_address()
        self._direct: Connection | None = None
        if self._address:
            with contextlib.suppress(BusClosedError):
                self._direct = Connection(self._address, hello=False)
        self._acting: list[Connection] = []

    def ask(self, asks: Sequence[Ask]) -> list[Answer | BusError]:
        """Ask many things at once.

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
            msg = f"the program does not answer (process {self.pid}): it is stopped, or busy"
            raise ToolError(msg) from error

    def one(self, ask: Ask) -> Answer:
        """Ask one thing.

        Raises:
            ToolError: As `ask`, and if it is refused.
        """
        answer = self.ask([ask])[0]
        if isinstance(answer, BusError):
            if not is_alive(self.pid):
                raise ToolError(self._gone()) from answer
            msg = f"the program refuses {ask.method}: {answer}"
            raise ToolError(msg) from answer
        return answer

    def act(self, ask: Ask) -> Answer | None:
        """Have it do something that may open a dialog, on a connection of its own; None if there is no answer yet.

        GTK 3 runs the dialog within the call, and handles nothing else on that connection meanwhile. The lease of the
        running tool is asked right before the call is sent, and not held while its answer is waited for.

        Raises:
            LeaseVoidError: If the tool was stopped; nothing was done.
            ToolError: As `one`.
        """
        self._release()
        try:
            connection = Connection(self._address, hello=False) if self._address else Connection(self._bus.address)
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
        for connection in (self._direct, *self._acting):
            if connection is not None:
                connection.close()
        self._acting.clear()

    def _private_address(self) -> str:
        answer = self._bus.calls(self._name, [method(self.root, "Application", "GetApplicationBusAddress")])[0]
        return "" if isinstance(answer, BusError) or not answer else str(answer[0])

    def _release(self) -> None:
        """Close the connections of earlier actions but the last few: their dialogs are closed, or will not be."""
        while len(self._acting) > 4:  # noqa: PLR2004 - dialogs that are open at once
            self._acting.pop(0).close()

    def _gone(self) -> str:
        state = "no longer answers" if is_alive(self.pid) else "has ended"
        return f"the program {state} (process {self.pid}); its windows are closed"


class Programs:
    """The programs of a desktop that can be asked what is in their windows.

    Args:
        session_bus: The address of the desktop's session bus.

    Raises:
        BusClosedError: If there is no accessibility bus.
    """

    def __init__(self, session_bus: str) -> None:
        with Connection(session_bus) as session:
            try:
                address = session.call("org.a11y.Bus", Ask("/org/a11y/bus", "org.a11y.Bus", "GetAddress"), timeout=20.0)
            except (BusError, TimeoutError) as error:
                msg = f"the desktop has no accessibility bus: {error}"
                raise BusClosedError(msg) from error
        self.address = str(address[0])
        """The address of the accessibility bus."""
        self._bus = Connection(self.address)
        self._known: dict[tuple[str, str], Program] = {}
        self._lock = threading.Lock()

    def by_process(self) -> dict[int, Program]:
        """Give the programs that are there now, by their processes.

        Raises:
            ToolError: If the accessibility bus is gone.
        """
        with self._lock:
            try:
                answer = self._bus.call(_REGISTRY, method(ROOT, "Accessible", "GetChildren"), timeout=ANSWER_SECONDS)
            except (BusClosedError, BusError, TimeoutError) as error:
                msg = f"the desktop's accessibility bus does not answer: {error}"
                raise ToolError(msg) from error
            there = [(name, root) for name, root in answer[0]]
            for key in set(self._known) - set(there):
                self._known.pop(key).close()
            for key in there:
                if key not in self._known:
                    with contextlib.suppress(BusError, BusClosedError, TimeoutError):  # it ended meanwhile, or starts
                        self._known[key] = Program(self._bus, *key)
            return {program.pid: program for program in self._known.values()}

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            for program in self._known.values():
                program.close()
            self._known.clear()
            self._bus.close()
