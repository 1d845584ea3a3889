"""The console on an address of this machine."""

from __future__ import annotations

import getpass
import socket
from typing import TYPE_CHECKING

from callboard.console._application import application
from callboard.console._sign_in import SignIns, key_beside, new_key
from callboard.messages import SettingsError, reason_of
from callboard.network import LOOPBACK, LoopbackServer, listening

if TYPE_CHECKING:
    from pathlib import Path

    from callboard.config import Language
    from callboard.supervisor import Supervisor

HOST = LOOPBACK
PORT = 8437
"""The usual port."""
_CONNECT_SECONDS = 10.0


class ConsoleServer:
    """Serve a console on loopback, on a thread of its own."""

    def __init__(
        self,
        journal: Path,
        supervisor: Supervisor | None = None,
        *,
        port: int | None = None,
        language: Language | None = None,
    ) -> None:
        """Take the port.

        Args:
            journal: The journal that it shows.
            supervisor: The supervisor that works on it in this process, if there is one.
            port: The port; 0 for a free one, None for the usual one if it is free.
            language: The language of the pages; None for English.

        Raises:
            SettingsError: If the port is taken, or a supervisor's key of the sign-ins can't be kept beside the journal.
        """
        try:
            key = key_beside(journal)
        except OSError as error:
            if supervisor is not None:
                msg = f"the key of the console's sign-ins can't be kept: {reason_of(error)}"
                raise SettingsError(msg) from error
            key = new_key()  # a journal that can only be read is shown, too; sign-ins end with the console
        try:
            listener = listening(port or 0, usual_port=PORT if port is None else None)
        except OSError as error:
            msg = f"the console can't use port {port} of {HOST} ({reason_of(error)}): name another one"
            raise SettingsError(msg) from error
        self.port: int = listener.getsockname()[1]
        self._sessions = SignIns(key, port=self.port)
        hosts = frozenset(f"{name}:{self.port}" for name in (HOST, "localhost"))
        console = application(
            journal,
            supervisor,
            self._sessions,
            hosts=hosts,
            cookie_name=f"callboard-{self.port}",
            user=getpass.getuser(),
            language=language,
        )
        self._server = LoopbackServer(console, listener, thread="callboard-console")

    def start(self) -> None:
        """Start to serve.

        Raises:
            SettingsError: If it does not start.
        """
        try:
            self._server.start()
        except TimeoutError as error:
            msg = f"the console did not start: {error}"
            raise SettingsError(msg) from error

    def link(self) -> str:
        """Return a link that signs in once, within 10 minutes.

        Its secret stands behind the `#`, so no server's log and no other page gets it.
        """
        return _link(self._sessions, self.port)

    def stop(self) -> None:
        """Stop to serve, and wait until it has ended."""
        self._server.stop()


def new_link(journal: Path, port: int = PORT) -> str:
    """Return a new link to a console of another process.

    Args:
        journal: The journal.
        port: The port of its console.

    Raises:
        SettingsError: If no program listens on the port, or the key of the sign-ins can't be read.
    """
    try:
        socket.create_connection((HOST, port), _CONNECT_SECONDS).close()
        return _link(SignIns(key_beside(journal), port=port), port)
    except ConnectionRefusedError:
        msg = f"no console is open on port {port} of {HOST}: `callboard console` opens one"
        raise SettingsError(msg) from None
    except OSError as error:
        msg = f"a link to the console can't be made: {reason_of(error)}"
        raise SettingsError(msg) from error


def _link(sessions: SignIns, port: int) -> str:
    return f"http://{HOST}:{port}/#{sessions.new_link()}"
