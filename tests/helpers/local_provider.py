"""A local model provider that answers, fails and misbehaves on order."""

from __future__ import annotations

import http.server
import json
import select
import threading
from collections.abc import Callable
from typing import Any


class LocalProvider:
    """A provider with prepared answers, by the OpenAI protocol.

    `requests` has the received requests. After the last order, that order is repeated.
    """

    def __init__(self) -> None:
        self.orders: list[Callable[[http.server.BaseHTTPRequestHandler], None]] = []
        self.usage: dict[str, int] | None = {"prompt_tokens": 700, "completion_tokens": 30, "total_tokens": 730}
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.asked = threading.Event()
        """True while a call is hanging."""
        self.left = threading.Event()
        """True once the caller of a hanging call has closed its connection."""
        self.release = threading.Event()
        """Releases hanging calls."""
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                provider.requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                provider.headers.append({name.lower(): value for name, value in self.headers.items()})
                number = min(len(provider.requests), len(provider.orders)) - 1
                provider.orders[number](self)

            def log_message(self, *_: object) -> None:
                """Write no log."""

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"

    def says(self, content: Any, **more: Any) -> None:
        """Answer with a text, or JSON; `more` overrides fields of the message."""
        text = content if isinstance(content, str) else json.dumps(content)
        self._message({"role": "assistant", "content": text, **more})

    def stops_short(self, content: str, **more: Any) -> None:
        """Answer with the text up to `max_tokens`."""
        self._message({"role": "assistant", "content": content, **more}, "length")

    def calls(self, name: str, arguments: Any) -> None:
        """Answer with a tool call."""
        call = {"id": "1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        self._message({"role": "assistant", "content": None, "tool_calls": [call]})

    def refuses(self, why: str) -> None:
        """Answer with a model's refusal."""
        self._message({"role": "assistant", "content": None, "refusal": why})

    def fails(self, status: int, message: str = "no", **headers: str) -> None:
        """Answer with an HTTP error."""
        body = {"error": {"message": message, "type": "error", "code": None}}
        self.orders.append(lambda handler: _send(handler, status, body, headers))

    def speaks(self, text: str) -> None:
        """Answer with an object that is not a completion."""
        self.orders.append(lambda handler: _send(handler, 200, text, {}))

    def cuts(self) -> None:
        """Close the connection in the middle of the answer."""

        def cut(handler: http.server.BaseHTTPRequestHandler) -> None:
            handler.send_response(200)
            handler.send_header("Content-Type", "application/json")
            handler.send_header("Content-Length", "1000")
            handler.end_headers()
            handler.wfile.write(b'{"id": "1", "choices"')
            handler.close_connection = True

        self.orders.append(cut)

    def hangs(self) -> None:
        """Hang until the caller closes the connection, or `release` is set."""

        def hang(handler: http.server.BaseHTTPRequestHandler) -> None:
            self.asked.set()
            while not self.release.is_set():
                readable, _, _ = select.select([handler.connection], [], [], 0.05)
                if readable and not handler.connection.recv(1):
                    self.left.set()
                    break
            handler.close_connection = True

        self.orders.append(hang)

    def _message(self, message: dict[str, Any], reason: str = "stop") -> None:
        body = {
            "id": "1",
            "object": "chat.completion",
            "created": 1,
            "model": "small-2026",
            "choices": [{"index": 0, "finish_reason": reason, "message": message}],
            "usage": self.usage,
        }
        self.orders.append(lambda handler: _send(handler, 200, body, {}))


def _send(handler: http.server.BaseHTTPRequestHandler, status: int, body: Any, headers: dict[str, str]) -> None:
    content = (body if isinstance(body, str) else json.dumps(body)).encode()
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)
