"""The console inside a program that has a sign-in of its own."""

from __future__ import annotations

import json

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from callboard.console import app
from callboard.errors import SettingsError
from callboard.testing import MemoryServer
from support import FINISH, PATIENCE, lone

HERE = "http://here"


@pytest.fixture
def mounted(start, tmp_path):
    """Mount a console: ``client, people = mounted(root="/console")``; ``people["name"]`` is who is signed in."""

    def mount(root="/console", person=None, base=""):
        supervisor = start(app=lambda _: FINISH, servers=[MemoryServer(MemoryServer.window("one"))],
                           journal={"path": tmp_path / "journal.db"})  # fmt: skip
        supervisor.submit(lone(request="pay Ann", id="t-1")).result(PATIENCE)
        people = {"name": "ann"}
        program = Starlette(routes=[Mount(root, app(supervisor, person or (lambda _: people["name"])))])
        transport = httpx2.ASGITransport(app=program, root_path=base)
        return httpx2.AsyncClient(transport=transport, base_url=HERE, headers={"origin": HERE}), people

    return mount


async def signed_in(client, root="/console"):
    """Sign in, and return the headers of the page, and the cookie's attributes."""
    response = await client.post(f"{root}/session", json={"link": "x"})
    assert response.status_code == 200, response.text
    return {"x-callboard-token": response.json()["token"]}, response.headers["set-cookie"]


@pytest.mark.parametrize("name", [None, ""])
async def test_sign_out_of_the_program_ends_the_session(mounted, name):
    client, people = mounted()
    async with client:
        headers, _ = await signed_in(client)
        assert "pay Ann" in (await client.get("/console/tasks/t-1", headers=headers)).text
        people["name"] = name
        for path in ("/", "/tasks/t-1", "/events", "/waiting"):
            for more in ({}, headers):
                assert (await client.get(f"/console{path}", headers=more)).status_code == 401
        assert (await client.post("/console/session", json={})).status_code == 401
        assert (await client.post("/console/tasks/t-1/cancel", headers=headers)).status_code == 401


async def test_session_of_one_person_is_none_of_another(mounted):
    client, people = mounted()
    async with client:
        headers, _ = await signed_in(client)
        people["name"] = "bob"
        assert (await client.get("/console/tasks/t-1", headers=headers)).status_code == 401


async def test_second_tab_leaves_the_first_one_signed_in(mounted):
    client, _ = mounted()
    async with client:
        first, _ = await signed_in(client)
        second, _ = await signed_in(client)
        for headers in (first, second):
            assert (await client.get("/console/tasks/t-1", headers=headers)).status_code == 200


async def test_person_may_be_a_coroutine_function(mounted):
    async def person(request):
        return request.headers.get("x-user")

    client, _ = mounted(person=person)
    async with client:
        assert (await client.get("/console/")).status_code == 401
        client.headers["x-user"] = "ann"
        headers, _ = await signed_in(client)
        assert "pay Ann" in (await client.get("/console/tasks/t-1", headers=headers)).text


@pytest.mark.parametrize(
    ("root", "shown"),
    [
        ("/console", "/console"),
        ("/a b/ü", "/a%20b/%C3%BC"),
        ('/x"><script>', "/x%22%3E%3Cscript%3E"),
        ("/a;b", "/a%3Bb"),
    ],
)
async def test_path_of_the_program_stands_in_links_and_the_cookie(mounted, root, shown):
    client, _ = mounted(root)
    async with client:
        frame = (await client.get(f"{shown}/")).text
        assert f'data-root="{shown}"' in frame
        assert f'src="{shown}/static/console.js' in frame
        assert (await client.get(f"{shown}/static/console.js")).status_code == 200
        headers, cookie = await signed_in(client, shown)
        assert f"Path={shown};" in cookie
        assert "pay Ann" in (await client.get(f"{shown}/tasks/t-1", headers=headers)).text


@pytest.mark.parametrize(
    "path", ["/console/static/../tasks/t-1", "/console/static/%2e%2e/tasks/t-1", "/console//tasks/t-1"]
)
async def test_no_open_path_leads_to_a_task(mounted, path):
    client, _ = mounted()
    async with client:
        headers, _ = await signed_in(client)
        for more in ({}, headers):
            response = await client.get(path, headers=more)
            assert response.status_code in {200, 404}
            assert "pay Ann" not in response.text or more


async def test_websocket_is_closed(mounted):
    client, _ = mounted()
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "websocket.connect"}

    scope = {"type": "websocket", "path": "/console/events", "root_path": "", "headers": [], "query_string": b"",
             "scheme": "ws", "subprotocols": [], "asgi": {"version": "3.0"}}  # fmt: skip
    async with client:
        await client._transport.app(scope, receive, send)  # noqa: SLF001 - it has no WebSockets
    assert json.dumps(sent) == '[{"type": "websocket.close", "code": 1008}]'


def test_supervisor_without_a_journal_has_no_console(start):
    with pytest.raises(SettingsError, match=r"journal\.path is not set"):
        app(start(app=lambda _: FINISH), person=lambda _: "ann")


def test_empty_token_of_the_metrics_is_refused(start, tmp_path):
    supervisor = start(app=lambda _: FINISH, journal={"path": tmp_path / "journal.db"})
    with pytest.raises(SettingsError, match="metrics_token is empty"):
        app(supervisor, person=lambda _: "ann", metrics_token="")


async def test_consoles_of_two_journals_on_one_host_have_their_own_cookies(start, tmp_path):
    names = set()
    for name in ("one", "two"):
        supervisor = start(app=lambda _: FINISH, journal={"path": tmp_path / f"{name}.db"})
        transport = httpx2.ASGITransport(app=Starlette(routes=[Mount("/console", app(supervisor, lambda _: "ann"))]))
        async with httpx2.AsyncClient(transport=transport, base_url=HERE, headers={"origin": HERE}) as client:
            names.add((await signed_in(client))[1].partition("=")[0])
    assert len(names) == 2
