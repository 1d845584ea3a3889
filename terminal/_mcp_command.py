"""The command `mcp`: serve other agents and programs."""

from __future__ import annotations

import contextlib
import importlib.util
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import typer

from callboard.config import Settings, install_command
from callboard.history import numbered, plain
from callboard.supervisor import Supervisor
from callboard.terminal._commands import fail, warn
from callboard.terminal._console_command import console_beside
from callboard.terminal._fleet_serving import ServingPeople
from callboard.terminal._journals import journal_in, settings_at, unset
from callboard.terminal._takeover import left_in
from callboard.terminal._task_session import Interrupts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rich.console import Console

    from callboard.actors.client import RequestKind

_TICK = 0.1
_DECIDED: frozenset[RequestKind] = frozenset({"approval", "doubt", "limit"})
"""The kinds of requests that a person decides, and no caller."""
_NO_CONSOLE = "no console is open, so the operator of this server has to start it again with one"


def print_new_token(caller: str | None) -> None:
    """Print a new token and its lines of the settings."""
    from callboard.mcp_server import hash_of, new_token

    token = new_token()
    typer.echo(f"the token, for the client alone; it is not shown again:\n  {token}\nfor the settings:")
    typer.echo(f"  mcp_server:\n    callers:\n      {caller or 'NAME'}:\n        token: {hash_of(token)}")


def mcp_settings(path: Path | None, changes: dict[str, Any]) -> Settings:
    """Read settings with a journal in a file."""
    file = settings_at(path)
    settings = Settings.load(file, **changes)
    if journal_in(settings) is None:
        fail(f"{unset('journal.path', file)}, or say --journal; tasks of callers must survive a restart")
    return settings


def serve_mcp(
    console: Console, settings: Settings, *, caller: str | None, http: bool, port: int | None, has_console: bool
) -> None:
    """Serve one caller over stdio, or all over HTTP.

    Args:
        console: The terminal's standard error: the output is for the client.
        settings: The settings.
        caller: The caller over stdio; None for the usual one.
        http: Whether to serve over HTTP.
        port: The port of HTTP; None for the usual one.
        has_console: Whether people answer in the console in the browser.
    """
    if has_console and importlib.util.find_spec("jinja2") is None:
        warn([f"there is no console for approvals: {install_command('console')}"])
        has_console = False
    unfinished = len(left_in(journal_in(settings)))
    with _ended_by_sigterm(), Supervisor.start(settings) as supervisor:
        warn(supervisor.warnings)
        if unfinished:
            console.print(f"resumes {numbered(unfinished, 'task')} of an earlier start")
        with contextlib.ExitStack() as stack:
            beside = console_beside(supervisor, console, has_link=http)  # a client over stdio reads the standard error
            console_port = stack.enter_context(beside) if has_console else None
            people = _people(console_port, is_terminal=http and sys.stdin.isatty())
            if http:
                _serve_http(console, supervisor, port, people)
            else:
                _serve_stdio(supervisor, caller, people)


def _people(console_port: int | None, *, is_terminal: bool) -> str:
    """Describe how a person answers, for callers to read."""
    ways = []
    if console_port is not None:
        command = f"callboard console --link --port {console_port}"
        ways.append(f"in the console on this machine (in the folder of the settings: {command})")
    if is_terminal:
        ways.append("in the terminal of callboard mcp")
    return " or ".join(ways) or _NO_CONSOLE


def _serve_stdio(supervisor: Supervisor, caller: str | None, people: str) -> None:
    from callboard.mcp_server import LOCAL, serve_stdio

    serve_stdio(supervisor, caller=caller or LOCAL, people=people)


def _serve_http(console: Console, supervisor: Supervisor, port: int | None, people: str) -> None:
    """Serve over HTTP until Ctrl-C.

    In a terminal, approvals, actions in doubt and limits are asked there, too.
    """
    from callboard.mcp_server import HttpTaskServer

    server = HttpTaskServer(supervisor, port=port, people=people)
    server.start()
    try:
        console.print(f"callers reach Callboard at {plain(server.url)}; Ctrl-C ends it", soft_wrap=True)
        asked = ServingPeople(console, supervisor, _DECIDED) if sys.stdin.isatty() else None
        with Interrupts() as interrupts:
            while not interrupts.requested:
                time.sleep(_TICK)
                if asked is not None:
                    asked.poll()
    finally:
        server.stop()


@contextlib.contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """End the program on SIGTERM, after the supervisor has stopped."""

    def end(number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        raise SystemExit(128 + number)

    handler = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)
