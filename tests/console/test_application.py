"""The console in a program of its own: its sign-in, and metrics with a token."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

import callboard.console
from callboard import Settings, Supervisor
from callboard.errors import SettingsError
from callboard.testing import MemoryServer
from support import FINISH, PATIENCE, lone

TOKEN = "a-token-of-a-monitor"


def ask(
    application: Any, path: str, *, method: str = "GET", headers: dict[str, str] | None = None, body: bytes = b""
) -> tuple[int, dict[str, str], str]:
    """Send a request to an ASGI application, without a server."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(key.encode(), value.encode()) for key, value in ({"host": "intranet"} | (headers or {})).items()],
        "client": ("127.0.0.1", 1),
        "server": ("intranet", 80),
    }
    sent: list[dict[str, Any]] = []

    async def run() -> None:
        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await asyncio.wait_for(application(scope, receive, send), PATIENCE)

    asyncio.run(run())
    answered = {key.decode(): value.decode() for key, value in sent[0]["headers"]}
    return sent[0]["status"], answered, b"".join(part.get("body", b"") for part in sent[1:]).decode()


@pytest.fixture
def mounted(tmp_path):
    """Give a program that has the console at /console."""
    settings = Settings.load(journal={"path": tmp_path / "journal.db"}, observe={"metrics": True})
    servers = [MemoryServer(MemoryServer.window("one"))]
    with Supervisor.start(settings, models={"app": lambda _: FINISH}, servers=servers) as supervisor:
        supervisor.submit(lone(id="t-1", request="pay Ann")).result(PATIENCE)
        console = callboard.console.app(
            supervisor, person=lambda request: request.headers.get("x-user"), metrics_token=TOKEN
        )
        yield Starlette(routes=[Mount("/console", console)])


def signed_in(mounted, user):
    same = {"origin": "http://intranet", "x-user": user}
    status, headers, body = ask(mounted, "/console/session", method="POST", headers=same, body=b"{}")
    assert status == 200
    return {**same, "cookie": headers["set-cookie"].partition(";")[0], "x-callboard-token": json.loads(body)["token"]}


def test_people_of_the_program_are_signed_in(mounted):
    headers = signed_in(mounted, "ann")
    status, _, body = ask(mounted, "/console/tasks/t-1", headers=headers)
    assert (status, "pay Ann" in body) == (200, True)


def test_without_a_person_nothing_is_shown(mounted):
    headers = signed_in(mounted, "ann")
    headers.pop("x-user")
    for path in ("/console/", "/console/tasks/t-1", "/console/waiting"):
        assert ask(mounted, path, headers=headers)[0] == 401
        assert ask(mounted, path)[0] == 401
    assert ask(mounted, "/console/session", method="POST", headers={"origin": "http://intranet"}, body=b"{}")[0] == 401


def test_session_of_another_person_is_refused(mounted):
    headers = signed_in(mounted, "ann") | {"x-user": "bob"}
    assert ask(mounted, "/console/tasks/t-1", headers=headers)[0] == 401


def test_metrics_need_their_token(mounted):
    for wrong in ({}, {"authorization": "Bearer "}, {"authorization": f"Bearer {TOKEN}x"}, {"x-user": "ann"}):
        assert ask(mounted, "/console/metrics", headers=wrong)[0] == 401
    status, _, body = ask(mounted, "/console/metrics", headers={"authorization": f"Bearer {TOKEN}"})
    assert (status, "callboard" in body, "pay Ann" in body) == (200, True, False)


def test_supervisor_without_a_journal_has_no_console():
    servers = [MemoryServer(MemoryServer.window("one"))]
    with (
        Supervisor.start(Settings.load(), models={"app": lambda _: FINISH}, servers=servers) as supervisor,
        pytest.raises(SettingsError, match=r"journal\.path is not set"),
    ):
        callboard.console.app(supervisor, person=lambda _: "ann")
