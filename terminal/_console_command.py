"""The console in the browser, started from the command line."""

from __future__ import annotations

import contextlib
import importlib
import shlex
import signal
import threading
from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text

from callboard.config import install_command
from callboard.journal import JournalReader
from callboard.terminal._commands import fail
from callboard.terminal._journals import journal_at
from callboard.terminal._text import terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rich.console import Console

    from callboard.console import ConsoleServer
    from callboard.supervisor import Supervisor

_EXTRA = {"starlette", "uvicorn", "jinja2"}


def open_console(path: Path | None, port: int | None) -> None:
    """Show a journal in the browser, until Ctrl-C.

    Nothing is started or changed.
    """
    journal = _readable_journal(path)
    with _served(_server(journal, None, port), terminal()):
        pass


def print_new_link(path: Path | None, port: int | None) -> None:
    """Print a new link to a console that is open."""
    journal = _readable_journal(path)
    new_link = _part_of_console("new_link")
    typer.echo(new_link(journal) if port is None else new_link(journal, port))


def _readable_journal(path: Path | None) -> Path:
    """Return the journal at a path, if it can be read."""
    journal = journal_at(path)
    JournalReader.open(journal).close()
    return journal


@contextlib.contextmanager
def console_of(supervisor: Supervisor, *, stays: bool) -> Iterator[None]:
    """Show a supervisor's journal in the browser, until Ctrl-C after the work.

    The link goes to the standard error: the output may be for programs.

    Args:
        supervisor: The supervisor; it has a journal.
        stays: False if there is no console.
    """
    path = supervisor.settings.journal.path
    if not stays or path is None:
        yield
        return
    server = _server(supervisor.settings.path(path), supervisor, None)
    console = terminal(stderr=True)
    with _served(server, console):
        yield
        _print_link(server, console)  # the first one was used, or is too old by now


@contextlib.contextmanager
def console_beside(supervisor: Supervisor, console: Console, *, has_link: bool) -> Iterator[int]:
    """Show a supervisor's journal in the browser; yield the port.

    Args:
        supervisor: The supervisor; it has a journal in a file.
        console: The place of the link.
        has_link: Whether a person alone reads that place; if not, the command that prints a link is printed.
    """
    journal = supervisor.settings.path(supervisor.settings.journal.path or "")
    server = _server(journal, supervisor, None)
    server.start()
    try:
        if has_link:
            _print_link(server, console)
        else:
            command = f"callboard console {shlex.quote(str(journal))} --link --port {server.port}"
            console.print(
                Text("a person answers in the console, whose link this prints: ").append(command), soft_wrap=True
            )
        yield server.port
    finally:
        server.stop()


def _server(journal: Path, supervisor: Supervisor | None, port: int | None) -> ConsoleServer:
    server: ConsoleServer = _part_of_console("ConsoleServer")(journal, supervisor, port=port)
    return server


def _part_of_console(name: str) -> Any:
    """Import a part of the console, if its libraries are installed."""
    try:
        return getattr(importlib.import_module("callboard.console"), name)
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        fail(f"the console needs more packages: {install_command('console')}")


@contextlib.contextmanager
def _served(server: ConsoleServer, console: Console) -> Iterator[None]:
    """Serve a console during a block and after it, until Ctrl-C."""
    server.start()
    try:
        _print_link(server, console)
        yield
        ended = threading.Event()
        handlers = {number: signal.signal(number, lambda *_: ended.set()) for number in (signal.SIGINT, signal.SIGTERM)}
        console.print(Text("the console stays open; Ctrl-C ends it", style="dim"))
        ended.wait()
        for number, handler in handlers.items():
            signal.signal(number, handler)
    finally:
        server.stop()


def _print_link(server: ConsoleServer, console: Console) -> None:
    console.print(Text("the console: ").append(server.link(), "bold"), soft_wrap=True)
    console.print(Text("the link signs in once, within 10 minutes; it is for you alone", style="dim"))
