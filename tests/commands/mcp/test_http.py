"""MCP servers over HTTP that answer late, half, or not as MCP servers do."""

from __future__ import annotations

import http.server
import json
import threading
from contextlib import contextmanager

import httpx2
import pytest

from callboard.actors.commands.mcp import McpSession, _server_connection
from callboard.actors.commands.mcp._transport import LEAVES_SECONDS, BoundedTransport
from callboard.config import McpServer, Settings
from callboard.messages import SettingsError

RESULTS = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "n", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "do", "inputSchema": {"type": "object"}}]},
}


class Odd(http.server.BaseHTTPRequestHandler):
    """A server that begins to answer calls, and leaves."""

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "id" not in request:
            self.say(202, "", b"")
        elif request["method"] == "tools/call":
            self.say(200, "text/event-stream", b": wait\n\n")
        elif request["method"] in RESULTS:
            answer = {"jsonrpc": "2.0", "id": request["id"], "result": RESULTS[request["method"]]}
            self.say(200, "application/json", json.dumps(answer).encode())
        else:
            error = {"code": -32601, "message": "no"}
            answer = {"jsonrpc": "2.0", "id": request["id"], "error": error}
            self.say(200, "application/json", json.dumps(answer).encode())

    def do_GET(self):
        self.say(405, "", b"")

    def say(self, status, kind, body):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Say nothing."""


@contextmanager
def served(handler):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/mcp"
        finally:
            server.shutdown()
            thread.join()


def session_of(url):
    return McpSession("odd", McpServer.model_validate({"url": url}), Settings.load())


async def test_an_answer_that_ends_before_it_is_whole_leaves_a_doubt(dispatch, command):
    with served(Odd) as url:
        session = session_of(url)
        await session.open()
        try:
            (result,) = await dispatch(session, command("odd.do"))
        finally:
            await session.close()
    assert result.error == ("the MCP server odd ended its answer before it was whole: whether it was done is in doubt")
    assert result.in_doubt


@pytest.mark.parametrize(
    ("status", "kind", "told"),
    [
        (
            200,
            "text/html",
            "its answer to `initialize` is not a message of the protocol, but text/html: there may be no",
        ),
        (
            200,
            "application/json",
            "its answer to `initialize` is not a message of the protocol: there may be no MCP server",
        ),
        (401, "text/html", "; its HTTP status is 401 Unauthorized"),
        (404, "text/html", "; its HTTP status is 404 Not Found"),
        (500, "text/html", "; its HTTP status is 500 Internal Server Error"),
    ],
)
async def test_address_without_an_mcp_server_is_a_clear_settings_error(status, kind, told):
    class Page(Odd):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            self.say(status, kind, b"<html>hello</html>")

    with served(Page) as url, pytest.raises(SettingsError) as refused:
        await session_of(url).open()
    assert told in str(refused.value)
    assert "pydantic" not in str(refused.value)


async def test_call_is_in_doubt_when_its_answer_is_not_a_message(dispatch, command):
    class Page(Odd):
        def say(self, status, kind, body):
            super().say(status, "application/json" if "event" in kind else kind, body)

    with served(Page) as url:
        session = session_of(url)
        await session.open()
        try:
            (result,) = await dispatch(session, command("odd.do"))
        finally:
            await session.close()
    told = "its answer to `tools/call` is not a message of the protocol: whether it was done is in doubt"
    assert (result.error, result.in_doubt) == (told, True)


async def test_http_client_has_no_read_timeout(over_http, monkeypatch):
    made = []

    class Client(httpx2.AsyncClient):
        def __init__(self, **given):
            made.append(given["timeout"])
            super().__init__(**given)

    monkeypatch.setattr(_server_connection.httpx2, "AsyncClient", Client)
    session = session_of(over_http["url"])
    await session.open()
    await session.close()
    assert [(timeout.read, timeout.connect) for timeout in made] == [(None, 30.0)]


async def test_the_end_of_a_session_is_not_waited_for():
    limits = []

    def answer(request):
        limits.append((request.method, request.extensions["timeout"]["read"]))
        return httpx2.Response(200)

    transport = BoundedTransport(1000)
    transport._inner = httpx2.MockTransport(answer)
    async with httpx2.AsyncClient(transport=transport, timeout=httpx2.Timeout(30.0, read=None)) as client:
        await client.delete("http://127.0.0.1/mcp")
        await client.post("http://127.0.0.1/mcp")
    assert limits == [("DELETE", LEAVES_SECONDS), ("POST", None)]
