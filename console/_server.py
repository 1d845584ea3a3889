"""The console on an address of this machine."""

from __future__ import annotations

import contextlib
import getpass
import socket
import threading
import time
from typing import TYPE_CHECKING

import uvicorn

from callboard.console._application import application
from callboard.console._sign_in import SignIns, key_beside, new_key
from callboard.messages import SettingsError, reason_of

if TYPE_CHECKING:
    from pathlib import Path

    from callboard.config import Language
    from callboard.supervisor import Supervisor

HOST = "127.0.0.1"
PORT = 8437
"""The usual port."""
_MOST_CONNECTIONS = 256
"""The most connections at once; a request on a further one is answered with 503."""
_START_SECONDS = 10.0
_LOOK_SECONDS = 0.02


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
        self._socket = _listening(port)
        self.port: int = self._socket.getsockname()[1]
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
        config = uvicorn.Config(
            console,
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="callboard-console", daemon=True)

    def _run(self) -> None:
        self._server.run(sockets=[self._socket])

    def start(self) -> None:
        """Start to serve.

        Raises:
            SettingsError: If it does not start.
        """
        self._thread.start()
        end = time.monotonic() + _START_SECONDS
        while not self._server.started:
            if time.monotonic() > end or not self._thread.is_alive():
                msg = f"the console did not start on {HOST}:{self.port}"
                raise SettingsError(msg)
            time.sleep(_LOOK_SECONDS)

    def link(self) -> str:
        """Return a link that signs in once, within 10 minutes.

        Its secret stands behind the `#`, so no server's log and no other page gets it.
        """
        return _link(self._sessions, self.port)

    def stop(self) -> None:
        """Stop to serve, and wait until it has ended."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(_START_SECONDS)
        self._socket.close()


def new_link(journal: Path, port: int = PORT) -> str:
    """Return a new link to a console of another process.

    Args:
        journal: The journal.
        port: The port of its console.

    Raises:
        SettingsError: If no program listens on the port, or the key of the sign-ins can't be read.
    """
    try:
        socket.create_connection((HOST, port), _START_SECONDS).close()
        return _link(SignIns(key_beside(journal), port=port), port)
    except ConnectionRefusedError:
        msg = f"no console is open on port {port} of {HOST}: `callboard console` opens one"
        raise SettingsError(msg) from None
    except OSError as error:
        msg = f"a link to the console can't be made: {reason_of(error)}"
        raise SettingsError(msg) from error


def _link(sessions: SignIns, port: int) -> str:
    return f"http://{HOST}:{port}/#{sessions.new_link()}"


def _listening(port: int | None) -> socket.socket:
    """Return a socket that listens on a port of this machine.

    Raises:
        SettingsError: If it is taken.
    """
    if port is None:
        with contextlib.suppress(SettingsError):
            return _listening(PORT)
        return _listening(0)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        msg = f"the console can't use port {port} of {HOST} ({reason_of(error)}): name another one"
        raise SettingsError(msg) from error
    return listener
