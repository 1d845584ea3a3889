"""A supervisor, its console, and a browser that is signed in."""

from __future__ import annotations

import contextlib
import http.client
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import sync_playwright

from callboard import Settings, Supervisor
from callboard.console import ConsoleServer
from callboard.testing import MemoryServer
from chromium import need_browser, running_browser
from support import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page


@dataclass
class Office:
    """A supervisor with one window, whose console is served."""

    journal: Path
    supervisor: Supervisor
    server: ConsoleServer
    surface: MemoryServer
    session: dict[str, str] = field(default_factory=dict)
    """The headers of a session that is signed in."""

    def ask(
        self, path: str, *, method: str = "GET", body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, str, dict[str, str]]:
        """Send a request, without any header of a browser."""
        status, data, answered = self.ask_bytes(path, method=method, body=body, headers=headers)
        return status, data.decode(), answered

    def ask_bytes(
        self, path: str, *, method: str = "GET", body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes, dict[str, str]]:
        """Send a request, and give the bytes of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE)
        text = None if body is None else body if isinstance(body, bytes) else json.dumps(body)
        connection.request(method, path, text, headers or {})
        response = connection.getresponse()
        answer = response.status, response.read(), {key.lower(): value for key, value in response.getheaders()}
        connection.close()
        return answer

    @property
    def origin(self) -> str:
        """The origin of its pages."""
        return f"http://127.0.0.1:{self.server.port}"

    def sign_in(self) -> dict[str, str]:
        """Use a link, and give the headers of its page."""
        link = self.server.link().partition("#")[2]
        same = {"origin": self.origin}
        _, body, headers = self.ask("/session", method="POST", body={"link": link}, headers=same)
        cookie = headers["set-cookie"].partition(";")[0]
        return {**same, "cookie": cookie, "x-callboard-token": json.loads(body)["token"]}


@contextlib.contextmanager
def _offices(folder: Path) -> Iterator[Callable[..., Office]]:
    """Start supervisors with a console, on a journal in a folder."""
    opened: list[Office] = []

    def start(*, port: int = 0, **given: Any) -> Office:
        models = {kind: given.pop(kind) for kind in ("host", "app") if kind in given}
        journal = folder / "journal.db"
        surface = MemoryServer(*map(MemoryServer.window, given.pop("windows", ("one",))))
        servers = [surface, *given.pop("servers", ())]
        settings = Settings.load(journal={"path": journal}, **given)
        supervisor = Supervisor.start(settings, models=models, servers=servers)
        server = ConsoleServer(journal, supervisor, port=port)
        server.start()
        opened.append(Office(journal, supervisor, server, surface))
        return opened[-1]

    yield start
    for started in opened:
        started.server.stop()
        started.supervisor.stop()


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Callable[..., Office]]:
    """Start a supervisor with a console: ``office(app=model)``."""
    with _offices(tmp_path) as start:
        yield start


@pytest.fixture(scope="module")
def shared_office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Office]]:
    """Start a supervisor with a console until the end of a file."""
    with _offices(tmp_path_factory.mktemp("console")) as start:
        yield start


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Give a browser, until the end of a file.

    Its event loop would be in the way of tests with loops of their own.
    """
    need_browser()
    with running_browser("console-") as address, sync_playwright() as playwright:
        yield playwright.chromium.connect_over_cdp(address)


@contextlib.contextmanager
def _page(browser: Browser) -> Iterator[Page]:
    """Open a page in a profile of its own.

    An error of its scripts fails at the end.
    """
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    context.set_default_timeout(PATIENCE * 1000)
    opened = context.new_page()
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    yield opened
    context.close()
    assert errors == []


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Give a page in a profile of its own.

    An error of its scripts fails the test.
    """
    with _page(browser) as opened:
        yield opened


@pytest.fixture(scope="module")
def shared_page(browser: Browser) -> Iterator[Page]:
    """Give the same page to the tests of a file."""
    with _page(browser) as opened:
        yield opened
