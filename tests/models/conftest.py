"""A request as an agent makes it, and a provider on this machine that misbehaves on order."""

from __future__ import annotations

import http.server
import json
import select
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from callboard.actors.models import ModelRequest
from callboard.messages import (
    AgentKind,
    CommandResult,
    Control,
    Decision,
    Observation,
    Outcome,
    ResultStatus,
    StepRecord,
    SubtaskResult,
    Target,
    TargetKind,
)
from callboard.testing import MemoryServer
from support import lone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Asks = Callable[..., ModelRequest]

WINDOW = Target(
    id="report.docx", name="Report", kind=TargetKind.WINDOW, address="app/word/report.docx", server="documents"
)
SEEN = Observation(targets=(WINDOW,), controls=(Control(id="table-1", name="Sales", kind="table", detail={"rows": 4}),))
STEP = StepRecord(
    step=1,
    status="CONTINUE",
    observation=SEEN,
    decision=Decision(status="CONTINUE"),
    results=(
        CommandResult(call_id="t/2.1.0", tool="read", status=ResultStatus.SUCCESS, value={"rows": [[1, 2.5], ["a"]]}),
    ),
)
DONE = SubtaskResult(
    run_id="t/1",
    number=1,
    request="read the table",
    address="app/word/report.docx",
    outcome=Outcome.FINISHED,
    output={"rows": 4, "ratio": 0.5, "done": True, "none": None, "cells": [["a", 1]], "0": "zero"},
    artifacts=("/srv/report.docx",),
)


@pytest.fixture
def asks() -> Asks:
    """Make a request: ``asks(call=2)``."""

    def request(**fields: Any) -> ModelRequest:
        shared: dict[str, Any] = {
            "address": "app/excel/book.xlsx",
            "kind": AgentKind.APP,
            "task_id": "t",
            "run_id": "t/2",
            "step": 2,
            "call": 1,
            "status": "CONTINUE",
            "statuses": ("CONTINUE", "FINISH"),
            "instructions": "Work.",
            "task_request": "make a chart of the sales",
            "request": "make a chart",
            "target": WINDOW,
            "plan": (),
            "observation": SEEN,
            "memory": (STEP,),
            "subtasks": (DONE,),
            "tools": (),
        }
        return ModelRequest(**{**shared, **fields})

    return request


class LocalProvider:
    """Speaks the OpenAI protocol on the loopback device, and answers each call as it was told, in order.

    What was sent is in `requests`; of calls past the orders, the last order holds.
    """

    def __init__(self) -> None:
        self.orders: list[Callable[[http.server.BaseHTTPRequestHandler], None]] = []
        self.usage: dict[str, int] | None = {"prompt_tokens": 700, "completion_tokens": 30, "total_tokens": 730}
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.asked = threading.Event()
        """Whether a call is hanging."""
        self.left = threading.Event()
        """Whether the caller of a call that hung has closed its connection."""
        self.release = threading.Event()
        """Lets calls that hang go on."""
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                provider.requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                provider.headers.append({name.lower(): value for name, value in self.headers.items()})
                number = min(len(provider.requests), len(provider.orders)) - 1
                provider.orders[number](self)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"

    def says(self, content: Any, **more: Any) -> None:
        """Answer with a text, or an object as JSON; `more` beats fields of the message."""
        text = content if isinstance(content, str) else json.dumps(content)
        self._message({"role": "assistant", "content": text, **more})

    def stops_short(self, content: str, **more: Any) -> None:
        """Answer with what there was when `max_tokens` were used up."""
        self._message({"role": "assistant", "content": content, **more}, "length")

    def calls(self, name: str, arguments: Any) -> None:
        """Answer with the call of a tool."""
        call = {"id": "1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        self._message({"role": "assistant", "content": None, "tool_calls": [call]})

    def refuses(self, why: str) -> None:
        """Refuse, as a model does."""
        self._message({"role": "assistant", "content": None, "refusal": why})

    def fails(self, status: int, message: str = "no", **headers: str) -> None:
        """Answer with an HTTP error."""
        body = {"error": {"message": message, "type": "error", "code": None}}
        self.orders.append(lambda handler: _send(handler, status, body, headers))

    def speaks(self, text: str) -> None:
        """Answer with something that is no completion."""
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
        """Say nothing until the caller closes the connection, or `release` is set."""

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


@pytest.fixture
def make_provider() -> Iterator[Callable[[], LocalProvider]]:
    """Start providers; all are stopped."""
    with ExitStack() as running:

        def make() -> LocalProvider:
            provider = LocalProvider()
            thread = threading.Thread(target=provider.http.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            running.callback(thread.join)
            running.callback(provider.http.server_close)
            running.callback(provider.http.shutdown)
            running.callback(provider.release.set)
            return provider

        yield make


@pytest.fixture
def provider(make_provider: Callable[[], LocalProvider]) -> LocalProvider:
    """A provider on this machine."""
    return make_provider()


@pytest.fixture
def on_window(start):
    """Submit a task on ``memo:one`` to a supervisor with these settings."""

    def submit(surface=None, request="write hello", **sections):
        supervisor = start(servers=[surface or MemoryServer(MemoryServer.window())], **sections)
        return supervisor.submit(lone(request=request))

    return submit


@pytest.fixture
def run(on_window, provider):
    """Run a task with the provider's model; other keywords are the provider's settings."""

    def submit(request="write hello", *, surface=None, more=None, record=None, **options):
        sections = {name: options.pop(name) for name in ("limits", "budget", "clock") if name in options}
        models = {"app": "local:small"} | ({} if record is None else {"record": str(record)})
        providers = {"local": {"url": provider.url, **options}, **(more or {})}
        return on_window(surface, request, models=models, providers=providers, **sections)

    return submit
