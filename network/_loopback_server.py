"""An ASGI application served on loopback, on a thread of its own."""

from __future__ import annotations

import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import uvicorn

if TYPE_CHECKING:
    from collections.abc import Callable

LOOPBACK = "127.0.0.1"
_MOST_CONNECTIONS = 256
"""The most connections at once; a request on a further one is answered with 503."""
_START_SECONDS = 10.0
_LOOK_SECONDS = 0.02


def listening(port: int, *, usual_port: int | None = None) -> socket.socket:
    """Return a socket that listens on a port of this machine.

    Args:
        port: The port; 0 for a free one.
        usual_port: A port to use if it is free, in place of `port`.

    Raises:
        OSError: If the port is taken.
    """
    if usual_port is not None:
        try:
            return listening(usual_port)
        except OSError:
            return listening(port)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener


class LoopbackServer:
    """Serve an application on a thread of its own."""

    def __init__(
        self, app: Callable[..., Any], listener: socket.socket, *, thread: str, has_lifespan: bool = False
    ) -> None:
        """Take the application.

        Args:
            app: The ASGI application.
            listener: The socket; it is closed at the end.
            thread: The name of the thread.
            has_lifespan: Whether the application is told of its start and its end.
        """
        self._listener = listener
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="on" if has_lifespan else "off",
            ws="none",
            server_header=False,
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name=thread, daemon=True)

    def _run(self) -> None:
        self._server.run(sockets=[self._listener])

    def start(self) -> None:
        """Start to serve.

        Raises:
            TimeoutError: If it does not start.
        """
        self._thread.start()
        end = time.monotonic() + _START_SECONDS
        while not self._server.started:
            if time.monotonic() > end or not self._thread.is_alive():
                msg = f"no server started on {LOOPBACK}:{self._listener.getsockname()[1]}"
                raise TimeoutError(msg)
            time.sleep(_LOOK_SECONDS)

    def stop(self) -> None:
        """Stop to serve, and wait until it has ended."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(_START_SECONDS)
        self._listener.close()
