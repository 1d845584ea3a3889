"""A third-party MCP server over stdio, on the standard library alone, which starts fast."""

from __future__ import annotations

import functools
import json
import os
import signal
import socket
import sys
import threading
from pathlib import Path

sending = threading.Lock()
cancelled: dict[int, threading.Event] = {}
"""The calls that hang, by the ids of their requests."""


def send(**message):
    with sending:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def structured(value):
    return {"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": value}


def text(value):
    return {"content": [{"type": "text", "text": value}]}


def failure(why):
    return {**text(why), "isError": True}


def hang(number, port):
    """Say on a socket that it began; after a cancel, that it left."""
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.sendall(b"begun\n")
        cancelled[number].wait()
        line.sendall(b"left\n")


def freeze():
    """Stop the whole process."""
    os.kill(os.getpid(), signal.SIGSTOP)


def leave():
    """End the process in the middle of a call."""
    os._exit(3)


TOOLS = {
    "add": lambda a, b: structured({"result": a + b}),
    "put": lambda key: structured({"key": key, "success": True}),
    "lock": lambda: failure("the shelf is locked"),
    "refuse": lambda: structured({"success": False, "error": "no paper"}),
    "refuse_in_text": lambda: text(json.dumps({"success": False, "error": "no ink"})),
    "words": lambda: text("just words"),
    "pid": lambda: structured({"result": os.getpid()}),
    "environment": lambda name: structured({"result": os.environ.get(name, "")}),
    "folder": lambda: structured({"result": str(Path.cwd())}),
    "flood": lambda size: text("x" * size),
    "leak": lambda name: failure(f"the key {os.environ[name]} is wrong"),
    "freeze": freeze,
    "leave": leave,
    "faint": leave,
}
INTEGERS = {"a": {"type": "integer"}, "b": {"type": "integer"}}
LISTED = [
    {
        "name": "add",
        "description": "Add two numbers.",
        "inputSchema": {"type": "object", "properties": INTEGERS, "required": ["a", "b"]},
    },
    {"name": "faint", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    *({"name": name, "inputSchema": {"type": "object"}} for name in {*TOOLS, "hang"} - {"add", "faint"}),
]
ABOUT = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "notes", "title": "A shelf of notes", "version": "1"},
    "instructions": "Put notes by key.",
}


def answer(message):
    """Answer one request or notification."""
    match message:
        case {"method": "initialize", "id": number}:
            send(id=number, result=ABOUT)
        case {"method": "ping", "id": number}:
            send(id=number, result={})
        case {"method": "tools/list", "id": number}:
            send(id=number, result={"tools": LISTED})
        case {"method": "tools/call", "id": number, "params": {"name": "hang", "arguments": {"port": port}}}:
            cancelled[number] = threading.Event()
            threading.Thread(target=functools.partial(hang, number, port), daemon=True).start()
        case {"method": "tools/call", "id": number, "params": {"name": name, **params}}:
            send(id=number, result=TOOLS[name](**params.get("arguments") or {}))
        case {"method": "notifications/cancelled", "params": {"requestId": number}} if number in cancelled:
            cancelled[number].set()
        case {"id": number}:
            send(id=number, error={"code": -32601, "message": "Method not found"})


if "NOTES_PID" in os.environ:
    Path(os.environ["NOTES_PID"]).write_text(str(os.getpid()), encoding="utf-8")
for received in sys.stdin:
    answer(json.loads(received))
