"""An ASGI application served on loopback, on a thread of its own."""

from __future__ import annotations

import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

LOOPBACK = "127.0.0.1"
_MOST_CONNECTIONS = 256
"""The most connections at once; a request on a further one is answered with 503."""
_REQUEST_SECONDS = 30.0
"""The time for the headers and the body of a request, after which its connection is closed."""
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


class _TimedProtocol(H11Protocol):
    """HTTP with a limit of time for each request.

    uvicorn waits for the rest of a request without a limit, so any program of the machine could take all connections.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's
        super().connection_made(transport)
        self._watch_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_request()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch_request()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._end_watch()

    def _watch_request(self) -> None:
        is_incomplete = self.conn.their_state in {h11.IDLE, h11.SEND_BODY}
        if not is_incomplete:
            self._end_watch()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(_REQUEST_SECONDS, self.transport.close)

    def _end_watch(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


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
            http=_TimedProtocol,
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
