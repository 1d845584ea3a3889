"""The console in the browser, started from the command line."""

from __future__ import annotations

import importlib
import signal
import threading
from typing import TYPE_CHECKING

from rich.text import Text

from callboard.journal import JournalReader
from callboard.terminal._commands import fail
from callboard.terminal._journals import journal_at

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from callboard.console import ConsoleServer
    from callboard.supervisor import Supervisor

_EXTRA = {"starlette", "uvicorn", "jinja2"}


def console_server(journal: Path, supervisor: Supervisor | None, port: int) -> ConsoleServer:
    """Make the console of a journal; report what it lacks in one sentence."""
    try:
        module = importlib.import_module("callboard.console")
        server: ConsoleServer = module.ConsoleServer(journal, supervisor, port=port)
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        fail("the console needs pip install 'callboard[console]'")
    return server


def print_link(console: Console, server: ConsoleServer) -> None:
    """Print the link that opens the console."""
    console.print(Text("the console: ").append(server.link(), "bold"), soft_wrap=True)
    console.print(Text("the link signs in once, within 10 minutes; it is for you alone", style="dim"))


def open_console(console: Console, path: Path | None, port: int) -> None:
    """Show a journal in the browser, until Ctrl-C. Nothing is started or changed."""
    journal = journal_at(path)
    JournalReader.open(journal).close()  # a clear error before the link
    server = console_server(journal, None, port)
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    server.start()
    print_link(console, server)
    console.print(Text("Ctrl-C ends it", style="dim"))
    ended.wait()
    server.stop()
