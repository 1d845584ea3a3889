"""Serve tasks by AG-UI, and be the front end: ``python examples/agui/run.py``.

The program mounts `callboard.agui.app` beside its own pages, with its own sign-in. The front end sends a request, shows
the approval that it waits for, approves it as the signed-in person, and reads the rest. A function replaces the
language model, and no network is needed.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
from starlette.applications import Starlette
from starlette.routing import Mount

import callboard.agui
from callboard import FunctionModel, ModelRequest, Settings, Supervisor

if TYPE_CHECKING:
    from starlette.requests import Request

SESSIONS = {"b2c1": "Ann"}
"""The sign-ins of the program's own pages."""


def signed_in(request: Request) -> str | None:
    """Return the person of a session; None without one."""
    return SESSIONS.get(request.cookies.get("session", ""))


def clerk(request: ModelRequest) -> dict[str, Any]:
    """Add a row to the list, and finish."""
    if request.memory:
        return {"Status": "FINISH", "Comment": "The customer is in the list."}
    return {"Status": "CONTINUE", "Function": "append_rows", "Args": {"rows": [["Kim & Sons", "Oslo"]]}}


async def do_run(client: httpx2.AsyncClient, run_id: str, **fields: Any) -> list[dict[str, Any]]:
    """Do one run of the thread, and return its events."""
    run_input = {"threadId": "customers", "runId": run_id, "messages": [], "protocolVersion": "1.0", **fields}
    response = await client.post("/agui/", json=run_input, headers={"origin": "http://office"})
    response.raise_for_status()
    return [json.loads(block.removeprefix("data: ")) for block in response.text.split("\n\n") if block[:5] == "data:"]


async def use(application: Starlette) -> None:
    """Send a request, approve what it waits for, and print the events."""
    transport = httpx2.ASGITransport(app=application)
    async with httpx2.AsyncClient(transport=transport, base_url="http://office", cookies={"session": "b2c1"}) as client:
        message = {"id": "1", "role": "user", "content": "Add Kim & Sons, Oslo"}
        options = {"callboard": {"target": "customers.csv"}}
        events = await do_run(client, "run-1", messages=[message], forwardedProps=options)
        print("run-1:", ", ".join(event["type"] for event in events))
        (interrupt,) = events[-1]["outcome"]["interrupts"]
        print("asks:", interrupt["message"].splitlines()[-1])
        answer = {"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": True}}
        events = await do_run(client, "run-2", resume=[answer])
        print("run-2:", ", ".join(event["type"] for event in events))
        print("text:", " ".join(event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT"))


def main() -> int:
    """Run the program in a new folder, and print the list."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name, "customers.csv")
        file.write_text("name,city\nLee,Bergen\n", encoding="utf-8")
        settings = Settings.load(
            documents={"workspace": name},
            journal={"path": Path(name, "journal.db")},
            policy=[{"verdict": "approve", "tool": "append_rows"}],
        )
        with Supervisor.start(settings, models={"app": FunctionModel(clerk)}) as supervisor:
            application = Starlette(routes=[Mount("/agui", callboard.agui.app(supervisor, person=signed_in))])
            asyncio.run(use(application))
        print("the list:", file.read_text(encoding="utf-8").splitlines()[-1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
