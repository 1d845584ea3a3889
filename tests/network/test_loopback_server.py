"""Slow clients of a server on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time

import pytest
from starlette.responses import PlainTextResponse

from callboard.network import LOOPBACK, LoopbackServer, _loopback_server, listening

PATIENCE = 10.0
LIMIT = 0.4


@pytest.fixture
def address(monkeypatch):
    """Serve an application that reads each body and answers after the limit of a request."""
    monkeypatch.setattr(_loopback_server, "_REQUEST_SECONDS", LIMIT)

    async def answer(scope, receive, send):
        message = {"more_body": True}
        while message.get("more_body"):
            message = await receive()
        if message["type"] == "http.request":
            await asyncio.sleep(2 * LIMIT)
            await PlainTextResponse("read")(scope, receive, send)

    listener = listening(0)
    server = LoopbackServer(answer, listener, thread="slow-test")
    server.start()
    yield LOOPBACK, listener.getsockname()[1]
    server.stop()


def received(connection):
    """Read until the server closes the connection."""
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(1_000):
            parts.append(part)
    return b"".join(parts)


HEAD = b"POST / HTTP/1.1\r\nhost: here\r\ncontent-length: 2\r\n\r\n"


@pytest.mark.parametrize("sent", [b"", b"POST / HT", HEAD, HEAD + b"x", HEAD + b"xx" + HEAD])
def test_connection_without_a_whole_request_is_closed(address, sent):
    with socket.create_connection(address, timeout=PATIENCE) as connection:
        connection.sendall(sent)
        assert received(connection).count(b"200 OK") == sent.count(b"xx")


def test_request_that_comes_in_drops_is_closed(address):
    with socket.create_connection(address, timeout=PATIENCE) as connection, contextlib.suppress(OSError):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            connection.sendall(b"P")
            time.sleep(LIMIT / 4)
        pytest.fail("the connection stays open")


def test_slow_answer_to_a_whole_request_is_waited_for(address):
    with socket.create_connection(address, timeout=PATIENCE) as connection:
        connection.sendall(HEAD.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n") + b"xx")
        assert received(connection).endswith(b"read")
