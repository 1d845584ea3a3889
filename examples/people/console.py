"""The console inside a web program with a sign-in of its own.

People sign in with a name and a password, and see the console under ``/console``.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import socket
import sys
from urllib.parse import parse_qs

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request  # noqa: TC002 - an example shows all of its imports
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route

from callboard import FunctionModel, ModelRequest, Settings, Supervisor, Task, answers
from callboard.console import app
from callboard.testing import MemoryServer

POLICY = [{"verdict": "approve", "tool": "append", "reason": "appended text stays"}]
COOKIE = "session"
FORM = """<!doctype html><html lang="en"><title>Sign in</title><form method="post">
<label>Name <input name="name"></label> <label>Password <input name="password" type="password"></label>
<button>Sign in</button></form></html>"""


def work(request: ModelRequest) -> answers.Answer:
    """Append, and finish."""
    if request.memory:
        return answers.finish()
    return answers.act("append", control="field-1", text=request.request)


def slow_hash(password: str, salt: bytes) -> bytes:
    """Hash a password so that guesses take time."""
    return hashlib.scrypt(password.encode(), salt=salt, n=2**14, r=8, p=1)


class SignIn:
    """Passwords of people, and the sessions of those who are signed in."""

    def __init__(self, passwords: dict[str, str]) -> None:
        self.salt = secrets.token_bytes(16)
        self.hashes = {name: slow_hash(password, self.salt) for name, password in passwords.items()}
        self.sessions: dict[str, str] = {}

    def person(self, request: Request) -> str | None:
        """Return who is signed in; the console calls this for each request."""
        return self.sessions.get(request.cookies.get(COOKIE, ""))

    async def form(self, request: Request) -> Response:
        """Ask for a name and a password, then show the console."""
        if request.method != "POST":
            return HTMLResponse(FORM)
        fields = parse_qs((await request.body()).decode())
        name, password = fields.get("name", [""])[0], fields.get("password", [""])[0]
        if not hmac.compare_digest(slow_hash(password, self.salt), self.hashes.get(name, b"")):
            return HTMLResponse(FORM, 401)
        session = secrets.token_urlsafe(32)
        self.sessions[session] = name
        response = RedirectResponse("/console/", 303)
        response.set_cookie(COOKIE, session, httponly=True, samesite="strict")
        return response

    async def leave(self, request: Request) -> Response:
        """Sign out; the console is closed with it."""
        self.sessions.pop(request.cookies.get(COOKIE, ""), None)
        return RedirectResponse("/", 303)


def application(supervisor: Supervisor, sign_in: SignIn) -> Starlette:
    """Make the web application."""
    return Starlette(
        routes=[
            Route("/", sign_in.form, methods=["GET", "POST"]),
            Route("/leave", sign_in.leave, methods=["POST"]),
            Mount("/console", app(supervisor, person=sign_in.person)),
        ]
    )


def main(port: int = 8000) -> None:
    """Serve until Ctrl-C, with a task that waits for an approval."""
    window = MemoryServer.window()
    settings = Settings.load(policy=POLICY, journal={"path": "people.db"})
    sign_in = SignIn({"ada": "an example"})
    with (
        Supervisor.start(settings, models={"app": FunctionModel(work)}, servers=[MemoryServer(window)]) as supervisor,
        socket.create_server(("127.0.0.1", port)) as listening,
    ):
        supervisor.submit(Task(request="hello", target=window.id))
        print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        config = uvicorn.Config(application(supervisor, sign_in), log_level="warning", timeout_graceful_shutdown=1)
        uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
